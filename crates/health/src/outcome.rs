//! The result of a check before it is complete.

use std::time::Duration;

use config::model::CheckStatus;
use proxy::CheckOutcome;

/// The end of a check, without its duration.
#[derive(Debug)]
pub(crate) struct Verdict {
    pub status: CheckStatus,
    pub text: String,
}

impl Verdict {
    pub fn new(status: CheckStatus, text: impl Into<String>) -> Verdict {
        Verdict {
            status,
            text: text.into(),
        }
    }

    /// The complete outcome, with the code of the reply and the duration of the check.
    pub fn outcome(self, code: i64, duration: Duration) -> CheckOutcome {
        CheckOutcome {
            status: self.status,
            code,
            description: self.text,
            duration: Some(duration),
            said: None,
        }
    }
}
