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

/// The addresses to visit. `authority`: the file of the certificate authority, if HTTPS is served.
pub fn addresses(ports: Ports, authority: Option<&Path>, load: u32) -> String {
    let (http, dashboard) = (ports.http(), ports.dashboard());
    let port = ports.https().port();
    let mut out = format!(
        "
  Dashboard   http://{dashboard}/
  Shop        http://{http}/
"
    );
    if let Some(authority) = authority {
        let authority = authority.display();
        let _ = writeln!(
            out,
            "  over TLS    curl --cacert {authority} https://localhost:{port}/"
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
