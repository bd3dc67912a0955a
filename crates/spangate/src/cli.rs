//! The runtime interface on `stats socket` (management guide §9.3).
//!
//! | file | holds |
//! |---|---|
//! | `command` | the entries of the command tables, the input of a command and its reply |
//! | `doors` | the sockets and their threads |
//! | `request` | turns bytes into command lines and payloads |
//! | `session` | one connection: its modes, its prompt, its commands one after another |
//! | `help` | the list of commands, and the proposals for an unknown command |
//! | others | one family of commands each: a table `COMMANDS`, named in [`FAMILIES`] |
//!
//! One thread per socket and one per connection, off the data path. Commands read and change the
//! state that workers share. They never hold a lock while they write to a client.

mod activity;
mod add_server;
mod anon;
mod basic;
mod collectors;
mod command;
mod debug;
mod descriptors;
mod dynamic_cookie;
mod env;
mod errors;
mod events;
mod help;
mod info;
mod known;
mod otel;
mod patterns;
mod peers;
mod process;
mod proxies;
mod quic;
mod reload;
mod request;
mod server;
mod server_settings;
mod server_state;
mod servers;
mod session;
mod sessions;
mod share;
mod ssl;
mod stat;
mod status;
mod tables;
#[cfg(test)]
mod testing;
mod vars;

use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex, PoisonError};

use proxy::RuntimeConfig;

#[cfg(feature = "export")]
pub(crate) use self::command::carry_out;
use self::command::{Asked, Command, Reply, command, denied};
pub(crate) use self::command::{Level, Severity, listing};
pub(crate) use self::dynamic_cookie::DynamicCookies;
pub(crate) use self::help::{Entry, help_text, unknown_command};
pub(crate) use self::process::socket_lines;
pub(crate) use self::request::{Input, Limits, Request, words};
pub(crate) use self::server::{CliServer, Connection, Control, Listener, listen};
use crate::collectors::Watched;
use crate::event_reporter::EventReporter;
use crate::exports::Exports;
use crate::frontends::Frontends;
use crate::handover::Exposed;
use crate::process::Reloads;
use crate::serve::Inboxes;

/// The tables of all commands.
const FAMILIES: &[&[Command]] = &[
    activity::COMMANDS,
    add_server::COMMANDS,
    anon::COMMANDS,
    basic::COMMANDS,
    collectors::COMMANDS,
    debug::COMMANDS,
    descriptors::COMMANDS,
    dynamic_cookie::COMMANDS,
    env::COMMANDS,
    errors::COMMANDS,
    events::COMMANDS,
    info::COMMANDS,
    otel::COMMANDS,
    stat::COMMANDS,
    patterns::COMMANDS,
    peers::COMMANDS,
    process::COMMANDS,
    reload::COMMANDS,
    proxies::COMMANDS,
    quic::COMMANDS,
    server_state::COMMANDS,
    servers::COMMANDS,
    sessions::COMMANDS,
    share::COMMANDS,
    ssl::CA_FILE,
    ssl::CERT,
    ssl::CRL_FILE,
    ssl::CRT_LIST,
    ssl::OCSP,
    ssl::SNI,
    ssl::TLS_KEYS,
    tables::COMMANDS,
    vars::COMMANDS,
];

/// The [`Subjects`] of the running configuration, which a reload in place replaces.
pub(crate) struct CurrentSubjects(Mutex<Arc<Subjects>>);

impl CurrentSubjects {
    /// The present ones.
    pub fn get(&self) -> Arc<Subjects> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces them.
    pub fn set(&self, subjects: Arc<Subjects>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = subjects;
    }
}

impl From<Arc<Subjects>> for CurrentSubjects {
    fn from(subjects: Arc<Subjects>) -> Self {
        CurrentSubjects(Mutex::new(subjects))
    }
}

/// The parts of the process that commands read and change.
pub(crate) struct Subjects {
    pub runtime_config: Arc<RuntimeConfig>,
    pub exports: Option<Arc<Exports>>,
    pub collectors: Vec<Watched>,
    /// The sections `peers`, where tables are shared.
    pub peers: Option<crate::peers::View>,
    /// The tables that are shared through a store, where there are some.
    pub share: Option<crate::share::View>,
    pub workers: Inboxes,
    pub shared: Arc<proxy::Shared>,
    pub exposed: Arc<Exposed>,
    pub frontends: Arc<Frontends>,
    pub ocsp: Arc<health::OcspUpdates>,
    pub crier: Arc<EventReporter>,
    /// The key that `set anon on` uses when it names none (`anonkey`). 0: no key is configured.
    pub anon_key: AtomicU32,
    pub dynamic_cookies: Arc<DynamicCookies>,
    /// The rings, in the order of the configuration.
    pub rings: Vec<Arc<net::ring::Ring>>,
    /// Receives requests for a reload in place.
    pub reloads: Arc<Reloads>,
}
