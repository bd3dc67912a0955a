//! Messages about the process itself, such as that a proxy stops, for the log targets of a proxy.

use config::model::LogTarget;
use net::Now;

use super::send::DEFAULT_TAG;
use super::wire::{Dates, Header};
use crate::ids::ProxyId;
use crate::runtime_config::{LogPlace, LogTargetId, RuntimeConfig};

/// The message for each log target of a proxy, ready to be sent; for a log backend, for its first
/// server.
#[must_use]
pub fn event(
    runtime_config: &RuntimeConfig,
    proxy: usize,
    severity: u8,
    now: Now,
    text: &str,
) -> Vec<(LogTargetId, Vec<u8>)> {
    let proxy = ProxyId::at(proxy);
    let own = runtime_config.proxy(proxy);
    let tag = own.log_tag.as_deref();
    let tag = tag.or(runtime_config.config.global.log_tag.as_deref());
    let targets = own.log.iter().zip(runtime_config.log_places(proxy));
    let tag = tag.unwrap_or(DEFAULT_TAG);
    messages(runtime_config, targets, (severity, tag), now, text)
}

/// The message for each log target of `global`, about no proxy.
#[must_use]
pub fn event_of_process(
    runtime_config: &RuntimeConfig,
    severity: u8,
    now: Now,
    text: &str,
) -> Vec<(LogTargetId, Vec<u8>)> {
    let global = &runtime_config.config.global;
    let targets = global.log.iter().zip(runtime_config.global_log_places());
    let tag = global.log_tag.as_deref().unwrap_or(DEFAULT_TAG);
    messages(runtime_config, targets, (severity, tag), now, text)
}

fn messages<'a>(
    runtime_config: &RuntimeConfig,
    targets: impl Iterator<Item = (&'a LogTarget, &'a LogPlace)>,
    (severity, tag): (u8, &[u8]),
    now: Now,
    text: &str,
) -> Vec<(LogTargetId, Vec<u8>)> {
    let mut dates = Dates::default();
    targets
        .filter(|(target, _)| severity <= target.level_max)
        .map(|(target, place)| {
            let header = Header {
                level: severity.max(target.level_min),
                tag,
                sd: b"",
                steady: None,
            };
            let mut line = Vec::new();
            dates.write(
                runtime_config,
                target,
                &header,
                now,
                text.as_bytes(),
                &mut line,
            );
            (place.sink, line)
        })
        .collect()
}
