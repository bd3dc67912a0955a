//! Reports changes of servers: to the logs of their backends, to standard error, to workers and to
//! checks.

use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use net::logs::{Dropped, LogSink};
use proxy::{Killed, Level, LogTargetId, Order, RuntimeConfig, ServerEvent, ServerEventSink};

use crate::logs::SEVERITY_WARNING;
use crate::names;
use crate::serve::Inboxes;

/// See the module.
pub(crate) struct EventReporter {
    pub runtime_config: Arc<RuntimeConfig>,
    /// The log sinks, by the numbers of the targets.
    pub sinks: Mutex<Vec<LogSink>>,
    pub dropped: Arc<Dropped>,
    pub workers: Inboxes,
    pub bells: Arc<health::Bells>,
    /// The thread that applies resolved names, where there is one.
    pub names: OnceLock<Sender<names::Message>>,
}

impl EventReporter {
    /// Writes a message about the process to the log targets of `global`; the severity is that of
    /// syslog.
    pub fn tell_of_process(&self, severity: u8, text: &str) {
        let now = net::sys::now();
        let messages = proxy::event_of_process(&self.runtime_config, severity, now, text);
        self.log(messages);
    }

    /// Reports what happened to a proxy, on standard error and in its logs.
    pub fn tell_of_proxy(&self, proxy: usize, text: &str) {
        crate::warning(text);
        let now = net::sys::now();
        self.log(proxy::event(
            &self.runtime_config,
            proxy,
            SEVERITY_WARNING,
            now,
            text,
        ));
    }

    /// Reports that a frontend no longer listens for now, or that it listens again. `what` is the
    /// word for it.
    pub fn tell_of_listening(&self, frontend: usize, what: &str) {
        let proxy = &self.runtime_config.config.proxies[frontend];
        let kind = if proxy.is_backend {
            "proxy"
        } else {
            "frontend"
        };
        self.tell_of_proxy(frontend, &format!("{what} {kind} {}.", proxy.name));
    }

    fn tell_names(&self, message: names::Message) {
        if let Some(names) = self.names.get() {
            // After the end of the thread, nobody needs it.
            let _ = names.send(message);
        }
    }

    fn log(&self, messages: Vec<(LogTargetId, Vec<u8>)>) {
        let mut sinks = self.sinks.lock().unwrap_or_else(PoisonError::into_inner);
        for (sink, message) in messages {
            if let Some(sink) = sinks.get_mut(sink) {
                sink.push(&message, &self.dropped);
                sink.flush(&self.dropped);
            }
        }
    }
}

impl ServerEventSink for EventReporter {
    fn now_ms(&self) -> u64 {
        net::sys::now().ms()
    }

    fn tell(&self, news: &ServerEvent) {
        let shown = news.shown.as_ref().unwrap_or(&news.text);
        match news.level {
            Level::Emergency => crate::alert(shown),
            Level::Alert | Level::Notice => crate::warning(shown),
        }
        let now = net::sys::now();
        let severity = news.level as u8;
        let messages = proxy::event(
            &self.runtime_config,
            news.backend,
            severity,
            now,
            &news.text,
        );
        self.log(messages);
    }

    fn end_streams(&self, which: Killed) {
        self.workers.tell(&Order::Kill(which));
    }

    fn servers_changed(&self) {
        self.bells.ring_all();
        self.tell_names(names::Message::ServersChanged);
    }

    fn resolve_again(&self, backend: usize, server: usize) {
        self.tell_names(names::Message::Recheck { backend, server });
    }

    fn reschedule(&self, backend: usize, server: usize) {
        self.bells.ring(backend, server);
    }
}
