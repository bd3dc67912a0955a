//! Options of a `bind` line (manual §5.1).

use super::{Keyword, Sections};
use crate::build::bind::{self, BindParser};

const fn yes(
    name: &'static str,
    args: u8,
    parser: BindParser,
    doc: &'static str,
) -> Keyword<BindParser> {
    Keyword::yes(name, Sections::NONE, parser, doc).args(args)
}

const fn not_yet(name: &'static str, args: u8, doc: &'static str) -> Keyword<BindParser> {
    Keyword::not_yet(name, Sections::NONE, doc).args(args)
}

const fn moot(
    name: &'static str,
    args: u8,
    reason: &'static str,
    doc: &'static str,
) -> Keyword<BindParser> {
    Keyword::moot(name, Sections::NONE, reason, doc).args(args)
}

const TLS: &str = "TLS.";

/// Every option of a `bind` line.
#[rustfmt::skip]
pub const KEYWORDS: &[Keyword<BindParser>] = &[
    not_yet("accept-netscaler-cip", 1, "Expects the NetScaler client IP protocol."),
    yes("accept-proxy", 0, bind::accept_proxy, "Expects a PROXY protocol header on every connection."),
    not_yet("allow-0rtt", 0, TLS),
    not_yet("alpn", 1, TLS),
    yes("backlog", 1, bind::backlog, "Length of the kernel's queue of connections to accept."),
    not_yet("ca-file", 1, TLS),
    not_yet("ca-ignore-err", 1, TLS),
    not_yet("ca-sign-file", 1, TLS),
    not_yet("ca-sign-pass", 1, TLS),
    not_yet("ca-verify-file", 1, TLS),
    not_yet("cc", 1, "The congestion control algorithm."),
    not_yet("ciphers", 1, TLS),
    not_yet("ciphersuites", 1, TLS),
    not_yet("client-sigalgs", 1, TLS),
    not_yet("crl-file", 1, TLS),
    not_yet("crt", 1, TLS),
    not_yet("crt-ignore-err", 1, TLS),
    not_yet("crt-list", 1, TLS),
    not_yet("curves", 1, TLS),
    not_yet("default-crt", 1, TLS),
    yes("defer-accept", 0, bind::defer_accept, "Accepts a connection only when data is there."),
    not_yet("ecdhe", 1, TLS),
    not_yet("ech", 1, TLS),
    yes("expose-fd", 1, bind::expose_fd, "`expose-fd listeners`: a runtime interface that hands the listening sockets over (`-x`)."),
    not_yet("force-sslv3", 0, TLS),
    not_yet("force-tlsv10", 0, TLS),
    not_yet("force-tlsv11", 0, TLS),
    not_yet("force-tlsv12", 0, TLS),
    not_yet("force-tlsv13", 0, TLS),
    not_yet("generate-certificates", 0, TLS),
    yes("gid", 1, bind::gid, "Group of a UNIX socket, by number."),
    yes("group", 1, bind::group, "Group of a UNIX socket, by name."),
    not_yet("guid-prefix", 1, "Names that identify the listeners for ever."),
    yes("id", 1, bind::id, "The listener's number in statistics."),
    not_yet("idle-ping", 1, "Pings on idle HTTP/2 connections."),
    yes("interface", 1, bind::interface, "Network interface to listen on."),
    not_yet("ktls", 1, TLS),
    not_yet("label", 1, "A label of the listener."),
    yes("level", 1, bind::level, "Rights of the runtime interface: `user`, `operator` or `admin`."),
    yes("maxconn", 1, bind::maxconn, "Connections of this listener."),
    yes("mode", 1, bind::mode, "Rights of a UNIX socket's file, octal."),
    yes("mss", 1, bind::mss, "Largest TCP segment."),
    yes("name", 1, bind::name, "The listener's name in statistics and logs."),
    not_yet("namespace", 1, "Network namespace to listen in."),
    not_yet("nbconn", 1, "Connections that a reverse HTTP listener keeps."),
    moot("nice", 1, "streams are served in turn", "Priority of the listener's streams."),
    not_yet("no-alpn", 0, TLS),
    not_yet("no-ca-names", 0, TLS),
    not_yet("no-sslv3", 0, TLS),
    not_yet("no-strict-sni", 0, TLS),
    not_yet("no-tls-tickets", 0, TLS),
    not_yet("no-tlsv10", 0, TLS),
    not_yet("no-tlsv11", 0, TLS),
    not_yet("no-tlsv12", 0, TLS),
    not_yet("no-tlsv13", 0, TLS),
    not_yet("npn", 1, TLS),
    not_yet("prefer-client-ciphers", 0, TLS),
    Keyword { state: super::State::Removed("'process' on 'bind' lines is not supported anymore, please use 'thread' instead."), ..not_yet("process", 1, "Removed from the language by HAProxy.") },
    yes("proto", 1, bind::proto, "Forces a protocol: `h1` or none."),
    not_yet("quic-cc-algo", 1, "QUIC congestion control."),
    not_yet("quic-force-retry", 0, "Always asks for a QUIC retry."),
    not_yet("quic-socket", 1, "Sockets of QUIC connections."),
    yes("severity-output", 1, bind::severity_output, "How the runtime interface shows severities."),
    moot("shards", 1, "every worker has its own listeners", "Number of sockets for one address."),
    not_yet("sigalgs", 1, TLS),
    not_yet("ssl", 0, TLS),
    not_yet("ssl-max-ver", 1, TLS),
    not_yet("ssl-min-ver", 1, TLS),
    not_yet("strict-sni", 0, TLS),
    not_yet("tcp-md5sig", 1, "TCP MD5 signatures."),
    yes("tcp-ss", 1, bind::tcp_ss, "Keeps the SYN packet of connections for fc_saved_syn: 1, or 2 with its link header."),
    not_yet("tcp-ut", 1, "TCP user timeout."),
    yes("tfo", 0, bind::tfo, "TCP Fast Open."),
    moot("thread", 1, "every worker has its own listeners", "Threads that serve the listener."),
    not_yet("tls-ticket-keys", 1, TLS),
    not_yet("tls-tickets", 0, TLS),
    not_yet("transparent", 0, "Accepts connections to foreign addresses."),
    yes("uid", 1, bind::uid, "Owner of a UNIX socket, by number."),
    yes("user", 1, bind::user, "Owner of a UNIX socket, by name."),
    yes("v4v6", 0, bind::v4v6, "An IPv6 listener that takes IPv4 too."),
    yes("v6only", 0, bind::v6only, "An IPv6 listener that does not take IPv4."),
    not_yet("verify", 1, TLS),
];
