//! Settings of one kind of component among several, behind one type.

use std::any::Any;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// Abilities of all settings: a reload compares them, a message shows them.
pub trait Value: Any + fmt::Debug + Send + Sync {
    /// Whether `other` is of the same kind and has the same values.
    fn is_same(&self, other: &dyn Any) -> bool;

    /// The settings as a value whose type can be asked for.
    fn as_any(&self) -> &dyn Any;
}

impl<T: Any + fmt::Debug + PartialEq + Send + Sync> Value for T {
    fn is_same(&self, other: &dyn Any) -> bool {
        other.downcast_ref::<T>() == Some(self)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Settings whose kind only their table entry knows. `S` is the trait of their role, for instance
/// [`dyn ProcessorSettings`](super::processors::ProcessorSettings).
pub struct Erased<S: ?Sized>(Arc<S>);

impl<S: ?Sized + Value> Erased<S> {
    /// Shares settings of any kind.
    pub(super) fn share(settings: Arc<S>) -> Erased<S> {
        Erased(settings)
    }

    /// The settings if they are of this type, for tests and tools. Components are asked by the
    /// methods of their trait.
    #[must_use]
    pub fn get<T: Any>(&self) -> Option<&T> {
        self.0.as_any().downcast_ref()
    }
}

impl<S: ?Sized> Deref for Erased<S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.0
    }
}

impl<S: ?Sized> Clone for Erased<S> {
    fn clone(&self) -> Erased<S> {
        Erased(Arc::clone(&self.0))
    }
}

impl<S: ?Sized + Value> PartialEq for Erased<S> {
    fn eq(&self, other: &Erased<S>) -> bool {
        self.0.is_same(other.0.as_any())
    }
}

impl<S: ?Sized + Value> fmt::Debug for Erased<S> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    trait Role: Value {}
    impl Role for u8 {}
    impl Role for String {}

    #[test]
    fn settings_are_equal_if_their_kind_and_their_values_are() {
        let number = |number: u8| Erased::<dyn Role>::share(Arc::new(number));
        let text = Erased::<dyn Role>::share(Arc::new("1".to_owned()));
        assert_eq!(number(1), number(1).clone());
        assert_ne!(number(1), number(2));
        assert_ne!(number(1), text);
        assert_eq!((number(1).get::<u8>(), text.get::<u8>()), (Some(&1), None));
        assert_eq!(format!("{text:?}"), "\"1\"");
    }
}
