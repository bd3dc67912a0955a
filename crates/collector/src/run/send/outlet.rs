//! The exporters `otlp` and `otlphttp`: clients of OTLP.

use bytes::Bytes;
use export::client::{Client, GrpcOptions, Outcome, Prepared, Proxies, RemoteWrite};
use telemetry::settings::{Compression, Encoding, OtlpHttp};

use super::{ExporterDeps, QueueSettings, StartExporter, Started, Target};
use crate::config::Signal;
use crate::config::components::exporters::otlp_grpc::OtlpGrpcExporter;
use crate::config::components::exporters::otlp_http::OtlpHttpExporter;
use crate::config::components::exporters::prometheus_remote_write::WriteVersion;
use crate::config::components::shared::grpc::GrpcClient;
use crate::config::components::shared::http::HttpClient;
use crate::run::auth::{Authenticators, Editor};
use crate::run::data::Batch;
use crate::run::origin::Origin;

/// A client, and what changes the fields of its requests.
pub(super) struct Outlet {
    client: Client,
    encoding: Encoding,
    editor: Option<Editor>,
    /// The host and port that it sends to; none for a Unix socket.
    server: Option<(String, String)>,
}

impl StartExporter for OtlpGrpcExporter {
    fn start(&self, deps: ExporterDeps<'_, '_>) -> Result<Started, String> {
        let settings = || QueueSettings::of(self);
        deps.queues(settings, |deps, signal| {
            grpc(&self.client, signal, (&deps.auth, &deps.proxies))
        })
    }
}

impl StartExporter for OtlpHttpExporter {
    fn start(&self, deps: ExporterDeps<'_, '_>) -> Result<Started, String> {
        let settings = || QueueSettings::of(self);
        deps.queues(settings, |deps, signal| {
            http(self, signal, (&deps.auth, &deps.proxies))
        })
    }
}

impl Target for Outlet {
    type Prepared = Option<Prepared>;

    async fn send(&self, batch: &Batch, prepared: &mut Option<Prepared>) -> Outcome {
        let request = match prepared {
            Some(request) => request,
            None => match self.prepare(batch) {
                Ok(request) => prepared.insert(request),
                Err(why) => return Outcome::Refused(why),
            },
        };
        self.attempt(request, batch.origin.as_deref()).await
    }

    fn server(&self) -> Option<&(String, String)> {
        self.server.as_ref()
    }
}

impl Outlet {
    fn prepare(&self, batch: &Batch) -> Result<Prepared, String> {
        let body: Bytes = match self.encoding {
            Encoding::Protobuf => batch.bytes.clone(),
            Encoding::Json => otlp::json::encode(batch.signal, &batch.bytes).into(),
        };
        self.client.prepare(vec![body])
    }

    /// A body as it is sent.
    ///
    /// # Errors
    /// Why it cannot be compressed.
    pub(super) fn pack(&self, body: Bytes) -> Result<Prepared, String> {
        self.client.prepare(vec![body])
    }

    /// Sends a request once, of data of this origin.
    pub(super) async fn attempt(&self, request: &Prepared, origin: Option<&Origin>) -> Outcome {
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
    settings: &GrpcClient,
    signal: Signal,
    (auth, proxies): (&Authenticators, &Proxies),
) -> Result<Outlet, String> {
    let options = GrpcOptions {
        proxy: proxies.to_grpc(settings.target()),
        ..settings.options.clone()
    };
    Ok(Outlet {
        client: Client::grpc_with(&settings.otlp, signal, options)?,
        encoding: Encoding::Protobuf,
        editor: auth.editor(settings.auth.as_ref())?,
        server: match settings.options.unix {
            Some(_) => None,
            None => server(&settings.otlp.endpoint),
        },
    })
}

/// A client that pushes to Prometheus.
pub(super) fn remote_write(
    url: &str,
    settings: &HttpClient,
    version: WriteVersion,
    (auth, proxies): (&Authenticators, &Proxies),
) -> Result<Outlet, String> {
    let HttpClient {
        otlp,
        options,
        auth: own,
    } = settings;
    let otlp = OtlpHttp {
        endpoint: url.to_owned(),
        compression: Compression::Snappy,
        ..otlp.clone()
    };
    let mut options = options.clone();
    options.proxy = options.proxy.or_else(|| proxies.to_url(url));
    let version = match version {
        WriteVersion::One => RemoteWrite::One,
        WriteVersion::Two => RemoteWrite::Two,
    };
    Ok(Outlet {
        client: Client::remote_write(&otlp, version, options)?,
        encoding: Encoding::Protobuf,
        editor: auth.editor(own.as_ref())?,
        server: server(url),
    })
}

fn http(
    settings: &OtlpHttpExporter,
    signal: Signal,
    (auth, proxies): (&Authenticators, &Proxies),
) -> Result<Outlet, String> {
    let Some(url) = settings.url(signal) else {
        return Err(format!("there is no endpoint for {signal}"));
    };
    let HttpClient {
        otlp,
        options,
        auth: own,
    } = &settings.client;
    let otlp = OtlpHttp {
        endpoint: url.clone(),
        ..otlp.clone()
    };
    let mut options = options.clone();
    options.proxy = options.proxy.or_else(|| proxies.to_url(url));
    Ok(Outlet {
        client: Client::http_with(&otlp, signal, options)?,
        encoding: otlp.encoding,
        editor: auth.editor(own.as_ref())?,
        server: server(url),
    })
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

#[cfg(test)]
mod tests {
    use crate::config::components::exporters::load_balancing::LoadBalancingExporter;
    use crate::config::components::exporters::otlp_grpc::OtlpGrpcExporter;
    use crate::config::exporter;

    #[test]
    fn one_address_is_enough_where_the_settings_say_so() {
        for (name, is_balanced) in [("pick_first", false), ("round_robin", true)] {
            let one = format!("endpoint: 'x:1', balancer_name: {name}");
            for text in [
                format!("otlp: {{ {one} }}"),
                format!(
                    "loadbalancing: {{ protocol: {{ otlp: {{ {one} }} }}, resolver: {{ static: {{ hostnames: [a] }} }} }}"
                ),
            ] {
                let exporter = exporter(&text);
                let balancer = exporter.get::<LoadBalancingExporter>();
                let client = match balancer {
                    Some(balancer) => &balancer.otlp.client,
                    None => &exporter.get::<OtlpGrpcExporter>().expect("otlp").client,
                };
                assert_eq!(client.options.is_balanced, is_balanced, "{text}");
            }
        }
    }
}
