//! Expressions: a fetch and its converters, as a typed program.

use crate::{Kind, Scope, Value};

/// A compiled expression. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Expr {}

impl Expr {
    /// The sample; none when a fetch or a converter has no value here.
    #[must_use]
    pub fn eval<'a>(&'a self, _scope: &Scope<'a>) -> Option<Value<'a>> {
        unimplemented!()
    }

    /// Appends the sample as text, as HAProxy casts it to a string; nothing when there is none.
    pub fn append_text(&self, _scope: &Scope<'_>, _out: &mut Vec<u8>) {
        unimplemented!()
    }

    /// The type of the sample.
    #[must_use]
    pub fn kind(&self) -> Kind {
        unimplemented!()
    }
}
