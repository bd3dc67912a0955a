//! The format of a page, by the field `Accept` of its request (Prometheus, "Content Negotiation").

use super::escape::Escaping;

/// Format of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// Prometheus' text format 0.0.4.
    Text,
    /// OpenMetrics in text, of one of its versions.
    OpenMetrics(Version),
    /// Messages `io.prometheus.client.MetricFamily`, each after its length. Only these have
    /// exponential histograms.
    Protobuf,
}

/// A version of OpenMetrics. Pages are the same in both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    V0,
    V1,
}

/// A format, and how names are written in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Negotiated {
    pub format: Format,
    pub escaping: Escaping,
}

/// Media types that are looked at in a field `Accept`.
const ACCEPTED_MAX: usize = 32;

const PROTOBUF: &str = "application/vnd.google.protobuf";
const OPEN_METRICS: &str = "application/openmetrics-text";

impl Negotiated {
    /// What a client gets that accepts this; without a type that there is, the text format.
    pub(super) fn by(accept: &str, has_open_metrics: bool) -> Negotiated {
        let accepted = accept.split(',').take(ACCEPTED_MAX).map(Accepted::parse);
        let mut accepted: Vec<_> = accepted.filter(|one| one.quality > 0.0).collect();
        // The sort is stable: among equals the first counts.
        accepted.sort_by(|one, other| other.quality.total_cmp(&one.quality));
        let known = accepted.iter().find_map(|one| {
            let format = one.format(has_open_metrics)?;
            let escaping = one.escaping.unwrap_or(Escaping::Underscores);
            Some(Negotiated { format, escaping })
        });
        known.unwrap_or(Negotiated {
            format: Format::Text,
            escaping: Escaping::Underscores,
        })
    }

    /// The media type of the page.
    pub(super) fn content_type(self) -> String {
        let media = match self.format {
            Format::Text => "text/plain; version=0.0.4; charset=utf-8",
            Format::OpenMetrics(Version::V0) => {
                "application/openmetrics-text; version=0.0.1; charset=utf-8"
            }
            Format::OpenMetrics(Version::V1) => {
                "application/openmetrics-text; version=1.0.0; charset=utf-8"
            }
            Format::Protobuf => {
                "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
            }
        };
        format!("{media}; escaping={}", self.escaping.word())
    }
}

/// A media type that a client accepts.
struct Accepted<'a> {
    media: &'a str,
    quality: f64,
    version: Option<&'a str>,
    proto: Option<&'a str>,
    encoding: Option<&'a str>,
    escaping: Option<Escaping>,
}

impl<'a> Accepted<'a> {
    fn parse(text: &'a str) -> Accepted<'a> {
        let mut parts = text.split(';').map(str::trim);
        let mut accepted = Accepted {
            media: parts.next().unwrap_or_default(),
            quality: 1.0,
            version: None,
            proto: None,
            encoding: None,
            escaping: None,
        };
        for (name, value) in parts.filter_map(|part| part.split_once('=')) {
            let value = value.trim().trim_matches('"');
            match name.trim() {
                "q" => accepted.quality = value.parse().unwrap_or(0.0),
                "version" => accepted.version = Some(value),
                "proto" => accepted.proto = Some(value),
                "encoding" => accepted.encoding = Some(value),
                "escaping" => {
                    let mut all = Escaping::ALL.into_iter();
                    accepted.escaping = all.find(|scheme| scheme.word() == value);
                }
                _ => {}
            }
        }
        accepted
    }

    /// The format, where there is such a one.
    fn format(&self, has_open_metrics: bool) -> Option<Format> {
        let is_text = self.media.eq_ignore_ascii_case("text/plain");
        if is_text && matches!(self.version, None | Some("" | "0.0.4")) {
            return Some(Format::Text);
        }
        if self.media.eq_ignore_ascii_case(OPEN_METRICS) && has_open_metrics {
            return match self.version {
                None | Some("" | "0.0.1") => Some(Format::OpenMetrics(Version::V0)),
                Some("1.0.0") => Some(Format::OpenMetrics(Version::V1)),
                Some(_) => None,
            };
        }
        let is_protobuf = self.media.eq_ignore_ascii_case(PROTOBUF)
            && self.proto == Some("io.prometheus.client.MetricFamily")
            && self.encoding == Some("delimited");
        is_protobuf.then_some(Format::Protobuf)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_get_what_they_like_best() {
        const SCRAPE: &str = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,\
             application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1";
        const NATIVE: &str = "text/plain;q=0.3,application/vnd.google.protobuf;\
             proto=io.prometheus.client.MetricFamily;encoding=delimited;escaping=allow-utf-8;q=0.6";
        let is = |accept, has_open_metrics, format, escaping| {
            let negotiated = Negotiated::by(accept, has_open_metrics);
            assert_eq!(negotiated, Negotiated { format, escaping }, "{accept}");
        };
        let underscores = Escaping::Underscores;
        is("", true, Format::Text, underscores);
        is("*/*", true, Format::Text, underscores);
        is(
            SCRAPE,
            true,
            Format::OpenMetrics(Version::V1),
            Escaping::AllowUtf8,
        );
        is(SCRAPE, false, Format::Text, underscores);
        is(NATIVE, false, Format::Protobuf, Escaping::AllowUtf8);
        is(
            "application/openmetrics-text",
            true,
            Format::OpenMetrics(Version::V0),
            underscores,
        );
        is(
            "application/openmetrics-text;version=2.0.0",
            true,
            Format::Text,
            underscores,
        );
        is(
            "application/openmetrics-text;q=0, text/plain",
            true,
            Format::Text,
            underscores,
        );
        is(
            "text/plain;escaping=dots",
            true,
            Format::Text,
            Escaping::Dots,
        );
    }
}
