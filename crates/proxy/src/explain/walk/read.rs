//! Reads the request of a question into a stream.

use config::model::Mode;
use http::h1::{self, Strictness};
use sample::BodyFacts;

use crate::ids::ProxyId;
use crate::runtime_config::RuntimeConfig;
use crate::stream::{Phase, Rules, Stream};

/// Parses a head into a stream, as if it came from a client.
pub(super) fn request(
    runtime_config: &RuntimeConfig,
    frontend: ProxyId,
    head: &[u8],
    stream: &mut Stream,
) -> Result<(), String> {
    let proxy = runtime_config.proxy(frontend);
    stream.frontend = frontend;
    stream.backend = frontend;
    stream.txn.first_request = true;
    if proxy.mode != Mode::Http {
        stream.up.waiting.extend_from_slice(head);
        stream.phase = Phase::SwitchBackend;
        return Ok(());
    }
    let request = &mut stream.request;
    let parsed = h1::parse_request(head, runtime_config.limits(), Strictness::Strict, request)
        .map_err(|error| format!("this is no request: {error:?}"))?
        .ok_or("this is no whole request")?;
    stream.phase = Phase::FrontendRequest(Rules::default());
    let txn = &mut stream.txn;
    txn.is_http = true;
    txn.method = request.method();
    txn.request_body = BodyFacts {
        framing: parsed.framing,
        is_whole: true,
        ..BodyFacts::default()
    };
    let line = [
        request.method_bytes(),
        request.target(),
        request.version_bytes(),
    ];
    txn.request_line = line.join(&b' ');
    stream.capture_request_fields(proxy);
    Ok(())
}
