//! `option …` (manual §4.2).

use super::arguments::Args;
use super::{Elsewhere::IgnoredFormat, Keyword, Places, at::*};
use crate::build::health::protocols::{self, Protocol};
use crate::build::options::{self, OptionParser};
use crate::build::{health, otel};
use crate::model::Options;

/// The effect of an option.
#[derive(Clone, Copy, Debug)]
pub enum Setter {
    /// A switch that works in every mode.
    Switch(fn(&mut Options) -> &mut bool),
    /// A switch that needs `mode http`.
    HttpSwitch(fn(&mut Options) -> &mut bool),
    /// An option with arguments.
    Own(OptionParser),
}

const fn switch(
    name: &'static str,
    places: Places,
    field: fn(&mut Options) -> &mut bool,
    doc: &'static str,
) -> Keyword<Setter> {
    Keyword::yes(name, places, Setter::Switch(field), doc)
}

const fn http(
    name: &'static str,
    places: Places,
    field: fn(&mut Options) -> &mut bool,
    doc: &'static str,
) -> Keyword<Setter> {
    Keyword::yes(name, places, Setter::HttpSwitch(field), doc)
}

const fn own(
    name: &'static str,
    places: Places,
    parser: OptionParser,
    doc: &'static str,
) -> Keyword<Setter> {
    Keyword::yes(name, places, Setter::Own(parser), doc)
}

/// The health check of a protocol.
const fn protocol(protocol: &Protocol) -> Keyword<Setter> {
    own(protocol.name, DB, health::protocol_option, protocol.doc)
}

const fn moot(
    name: &'static str,
    places: Places,
    reason: &'static str,
    args: Args,
    doc: &'static str,
) -> Keyword<Setter> {
    Keyword::moot(name, places, reason, args, doc)
}

const PIPES: &str = "data is not spliced through pipes here";
const BUFFERS: &str = "buffers have one size here";
const ACKS: &str = "the kernel decides when it acknowledges";

/// Every option.
#[rustfmt::skip]
pub const KEYWORDS: &[Keyword<Setter>] = &[
    own("abortonclose", DFB, options::abortonclose, "Drops a request whose client has closed before it was served; the default in `mode http`."),
    own("accept-invalid-http-request", DF, options::accept_invalid, "The old name of `accept-unsafe-violations-in-http-request`."),
    own("accept-invalid-http-response", DB, options::accept_invalid, "The old name of `accept-unsafe-violations-in-http-response`."),
    http("accept-unsafe-violations-in-http-request", DF, |o| &mut o.accept_unsafe_violations_in_http_request, "Lets some malformed requests pass."),
    http("accept-unsafe-violations-in-http-response", DB, |o| &mut o.accept_unsafe_violations_in_http_response, "Lets some malformed responses pass."),
    switch("allbackups", DB, |o| &mut o.allbackups, "Balances over all backup servers instead of the first one."),
    http("checkcache", DB, |o| &mut o.checkcache, "Blocks responses that carry cookies and may be cached."),
    switch("clitcpka", DF, |o| &mut o.clitcpka, "TCP keep-alive probes on client connections."),
    switch("contstats", DF, |o| &mut o.contstats, "Counts bytes while they flow, not at the end of a stream."),
    http("disable-h2-upgrade", DF, |o| &mut o.disable_h2_upgrade, "Refuses the HTTP/2 preface on an HTTP/1 connection."),
    switch("dontlog-normal", DF, |o| &mut o.dontlog_normal, "Logs only what did not go well."),
    switch("dontlognull", DF, |o| &mut o.dontlognull, "Does not log connections on which nothing was sent."),
    own("external-check", DB, health::external_option, "Health checks by an external program."),
    own("forwarded", DB, options::forwarded, "Adds the header `Forwarded` of RFC 7239."),
    own("forwardfor", DFB, options::forwardfor, "Adds the client's address in `X-Forwarded-For`."),
    http("h1-case-adjust-bogus-client", DF, |o| &mut o.h1_case_adjust_bogus_client, "Sends header names in the case of `h1-case-adjust` to clients."),
    http("h1-case-adjust-bogus-server", DB, |o| &mut o.h1_case_adjust_bogus_server, "Sends header names in the case of `h1-case-adjust` to servers."),
    http("http-buffer-request", DFB, |o| &mut o.http_buffer_request, "Waits for the request's body before it goes on."),
    http("http-drop-request-trailers", DB, |o| &mut o.http_drop_request_trailers, "Drops trailers of requests."),
    http("http-drop-response-trailers", DF, |o| &mut o.http_drop_response_trailers, "Drops trailers of responses."),
    http("http-ignore-probes", DF, |o| &mut o.http_ignore_probes, "Neither logs nor counts connections closed before a request."),
    own("http-keep-alive", DFB, options::keep_alive, "Keeps connections open on both sides; this is the default."),
    moot("http-no-delay", DFB, "nothing is held back for fuller segments", Args::None, "Sends each piece at once, without waiting for full segments."),
    http("http-pretend-keepalive", DB, |o| &mut o.http_pretend_keepalive, "Announces keep-alive to the server even when the connection will be closed."),
    own("http-restrict-req-hdr-names", DFB, options::restrict_names, "What to do with request headers whose names have odd characters."),
    own("http-server-close", DFB, options::server_close, "Closes the server's side after each response."),
    Keyword::gone("http-tunnel", DFB, "http-tunnel' is not supported any more since HAProxy 2.1, please just remove it, it shouldn't be needed."),
    http("http-use-proxy-header", DF, |o| &mut o.http_use_proxy_header, "Takes a request with an absolute URI as one to a proxy: `auth` asks with 407, credentials come in `Proxy-Authorization`."),
    Keyword::gone("http_proxy", DFB, "http_proxy' is not supported any more since HAProxy 2.5. Use 'http-request set-dst' and 'http-request set-uri' instead."),
    own("httpchk", DB, health::http_option, "HTTP health checks."),
    own("httpclose", DFB, options::close, "Closes both sides after each response."),
    own("httplog", DF, options::httplog, "The HTTP log format; with `clf` the common log format.").elsewhere(IgnoredFormat),
    own("httpslog", DF, options::httpslog, "The HTTPS log format.").elsewhere(IgnoredFormat),
    Keyword::gone("forceclose", DFB, "forceclose' is not supported any more since HAProxy 2.0, please just remove it, or use 'option httpclose' if absolutely needed."),
    switch("idle-close-on-response", DF, |o| &mut o.idle_close_on_response, "Closes idle client connections only after one more response when stopping."),
    switch("independent-streams", DFB, |o| &mut o.independent_streams, "Activity of one direction does not refresh the other's timeout."),
    protocol(&protocols::LDAP),
    switch("log-health-checks", DB, |o| &mut o.log_health_checks, "Logs the results of health checks."),
    switch("log-separate-errors", DF, |o| &mut o.log_separate_errors, "Logs failed requests at level `err`."),
    switch("logasap", DF, |o| &mut o.logasap, "Logs when the response's head is there, not at the end."),
    protocol(&protocols::MYSQL),
    switch("nolinger", DFB, |o| &mut o.nolinger, "Resets connections instead of closing them."),
    own("originalto", DFB, options::originalto, "Adds the original destination in `X-Original-To`."),
    switch("persist", DB, |o| &mut o.persist, "Insists on a server that persistence names although it is down."),
    protocol(&protocols::PGSQL),
    http("prefer-last-server", DB, |o| &mut o.prefer_last_server, "Tries to stay on the server of the client's previous request."),
    own("redispatch", DB, options::redispatch, "Retries on another server; with a number, after how many retries."),
    protocol(&protocols::REDIS),
    protocol(&protocols::SMTP),
    switch("socket-stats", DF, |o| &mut o.socket_stats, "Statistics for each listener."),
    moot("splice-auto", DFB, PIPES, Args::None, "Splices in the kernel where it is likely to help."),
    moot("splice-request", DFB, PIPES, Args::None, "Splices requests in the kernel."),
    moot("splice-response", DFB, PIPES, Args::None, "Splices responses in the kernel."),
    protocol(&protocols::SPOP),
    switch("srvtcpka", DB, |o| &mut o.srvtcpka, "TCP keep-alive probes on server connections."),
    protocol(&protocols::SSL_HELLO),
    own("tcp-check", DB, health::tcp_option, "Health checks that `tcp-check` rules describe."),
    moot("tcp-smart-accept", DF, ACKS, Args::None, "Saves an ACK on accepted connections."),
    moot("tcp-smart-connect", DB, ACKS, Args::None, "Saves an ACK on server connections."),
    own("tcpka", DFB, options::tcpka, "TCP keep-alive probes on both sides."),
    own("tcplog", DF, options::tcplog, "The TCP log format; with `clf` the common log format.").elsewhere(IgnoredFormat),
    Keyword::gone("transparent", DB, "transparent' was removed in version 3.5. Use a server with address 0.0.0.0 instead."),
    switch("latency-histograms", DFB, |o| &mut o.latency_histograms, "Histograms of the times of streams, of the proxy and its servers, for Prometheus and OTLP; not in HAProxy."),
    own("tracing", DF, otel::tracing::option, "Spans of requests and tries over OTLP, by OpenTelemetry's conventions; not in HAProxy."),
    moot("use-small-buffers", DB, BUFFERS, Args::Own(options::small_buffers), "Keeps waiting requests in smaller buffers."),
];
