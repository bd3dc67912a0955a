//! Options of health checks and of agents on `server` and `default-server` lines (manual §5.2). `check` and `agent-check` turn them
//! on and are refused, what tunes them has no effect.

use super::arguments::{Args, INTEGER, POSITIVE};
use super::features::Feature::{self, AgentChecks, HealthChecks};
use super::{Keyword, Places};
use crate::build::checks;

/// An option that is not parsed yet.
pub type Known = Keyword<()>;

const S: Places = Places::SERVER;

const fn tunes(name: &'static str, feature: Feature, args: Args, doc: &'static str) -> Known {
    Keyword::tunes(name, S, feature, args, doc)
}

/// Cancels what is never set.
const fn off(name: &'static str, doc: &'static str) -> Known {
    Keyword::yes(name, S, (), doc)
}

const NONE: Args = Args::None;
const WORD: Args = Args::Word;
/// At least a millisecond.
const DELAY: Args = Args::TimeWithin(1, i32::MAX as u32);
const ADDRESS: Args = Args::Address(checks::address);

/// Every option, in the order of their names.
#[rustfmt::skip]
pub const OPTIONS: &[Known] = &[
    tunes("addr", HealthChecks, ADDRESS, "Health checks: another address."),
    tunes("agent-addr", AgentChecks, ADDRESS, "Agent checks: another address."),
    Keyword::not_yet("agent-check", S, "Agent checks: an agent on the server tells its state."),
    tunes("agent-inter", AgentChecks, DELAY, "Agent checks: time between two."),
    tunes("agent-port", AgentChecks, INTEGER, "Agent checks: the agent's port."),
    tunes("agent-send", AgentChecks, WORD, "Agent checks: what the agent is sent."),
    Keyword::not_yet("check", S, "Health checks."),
    tunes("check-pool-conn-name", HealthChecks, WORD, "Health checks: the name of the connection to reuse."),
    tunes("check-proto", HealthChecks, Args::OneOf(&["none", "h1", "h2", "fcgi"]), "Health checks: the protocol."),
    tunes("check-reuse-pool", HealthChecks, NONE, "Health checks: use idle connections."),
    tunes("check-send-proxy", HealthChecks, NONE, "Health checks: send a PROXY protocol header."),
    tunes("check-via-socks4", HealthChecks, NONE, "Health checks: through the SOCKS4 proxy."),
    tunes("downinter", HealthChecks, DELAY, "Health checks: time between two of a server that is down."),
    tunes("error-limit", HealthChecks, POSITIVE, "Health checks: errors of traffic that count."),
    tunes("fall", HealthChecks, POSITIVE, "Health checks: failures after which a server is down."),
    tunes("fastinter", HealthChecks, DELAY, "Health checks: time between two while the state changes."),
    tunes("healthcheck", HealthChecks, WORD, "Health checks: the section that describes them."),
    tunes("init-state", HealthChecks, Args::OneOf(&["none", "fully-up", "up", "down", "fully-down"]), "Health checks: the state at start."),
    tunes("inter", HealthChecks, DELAY, "Health checks: time between two."),
    off("no-agent-check", "Agent checks: cancels `agent-check`."),
    off("no-check", "Health checks: cancels `check`."),
    off("no-check-reuse-pool", "Health checks: cancels `check-reuse-pool`."),
    off("no-check-send-proxy", "Health checks: cancels `check-send-proxy`."),
    tunes("observe", HealthChecks, Args::OneOf(&["none", "layer4", "layer7"]), "Health checks: watch the traffic too."),
    tunes("on-error", HealthChecks, Args::OneOf(&["fastinter", "fail-check", "sudden-death", "mark-down"]), "Health checks: what errors of traffic do."),
    tunes("on-marked-down", HealthChecks, Args::OneOf(&["shutdown-sessions"]), "Health checks: what else happens when a server goes down."),
    tunes("on-marked-up", HealthChecks, Args::OneOf(&["shutdown-backup-sessions"]), "Health checks: what else happens when a server comes up."),
    tunes("port", HealthChecks, INTEGER, "Health checks: another port."),
    tunes("rise", HealthChecks, POSITIVE, "Health checks: successes after which a server is up."),
    tunes("slowstart", HealthChecks, Args::Time, "Health checks: time in which a server that came up gets its full share."),
    Keyword::not_yet("track", S, "Health checks: follow the state of another server.").args(Args::Word),
];
