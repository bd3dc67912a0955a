//! Clients of OTLP, from the settings of the exporters `otlp` and `otlphttp`.

use std::time::Duration;

use export::client::{
    Client, Connections, GrpcOptions, HttpOptions, Keepalive, Outcome, Prepared, Proxies, Proxy,
};
use telemetry::settings as client;

use super::Form;
use crate::config::Signal;
use crate::config::components::exporters::otlp_grpc::OtlpGrpcExporter;
use crate::config::components::exporters::otlp_http::{Encoding, OtlpHttpExporter};
use crate::config::components::shared::grpc::{Balancer, GrpcClient, GrpcCompression};
use crate::config::components::shared::http::{Coding, HttpClient};
use crate::run::auth::{Authenticators, Editor};
use crate::run::origin::Origin;
use crate::run::tls;

/// Time for a request where there is no bound.
const TIMEOUT_MAX_MS: u32 = 3_600_000;

/// A client, and what changes the fields of its requests.
pub(super) struct Outlet {
    pub client: Client,
    editor: Option<Editor>,
    /// The host and port that it sends to; none for a Unix socket.
    pub server: Option<(String, String)>,
}

impl Outlet {
    /// Sends a request once, of data of this origin.
    pub(super) async fn send(&self, request: &Prepared, origin: Option<&Origin>) -> Outcome {
        let mut headers = self.client.headers();
        if let Some(edit) = &self.editor
            && let Err(why) = edit(&mut headers, origin)
        {
            return Outcome::Refused(why);
        }
        self.client.send_with(request, headers).await
    }
}

pub(super) fn grpc(
    settings: &OtlpGrpcExporter,
    signal: Signal,
    (auth, proxies): (&Authenticators, &Proxies),
) -> Result<Outlet, String> {
    let target = &settings.client.target;
    let (scheme, tls) = match &settings.client.tls {
        Some(settings) => ("https", tls::client(settings)),
        None => ("http", client::Tls::default()),
    };
    // As in gRPC: whom a Unix socket leads to is this machine.
    let unix = target.strip_prefix("unix:");
    let host = if unix.is_some() { "localhost" } else { target };
    let otlp = client::OtlpGrpc {
        endpoint: format!("{scheme}://{host}"),
        headers: client::Headers(settings.client.headers.clone()),
        timeout_ms: millis(settings.timeout_ns),
        requests_max: 0,
        compression: match settings.client.compression {
            GrpcCompression::None => client::Compression::None,
            GrpcCompression::Gzip => client::Compression::Gzip,
            GrpcCompression::Zstd => client::Compression::Zstd,
        },
        user_agent: settings.client.user_agent.clone(),
        tls,
    };
    let options = GrpcOptions {
        proxy: proxies.to_grpc(host),
        unix: unix.map(str::to_owned),
        ..options(&settings.client)
    };
    Ok(Outlet {
        client: Client::grpc_with(&otlp, signal_of(signal), options)?,
        editor: auth.editor(settings.client.auth.as_ref())?,
        server: match unix {
            Some(_) => None,
            None => server(&otlp.endpoint),
        },
    })
}

pub(super) fn http(
    settings: &OtlpHttpExporter,
    signal: Signal,
    (auth, proxies): (&Authenticators, &Proxies),
) -> Result<(Outlet, Form), String> {
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
            Coding::Zstd => client::Compression::Zstd,
            Coding::Zlib => client::Compression::Deflate,
            Coding::Snappy => client::Compression::Snappy,
            Coding::SnappyFramed => client::Compression::SnappyFramed,
            Coding::Lz4 => client::Compression::Lz4,
        },
        tls: tls::client(&settings.client.tls),
    };
    let options = HttpOptions {
        level: settings.client.level,
        connections: connections(&settings.client),
        keeps_cookies: settings.client.keeps_cookies,
        proxy: match &settings.client.proxy {
            Some(proxy) => Some(Proxy::parse(proxy)?),
            None => proxies.to_url(url),
        },
    };
    let outlet = Outlet {
        client: Client::http_with(&otlp, signal_of(signal), options)?,
        editor: auth.editor(settings.client.auth.as_ref())?,
        server: server(url),
    };
    Ok((outlet, form))
}

/// The options of a connection that its settings say alone.
fn options(settings: &GrpcClient) -> GrpcOptions {
    let keepalive = settings.keepalive.as_ref();
    GrpcOptions {
        proxy: None,
        unix: None,
        is_balanced: settings.balancer == Balancer::RoundRobin,
        authority: settings.authority.clone(),
        keepalive: keepalive.map(|keepalive| Keepalive {
            after: Duration::from_nanos(keepalive.ping_ns),
            timeout: Duration::from_nanos(keepalive.ping_timeout_ns),
            while_idle: keepalive.permit_without_stream,
        }),
    }
}

/// The host and port of a URL.
fn server(url: &str) -> Option<(String, String)> {
    let url: hyper::Uri = url.parse().ok()?;
    let port = match (url.port_u16(), url.scheme_str()) {
        (Some(port), _) => port,
        (None, Some("https")) => 443,
        (None, _) => 80,
    };
    Some((url.host()?.to_owned(), port.to_string()))
}

fn connections(settings: &HttpClient) -> Connections {
    let idle_timeout = Duration::from_nanos(settings.idle_timeout_ns);
    Connections {
        max: (settings.connections_max > 0).then_some(settings.connections_max as usize),
        idle_max: match (settings.keep_alive, settings.idle_connections_max) {
            (false, _) => 0,
            (true, 0) => usize::MAX,
            (true, max) => max as usize,
        },
        idle_timeout: (!idle_timeout.is_zero()).then_some(idle_timeout),
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Exporter, exporter};

    #[test]
    fn one_address_is_enough_where_the_settings_say_so() {
        let one = "endpoint: 'x:1', balancer_name: pick_first";
        for text in [
            format!("otlp: {{ {one} }}"),
            format!(
                "loadbalancing: {{ protocol: {{ otlp: {{ {one} }} }}, resolver: {{ static: {{ hostnames: [a] }} }} }}"
            ),
        ] {
            let client = match exporter(&text) {
                Exporter::OtlpGrpc(exporter) => exporter.client,
                Exporter::LoadBalancing(exporter) => exporter.otlp.client,
                other => panic!("{other:?}"),
            };
            assert!(!options(&client).is_balanced, "{text}");
            assert!(
                options(&GrpcClient {
                    balancer: Balancer::RoundRobin,
                    ..client
                })
                .is_balanced
            );
        }
    }
}
