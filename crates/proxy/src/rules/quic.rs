//! `quic-initial` rules (manual §4.2): they decide about a packet that begins a connection, before
//! the connection exists.

use std::sync::Arc;

use config::model::{QuicAction, QuicRule};
use sample::LogOrigin;

use super::Cx;
use crate::ids::ProxyId;

/// What happens to a packet that begins a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Initial {
    #[default]
    Accept,
    /// No answer.
    Drop,
    /// The client is told that it is refused.
    Reject,
    /// The client has to show that it has its address, unless it has.
    Retry,
}

impl Cx<'_> {
    /// Runs the `quic-initial` rules of a frontend on a packet. The session has only the packet's
    /// addresses.
    pub fn initial_rules(&mut self, frontend: ProxyId, rules: &[Arc<QuicRule>]) -> Initial {
        sample::regex::forget_undecided();
        for rule in rules {
            let condition = rule.condition.as_ref();
            let holds = condition
                .is_none_or(|condition| self.eval().with_session(|scope| condition.matches(scope)));
            if sample::regex::take_undecided() {
                return Initial::Reject;
            }
            if !holds {
                continue;
            }
            match rule.action {
                QuicAction::Accept => return Initial::Accept,
                QuicAction::Drop => return Initial::Drop,
                QuicAction::Reject => return Initial::Reject,
                QuicAction::SendRetry => return Initial::Retry,
                QuicAction::DoLog { profile } => {
                    let origin = LogOrigin::QuicInitial;
                    let logging = &mut self.scene.logging;
                    logging.do_log_session(&mut self.scene.eval, frontend, origin, profile);
                }
            }
        }
        Initial::Accept
    }
}
