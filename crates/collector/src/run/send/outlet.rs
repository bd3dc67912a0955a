//! Clients of OTLP, from the settings of the exporters `otlp` and `otlphttp`.

use export::client::{Client, GrpcOptions, Outcome, Prepared, Proxies};
use telemetry::settings::{Encoding, OtlpHttp};

use crate::config::Signal;
use crate::config::components::exporters::otlp_http::OtlpHttpExporter;
use crate::config::components::shared::grpc::GrpcClient;
use crate::config::components::shared::http::HttpClient;
use crate::run::auth::{Authenticators, Editor};
use crate::run::origin::Origin;

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
        editor: auth.editor(settings.auth.as_ref())?,
        server: match settings.options.unix {
            Some(_) => None,
            None => server(&settings.otlp.endpoint),
        },
    })
}

pub(super) fn http(
    settings: &OtlpHttpExporter,
    signal: Signal,
    (auth, proxies): (&Authenticators, &Proxies),
) -> Result<(Outlet, Encoding), String> {
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
    let outlet = Outlet {
        client: Client::http_with(&otlp, signal, options)?,
        editor: auth.editor(own.as_ref())?,
        server: server(url),
    };
    Ok((outlet, otlp.encoding))
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
    use crate::config::{Exporter, exporter};

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
                let client = match exporter(&text) {
                    Exporter::OtlpGrpc(exporter) => exporter.client,
                    Exporter::LoadBalancing(exporter) => exporter.otlp.client,
                    other => panic!("{other:?}"),
                };
                assert_eq!(client.options.is_balanced, is_balanced, "{text}");
            }
        }
    }
}
