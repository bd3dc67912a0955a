//! What a collector tells of itself: pages that it serves, metrics that it sends.

use std::sync::Arc;

use super::{StartError, View};
use crate::config::service::telemetry::{MetricsLevel, Reader};
use crate::config::{Component, Config, Extension};
use crate::run::Log;
use crate::run::own::Own;
use crate::run::page::{self, Health};
use crate::run::receive::{Listening, Opening};

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
        if let Reader::Prometheus { host, port } = reader {
            let page = page::metrics(host, *port, Arc::clone(view), opening.sharing);
            let page = page.map_err(|why| {
                StartError(format!("service::telemetry::metrics::readers: {why}"))
            })?;
            pages.push(("metrics".to_owned(), page));
        }
    }
    Ok(pages)
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
    ];
    for (name, value) in &config.telemetry.resource {
        attributes.retain(|(other, _)| other != name);
        attributes.extend(value.clone().map(|value| (name.clone(), value)));
    }
    attributes
}
