//! The timeouts and the retry limit of a stream: those of its proxies, unless a rule sets others.

use config::model::TimeoutKind;
use net::timers::NEVER_MS;
use sample::facts::Timeouts;

use super::Stream;
use crate::runtime_config::RuntimeConfig;

/// One accessor for each timeout: milliseconds, [`NEVER_MS`] for none.
macro_rules! timeouts {
    ($($doc:literal $name:ident $field:ident $proxy:ident;)*) => {
        impl Stream {$(
            #[doc = $doc]
            pub fn $name(&self, runtime_config: &RuntimeConfig) -> u64 {
                match self.txn.timeouts.$field {
                    None => runtime_config.timeouts(self.$proxy).$field,
                    Some(0) => NEVER_MS,
                    Some(ms) => u64::from(ms),
                }
            }
        )*}
    };
}
timeouts! {
    "Inactivity of the client." client_ms client frontend;
    "A connection to the server." connect_ms connect backend;
    "A place in a queue." queue_ms queue backend;
    "Inactivity of the server." server_ms server backend;
    "Being tarpitted." tarpit_ms tarpit backend;
    "Inactivity of a tunnel." tunnel_ms tunnel backend;
}

impl Stream {
    /// `set-timeout`.
    pub fn set_timeout(&mut self, kind: TimeoutKind, ms: u32) {
        let timeouts = &mut self.txn.timeouts;
        let field = match kind {
            TimeoutKind::Client => &mut timeouts.client,
            TimeoutKind::Connect => &mut timeouts.connect,
            TimeoutKind::Queue => &mut timeouts.queue,
            TimeoutKind::Server => &mut timeouts.server,
            TimeoutKind::Tarpit => &mut timeouts.tarpit,
            TimeoutKind::Tunnel => &mut timeouts.tunnel,
        };
        *field = Some(ms);
    }

    /// The number of tries after the first one.
    pub fn retries_max(&self, runtime_config: &RuntimeConfig) -> u32 {
        let configured = runtime_config.proxy(self.backend).retries;
        self.txn.retries_max.unwrap_or(configured)
    }

    /// Another backend was chosen: drops what rules of the previous one set for servers (manual
    /// §4.4 set-timeout, set-retries).
    pub fn forget_server_limits(&mut self) {
        self.txn.retries_max = None;
        let Timeouts { client, tarpit, .. } = self.txn.timeouts;
        self.txn.timeouts = Timeouts {
            client,
            tarpit,
            ..Timeouts::default()
        };
    }
}
