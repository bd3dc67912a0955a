//! What a collector says about itself.

use std::fmt;
use std::sync::Arc;

use export::clock::now_unix_ns;
use jiff::Timestamp;

/// How grave a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Level {
    Debug,
    Info,
    Warn,
    Error,
}

/// Text from outside: what would move a terminal's cursor, or begin a line that looks like one of
/// ours, is escaped.
pub struct Shown<'a>(pub &'a str);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in self.0.split_inclusive(|c: char| c.is_control()) {
            let clean = part.trim_end_matches(|c: char| c.is_control());
            out.write_str(clean)?;
            write!(out, "{}", part[clean.len()..].escape_default())?;
        }
        Ok(())
    }
}

/// Now, in RFC 3339 with milliseconds, as lines begin.
#[must_use]
pub fn time() -> String {
    let now = Timestamp::from_nanosecond(i128::from(now_unix_ns()));
    format!("{:.3}", now.unwrap_or_default())
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
