//! Errors of connections and exchanges as text.

use std::error::Error;
use std::io;

/// The message for a server that answers a TLS handshake with something else.
const NO_TLS: &str = "the server does not speak TLS: is it on there? For plain text set `tls: {insecure: true}`, or http:// in \
                      a URL";
/// The message for a server that answers HTTP/1.1 with something else.
const NO_HTTP1: &str =
    "the server does not speak HTTP/1.1: is this a port of gRPC (4317)? OTLP over HTTP has 4318";

/// The text of an error and its causes; for common mistakes, with a hint what to do.
pub(crate) fn causes(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut hint = hint(error);
    let mut next = error.source();
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        hint = hint.or(self::hint(cause));
        next = cause.source();
    }
    match hint {
        Some(hint) => format!("{text} ({hint})"),
        None => text,
    }
}

fn hint(error: &(dyn Error + 'static)) -> Option<&'static str> {
    let hyper = error.downcast_ref::<hyper::Error>();
    match (innermost(error).downcast_ref(), hyper) {
        (Some(rustls::Error::InvalidMessage(_)), _) => Some(NO_TLS),
        (_, Some(error)) if error.is_parse() => Some(NO_HTTP1),
        _ => None,
    }
}

/// The innermost error inside an I/O error, which `source` does not return.
fn innermost<'a>(error: &'a (dyn Error + 'static)) -> &'a (dyn Error + 'static) {
    let io = error.downcast_ref::<io::Error>();
    match io.and_then(io::Error::get_ref) {
        Some(inner) => innermost(inner),
        None => error,
    }
}
