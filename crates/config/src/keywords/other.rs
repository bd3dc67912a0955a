//! The other sections. Sections that enable a feature which is not implemented are refused, and
//! their keywords are checked by name. For sections that only describe such a feature, the
//! arguments are checked, and they have no effect.

use super::arguments::{Args, INTEGER, ON_OFF};
use super::features::Feature::{self, *};
use super::{Keyword, Places, Secret};
use crate::build::{haproxy_traces, threads};

/// An entry without a parser of its own.
pub type Known = Keyword<()>;

const fn k(name: &'static str, doc: &'static str) -> Known {
    Keyword::not_yet(name, Places::NONE, doc)
}

/// Describes a feature that does not exist yet.
const fn tunes(name: &'static str, feature: Feature, args: Args, doc: &'static str) -> Known {
    Keyword::tunes(name, Places::NONE, feature, args, doc)
}

const fn moot(name: &'static str, args: Args, doc: &'static str) -> Known {
    Keyword::moot(name, Places::NONE, TRACING, args, doc)
}

const TRACING: &str = "it traces HAProxy's own internals, which do not exist here";

const fn served(name: &'static str, doc: &'static str) -> Known {
    Keyword::yes(name, Places::NONE, (), doc)
}

const fn partly(name: &'static str, missing: &'static str, doc: &'static str) -> Known {
    Keyword::partly(name, Places::NONE, (), missing, doc)
}

/// Every kind of section.
#[rustfmt::skip]
pub const SECTIONS: &[Known] = &[
    k("acme", "How certificates are obtained."),
    served("backend", "Servers and how requests reach them."),
    tunes("cache", Cache, Args::Word, "A cache of responses."),
    served("collector", "An OpenTelemetry Collector's configuration that this process runs; not in HAProxy."),
    served("crt-store", "Certificates by name."),
    served("dashboard", "Pages about this process that it serves itself; not in HAProxy."),
    served("defaults", "What the proxies that follow start from."),
    k("fcgi-app", "A FastCGI application."),
    served("frontend", "Addresses to listen on and what happens to requests there."),
    served("global", "The process as a whole."),
    served("healthcheck", "A health check by name."),
    served("http-errors", "Error pages by name."),
    served("listen", "A frontend and a backend in one."),
    served("log-forward", "A relay of logs."),
    served("log-profile", "Log formats by step."),
    served("mailers", "Mail servers for alerts."),
    k("namespace_list", "Network namespaces."),
    served("peers", "Processes that share tables."),
    Keyword::gone("program", Places::NONE, "The 'program' section is not supported anymore since HAProxy 3.3."),
    served("resolvers", "Name servers that servers' names are resolved by while the process runs."),
    served("ring", "A buffer of log messages."),
    k("spoe-agent", "An agent of the stream processing offload engine."),
    k("spoe-group", "Messages to an agent."),
    k("spoe-message", "A message to an agent."),
    moot("traces", Args::None, "What is traced of HAProxy's internals."),
    served("userlist", "Users and groups."),
];

/// The keywords of the sections that have a table here, by the section's name.
pub const TABLES: &[(&str, &[Known])] = &[
    ("acme", ACME),
    ("cache", CACHE),
    ("crt-store", CRT_STORE),
    ("fcgi-app", FCGI_APP),
    ("healthcheck", HEALTHCHECK),
    ("http-errors", HTTP_ERRORS),
    ("log-forward", LOG_FORWARD),
    ("log-profile", LOG_PROFILE),
    ("mailers", MAILERS),
    ("namespace_list", NAMESPACE_LIST),
    ("peers", PEERS),
    ("resolvers", RESOLVERS),
    ("ring", RING),
    ("spoe-agent", SPOE_AGENT),
    ("spoe-group", SPOE_GROUP),
    ("spoe-message", SPOE_MESSAGE),
    ("traces", TRACES),
    ("userlist", USERLIST),
];

/// The table of `section`, if there is one.
#[must_use]
pub fn table(section: &str) -> Option<&'static [Known]> {
    let mut tables = TABLES.iter();
    tables
        .find(|(name, _)| *name == section)
        .map(|(_, table)| *table)
}

#[rustfmt::skip]
const ACME: &[Known] = &[
    k("account-key", "File of the account's key."),
    k("acme-vars", "Variables for what solves a challenge."),
    k("bits", "Size of RSA keys."),
    k("challenge", "How control of a name is shown."),
    k("challenge-ready", "What says that a challenge may be checked."),
    k("contact", "Mail address of the account."),
    k("curves", "Curve of ECDSA keys."),
    k("directory", "Address of the authority."),
    k("dns-delay", "Pause before a DNS challenge is checked."),
    k("dns-timeout", "Longest wait for a DNS challenge."),
    k("eab-key-id", "External account: identifier."),
    k("eab-mac-alg", "External account: algorithm."),
    k("eab-mac-key", "External account: key.").secret(Secret::All),
    k("keytype", "Kind of the certificates' keys."),
    k("map", "Map that challenges are put in."),
    k("profile", "Profile of the certificates."),
    k("provider-name", "Name of the DNS provider."),
    k("reuse-key", "Keeps a certificate's key when it is renewed."),
];

#[rustfmt::skip]
const CACHE: &[Known] = &[
    tunes("early-hints", Cache, Args::Optional(&ON_OFF), "Keeps link headers for early hints."),
    tunes("max-age", Cache, Args::Optional(&INTEGER), "Longest life of an entry."),
    tunes("max-object-size", Cache, Args::Number(0, 1 << 31), "Largest entry."),
    tunes("max-secondary-entries", Cache, Args::Own(threads::not_zero), "Variants of one entry."),
    tunes("process-vary", Cache, Args::Optional(&ON_OFF), "Whether `Vary` is understood."),
    tunes("total-max-size", Cache, Args::Number(1, 4095), "Size of the cache."),
];

/// Section `crt-store`.
#[rustfmt::skip]
pub const CRT_STORE: &[Known] = &[
    served("crt-base", "Directory of relative certificate file names."),
    served("key-base", "Directory of relative key file names."),
    served("load", "A certificate with its files."),
];

#[rustfmt::skip]
const FCGI_APP: &[Known] = &[
    k("acl", "Declares a condition."),
    k("docroot", "Directory of scripts on the server."),
    k("filter", "Adds a filter."),
    k("index", "Script of a path that ends in a slash."),
    k("log-stderr", "Where to send what scripts write to stderr."),
    k("option", "Options of connections to the application."),
    k("pass-header", "A request header to pass."),
    k("path-info", "How a path is split into script and path info."),
    k("set-param", "Sets a parameter."),
    k("unset-param", "Removes a parameter."),
    k("hide-header", "A request header to keep back."),
];

#[rustfmt::skip]
const HEALTHCHECK: &[Known] = &[
    served("http-check", "A step of an HTTP check."),
    served("tcp-check", "A step of a TCP check.").secret(Secret::SentBytes),
    served("type", "What kind of check it is."),
];

#[rustfmt::skip]
const HTTP_ERRORS: &[Known] = &[
    served("errorfile", "A file to answer with at a status."),
    served("errorloc", "A place to redirect to at a status, with 302."),
    served("errorloc302", "The same as `errorloc`."),
    served("errorloc303", "`errorloc` with status 303."),
];

/// The keywords of sections `log-forward`.
#[rustfmt::skip]
pub const LOG_FORWARD: &[Known] = &[
    served("backlog", "Length of the queue of connections to accept."),
    Keyword::partly("bind", Places::NONE, (), "`accept-proxy`, `proto` and `maxconn`", "Addresses that receive streams."),
    Keyword::partly("dgram-bind", Places::NONE, (), "options but `name` and `interface`, and UNIX sockets", "Addresses that receive datagrams."),
    Keyword::partly("log", Places::NONE, (), "`profile`", "Where to send logs."),
    served("maxconn", "Most connections at a time; 10 by default."),
    served("option", "`assume-rfc6587-ntf`, `dont-parse-log` and `host`."),
    served("timeout", "`timeout client`: the longest silence of a connection."),
];

#[rustfmt::skip]
const LOG_PROFILE: &[Known] = &[
    served("log-tag", "The program's name in syslog headers."),
    served("on", "What a step logs."),
];

#[rustfmt::skip]
const MAILERS: &[Known] = &[
    served("mailer", "A mail server."),
    served("timeout", "Timeouts."),
];

const NAMESPACE_LIST: &[Known] = &[k("namespace", "A network namespace.")];

/// Section `peers`.
#[rustfmt::skip]
pub const PEERS: &[Known] = &[
    partly("bind", "`accept-proxy`, `proto`, `maxconn`", "The local peer's address."),
    partly("default-bind", "`accept-proxy`, `proto`, `maxconn`", "Defaults of `bind`."),
    partly("default-server", "options of the connection but those of TLS, and `sni`, `alpn`", "Defaults of `server`."),
    served("disabled", "The section is not started."),
    served("enabled", "Cancels `disabled`."),
    k("log", "Where to send logs."),
    partly("peer", "options of the connection but those of TLS, and `sni`, `alpn`", "A peer."),
    partly("server", "options of the connection but those of TLS, and `sni`, `alpn`", "A peer with its options."),
    served("shards", "Number of peers that have a part of the entries each."),
    served("table", "A table that is shared."),
];

/// The keywords of sections `resolvers`.
#[rustfmt::skip]
pub const RESOLVERS: &[Known] = &[
    served("accepted_payload_size", "Largest answer over UDP, bytes."),
    served("hold", "How long an earlier answer is kept, by the kind of the last one."),
    served("nameserver", "A name server, asked over UDP or TCP."),
    served("parse-resolv-conf", "Takes the name servers of the system."),
    Keyword::gone("resolution_pool_size", Places::NONE, "'resolution_pool_size' directive is not supported anymore (it never appeared in a stable release)."),
    served("resolve_retries", "Most queries for one resolution."),
    served("timeout", "Times between resolutions, and between queries without an answer."),
];

/// The keywords of sections `ring`.
#[rustfmt::skip]
pub const RING: &[Known] = &[
    served("backing-file", "A file to which the messages are copied, in HAProxy's layout; one of an earlier process becomes `<path>.bak`."),
    served("description", "Free text."),
    served("format", "Format of the messages; `raw` by default."),
    served("maxlen", "Longest message."),
    Keyword::partly("server", Places::NONE, (), "options other than `log-proto` and those of TLS, `sni`, `alpn`, and UNIX sockets", "A server to send the messages to, over TCP or TLS."),
    served("size", "Size of the buffer."),
    served("timeout", "Timeouts of `connect` and `server`."),
];

#[rustfmt::skip]
const SPOE_AGENT: &[Known] = &[
    k("groups", "Groups of messages."),
    k("log", "Where to send logs."),
    k("max-frame-size", "Largest frame."),
    k("max-waiting-frames", "Frames without an answer."),
    k("maxconnrate", "Connections a second."),
    k("maxerrrate", "Errors a second."),
    k("messages", "Messages to send."),
    k("option", "Options."),
    k("register-var-names", "Variables that the agent may set."),
    k("timeout", "Timeouts."),
    k("use-backend", "The backend of the agent's servers."),
];

const SPOE_GROUP: &[Known] = &[k("messages", "Messages of the group.")];

#[rustfmt::skip]
const SPOE_MESSAGE: &[Known] = &[
    k("acl", "Declares a condition."),
    k("args", "What the message carries."),
    k("event", "When it is sent."),
];

const TRACES: &[Known] = &[moot(
    "trace",
    Args::Own(haproxy_traces::trace),
    "A source of traces, and where its events go.",
)];

#[rustfmt::skip]
const USERLIST: &[Known] = &[
    served("group", "A group of users."),
    served("user", "A user with a password.").secret(Secret::Password),
];
