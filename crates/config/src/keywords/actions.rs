//! The actions of the rule sets (manual §4.3, §4.4): one row each, with the sets in which it is
//! valid. Parentheses or a number follow a name with `*`.

use super::arguments::Args;
use super::{Keyword, Places};
use crate::build::http_rules::{self as http, HttpParser, headers, redirect, target};
use crate::build::quic_rules::{self, QuicParser};
use crate::build::stream_actions as stream;
use crate::build::tcp_rules::{self as tcp, TcpParser};
use crate::build::{bandwidth, limits, otel, patterns, tables};

/// The parser of an action. It has one for each kind of rules in which its row allows it.
#[derive(Clone, Copy, Debug)]
pub enum ActionParser {
    /// For `http-request` and related sets only.
    Http(HttpParser),
    /// For `tcp-request` and related sets only.
    Tcp(TcpParser),
    /// For both.
    Both(HttpParser, TcpParser),
    /// For `quic-initial` only.
    Quic(QuicParser),
}

impl ActionParser {
    /// The parser for HTTP rules.
    #[must_use]
    pub fn http(self) -> Option<HttpParser> {
        match self {
            ActionParser::Http(parser) | ActionParser::Both(parser, _) => Some(parser),
            ActionParser::Tcp(_) | ActionParser::Quic(_) => None,
        }
    }

    /// The parser for TCP rules.
    #[must_use]
    pub fn tcp(self) -> Option<TcpParser> {
        match self {
            ActionParser::Tcp(parser) | ActionParser::Both(_, parser) => Some(parser),
            ActionParser::Http(_) | ActionParser::Quic(_) => None,
        }
    }

    /// The parser for `quic-initial` rules.
    #[must_use]
    pub fn quic(self) -> Option<QuicParser> {
        match self {
            ActionParser::Quic(parser) => Some(parser),
            ActionParser::Http(_) | ActionParser::Tcp(_) | ActionParser::Both(..) => None,
        }
    }
}

type K = Keyword<ActionParser>;

const fn any(name: &'static str, sets: Places, parser: ActionParser, doc: &'static str) -> K {
    K::yes(name, sets, parser, doc)
}

const fn http(name: &'static str, sets: Places, parser: HttpParser, doc: &'static str) -> K {
    any(name, sets, ActionParser::Http(parser), doc)
}

const fn tcp(name: &'static str, sets: Places, parser: TcpParser, doc: &'static str) -> K {
    any(name, sets, ActionParser::Tcp(parser), doc)
}

const fn quic(name: &'static str, parser: QuicParser, doc: &'static str) -> K {
    any(name, QUIC, ActionParser::Quic(parser), doc)
}

const fn both(
    name: &'static str,
    sets: Places,
    http: HttpParser,
    tcp: TcpParser,
    doc: &'static str,
) -> K {
    any(name, sets, ActionParser::Both(http, tcp), doc)
}

const NICE: &str = "streams of a worker take turns event by event";
/// HAProxy limits a priority to this.
const PRIORITY: Args = super::arguments::INTEGER;

const REQUEST: Places = Places::HTTP_REQUEST;
const RESPONSE: Places = Places::HTTP_RESPONSE;
const AFTER: Places = Places::HTTP_AFTER_RESPONSE;
const CONNECTION: Places = Places::TCP_CONNECTION;
const SESSION: Places = Places::TCP_SESSION;
const CONTENT: Places = Places::TCP_CONTENT;
const TCP_RESPONSE: Places = Places::TCP_RESPONSE;
const QUIC: Places = Places::QUIC_INITIAL;
const MESSAGES: Places = REQUEST.or(RESPONSE);
const RESPONSES: Places = RESPONSE.or(AFTER);
const HTTP: Places = MESSAGES.or(AFTER);
const TCP: Places = CONNECTION.or(SESSION).or(CONTENT).or(TCP_RESPONSE);
const REQUESTS: Places = REQUEST.or(CONTENT);
const STREAMS: Places = MESSAGES.or(CONTENT).or(TCP_RESPONSE);
/// The rule sets for data from the client.
const INCOMING: Places = REQUESTS.or(CONNECTION).or(SESSION);
const ALL_BUT_AFTER: Places = MESSAGES.or(TCP);
const ALL: Places = HTTP.or(TCP);

/// Every action.
#[rustfmt::skip]
pub const KEYWORDS: &[Keyword<ActionParser>] = &[
    tcp("accept", TCP, tcp::accept, "Lets the connection pass."),
    quic("accept", quic_rules::accept, "Lets the connection pass."),
    http("add-acl*", MESSAGES, patterns::add_acl, "Adds a pattern to an ACL file."),
    http("add-header", HTTP, headers::add_header, "Adds a header."),
    http("add-headers-bin", HTTP, headers::add_headers_bin, "Adds headers in binary form."),
    http("allow", HTTP, http::allow, "Stops the rules and lets the message pass."),
    K::not_yet("attach-srv", SESSION, "Gives the connection to a server of reverse HTTP."),
    http("auth", REQUEST, http::auth, "Asks for user and password."),
    K::not_yet("cache-store", RESPONSE, "Stores the response in a cache."),
    K::not_yet("cache-use", REQUEST, "Answers from a cache."),
    both("capture", HTTP.or(CONTENT), http::capture, tcp::capture, "Keeps a sample for the logs."),
    tcp("close", TCP_RESPONSE, tcp::close, "Closes the connection to the server."),
    http("del-acl*", HTTP, patterns::del_acl, "Removes a pattern from an ACL file."),
    http("del-header", HTTP, headers::del_header, "Removes a header."),
    http("del-headers-bin", HTTP, headers::del_headers_bin, "Removes headers in binary form."),
    http("del-map*", HTTP, patterns::del_map, "Removes a key from a map."),
    http("deny", MESSAGES, http::deny, "Answers with an error."),
    quic("dgram-drop", quic_rules::dgram_drop, "Ignores the packet."),
    http("disable-l7-retry", REQUEST, limits::DISABLE_L7_RETRY, "Never sends this request again."),
    any("do-log", ALL, stream::DO_LOG, "Emits a log line now."),
    quic("do-log", quic_rules::do_log, "Emits a log line now."),
    any("do-resolve*", REQUESTS, stream::DO_RESOLVE, "Resolves a name into a variable: `do-resolve(<variable>,<resolvers>[,ipv4|ipv6]) <expression>`."),
    http("early-hint", REQUEST, headers::early_hint, "Sends a header of an early hint."),
    K::not_yet("expect-netscaler-cip", CONNECTION, "Expects the NetScaler client IP protocol."),
    tcp("expect-proxy", CONNECTION, tcp::expect_proxy, "`expect-proxy layer4`: expects a PROXY protocol header."),
    http("normalize-uri", REQUEST, target::normalize_uri, "Normalises the URI."),
    both("otel-group", STREAMS.or(AFTER), otel::http_group, otel::tcp_group, "Runs a group of scopes of a filter `opentelemetry`."),
    http("pause", MESSAGES, http::pause, "Waits."),
    http("redirect", MESSAGES, redirect::action, "Redirects."),
    both("reject", INCOMING.or(TCP_RESPONSE), http::reject, tcp::reject, "Closes the connection without an answer."),
    quic("reject", quic_rules::reject, "Refuses the connection; the client is told."),
    http("replace-header", HTTP, headers::replace_header, "Rewrites a header by a pattern."),
    http("replace-path", REQUEST, target::replace_path, "Rewrites the path by a pattern."),
    http("replace-pathq", REQUEST, target::replace_pathq, "Rewrites path and query by a pattern."),
    http("replace-uri", REQUEST, target::replace_uri, "Rewrites the URI by a pattern."),
    http("replace-value", HTTP, headers::replace_value, "Rewrites the values of a header by a pattern."),
    http("return", MESSAGES, http::return_, "Answers with a response made here."),
    any("sc-add-gpc*", ALL, tables::ADD_GPC, "Adds to a general purpose counter."),
    any("sc-inc-gpc*", ALL, tables::INC_GPC, "Increments a general purpose counter."),
    any("sc-inc-gpc0*", ALL, tables::INC_GPC0, "Increments the first general purpose counter."),
    any("sc-inc-gpc1*", ALL, tables::INC_GPC1, "Increments the second general purpose counter."),
    any("sc-set-gpt*", ALL, tables::SET_GPT, "Sets a general purpose tag."),
    any("sc-set-gpt0*", ALL, tables::SET_GPT0, "Sets the first general purpose tag."),
    quic("send-retry", quic_rules::send_retry, "Asks the client to show that it has its address (Retry), if it has not yet."),
    K::not_yet("send-spoe-group", STREAMS, "Sends messages to an agent."),
    any("set-bandwidth-limit", STREAMS, bandwidth::SET, "Turns a bandwidth limit on."),
    any("set-bc-mark", REQUESTS, stream::SET_BC_MARK, "Sets the mark of packets to the server."),
    any("set-bc-tos", REQUESTS, stream::SET_BC_TOS, "Sets the TOS of packets to the server."),
    any("set-dst", INCOMING, stream::SET_DST, "Sets the destination address."),
    any("set-dst-port", INCOMING, stream::SET_DST_PORT, "Sets the destination port."),
    any("set-fc-mark", ALL_BUT_AFTER, stream::SET_FC_MARK, "Sets the mark of packets to the client."),
    any("set-fc-tos", ALL_BUT_AFTER, stream::SET_FC_TOS, "Sets the TOS of packets to the client."),
    http("set-header", HTTP, headers::set_header, "Sets a header."),
    http("set-headers-bin", HTTP, headers::set_headers_bin, "Sets headers in binary form."),
    any("set-log-level", STREAMS.or(AFTER), stream::SET_LOG_LEVEL, "Sets the level of the log line."),
    http("set-map*", HTTP, patterns::set_map, "Sets a key in a map."),
    any("set-mark", ALL_BUT_AFTER, stream::SET_FC_MARK, "Older name of `set-fc-mark`."),
    http("set-method", REQUEST, http::set_method, "Sets the method."),
    K::moot("set-nice", STREAMS, NICE, PRIORITY, "Sets the priority of the stream."),
    http("set-path", REQUEST, http::set_path, "Sets the path."),
    http("set-pathq", REQUEST, http::set_pathq, "Sets path and query."),
    any("set-priority-class", REQUESTS, stream::SET_PRIORITY_CLASS, "Sets the class in the queue."),
    any("set-priority-offset", REQUESTS, stream::SET_PRIORITY_OFFSET, "Sets the offset in the queue."),
    http("set-query", REQUEST, http::set_query, "Sets the query."),
    both("set-retries", REQUESTS, limits::set_retries, limits::set_retries_tcp, "Sets the number of retries."),
    any("set-src", INCOMING, stream::SET_SRC, "Sets the source address."),
    any("set-src-port", INCOMING, stream::SET_SRC_PORT, "Sets the source port."),
    http("set-status", RESPONSES, http::set_status, "Sets the status code."),
    http("set-timeout", MESSAGES, limits::set_timeout, "Sets a timeout of the stream."),
    any("set-tos", ALL_BUT_AFTER, stream::SET_FC_TOS, "Older name of `set-fc-tos`."),
    http("set-uri", REQUEST, http::set_uri, "Sets the URI."),
    any("set-var*", ALL, stream::SET_VAR, "Sets a variable to an expression."),
    any("set-var-fmt*", ALL, stream::SET_VAR_FMT, "Sets a variable to a formatted string."),
    any("silent-drop", ALL_BUT_AFTER, stream::SILENT_DROP, "Forgets the connection without telling the client."),
    http("strict-mode", HTTP, http::strict_mode, "Whether a rewrite that fails fails the request."),
    K::yes("switch-mode", CONTENT, ActionParser::Tcp(tcp::switch_mode), "Goes over from TCP to HTTP."),
    http("tarpit", REQUEST, http::tarpit, "Holds the request, then answers with an error."),
    any("track-sc*", INCOMING.or(RESPONSE), tables::TRACK, "Tracks a key in a stick table."),
    any("unset-var*", ALL, stream::UNSET_VAR, "Removes a variable."),
    K::partly("use-service", REQUEST, ActionParser::Http(http::use_service), "services but `prometheus-exporter`", "Answers with an internal service."),
    K::partly("use-service", CONTENT, ActionParser::Tcp(tcp::use_service), "services of Lua, and HAProxy has no other service here", "Gives the connection to an internal service."),
    K::partly("wait-for-body", MESSAGES, ActionParser::Http(http::wait_for_body), "`use-large-buffer`", "Waits for the body."),
    http("wait-for-handshake", REQUEST, http::wait_for_handshake, "Waits for the end of the handshake of a client that sent early data."),
];

/// The rows of a rule set.
pub fn of(set: Places) -> impl Iterator<Item = &'static Keyword<ActionParser>> {
    KEYWORDS
        .iter()
        .filter(move |row| row.places.intersects(set))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_action_has_a_parser_for_each_of_its_sets() {
        for row in KEYWORDS {
            let Some(parser) = row.state.parser() else {
                continue;
            };
            assert_eq!(
                parser.http().is_some(),
                row.places.intersects(HTTP),
                "{}",
                row.name
            );
            assert_eq!(
                parser.tcp().is_some(),
                row.places.intersects(TCP),
                "{}",
                row.name
            );
            assert_eq!(
                parser.quic().is_some(),
                row.places.intersects(QUIC),
                "{}",
                row.name
            );
        }
    }
}
