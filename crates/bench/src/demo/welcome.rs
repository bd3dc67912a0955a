//! The output of the demo.

use std::fmt::Write as _;
use std::path::Path;

use super::ports::Ports;

/// The running configuration, without its comments.
pub fn configuration(path: &Path, text: &str) -> String {
    let mut out = format!("\nSpangate runs {}:\n\n", path.display());
    for line in text.lines() {
        let line = line.trim_end();
        if !line.is_empty() && !line.trim_start().starts_with('#') {
            let _ = writeln!(out, "  {line}");
        }
    }
    out
}

/// What clients need for the listeners with TLS.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tls<'a> {
    /// The file of the certificate authority, if HTTPS is served over TCP.
    pub authority: Option<&'a Path>,
    /// The pin of the certificate's key, if HTTP/3 is served.
    pub key_pin: Option<&'a str>,
}

/// The addresses to visit.
pub fn addresses(ports: Ports, tls: &Tls<'_>, load: u32) -> String {
    let (http, dashboard) = (ports.http(), ports.dashboard());
    let port = ports.https().port();
    let mut out = format!(
        "
  Dashboard   http://{dashboard}/
  Shop        http://{http}/
"
    );
    if let Some(authority) = tls.authority {
        let authority = authority.display();
        let _ = writeln!(
            out,
            "  over TLS    curl --cacert {authority} https://localhost:{port}/"
        );
    }
    if let Some(pin) = tls.key_pin {
        let _ = writeln!(
            out,
            "  HTTP/3      chromium --user-data-dir=/tmp/spangate-http3 --host-resolver-rules='MAP localhost 127.0.0.1' \\
                --origin-to-force-quic-on=localhost:{port} --ignore-certificate-errors-spki-list={pin} https://localhost:{port}/"
        );
    }
    let _ = write!(
        out,
        "
What to look at in the dashboard:

  Now             requests, errors and latency of each server; click a server to drain it
  Traces          the heat map; click a slow or failed cell, then a trace
  Sampling        what the collector keeps, and why; edit a policy and try it
  Configuration   the file above, and what it does with a request

Requests to try; each is in the access log below, and the slow and failed ones are among the traces:

  curl -i http://{http}/products/42
  curl -i 'http://{http}/?latency=800'
  curl -i 'http://{http}/?status=503'
  curl -i -H 'Bad Header: x' http://{http}/

"
    );
    let _ = match load {
        0 => writeln!(out, "The demo sends no requests (LOAD=0)."),
        _ => writeln!(
            out,
            "The demo sends {load} requests per second; `make demo LOAD=0` turns this off. These requests are not logged."
        ),
    };
    let _ = writeln!(out, "Ctrl-C stops everything.\n");
    out
}
