//! `set-timeout` and `set-retries` (manual §4.4).

use config::model::{Amount, TimeoutKind};

use super::Cx;
use crate::stream::Stream;

/// The largest number of retries that an expression may set.
const RETRIES_MAX: i64 = 100;

impl Cx<'_> {
    /// Sets a timeout of the stream.
    pub fn set_timeout(&mut self, stream: &mut Stream, kind: TimeoutKind, amount: &Amount) {
        let ms = match amount {
            Amount::Fixed(ms) => Some(*ms),
            Amount::Expr(expr) => {
                let value = self.eval().int(stream, expr);
                value.and_then(|value| u32::try_from(value).ok())
            }
        };
        // A value that is not a valid time changes nothing.
        let Some(ms) = ms else { return };
        stream.set_timeout(kind, ms);
    }

    /// Sets how often a connection to a server is retried.
    pub fn set_retries(&mut self, stream: &mut Stream, amount: &Amount) {
        let retries = match amount {
            Amount::Fixed(retries) => Some(*retries),
            Amount::Expr(expr) => {
                let value = self.eval().int(stream, expr);
                let value = value.filter(|value| (0..=RETRIES_MAX).contains(value));
                value.map(|value| value as u32)
            }
        };
        if retries.is_some() {
            stream.txn.retries_max = retries;
        }
    }
}
