//! Feature gates of the Collector.

use syntax::suggest::closest;

use super::components::{Role, known};

/// Writes the policy that kept a trace into the trace's scopes.
const RECORD_POLICY: &str = "processor.tailsamplingprocessor.recordpolicy";

/// A gate that has no effect here.
struct Ignored {
    name: &'static str,
    /// The behaviour here, where the gate would change the data that are kept or sent.
    instead: Option<&'static str>,
}

const fn ignored_gate(name: &'static str) -> Ignored {
    Ignored {
        name,
        instead: None,
    }
}

/// Gates that the Collector 0.161 has for itself and for components that are built in here.
const IGNORED: &[Ignored] = &[
    Ignored {
        name: "processor.tailsamplingprocessor.usetracestate",
        instead: Some(
            "'probabilistic' decides by a hash of the trace id, limits do not report what they kept, and no threshold ('th') is \
             written to a tracestate",
        ),
    },
    Ignored {
        name: "exporter.prometheusexporter.DisableAddMetricSuffixes",
        instead: Some("'add_metric_suffixes' counts where it is written"),
    },
    ignored_gate("exporter.prometheusexporter.ResourceConstantLabels"),
    Ignored {
        name: "exporter.prometheus.DisableResourceToTelemetryConversion",
        instead: Some("'resource_to_telemetry_conversion' counts where it is written"),
    },
    Ignored {
        name: "connector.spanmetrics.legacyMetricNames",
        instead: Some("'namespace' counts, and an empty one leaves the prefix out"),
    },
    Ignored {
        name: "connector.spanmetrics.excludeResourceMetrics",
        instead: Some(
            "'add_resource_attributes' has no effect, and the resource attributes are there",
        ),
    },
    Ignored {
        name: "connector.spanmetrics.useSecondAsDefaultMetricsUnit",
        instead: Some("'histogram::unit' counts, and is 'ms' where it is not written"),
    },
    ignored_gate("connector.spanmetrics.includeCollectorInstanceID"),
    Ignored {
        name: "spanmetrics.statusCodeConvention.useOtelPrefix",
        instead: Some("the attribute is 'status.code'"),
    },
    Ignored {
        name: "connector.servicegraph.legacyLatencyMetricNames",
        instead: Some("durations are 'traces_service_graph_request_server' and '…_client'"),
    },
    Ignored {
        name: "connector.servicegraph.legacyLatencyUnitMs",
        instead: Some("durations are in seconds"),
    },
    Ignored {
        name: "connector.servicegraph.virtualNode",
        instead: Some("there are virtual nodes unless 'virtual_node_peer_attributes' is empty"),
    },
    ignored_gate("extension.healthcheck.useComponentStatus"),
    ignored_gate("processor.tailsamplingprocessor.metricstatcountspanssampled"),
    ignored_gate("processor.tailsamplingprocessor.tailstorageextension"),
    ignored_gate("processor.resourcedetection.propagateerrors"),
    ignored_gate("processor.resourcedetection.removeGCPFaasID"),
    ignored_gate("processor.filter.defaultErrorModeIgnore"),
    ignored_gate("processor.transform.defaultErrorModeIgnore"),
    ignored_gate("ottl.PanicDuplicateName"),
    ignored_gate("ottl.contexts.enableOTelColContext"),
    ignored_gate("ottl.functions.enableLambda"),
    ignored_gate("ottl.set.allowNil"),
    ignored_gate("confmap.enableMergeAppendOption"),
    ignored_gate("pdata.useProtoPooling"),
    ignored_gate("pkg.exporterhelper.queueBatchEnabled"),
    ignored_gate("receiverhelper.newReceiverMetrics"),
    ignored_gate("service.AllowNoPipelines"),
    ignored_gate("service.partialReload"),
    ignored_gate("service.partialReloadReceivers"),
    ignored_gate("service.profilesSupport"),
    ignored_gate("telemetry.newPipelineTelemetry"),
    ignored_gate("transform.flatten.logs"),
];

/// Prefixes of the gates of translators, and of libraries that only unsupported components use.
const IGNORED_PREFIXES: &[&str] = &[
    "datadog.",
    "extension.encoding.",
    "filelog.",
    "jaeger.",
    "logs.",
    "pkg.datadog.",
    "pkg.stanza.",
    "pkg.translator.",
    "pkg.winperfcounters.",
    "scraper.",
    "stanza.",
];

/// The content of a list of feature gates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gates<'a> {
    /// Whether policies are recorded, if the list says so.
    pub record_policy: Option<bool>,
    /// Gates that have no effect here, to be warned about.
    pub ignored: Vec<&'a str>,
}

/// Parses gates separated by commas. Each has `+`, `-` or nothing before it; without a sign it is
/// on.
///
/// # Errors
/// A gate that the Collector does not know, or an empty name, with which the Collector does not
/// start either.
pub fn parse(list: &str) -> Result<Gates<'_>, String> {
    let mut gates = Gates::default();
    if list.is_empty() {
        return Ok(gates);
    }
    for gate in list.split(',') {
        let is_on = !gate.starts_with('-');
        let gate = gate.strip_prefix(['+', '-']).unwrap_or(gate);
        let known = IGNORED.iter().find(|known| known.name == gate);
        match known {
            _ if gate == RECORD_POLICY => gates.record_policy = Some(is_on),
            // A gate without an effect here is always off, so `-` needs no warning.
            Some(known) if !is_on && known.instead.is_some() => {}
            Some(_) => gates.ignored.push(gate),
            None if is_foreign_gate(gate) => gates.ignored.push(gate),
            None => return Err(unknown(gate)),
        }
    }
    Ok(gates)
}

/// The message about a gate that has no effect.
#[must_use]
pub fn ignored(gate: &str) -> String {
    let known = IGNORED.iter().find(|known| known.name == gate);
    match known.and_then(|known| known.instead) {
        Some(instead) => {
            format!("the feature gate '{gate}' is not built in, and ignored: {instead}")
        }
        None => format!("the feature gate '{gate}' has no effect here"),
    }
}

/// Whether a gate belongs to a component of the Collector that is not supported here.
fn is_foreign_gate(gate: &str) -> bool {
    if IGNORED_PREFIXES
        .iter()
        .any(|prefix| gate.starts_with(prefix))
    {
        return true;
    }
    let mut words = gate.splitn(3, '.');
    let (Some(class), Some(component), Some(_)) = (words.next(), words.next(), words.next()) else {
        return false;
    };
    // `receiver.mongodb` or `exporter.prometheusexporter`.
    let component = component.strip_suffix(class).unwrap_or(component);
    let role = Role::ALL.into_iter().find(|role| role.to_string() == class);
    let is_it = |name: &str| name.replace('_', "") == component;
    role.is_some_and(|role| known::names(role).iter().any(|name| is_it(name)))
}

fn unknown(gate: &str) -> String {
    if gate.is_empty() {
        return "feature gates: a name between the commas is missing".to_owned();
    }
    let names = IGNORED.iter().map(|known| known.name);
    let hint = match closest(gate, names.chain([RECORD_POLICY])) {
        Some(name) => format!(" (did you mean '{name}'?)"),
        None => String::new(),
    };
    format!("there is no feature gate '{gate}'{hint}: the Collector refuses it too, so remove it")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_work_or_are_ignored_or_are_errors() {
        assert_eq!(parse(""), Ok(Gates::default()));
        for (sign, is_on) in [("", true), ("+", true), ("-", false)] {
            let list = format!("{sign}{RECORD_POLICY}");
            assert_eq!(
                parse(&list).map(|gates| gates.record_policy),
                Ok(Some(is_on))
            );
        }
        let own = "processor.tailsamplingprocessor.usetracestate";
        let off = format!("-{own}");
        for (list, expected) in [
            (own, vec![own]),
            (&off, vec![]),
            (
                "-telemetry.newPipelineTelemetry",
                vec!["telemetry.newPipelineTelemetry"],
            ),
            (
                "receiver.mongodb.removeDatabaseAttr",
                vec!["receiver.mongodb.removeDatabaseAttr"],
            ),
            (
                "connector.spanmetrics.legacyMetricNames,exporter.prometheusexporter.DisableAddMetricSuffixes",
                vec![
                    "connector.spanmetrics.legacyMetricNames",
                    "exporter.prometheusexporter.DisableAddMetricSuffixes",
                ],
            ),
            (
                "pkg.translator.prometheus.PermissiveLabelSanitization",
                vec!["pkg.translator.prometheus.PermissiveLabelSanitization"],
            ),
        ] {
            assert_eq!(
                parse(list).map(|gates| gates.ignored),
                Ok(expected),
                "{list}"
            );
        }
        assert!(ignored(own).contains("is not built in, and ignored: 'probabilistic' decides by"));
        assert_eq!(ignored("a.b"), "the feature gate 'a.b' has no effect here");
        for (list, error) in [
            (
                "other",
                "there is no feature gate 'other': the Collector refuses it too, so remove it",
            ),
            (
                "processor.tailsamplingprocessor.usetracestat",
                "there is no feature gate 'processor.tailsamplingprocessor.usetracestat' (did you mean \
                 'processor.tailsamplingprocessor.usetracestate'?): the Collector refuses it too, so remove it",
            ),
            (
                "processor.nosuch.gate",
                "there is no feature gate 'processor.nosuch.gate': the Collector refuses it too, so remove it",
            ),
            (
                "pdata.useProtoPooling,",
                "feature gates: a name between the commas is missing",
            ),
        ] {
            assert_eq!(parse(list), Err(error.to_owned()), "{list}");
        }
    }
}
