//! The destination of the filter's telemetry, and its format.

use std::net::SocketAddr;
use std::path::Path;

/// The export format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exporter {
    /// OTLP over HTTP in protobuf, to the receiver.
    Otlp,
    /// OTLP over HTTP in JSON, to the receiver.
    Json,
    /// Readable text, into a file.
    Text,
}

/// Every format, by its name in options.
pub const EXPORTERS: &[Exporter] = &[Exporter::Otlp, Exporter::Json, Exporter::Text];

/// The destination of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextTo {
    /// To `/dev/null`, as in HAProxy's own test of its filter.
    Nowhere,
    /// Into [`TEXT_FILES`] beside the filter's files, where it is counted.
    Files,
}

/// The names of the files with text, by signal: spans, data points, log records.
pub const TEXT_FILES: [&str; 3] = ["spans.txt", "points.txt", "logs.txt"];

/// The paths of OTLP over HTTP in the same order.
const PATHS: [&str; 3] = ["/v1/traces", "/v1/metrics", "/v1/logs"];

/// The names of the exporters in the settings in the same order.
const NAMES: [&str; 3] = ["spans-out", "points-out", "logs-out"];

impl Exporter {
    /// Its name in tables and options.
    pub fn name(&self) -> &'static str {
        match self {
            Exporter::Otlp => "otlp",
            Exporter::Json => "json",
            Exporter::Text => "text",
        }
    }

    /// Whether the receiver gets the exported data.
    pub fn is_received(self) -> bool {
        self != Exporter::Text
    }

    /// The section `exporters` of the filter's settings; text files are in `dir`.
    pub fn section(self, receiver: SocketAddr, text: TextTo, dir: &Path) -> String {
        let one = |place: usize| {
            let options = match (self, text) {
                (Exporter::Otlp, _) => otlp(receiver, PATHS[place], "binary"),
                (Exporter::Json, _) => otlp(receiver, PATHS[place], "json"),
                (Exporter::Text, TextTo::Nowhere) => ostream(Path::new("/dev/null")),
                (Exporter::Text, TextTo::Files) => ostream(&dir.join(TEXT_FILES[place])),
            };
            format!("  {}:\n{options}", NAMES[place])
        };
        [0, 1, 2].map(one).concat()
    }
}

fn otlp(receiver: SocketAddr, path: &str, content_type: &str) -> String {
    format!(
        "    type: otlp_http\n    endpoint: \"http://{receiver}{path}\"\n    content_type: {content_type}\n"
    )
}

fn ostream(file: &Path) -> String {
    format!("    type: ostream\n    filename: \"{}\"\n", file.display())
}
