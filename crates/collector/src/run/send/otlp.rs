//! Clients of OTLP, from the settings of the exporters `otlp` and `otlphttp`.

use export::client::Client;
use telemetry::settings as client;

use super::Form;
use crate::config::Signal;
use crate::config::components::exporters::otlp_grpc::OtlpGrpcExporter;
use crate::config::components::exporters::otlp_http::{Encoding, OtlpHttpExporter};
use crate::config::components::shared::grpc::GrpcCompression;
use crate::config::components::shared::http::Coding;
use crate::run::tls;

/// Time for a request where there is no bound.
const TIMEOUT_MAX_MS: u32 = 3_600_000;

pub(super) fn grpc(settings: &OtlpGrpcExporter, signal: Signal) -> Result<Client, String> {
    let target = &settings.client.target;
    if target.starts_with("unix:") {
        return Err(format!("{target}: Unix sockets are not spoken to yet"));
    }
    if settings.client.authority.is_some() {
        return Err("'authority' is not supported yet".into());
    }
    let (scheme, tls) = match &settings.client.tls {
        Some(settings) => ("https", tls::client(settings)?),
        None => ("http", client::Tls::default()),
    };
    let otlp = client::OtlpGrpc {
        endpoint: format!("{scheme}://{target}"),
        headers: client::Headers(settings.client.headers.clone()),
        timeout_ms: millis(settings.timeout_ns),
        requests_max: 0,
        compression: match settings.client.compression {
            GrpcCompression::None => client::Compression::None,
            GrpcCompression::Gzip => client::Compression::Gzip,
            GrpcCompression::Zstd => return Err("'compression: zstd' is not sent yet".into()),
        },
        user_agent: settings.client.user_agent.clone(),
        tls,
    };
    Client::grpc(&otlp, signal_of(signal))
}

pub(super) fn http(settings: &OtlpHttpExporter, signal: Signal) -> Result<(Client, Form), String> {
    let url = match signal {
        Signal::Traces => &settings.traces_url,
        Signal::Metrics => &settings.metrics_url,
        Signal::Logs => &settings.logs_url,
    };
    let Some(url) = url else {
        return Err(format!("there is no endpoint for {signal}"));
    };
    let (form, encoding) = match settings.encoding {
        Encoding::Proto => (Form::Protobuf, client::Encoding::Protobuf),
        Encoding::Json => (Form::Json, client::Encoding::Json),
    };
    let otlp = client::OtlpHttp {
        endpoint: url.clone(),
        encoding,
        headers: client::Headers(settings.client.headers.clone()),
        timeout_ms: millis(settings.client.timeout_ns),
        requests_max: 0,
        compression: match settings.client.coding {
            Coding::Identity => client::Compression::None,
            Coding::Gzip => client::Compression::Gzip,
            other => return Err(format!("'compression: {other:?}' is not sent yet")),
        },
        tls: tls::client(&settings.client.tls)?,
    };
    Ok((Client::http(&otlp, signal_of(signal))?, form))
}

fn signal_of(signal: Signal) -> client::Signal {
    match signal {
        Signal::Traces => client::Signal::Traces,
        Signal::Metrics => client::Signal::Metrics,
        Signal::Logs => client::Signal::Logs,
    }
}

fn millis(ns: u64) -> u32 {
    match ns {
        0 => TIMEOUT_MAX_MS,
        ns => u32::try_from(ns.div_ceil(1_000_000)).unwrap_or(TIMEOUT_MAX_MS),
    }
}
