//! Timeouts in milliseconds, for computing deadlines.

use config::model::Timeouts;
use net::timers::NEVER_MS;

/// The timeouts of a proxy in milliseconds; [`NEVER_MS`] for none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimeoutsMs {
    pub client: u64,
    pub server: u64,
    pub connect: u64,
    pub http_request: u64,
    pub http_keep_alive: u64,
    pub queue: u64,
    pub tunnel: u64,
    pub client_fin: u64,
    pub server_fin: u64,
    pub tarpit: u64,
    pub client_hs: u64,
}

impl TimeoutsMs {
    pub fn new(timeouts: &Timeouts) -> Self {
        let ms = |value: Option<std::time::Duration>| {
            value.map_or(NEVER_MS, |value| value.as_millis() as u64)
        };
        let first = |one: Option<_>, other: Option<_>| ms(one.or(other));
        TimeoutsMs {
            client: ms(timeouts.client),
            server: ms(timeouts.server),
            connect: ms(timeouts.connect),
            http_request: first(timeouts.http_request, timeouts.client),
            // manual §4.2 timeout http-keep-alive: defaults to the timeout of the request, then
            // that of the client
            http_keep_alive: first(
                timeouts.http_keep_alive,
                timeouts.http_request.or(timeouts.client),
            ),
            queue: first(timeouts.queue, timeouts.connect),
            tunnel: ms(timeouts.tunnel),
            client_fin: ms(timeouts.client_fin),
            server_fin: ms(timeouts.server_fin),
            tarpit: first(timeouts.tarpit, timeouts.connect),
            client_hs: first(timeouts.client_hs, timeouts.client),
        }
    }
}

/// The time `timeout_ms` from now.
pub(crate) fn deadline(now: net::Now, timeout_ms: u64) -> u64 {
    now.ms().saturating_add(timeout_ms)
}
