//! Requests whose attributes the collector changes, and of which it takes samples.

use collector::config::Signal;
use collector::config::components::processors::action::{
    Action, AttributeValue, Source, Type, When,
};
use collector::config::components::processors::attributes::Attributes;
use collector::config::components::processors::cumulative_to_delta::{
    CumulativeToDelta, InitialValue, MetricMatch,
};
use collector::config::components::processors::delta_to_cumulative::DeltaToCumulative;
use collector::config::components::processors::probabilistic_sampler::{
    Mode, ProbabilisticSampler, Source as HashSource,
};
use collector::config::components::processors::redaction::{Mask, Redaction, Summary};
use collector::config::components::processors::resource::Resource;
use collector::run::process::edit::{Edited, Fields, Value};
use collector::run::process::probabilistic_sampler::Sampler;
use collector::run::process::{
    attributes, cumulative_to_delta, delta_to_cumulative, redaction, resource,
};
use std::sync::LazyLock;

/// Compiled once: the same for all inputs.
struct Editors {
    change: attributes::Editor,
    set: attributes::Editor,
    resource: resource::Editor,
    redaction: redaction::Editor,
    samplers: [Sampler; 3],
}

static EDITORS: LazyLock<Editors> = LazyLock::new(|| {
    let attributes = |actions: Vec<Action>| {
        let settings = Attributes {
            include: None,
            exclude: None,
            actions,
        };
        attributes::Editor::new(&settings).expect("settings that compile")
    };
    let resource = Resource { actions: all() };
    Editors {
        change: attributes(all()),
        set: attributes(vec![upsert("a", AttributeValue::Int(5))]),
        resource: resource::Editor::new(&resource).expect("settings that compile"),
        redaction: redaction::Editor::new(&redacting()).expect("settings that compile"),
        samplers: [Mode::HashSeed, Mode::Equalizing, Mode::Proportional].map(sampler),
    }
});

fn upsert(key: &str, value: AttributeValue) -> Action {
    Action::Set {
        key: key.to_owned(),
        source: Source::Value(value),
        when: When::Always,
    }
}

/// Every action.
fn all() -> Vec<Action> {
    let key = |key: &str| key.to_owned();
    let pattern = |pattern: &str| Some(pattern.to_owned());
    let set = |to: &str, from: &str, when| Action::Set {
        key: key(to),
        source: Source::Attribute(key(from)),
        when,
    };
    let map = vec![(key("k"), AttributeValue::List(vec![]))];
    vec![
        set("b", "a", When::Always),
        set("c", "b", When::Missing),
        set("a", "c", When::Present),
        Action::Convert {
            key: key("b"),
            to: Type::Text,
        },
        Action::Convert {
            key: key("a"),
            to: Type::Int,
        },
        Action::Convert {
            key: key("c"),
            to: Type::Double,
        },
        Action::Extract {
            key: key("b"),
            pattern: key("(?P<d>.)(?P<a>\\w*)"),
        },
        Action::Delete {
            key: key("c"),
            pattern: pattern("^x"),
        },
        Action::Hash {
            key: key("d"),
            pattern: pattern("[y-z]"),
        },
        upsert("new", AttributeValue::Map(map)),
    ]
}

/// Something of every option.
fn redacting() -> Redaction {
    let one = |text: &str| vec![text.to_owned()];
    Redaction {
        allows_all_keys: false,
        allowed_keys: ["a", "b", "c", "k"].map(str::to_owned).to_vec(),
        ignored_keys: one("c"),
        ignored_key_patterns: one("^ignored"),
        blocked_key_patterns: one("^k"),
        blocked_values: one("[x-z]+|[0-9]"),
        allowed_values: one("^ok"),
        reads_all_types: true,
        mask: Mask::Asterisks,
        summary: Summary::Keys,
    }
}

fn sampler(mode: Mode) -> Sampler {
    Sampler::new(&ProbabilisticSampler {
        percentage: 50.0,
        hash_seed: 1,
        mode,
        fail_closed: false,
        precision: 4,
        source: HashSource::TraceId,
        from_attribute: "a".to_owned(),
        sampling_priority: "b".to_owned(),
    })
}

/// Whatever the bytes are, they are refused or become a request with as many records, less what was
/// dropped; and setting what is set already changes nothing.
pub fn collector_edit(data: &[u8]) {
    let editors = &*EDITORS;
    for signal in [Signal::Traces, Signal::Metrics, Signal::Logs] {
        if let Ok(edited) = editors.change.edit(signal, data, None) {
            holds(data, &edited);
        }
        if let Ok(edited) = editors.set.edit(signal, data, None) {
            holds(data, &edited);
            let bytes = edited.bytes.as_deref().unwrap_or(data);
            let again = editors.set.edit(signal, bytes, None).expect("a request");
            assert!(again.bytes.is_none());
        }
        if let Ok(edited) = editors.redaction.edit(signal, data) {
            holds(data, &edited);
        }
        for sampler in &editors.samplers {
            if let Ok(sampled) = sampler.sample(signal, data) {
                assert!(signal != Signal::Metrics || sampled.bytes.is_none());
                holds(data, &sampled);
            }
        }
    }
    if let Ok(edited) = editors.resource.edit(data, None) {
        holds(data, &edited);
    }
    streams(data);
}

/// Streams that are remembered: a request that comes again has the same points.
fn streams(data: &[u8]) {
    let settings = CumulativeToDelta {
        include: MetricMatch::default(),
        exclude: MetricMatch::default(),
        max_staleness_ns: 0,
        initial_value: InitialValue::Keep,
    };
    let editor = cumulative_to_delta::Editor::new(&settings, 0).expect("settings that compile");
    let totals = delta_to_cumulative::Editor::new(&DeltaToCumulative {
        max_stale_ns: 1,
        streams_max: 8,
    });
    for _ in 0..2 {
        if let Ok(converted) = editor.edit(data) {
            points_hold(data, &converted.keep());
        }
        if let Ok(converted) = totals.edit(data) {
            points_hold(data, &converted.keep());
        }
    }
}

/// As many data points as before, less those that were dropped, if the request is whole.
fn points_hold(before: &[u8], edited: &Edited) {
    let points = |request| otlp::count::records(Signal::Metrics, request);
    let after = edited.bytes.as_deref().unwrap_or(before);
    if let Ok(before) = points(before) {
        assert_eq!(
            points(after).map(|after| after + edited.dropped),
            Ok(before)
        );
    }
}

fn holds(before: &[u8], edited: &Edited) {
    let after = edited.bytes.as_deref().unwrap_or(before);
    assert_eq!(records(after) + edited.dropped, records(before));
}

/// Spans, log records or metrics: fields 2 in fields 2 in fields 1. What is malformed where nobody
/// looks ends a message.
fn records(request: &[u8]) -> u64 {
    let inner = |message, number| {
        let fields = Fields::new(message).map_while(Result::ok);
        fields.filter_map(move |field| match field.value {
            Value::Bytes(inner) if field.key >> 3 == number => Some(inner),
            _ => None,
        })
    };
    let scopes = inner(request, 1).flat_map(|resource| inner(resource, 2));
    scopes.map(|scope| inner(scope, 2).count() as u64).sum()
}
