//! Options of a `bind` line (manual §5.1). TLS options have a separate table ([`super::tls`]).

use super::arguments::Args;
use super::global::UDP_SOCKETS;
use super::{Keyword, Places, Secret};
use crate::build::bind::{self, BindParser};
use crate::build::{quic, threads};

type K = Keyword<BindParser>;

const fn yes(name: &'static str, args: Args, parser: BindParser, doc: &'static str) -> K {
    K::yes(name, Places::BIND, parser, doc).args(args)
}

const fn partly(
    name: &'static str,
    args: Args,
    parser: BindParser,
    missing: &'static str,
    doc: &'static str,
) -> K {
    K::partly(name, Places::BIND, parser, missing, doc).args(args)
}

const fn not_yet(name: &'static str, args: Args, doc: &'static str) -> K {
    K::not_yet(name, Places::BIND, doc).args(args)
}

const fn moot(name: &'static str, reason: &'static str, args: Args, doc: &'static str) -> K {
    K::moot(name, Places::BIND, reason, args, doc)
}

const NONE: Args = Args::None;
const WORD: Args = Args::Word;

/// Every option of a `bind` line except those of TLS.
#[rustfmt::skip]
pub const KEYWORDS: &[Keyword<BindParser>] = &[
    not_yet("accept-netscaler-cip", WORD, "Expects the NetScaler client IP protocol."),
    yes("accept-proxy", NONE, bind::accept_proxy, "Expects a PROXY protocol header on every connection."),
    yes("backlog", WORD, bind::backlog, "Length of the kernel's queue of connections to accept."),
    yes("cc", WORD, bind::cc, "The congestion control algorithm."),
    yes("defer-accept", NONE, bind::defer_accept, "Accepts a connection only when data is there."),
    yes("expose-fd", WORD, bind::expose_fd, "`expose-fd listeners`: a runtime interface that hands the listening sockets over (`-x`)."),
    yes("gid", WORD, bind::gid, "Group of a UNIX socket, by number."),
    yes("group", WORD, bind::group, "Group of a UNIX socket, by name."),
    yes("guid-prefix", WORD, bind::guid_prefix, "Names that identify the listeners for ever."),
    yes("id", WORD, bind::id, "The listener's number in statistics."),
    yes("idle-ping", WORD, bind::idle_ping, "Interval of pings on idle HTTP/2 connections; one that does not answer is closed."),
    yes("interface", WORD, bind::interface, "Network interface to listen on."),
    moot("label", "nothing groups listeners by it, in HAProxy neither", WORD, "A label of the listener."),
    yes("level", WORD, bind::level, "Rights of the runtime interface: `user`, `operator` or `admin`."),
    yes("maxconn", WORD, bind::maxconn, "Connections of this listener."),
    yes("mode", WORD, bind::mode, "Rights of a UNIX socket's file, octal."),
    yes("mss", WORD, bind::mss, "Largest TCP segment."),
    yes("name", WORD, bind::name, "The listener's name in statistics and logs."),
    yes("namespace", WORD, bind::namespace, "Network namespace to listen in."),
    not_yet("nbconn", WORD, "Connections that a reverse HTTP listener keeps."),
    moot("nice", "streams are served in turn", Args::Number(-1024, 1024), "Priority of the listener's streams."),
    Keyword::gone("process", Places::BIND, "'process' on 'bind' lines is not supported anymore, please use 'thread' instead."),
    partly("proto", WORD, bind::proto, "protocols but `h1`, `h2`, `quic` and none", "Forces a protocol."),
    yes("quic-cc-algo", WORD, quic::congestion, "QUIC congestion control: `cubic`, `newreno`, `bbr` or `nocc`, each with the largest window."),
    yes("quic-force-retry", NONE, quic::force_retry, "Each QUIC client has to show that it has its address."),
    moot("quic-socket", UDP_SOCKETS, Args::OneOf(&["connection", "listener"]), "Sockets of QUIC connections."),
    yes("severity-output", WORD, bind::severity_output, "How the runtime interface shows severities."),
    moot("shards", "every worker has its own listeners", Args::Own(threads::shards), "Number of sockets for one address."),
    yes("tcp-md5sig", WORD, bind::tcp_md5sig, "TCP MD5 signatures.").secret(Secret::All),
    yes("tcp-ss", WORD, bind::tcp_ss, "Keeps the SYN packet of connections for fc_saved_syn: 1, or 2 with its link header."),
    yes("tcp-ut", WORD, bind::tcp_ut, "TCP user timeout."),
    yes("tfo", NONE, bind::tfo, "TCP Fast Open."),
    moot("thread", "every worker has its own listeners", Args::Own(threads::set), "Threads that serve the listener."),
    yes("transparent", NONE, bind::transparent, "Accepts connections to foreign addresses."),
    yes("uid", WORD, bind::uid, "Owner of a UNIX socket, by number."),
    yes("user", WORD, bind::user, "Owner of a UNIX socket, by name."),
    yes("v4v6", NONE, bind::v4v6, "An IPv6 listener that takes IPv4 too."),
    yes("v6only", NONE, bind::v6only, "An IPv6 listener that does not take IPv4."),
];
