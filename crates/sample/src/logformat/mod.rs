//! Log formats: text, aliases and expressions, rendered into a line (manual §8.2).

use crate::Scope;

/// `option httplog` (manual §8.2.3).
pub const HTTP: &str = "%ci:%cp [%tr] %ft %b/%s %TR/%Tw/%Tc/%Tr/%Ta %ST %B %CC %CS %tsc %ac/%fc/%bc/%sc/%rc %sq/%bq %hr %hs %{+Q}r";

/// A compiled log format. Cheap to clone.
#[derive(Clone, Debug)]
pub struct LogFormat {}

impl LogFormat {
    /// Appends the text. Allocates nothing but what `out` has to grow.
    pub fn render(&self, _scope: &Scope<'_>, _out: &mut Vec<u8>) {
        unimplemented!()
    }

    /// The whole text when it is constant: nothing in it depends on the scope.
    #[must_use]
    pub fn constant(&self) -> Option<&[u8]> {
        unimplemented!()
    }
}
