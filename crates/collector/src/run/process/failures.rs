//! What becomes of conditions and statements that cannot be evaluated.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use otlp::scan::Malformed;
use ottl::Failure;
use tail::settings::ErrorMode;

use crate::run::Log;

/// Why a batch is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is malformed.
    Malformed(Malformed),
    /// A condition or a statement failed, which was to be propagated.
    Ottl(Failure),
}

impl From<Malformed> for Fault {
    fn from(fault: Malformed) -> Fault {
        Fault::Malformed(fault)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Malformed(fault) => fault.fmt(f),
            Fault::Ottl(failure) => write!(f, "a statement or condition failed: {failure}"),
        }
    }
}

/// Counts failures, and tells of them less and less often.
pub struct Failures {
    id: String,
    log: Log,
    count: AtomicU64,
}

impl fmt::Debug for Failures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Failures({})", self.id)
    }
}

impl Failures {
    /// Of a processor.
    #[must_use]
    pub fn new(id: &str, log: &Log) -> Failures {
        Failures {
            id: id.to_owned(),
            log: log.clone(),
            count: AtomicU64::new(0),
        }
    }

    /// Takes a failure of `text`. The first, the tenth, the hundredth and so on are told.
    ///
    /// # Errors
    /// It is to be propagated.
    pub fn take(&self, failure: Failure, text: &str, mode: ErrorMode) -> Result<(), Fault> {
        match mode {
            ErrorMode::Propagate => return Err(Fault::Ottl(failure)),
            ErrorMode::Silent => return Ok(()),
            ErrorMode::Ignore => {}
        }
        let count = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        if 10_u64.pow(count.ilog10()) == count {
            let shown = crate::config::source::shortened(text);
            let id = &self.id;
            let line = format!("processor '{id}': '{shown}' failed: {failure} (failures: {count})");
            self.log.warn(&line);
        }
        Ok(())
    }
}
