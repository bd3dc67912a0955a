//! What a collector tells of itself: pages that it serves, metrics that it sends.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use syntax::hex;

use super::{StartError, View};
use crate::config::service::telemetry::{MetricsLevel, Reader};
use crate::config::{Component, ComponentId, Config, Extension};
use crate::run::Log;
use crate::run::own::Own;
use crate::run::page::{self, Health};
use crate::run::receive::{Listening, Opening};
use crate::run::send::Page;

/// Serves the pages of extensions and of the metrics, by their names.
pub(super) fn serve(
    config: &Config,
    view: &Arc<View>,
    health: &Arc<Health>,
    opening: Opening<'_>,
) -> Result<Vec<(String, Listening)>, StartError> {
    let mut pages = Vec::new();
    for component in &config.extensions {
        let Component { id, place, .. } = component;
        let (view, health) = (Arc::clone(view), Arc::clone(health));
        let failed = |why| StartError(format!("{place}: extension '{id}': {why}"));
        match &component.settings {
            Extension::HealthCheck(settings) => {
                let page = page::health(settings, health, opening);
                pages.push((id.to_string(), page.map_err(failed)?));
            }
            Extension::HealthCheckV2(settings) => {
                let own = page::status(settings, config, (view, health), opening);
                let own = own.map_err(failed)?.into_iter();
                pages.extend(own.map(|(what, listening)| (format!("{id}{what}"), listening)));
            }
            _ => {}
        }
    }
    if config.telemetry.metrics.level == MetricsLevel::None {
        return Ok(pages);
    }
    for reader in &config.telemetry.metrics.readers {
        if let Reader::Prometheus { host, port, naming } = reader {
            let listen = (host.as_str(), *port);
            let page = page::metrics(listen, *naming, Arc::clone(view), opening);
            let page = page.map_err(|why| {
                StartError(format!("service::telemetry::metrics::readers: {why}"))
            })?;
            pages.push(("metrics".to_owned(), page));
        }
    }
    Ok(pages)
}

/// Serves the pages of exporters, by their ids.
pub(super) fn expose(
    config: &Config,
    pages: Vec<(ComponentId, Arc<dyn Page>)>,
    opening: Opening<'_>,
) -> Result<Vec<(String, Listening)>, StartError> {
    let served = pages.into_iter().map(|(id, page)| {
        let page = page.open(opening).map_err(|why| {
            let mut exporters = config.exporters.iter();
            let component = exporters.find(|one| one.id == id);
            let place = component.map_or("", |component| &component.place);
            StartError(format!("{place}: exporter '{id}': {why}"))
        });
        Ok((id.to_string(), page?))
    });
    served.collect()
}

/// Those who are sent the own metrics.
pub(super) fn send(config: &Config, view: &Arc<View>, log: &Log) -> Result<Vec<Own>, StartError> {
    let mut owns = Vec::new();
    if config.telemetry.metrics.level == MetricsLevel::None {
        return Ok(owns);
    }
    for reader in &config.telemetry.metrics.readers {
        if let Reader::Otlp(settings) = reader {
            let own = Own::start(settings, &config.proxies, Arc::clone(view), log);
            let failed = |why| StartError(format!("service::telemetry::metrics::readers: {why}"));
            owns.push(own.map_err(failed)?);
        }
    }
    Ok(owns)
}

/// The own resource: what it is called, with what the settings add and take away.
pub(super) fn resource(config: &Config) -> Vec<(String, String)> {
    let default = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let mut attributes = vec![
        default("service.name", "spangate"),
        default("service.version", env!("CARGO_PKG_VERSION")),
        default("service.instance.id", &random_uuid()),
    ];
    for (name, value) in &config.telemetry.resource {
        attributes.retain(|(other, _)| other != name);
        attributes.extend(value.clone().map(|value| (name.clone(), value)));
    }
    attributes
}

/// A UUID of version 4 (RFC 9562 section 5.4).
fn random_uuid() -> String {
    let random = || RandomState::new().hash_one(0);
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&random().to_be_bytes());
    bytes[8..].copy_from_slice(&random().to_be_bytes());
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let text = hex::text(&bytes);
    let parts = [0..8, 8..12, 12..16, 16..20, 20..32];
    parts.map(|part| &text[part]).join("-")
}
