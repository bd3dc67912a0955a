//! Options of `server` and `default-server` lines (manual §5.2). Options of TLS and of health
//! checks have separate tables ([`super::tls`], [`super::checks`]).

use super::arguments::{Args, INTEGER};
use super::{Keyword, Places, Secret};
use crate::build::server::{self, ServerParser};
use crate::build::{log_server, quic, resolvers};

type K = Keyword<ServerParser>;

const fn yes(name: &'static str, args: Args, parser: ServerParser, doc: &'static str) -> K {
    K::yes(name, Places::SERVER, parser, doc).args(args)
}

const fn partly(
    name: &'static str,
    args: Args,
    parser: ServerParser,
    missing: &'static str,
    doc: &'static str,
) -> K {
    K::partly(name, Places::SERVER, parser, missing, doc).args(args)
}

const fn moot(name: &'static str, reason: &'static str, args: Args, doc: &'static str) -> K {
    K::moot(name, Places::SERVER, reason, args, doc)
}

const NONE: Args = Args::None;
const WORD: Args = Args::Word;

/// Every option of a `server` line except those of TLS and of health checks.
#[rustfmt::skip]
pub const KEYWORDS: &[Keyword<ServerParser>] = &[
    yes("backup", NONE, server::backup, "Used only when no other server is."),
    yes("cc", WORD, server::cc, "The congestion control algorithm."),
    yes("cookie", WORD, server::cookie, "The server's value of the persistence cookie."),
    yes("disabled", NONE, server::disabled, "Starts in maintenance."),
    yes("enabled", NONE, server::enabled, "Cancels `disabled`."),
    yes("from", WORD, server::misplaced, "First on the line: what it starts from, `none`, `be:` or `srv:<name>`."),
    yes("guid", WORD, server::guid, "A name that identifies the server for ever."),
    yes("hash-key", WORD, server::hash_key, "What consistent hashing places the server by: `id`, `id32`, `guid`, `addr` or `addr-port`."),
    yes("id", WORD, server::id, "The server's number in statistics."),
    yes("idle-ping", WORD, server::idle_ping, "Interval of pings on idle HTTP/2 connections; one that does not answer is closed."),
    yes("init-addr", WORD, server::init_addr, "Where the address of a name comes from at the start: `last`, `libc`, `none`, an address."),
    yes("log-bufsize", WORD, log_server::log_bufsize, "Bytes of messages that may wait for a log server over TCP."),
    yes("log-proto", WORD, log_server::log_proto, "Framing of messages to a log server over TCP: `legacy` or `octet-count`."),
    yes("max-reuse", WORD, server::max_reuse, "Requests on one connection after the first one; -1 is unlimited."),
    yes("maxconn", WORD, server::maxconn, "Connections to the server; more wait in its queue."),
    yes("maxqueue", WORD, server::maxqueue, "Length of the server's queue."),
    yes("minconn", WORD, server::minconn, "Lower bound of a `maxconn` that follows the backend's load."),
    yes("name", WORD, server::misplaced, "First on a `default-server` line: its name."),
    partly("namespace", WORD, server::namespace, "`namespace *`", "Network namespace of the server."),
    yes("no-backup", NONE, server::no_backup, "Cancels `backup`."),
    yes("no-send-proxy", NONE, server::no_send_proxy, "Cancels `send-proxy`."),
    yes("no-send-proxy-v2", NONE, server::no_send_proxy_v2, "Cancels `send-proxy-v2`."),
    yes("no-send-proxy-v2-ssl", NONE, server::no_send_proxy_v2_ssl, "Cancels `send-proxy-v2-ssl`."),
    yes("no-send-proxy-v2-ssl-cn", NONE, server::no_send_proxy_v2_ssl, "Cancels `send-proxy-v2-ssl-cn`."),
    yes("no-tfo", NONE, server::no_tfo, "Cancels `tfo`."),
    yes("non-stick", NONE, server::non_stick, "Not learnt in stick tables."),
    yes("pool-conn-name", WORD, server::pool_conn_name, "What tells idle connections of one server apart."),
    moot("pool-low-conn", "each worker keeps its own idle connections", INTEGER, "Idle connections below which threads do not share."),
    yes("pool-max-conn", WORD, server::pool_max_conn, "Idle connections that are kept; -1 is unlimited."),
    yes("pool-purge-delay", WORD, server::pool_purge_delay, "Time after which unused idle connections are closed."),
    partly("proto", WORD, server::proto, "protocols but `h1`, `h2`, `quic` and none", "Forces a protocol."),
    yes("proxy-v2-options", WORD, server::proxy_v2_options, "TLVs of the PROXY protocol v2 header."),
    yes("quic-cc-algo", WORD, quic::server_congestion, "QUIC congestion control: `cubic`, `newreno`, `bbr` or `nocc`, each with the largest window."),
    yes("redir", WORD, server::redir, "Redirects requests to the server."),
    yes("resolve-net", WORD, resolvers::resolve_net, "Networks whose addresses are preferred, in order."),
    yes("resolve-opts", WORD, resolvers::resolve_opts, "How answers are used: `allow-dup-ip`, `ignore-weight`, `prevent-dup-ip`."),
    yes("resolve-prefer", WORD, resolvers::resolve_prefer, "The preferred address family: `ipv4` or `ipv6`."),
    yes("resolvers", WORD, resolvers::section_name, "The section that resolves the server's name while the process runs."),
    yes("send-proxy", NONE, server::send_proxy, "Sends a PROXY protocol v1 header."),
    yes("send-proxy-v2", NONE, server::send_proxy_v2, "Sends a PROXY protocol v2 header."),
    yes("send-proxy-v2-ssl", NONE, server::send_proxy_v2_ssl, "Sends a PROXY protocol v2 header with what is known of the client's TLS."),
    yes("send-proxy-v2-ssl-cn", NONE, server::send_proxy_v2_ssl, "The same, with the common name of the client's certificate."),
    yes("set-proxy-v2-tlv-fmt*", WORD, server::set_proxy_v2_tlv_fmt, "Adds a TLV of this type to the PROXY protocol v2 header."),
    moot("shard", "only servers of a section 'peers' have a part of the entries", Args::Optional(&WORD), "The server's shard of a peers section."),
    yes("socks4", WORD, server::socks4, "Connects through a SOCKS4 proxy."),
    yes("source", WORD, server::source, "The address that connections to the server come from."),
    yes("stick", NONE, server::stick, "Learnt in stick tables."),
    yes("strict-maxconn", NONE, server::strict_maxconn, "Counts idle connections in `maxconn`."),
    yes("tcp-md5sig", WORD, server::tcp_md5sig, "TCP MD5 signatures.").secret(Secret::All),
    yes("tcp-ut", WORD, server::tcp_ut, "TCP user timeout."),
    yes("tfo", NONE, server::tfo, "TCP Fast Open, where data is at hand when the connection opens."),
    Keyword::gone("usesrc", Places::SERVER, "'usesrc' only allowed after a 'source' statement."),
    yes("weight", WORD, server::weight, "The server's share of the load, 0 to 256."),
    yes("ws", WORD, server::ws, "The protocol of WebSocket requests: `auto`, `h1` or `h2`."),
];
