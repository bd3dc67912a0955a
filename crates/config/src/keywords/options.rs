//! `option …` (manual §4.2).

use super::{Keyword, Sections, at::*};
use crate::build::options::{self, OptionParser};
use crate::build::otel;
use crate::model::Options;

/// What an option sets.
#[derive(Clone, Copy, Debug)]
pub enum Setter {
    /// A switch that works in every mode.
    Switch(fn(&mut Options) -> &mut bool),
    /// A switch that needs `mode http`.
    HttpSwitch(fn(&mut Options) -> &mut bool),
    /// An option with its own syntax.
    Own(OptionParser),
}

const fn switch(
    name: &'static str,
    sections: Sections,
    field: fn(&mut Options) -> &mut bool,
    doc: &'static str,
) -> Keyword<Setter> {
    Keyword::yes(name, sections, Setter::Switch(field), doc)
}

const fn http(
    name: &'static str,
    sections: Sections,
    field: fn(&mut Options) -> &mut bool,
    doc: &'static str,
) -> Keyword<Setter> {
    Keyword::yes(name, sections, Setter::HttpSwitch(field), doc)
}

const fn own(
    name: &'static str,
    sections: Sections,
    parser: OptionParser,
    doc: &'static str,
) -> Keyword<Setter> {
    Keyword::yes(name, sections, Setter::Own(parser), doc)
}

const fn not_yet(name: &'static str, sections: Sections, doc: &'static str) -> Keyword<Setter> {
    Keyword::not_yet(name, sections, doc)
}

const fn moot(
    name: &'static str,
    sections: Sections,
    reason: &'static str,
    doc: &'static str,
) -> Keyword<Setter> {
    Keyword::moot(name, sections, reason, doc)
}

const PIPES: &str = "data is not spliced through pipes here";
const COUNTERS: &str = "there are no statistics yet that it could change";
const ACKS: &str = "the kernel decides when it acknowledges";

/// Every option.
#[rustfmt::skip]
pub const KEYWORDS: &[Keyword<Setter>] = &[
    own("abortonclose", DFB, options::abortonclose, "Drops a request whose client has closed before it was served; the default in `mode http`."),
    http("accept-unsafe-violations-in-http-request", DF, |o| &mut o.accept_unsafe_violations_in_http_request, "Lets some malformed requests pass."),
    http("accept-unsafe-violations-in-http-response", DB, |o| &mut o.accept_unsafe_violations_in_http_response, "Lets some malformed responses pass."),
    switch("allbackups", DB, |o| &mut o.allbackups, "Balances over all backup servers instead of the first one."),
    http("checkcache", DB, |o| &mut o.checkcache, "Blocks responses that carry cookies and may be cached."),
    switch("clitcpka", DF, |o| &mut o.clitcpka, "TCP keep-alive probes on client connections."),
    moot("contstats", DF, COUNTERS, "Counts bytes while they flow, not at the end of a stream."),
    not_yet("disable-h2-upgrade", DF, "Refuses the HTTP/2 preface on an HTTP/1 connection."),
    switch("dontlog-normal", DF, |o| &mut o.dontlog_normal, "Logs only what did not go well."),
    switch("dontlognull", DF, |o| &mut o.dontlognull, "Does not log connections on which nothing was sent."),
    not_yet("external-check", DB, "Health checks by an external program."),
    own("forwarded", DB, options::forwarded, "Adds the header `Forwarded` of RFC 7239."),
    own("forwardfor", DFB, options::forwardfor, "Adds the client's address in `X-Forwarded-For`."),
    http("h1-case-adjust-bogus-client", DF, |o| &mut o.h1_case_adjust_bogus_client, "Sends header names in the case of `h1-case-adjust` to clients."),
    http("h1-case-adjust-bogus-server", DB, |o| &mut o.h1_case_adjust_bogus_server, "Sends header names in the case of `h1-case-adjust` to servers."),
    http("http-buffer-request", DFB, |o| &mut o.http_buffer_request, "Waits for the request's body before it goes on."),
    http("http-drop-request-trailers", DB, |o| &mut o.http_drop_request_trailers, "Drops trailers of requests."),
    http("http-drop-response-trailers", DF, |o| &mut o.http_drop_response_trailers, "Drops trailers of responses."),
    http("http-ignore-probes", DF, |o| &mut o.http_ignore_probes, "Neither logs nor counts connections closed before a request."),
    own("http-keep-alive", DFB, options::keep_alive, "Keeps connections open on both sides; this is the default."),
    moot("http-no-delay", DFB, "nothing is held back for fuller segments", "Sends each piece at once, without waiting for full segments."),
    http("http-pretend-keepalive", DB, |o| &mut o.http_pretend_keepalive, "Announces keep-alive to the server even when the connection will be closed."),
    own("http-restrict-req-hdr-names", DFB, options::restrict_names, "What to do with request headers whose names have odd characters."),
    own("http-server-close", DFB, options::server_close, "Closes the server's side after each response."),
    Keyword { state: super::State::Removed("http-tunnel' is not supported any more since HAProxy 2.1, please just remove it, it shouldn't be needed."), ..not_yet("http-tunnel", DFB, "Removed from the language by HAProxy.") },
    http("http-use-proxy-header", DF, |o| &mut o.http_use_proxy_header, "Takes a request with an absolute URI as one to a proxy: `auth` asks with 407, credentials come in `Proxy-Authorization`."),
    Keyword { state: super::State::Removed("http_proxy' is not supported any more since HAProxy 2.5. Use 'http-request set-dst' and 'http-request set-uri' instead."), ..not_yet("http_proxy", DFB, "Removed from the language by HAProxy.") },
    not_yet("httpchk", DB, "HTTP health checks."),
    own("httpclose", DFB, options::close, "Closes both sides after each response."),
    own("httplog", DF, options::httplog, "The HTTP log format; with `clf` the common log format."),
    own("httpslog", DF, options::httpslog, "The HTTPS log format."),
    Keyword { state: super::State::Removed("forceclose' is not supported any more since HAProxy 2.0, please just remove it, or use 'option httpclose' if absolutely needed."), ..not_yet("forceclose", DFB, "Removed from the language by HAProxy.") },
    switch("idle-close-on-response", DF, |o| &mut o.idle_close_on_response, "Closes idle client connections only after one more response when stopping."),
    switch("independent-streams", DFB, |o| &mut o.independent_streams, "Activity of one direction does not refresh the other's timeout."),
    not_yet("ldap-check", DB, "LDAPv3 health checks."),
    not_yet("log-health-checks", DB, "Logs the results of health checks."),
    switch("log-separate-errors", DF, |o| &mut o.log_separate_errors, "Logs failed requests at level `err`."),
    switch("logasap", DF, |o| &mut o.logasap, "Logs when the response's head is there, not at the end."),
    not_yet("mysql-check", DB, "MySQL health checks."),
    switch("nolinger", DFB, |o| &mut o.nolinger, "Resets connections instead of closing them."),
    own("originalto", DFB, options::originalto, "Adds the original destination in `X-Original-To`."),
    switch("persist", DB, |o| &mut o.persist, "Insists on a server that persistence names although it is down."),
    not_yet("pgsql-check", DB, "PostgreSQL health checks."),
    http("prefer-last-server", DB, |o| &mut o.prefer_last_server, "Tries to stay on the server of the client's previous request."),
    own("redispatch", DB, options::redispatch, "Retries on another server; with a number, after how many retries."),
    not_yet("redis-check", DB, "Redis health checks."),
    not_yet("smtpchk", DB, "SMTP health checks."),
    moot("socket-stats", DF, COUNTERS, "Statistics for each listener."),
    moot("splice-auto", DFB, PIPES, "Splices in the kernel where it is likely to help."),
    moot("splice-request", DFB, PIPES, "Splices requests in the kernel."),
    moot("splice-response", DFB, PIPES, "Splices responses in the kernel."),
    not_yet("spop-check", DB, "SPOP health checks."),
    switch("srvtcpka", DB, |o| &mut o.srvtcpka, "TCP keep-alive probes on server connections."),
    not_yet("ssl-hello-chk", DB, "Health checks that send a TLS hello."),
    not_yet("tcp-check", DB, "Health checks that `tcp-check` rules describe."),
    moot("tcp-smart-accept", DF, ACKS, "Saves an ACK on accepted connections."),
    moot("tcp-smart-connect", DB, ACKS, "Saves an ACK on server connections."),
    own("tcpka", DFB, options::tcpka, "TCP keep-alive probes on both sides."),
    own("tcplog", DF, options::tcplog, "The TCP log format; with `clf` the common log format."),
    Keyword { state: super::State::Removed("transparent' was removed in version 3.5. Use a server with address 0.0.0.0 instead."), ..not_yet("transparent", DB, "Removed from the language by HAProxy.") },
    own("tracing", DF, otel::tracing::option, "Spans of requests and tries over OTLP, by OpenTelemetry's conventions; not in HAProxy."),
    not_yet("use-small-buffers", DB, "Keeps waiting requests in smaller buffers."),
];
