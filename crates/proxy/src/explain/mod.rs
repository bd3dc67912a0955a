//! Explains a request that is not sent: which rules match, in order, which backend is chosen and
//! why, and which algorithm chooses the server. For an assumed response of that server it explains
//! the response rules too.
//!
//! The real rules and expressions run with a session and a stream without sockets. They may change
//! shared state (stick tables, variables of the process, patterns), so the caller must use a
//! configuration that serves no traffic.

mod nobody;
mod walk;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use config::model::{BindAddress, Mode};
use net::{Addr, Now};
use sample::RulePlace;

use crate::ids::ProxyId;
use crate::runtime_config::RuntimeConfig;
use crate::shared::Shared;

/// A request to be explained.
#[derive(Clone, Debug)]
pub struct Question {
    /// The head of the request, as HTTP/1.1.
    pub head: Vec<u8>,
    /// The port that it is sent to.
    pub port: u16,
    /// Whether the request comes over TLS.
    pub is_tls: bool,
    /// The client's address; none if it is not known.
    pub source: Option<IpAddr>,
    /// The frontend; none: the one that listens on the port.
    pub frontend: Option<String>,
    /// The head of the assumed response of the server, as HTTP/1.1; none: response rules are not
    /// explained.
    pub response: Option<Vec<u8>>,
}

/// The answer.
#[derive(Clone, Debug, Default)]
pub struct Explanation {
    /// The frontend, and why it is this one.
    pub frontend: String,
    /// See [`Explanation::frontend`].
    pub frontend_why: String,
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// The backend; none if a rule ended the request before.
    pub backend: Option<String>,
    /// How the server is chosen.
    pub server_choice: Option<String>,
    /// The servers of the backend: name, address, weight.
    pub servers: Vec<(String, String, u32)>,
    /// The outcome of the request, in words.
    pub outcome: String,
    /// The request line and fields after the rules.
    pub request: Vec<String>,
    /// The outcome of the response, in words; none if no response was assumed.
    pub response_outcome: Option<String>,
    /// The status line and fields that the client gets.
    pub response: Vec<String>,
}

/// One rule, or one decision.
#[derive(Clone, Debug)]
pub struct Step {
    /// The proxy that it belongs to.
    pub proxy: String,
    /// Whether it belongs to the response.
    pub is_response: bool,
    /// The keyword: `http-request`, `use_backend`, …
    pub keyword: &'static str,
    /// The position in the configuration; none if it is not known.
    pub place: Option<(String, u32)>,
    /// Whether its condition holds.
    pub matches: bool,
    /// The outcome, in words.
    pub result: String,
    /// Inputs of its condition that a request alone does not define.
    pub unknown: Vec<&'static str>,
}

/// Explains a request.
///
/// # Errors
/// No frontend accepts the request, or its head is invalid.
pub fn explain(
    runtime_config: &Arc<RuntimeConfig>,
    shared: &Arc<Shared>,
    question: &Question,
    now: Now,
) -> Result<Explanation, String> {
    let (frontend, bind, why) = frontend(runtime_config, question)?;
    walk::Walk::begin(runtime_config, shared, question, (frontend, bind), now)?.run(why)
}

/// The frontend for a request, with the place of its address and the reason.
fn frontend(
    runtime_config: &RuntimeConfig,
    question: &Question,
) -> Result<(ProxyId, usize, String), String> {
    let proxies = runtime_config.config.proxies.iter().enumerate();
    let frontends = proxies.filter(|(_, proxy)| proxy.is_frontend && !proxy.disabled);
    let frontends: Vec<_> = frontends.collect();
    if let Some(name) = &question.frontend {
        let named = frontends.iter().find(|(_, proxy)| proxy.name == *name);
        let (place, _) = named.ok_or_else(|| format!("there is no frontend '{name}'"))?;
        return Ok((ProxyId::at(*place), 0, "asked for".to_owned()));
    }
    let mut found = None;
    for (place, proxy) in &frontends {
        for (number, bind) in proxy.live_binds() {
            let BindAddress::Addr(Addr::Inet(address)) = &bind.address else {
                continue;
            };
            if address.port() == question.port {
                let fits = bind.tls.is_some() == question.is_tls;
                let why = format!("it listens on {address} ({})", bind.origin);
                if fits {
                    return Ok((ProxyId::at(*place), number, why));
                }
                found.get_or_insert((ProxyId::at(*place), number, why));
            }
        }
    }
    if let Some((id, number, why)) = found {
        let why = if question.is_tls {
            format!("{why}, although without TLS")
        } else {
            format!("{why}, although with TLS")
        };
        return Ok((id, number, why));
    }
    let http = frontends
        .iter()
        .filter(|(_, proxy)| proxy.mode == Mode::Http);
    let http: Vec<_> = http.collect();
    let port = question.port;
    match http[..] {
        [(place, _)] => Ok((
            ProxyId::at(*place),
            0,
            format!("nothing listens on port {port}; it is the only HTTP frontend"),
        )),
        _ => {
            let names: Vec<_> = frontends.iter().map(|(_, proxy)| &*proxy.name).collect();
            Err(format!(
                "no frontend listens on port {port}; name one of: {}",
                names.join(", ")
            ))
        }
    }
}

fn named(runtime_config: &RuntimeConfig, place: RulePlace) -> Option<(String, u32)> {
    let file = runtime_config.config.files.get(place.file as usize)?;
    (place.line > 0).then(|| (file.clone(), place.line))
}

/// The addresses of the client's connection; an unknown address is unspecified.
fn addresses(question: &Question) -> (Addr, Addr) {
    let nobody = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    let source = SocketAddr::new(question.source.unwrap_or(nobody), 0);
    (
        Addr::Inet(source),
        Addr::Inet(SocketAddr::new(nobody, question.port)),
    )
}
