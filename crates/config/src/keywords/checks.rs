//! Options of health checks and agents on `server` and `default-server` lines (manual §5.2).

use super::arguments::Args;
use super::{Keyword, Places};
use crate::build::health::server;
use crate::build::resilience;
use crate::build::server::ServerParser;

/// An option.
pub type Known = Keyword<ServerParser>;

const S: Places = Places::SERVER;

const fn yes(name: &'static str, args: Args, parser: ServerParser, doc: &'static str) -> Known {
    Keyword::yes(name, S, parser, doc).args(args)
}

const NONE: Args = Args::None;
const WORD: Args = Args::Word;
const REUSE: &str = "each check opens a connection of its own";

/// Every option, sorted by name.
#[rustfmt::skip]
pub const OPTIONS: &[Known] = &[
    yes("addr", WORD, server::addr, "Health checks: another address."),
    yes("agent-addr", WORD, server::agent_addr, "Agent checks: another address."),
    yes("agent-check", NONE, server::agent_check, "Agent checks: an agent on the server tells its state."),
    yes("agent-inter", WORD, server::agent_inter, "Agent checks: time between two."),
    yes("agent-port", WORD, server::agent_port, "Agent checks: the agent's port."),
    yes("agent-send", WORD, server::agent_send, "Agent checks: what the agent is sent."),
    yes("check", NONE, server::check, "Health checks."),
    Keyword::moot("check-pool-conn-name", S, REUSE, WORD, "Health checks: the name of the connection to reuse."),
    yes("check-proto", WORD, server::proto, "Health checks: the protocol."),
    Keyword::moot("check-reuse-pool", S, REUSE, NONE, "Health checks: use idle connections."),
    yes("check-send-proxy", NONE, server::check_send_proxy, "Health checks: send a PROXY protocol header."),
    yes("check-via-socks4", NONE, server::check_via_socks4, "Health checks: through the SOCKS4 proxy."),
    yes("downinter", WORD, server::downinter, "Health checks: time between two of a server that is down."),
    yes("error-limit", WORD, server::error_limit, "Health checks: errors of traffic that count."),
    yes("fall", WORD, server::fall, "Health checks: failures after which a server is down."),
    yes("fastinter", WORD, server::fastinter, "Health checks: time between two while the state changes."),
    yes("healthcheck", WORD, server::section, "Health checks: the section that describes them."),
    yes("init-state", WORD, server::init_state, "Health checks: the state at start."),
    yes("inter", WORD, server::inter, "Health checks: time between two."),
    yes("no-agent-check", NONE, server::no_agent_check, "Agent checks: cancels `agent-check`."),
    yes("no-check", NONE, server::no_check, "Health checks: cancels `check`."),
    Keyword::moot("no-check-reuse-pool", S, REUSE, NONE, "Health checks: cancels `check-reuse-pool`."),
    yes("no-check-send-proxy", NONE, server::no_check_send_proxy, "Health checks: cancels `check-send-proxy`."),
    yes("no-outlier-ejection", NONE, resilience::no_outlier_ejection, "Beyond HAProxy's: cancels `outlier-ejection`."),
    yes("observe", WORD, server::observe, "Health checks: watch the traffic too."),
    yes("on-error", WORD, server::on_error, "Health checks: what errors of traffic do."),
    yes("on-marked-down", WORD, server::on_marked_down, "Health checks: what else happens when a server goes down."),
    yes("on-marked-up", WORD, server::on_marked_up, "Health checks: what else happens when a server comes up."),
    yes("outlier-ejection", Args::Any, resilience::outlier_ejection, "Beyond HAProxy's: traffic that fails or is slow takes the server out for a while."),
    yes("port", WORD, server::port, "Health checks: another port."),
    yes("rise", WORD, server::rise, "Health checks: successes after which a server is up."),
    yes("slowstart", WORD, server::slowstart, "Health checks: time in which a server that came up gets its full share."),
    yes("track", WORD, server::track, "Health checks: follow the state of another server."),
];
