//! What a check came to while it is under way.

use std::time::Duration;

use config::model::CheckStatus;
use proxy::CheckOutcome;

/// The end of a check, before its time is known.
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

    /// The outcome, with the code of the answer and the time that it took.
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
