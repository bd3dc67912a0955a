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
use otlp::scan::{Malformed, Scanner, Visitor, span};
use ottl::{Condition, Context, Statement};
use tail::settings::ErrorMode;

/// Counts spans, and checks each.
struct Count(u64);

impl<'a> Visitor<'a> for Count {
    fn resource(&mut self, _: &[u8], _: &'a [u8]) {}

    fn scope(&mut self, _: &[u8], _: &'a [u8]) {}

    fn span(&mut self, message: &'a [u8]) -> Result<(), Malformed> {
        self.0 += 1;
        span(message, &mut ()).map(drop)
    }
}

/// The spans of a request that is whole.
fn spans(request: &[u8]) -> Result<u64, Malformed> {
    let mut count = Count(0);
    Scanner::default().walk(request, &mut count)?;
    Ok(count.0)
}

/// What a request that is whole becomes is a request that is whole: a statement leaves every span,
/// and a condition drops as many as are told. What is not whole is refused, or becomes something.
pub fn collector_statements(data: &[u8]) {
    let end = data.iter().position(|byte| *byte == b'\n');
    let (line, request) = data.split_at(end.unwrap_or(data.len()));
    let (line, request) = (
        String::from_utf8_lossy(line),
        request.get(1..).unwrap_or_default(),
    );
    for context in Context::ALL {
        let group = |conditions, statements| Group {
            context,
            error_mode: ErrorMode::Silent,
            conditions,
            statements,
            // Either, without a byte of its own.
            shares_cache: request.len() % 2 == 1,
        };
        if Statement::parse(&line, context, true).is_ok() {
            let traces = vec![group(Vec::new(), vec![line.clone().into_owned()])];
            let editor = Editor::new(&Transform { traces }, failures()).expect("a statement");
            holds(request, editor.edit(request, None));
        }
        if Condition::prefixed(&line, context).is_ok() {
            let settings = Filter {
                conditions: vec![group(vec![line.clone().into_owned()], Vec::new())],
                include: None,
                exclude: None,
            };
            let rules = Rules::new(&settings, failures()).expect("a condition");
            holds(request, rules.filter(request, None));
        }
    }
}

fn failures() -> Failures {
    Failures::new("fuzz", &Log::new(|_, _| {}))
}

fn holds(before: &[u8], edited: Result<Edited, Fault>) {
    let (Ok(count), Ok(edited)) = (spans(before), edited) else {
        return;
    };
    let after = edited.bytes.as_deref().unwrap_or(before);
    assert_eq!(spans(after), Ok(count - edited.dropped));
}
