//! What a collector says about itself.

use std::sync::Arc;

/// How grave a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Level {
    Debug,
    Info,
    Warn,
    Error,
}

type Write = dyn Fn(Level, &str) + Send + Sync;

/// Takes lines; called from any thread.
#[derive(Clone)]
pub struct Log(Arc<Write>);

impl Log {
    /// One that hands lines to a function.
    pub fn new(write: impl Fn(Level, &str) + Send + Sync + 'static) -> Log {
        Log(Arc::new(write))
    }

    /// For information.
    pub fn info(&self, line: &str) {
        (self.0)(Level::Info, line);
    }

    /// Something may be wrong.
    pub fn warn(&self, line: &str) {
        (self.0)(Level::Warn, line);
    }

    /// Something is wrong.
    pub fn error(&self, line: &str) {
        (self.0)(Level::Error, line);
    }
}
