//! `option tracing`: spans without a filter file.

use super::super::collector;
use super::super::line::{Cursor, Line, Parse};
use super::super::proxy::ProxyBuild;
use super::files::Files;
use super::instrumentation::time_ms_at;
use super::sampling::{mark, threshold};
use crate::model::OtelFilter;
use crate::tree::Prefix;
use sample::Place;
use std::sync::Arc;
use telemetry::program::{Value, http};
use telemetry::propagation::Format;
use telemetry::sampling::{Policy, Rule};
use telemetry::settings::{self, Settings};

/// The id of the option's filter.
const ID: &str = "tracing";

const USAGE: &str = "'option tracing [endpoint <url>|collector://<name>] [service <name>] [sample <percent>] [errors] [slower <time>] [retries] [ignore-parent] [route <sample>]'";

/// The settings of the option.
#[derive(Clone, Debug)]
pub struct Tracing {
    settings: Settings,
    keeps: Vec<Keep>,
    honours_parent: bool,
    disabled: bool,
    formats: Vec<Format>,
    route: Option<Arc<Value>>,
}

/// Which of the recorded traces are kept.
#[derive(Clone, Copy, Debug)]
enum Keep {
    Errors,
    SlowerMs(u64),
    Retries,
    SamplePercent(f64),
}

impl Keep {
    fn policies(self) -> Vec<Policy> {
        match self {
            Keep::Errors => vec![
                policy("errors", Rule::Status(vec![(500, 599)])),
                policy("timeouts", Rule::Timeout),
                policy("aborts", Rule::Abort),
            ],
            Keep::SlowerMs(ms) => vec![policy("slow", Rule::DurationMs(ms))],
            Keep::Retries => vec![policy("retries", Rule::Retry)],
            Keep::SamplePercent(percent) => {
                vec![policy("sample", Rule::Probability(threshold(percent)))]
            }
        }
    }
}

impl Tracing {
    /// The filter for a proxy.
    pub fn filter(self, proxy: usize) -> OtelFilter {
        let mut program = http::program();
        program.honours_parent = self.honours_parent;
        program.route = self.route;
        program.policies = self.keeps.into_iter().flat_map(Keep::policies).collect();
        OtelFilter {
            id: ID.to_owned(),
            proxy,
            program,
            settings: self.settings,
            disabled: self.disabled,
            formats: self.formats,
            ..OtelFilter::default()
        }
    }
}

/// The value of `endpoint`, unchanged: without a scheme, gRPC and HTTP interpret it differently.
pub(super) fn endpoint_url(cursor: &mut Cursor<'_>) -> Parse<String> {
    let url = cursor.value("a URL")?;
    if settings::collector_name(url).is_none() {
        settings::check_url(url, false)
            .map_err(|why| cursor.fault(format!("'endpoint' is '{url}': {why}.")))?;
    }
    Ok(url.to_owned())
}

/// `option tracing …`: `errors`, `slower` and `retries` keep traces in addition to `sample`, with a
/// decision at the end of the request.
pub fn option(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    if line.prefix() != Prefix::None {
        build.tracing = None;
        return line.at_most_after(1, 0);
    }
    let mut cursor = Cursor { line: *line, at: 2 };
    let (mut endpoint, mut service, mut percent) = (None, None, None);
    // The word with the endpoint. For one from the environment, it is the option itself.
    let mut endpoint_at = 1;
    let mut keeps = Vec::new();
    let mut route = None;
    let mut honours_parent = true;
    while !cursor.peek().is_empty() {
        match cursor.take() {
            "endpoint" => {
                endpoint = Some(endpoint_url(&mut cursor)?);
                endpoint_at = cursor.at - 1;
            }
            "service" => service = Some(cursor.value("a name")?.to_owned()),
            "sample" => {
                let text = cursor.value("a percentage")?;
                let number = text.trim_end_matches('%').parse::<f64>().ok();
                percent = number.filter(|percent| (0.0..=100.0).contains(percent));
                if percent.is_none() {
                    return Err(cursor.fault("'sample' expects a number from 0 to 100."));
                }
            }
            "errors" => keeps.push(Keep::Errors),
            "slower" => {
                cursor.value("a time")?;
                let ms = time_ms_at(line, cursor.at - 1, "slower")?;
                keeps.push(Keep::SlowerMs(ms));
            }
            "retries" => keeps.push(Keep::Retries),
            "ignore-parent" => honours_parent = false,
            "route" => {
                cursor.value("a sample")?;
                cursor.at -= 1;
                let expr = build.shared.next_expr(&mut cursor, Place::ALL)?;
                route = Some(Arc::new(Value::One(expr)));
            }
            word => {
                return Err(cursor.fault(format!("'{word}' : unexpected. Usage: {USAGE}")));
            }
        }
    }
    let by_outcome = !keeps.is_empty();
    if by_outcome {
        keeps.push(Keep::SamplePercent(percent.unwrap_or(0.0)));
    }
    let files = &build.shared.filter_files;
    let own = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
    let variable = |name: &str| variable(files, name, own, endpoint.as_ref(), service.as_ref());
    let disabled =
        variable("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"));
    let (formats, unknown) = formats(variable("OTEL_PROPAGATORS").as_deref());
    let sampled = |name: &str| match (name, percent) {
        // Everything is recorded until the end of the request.
        ("OTEL_TRACES_SAMPLER", _) if by_outcome => Some("always_on".to_owned()),
        ("OTEL_TRACES_SAMPLER", Some(_)) if honours_parent => {
            Some("parentbased_traceidratio".to_owned())
        }
        ("OTEL_TRACES_SAMPLER", Some(_)) => Some("traceidratio".to_owned()),
        ("OTEL_TRACES_SAMPLER_ARG", Some(percent)) => Some((percent / 100.0).to_string()),
        _ => variable(name),
    };
    let (settings, mut warnings) = Settings::from_environment(&sampled);
    let not_taken = |name: String| format!("OTEL_PROPAGATORS: '{name}' is not taken");
    warnings.extend(unknown.into_iter().map(not_taken));
    let tracing = Tracing {
        settings: Settings {
            traces: settings.traces,
            ..Settings::default()
        },
        keeps,
        honours_parent,
        disabled,
        formats,
        route,
    };
    let names = &build.shared.collector_names;
    if let Some(name) = collector::unknown_of(&tracing.settings, names) {
        return Err(line.fault(endpoint_at, collector::no_such(name, names)));
    }
    build.tracing = Some(tracing);
    for warning in warnings {
        build
            .shared
            .settle(Err(line.fault(1, warning).as_warning()));
    }
    Ok(())
}

/// An OpenTelemetry variable; the line has priority over the environment. `own_endpoint`: the
/// variable for the signal of this line.
pub(super) fn variable(
    files: &Files,
    name: &str,
    own_endpoint: &str,
    endpoint: Option<&String>,
    service: Option<&String>,
) -> Option<String> {
    let said = match name {
        "OTEL_EXPORTER_OTLP_ENDPOINT" => endpoint,
        // The line's endpoint replaces this variable.
        name if name == own_endpoint && endpoint.is_some() => return None,
        "OTEL_SERVICE_NAME" => service,
        _ => None,
    };
    said.cloned()
        .or_else(|| files.variable(name).map(str::to_owned))
}

/// `OTEL_PROPAGATORS`: the propagation formats (default: W3C), and the unknown names.
fn formats(names: Option<&str>) -> (Vec<Format>, Vec<String>) {
    let (mut formats, mut unknown) = (Vec::new(), Vec::new());
    let said = names.filter(|names| !names.trim().is_empty());
    for name in said.unwrap_or("tracecontext").split(',') {
        let format = match name.trim() {
            "tracecontext" | "baggage" => Format::W3c,
            "b3" => Format::B3Single,
            "b3multi" => Format::B3Multi,
            "jaeger" => Format::Jaeger,
            "none" => continue,
            name => {
                unknown.push(name.escape_debug().to_string());
                continue;
            }
        };
        if !formats.contains(&format) {
            formats.push(format);
        }
    }
    (formats, unknown)
}

fn policy(name: &str, rule: Rule) -> Policy {
    Policy {
        name: name.into(),
        mark: mark(name),
        rule,
        condition: None,
    }
}
