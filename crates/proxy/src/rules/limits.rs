//! `set-timeout` and `set-retries` (manual §4.4).

use config::model::{Amount, TimeoutKind};
use net::Driver;

use super::RuleSet;
use crate::engine::{Core, Cx};
use crate::running::deadline;
use crate::stream::Stream;

/// The most tries that an expression may ask for.
const RETRIES_MAX: i64 = 100;

impl Core {
    /// Sets a timeout of the stream. In a response the side that is waited for has the new one at once.
    pub fn set_timeout<D: Driver>(
        &mut self,
        cx: &Cx<'_, D>,
        stream: &mut Stream,
        set: RuleSet,
        (kind, amount): (TimeoutKind, &Amount),
    ) {
        let ms = match amount {
            Amount::Fixed(ms) => Some(*ms),
            Amount::Expr(expr) => {
                let value = self.int(cx, stream, expr);
                value.and_then(|value| u32::try_from(value).ok())
            }
        };
        // What is no time leaves it as it was.
        let Some(ms) = ms else { return };
        stream.set_timeout(kind, ms);
        if set == RuleSet::Response
            && kind == TimeoutKind::Server
            && let Some(server) = stream.server
        {
            let wait_ms = stream.server_ms(cx.running);
            self.set_deadline(server, deadline(cx.now(), wait_ms));
        }
    }

    /// Sets how often a connection to a server is tried again.
    pub fn set_retries<D: Driver>(&mut self, cx: &Cx<'_, D>, stream: &mut Stream, amount: &Amount) {
        let retries = match amount {
            Amount::Fixed(retries) => Some(*retries),
            Amount::Expr(expr) => {
                let value = self.int(cx, stream, expr);
                let value = value.filter(|value| (0..=RETRIES_MAX).contains(value));
                value.map(|value| value as u32)
            }
        };
        if retries.is_some() {
            stream.txn.retries_max = retries;
        }
    }
}
