//! Statements and conditions that are carried out on requests: a line of OTTL, and the bytes of a
//! request behind it.

use collector::config::components::processors::filter::Filter;
use collector::config::components::processors::statements::Group;
use collector::config::components::processors::transform::Transform;
use collector::run::Log;
use collector::run::process::edit::Edited;
use collector::run::process::failures::{Failures, Fault};
use collector::run::process::filter::Rules;
use collector::run::process::transform::Editor;
use otlp::Signal;
use otlp::count::{records, well_formed_spans};
use otlp::scan::Malformed;
use otlp::view::View;
use ottl::{Condition, Context, Statement};
use tail::settings::ErrorMode;

/// The records of a request that is whole.
fn whole(signal: Signal, request: &[u8]) -> Result<u64, Malformed> {
    match signal {
        Signal::Traces => well_formed_spans(request),
        Signal::Metrics | Signal::Logs => {
            View::request(signal, request)?;
            records(signal, request)
        }
    }
}

/// A request that is whole becomes a request that is whole, with as many records as are told. One
/// that is not whole is refused, or becomes anything.
pub fn collector_statements(data: &[u8]) {
    let end = data.iter().position(|byte| *byte == b'\n');
    let (line, request) = data.split_at(end.unwrap_or(data.len()));
    let (line, request) = (
        String::from_utf8_lossy(line),
        request.get(1..).unwrap_or_default(),
    );
    for signal in Signal::ALL {
        for context in Context::of(signal) {
            of_context(signal, *context, &line, request);
        }
    }
}

fn of_context(signal: Signal, context: Context, line: &str, request: &[u8]) {
    let group = |conditions, statements| {
        vec![Group {
            context,
            error_mode: ErrorMode::Silent,
            conditions,
            statements,
            // Either, without a byte of its own.
            shares_cache: request.len() % 2 == 1,
        }]
    };
    if Statement::parse(line, context, true).is_ok() {
        let groups = |of| {
            if of == signal {
                group(Vec::new(), vec![line.to_owned()])
            } else {
                Vec::new()
            }
        };
        let settings = Transform {
            traces: groups(Signal::Traces),
            metrics: groups(Signal::Metrics),
            logs: groups(Signal::Logs),
            flatten_data: request.len() % 4 >= 2,
        };
        let editor = Editor::new(&settings, failures()).expect("a statement");
        holds(signal, request, editor.edit(signal, request, None));
    }
    // No filter has conditions on exemplars.
    if context != Context::Exemplar && Condition::prefixed(line, context).is_ok() {
        let groups = |of| {
            if of == signal {
                group(vec![line.to_owned()], Vec::new())
            } else {
                Vec::new()
            }
        };
        let settings = Filter {
            traces: groups(Signal::Traces),
            metrics: groups(Signal::Metrics),
            logs: groups(Signal::Logs),
            ..Filter::default()
        };
        let rules = Rules::new(&settings, failures()).expect("a condition");
        holds(signal, request, rules.filter(signal, request, None));
    }
}

fn failures() -> Failures {
    Failures::new("fuzz", &Log::new(|_, _| {}))
}

fn holds(signal: Signal, before: &[u8], edited: Result<Edited, Fault>) {
    let (Ok(count), Ok(edited)) = (whole(signal, before), edited) else {
        return;
    };
    let after = edited.bytes.as_deref().unwrap_or(before);
    let left = count - edited.dropped + edited.added;
    assert_eq!(whole(signal, after), Ok(left), "{signal}");
}
