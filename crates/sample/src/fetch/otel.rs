//! Facts from the filter `opentelemetry`.

use super::{Fetch, REQUEST_TOTALS, TOTALS, TRANSACTION, fetch};
use crate::args::ArgKind::Context;
use crate::args::{Arg, NONE, spec};
use crate::{Kind, Scope, Txn, Value};

pub(crate) const FETCHES: &[Fetch] = &[
    fetch(
        "otel.bytes_in",
        NONE,
        Kind::Int,
        &REQUEST_TOTALS,
        "payload from the client in TCP, 0 in HTTP",
        |_, scope, _| payload(scope, |txn| txn.bytes_in),
    ),
    fetch(
        "otel.bytes_out",
        NONE,
        Kind::Int,
        &TOTALS,
        "payload to the client in TCP, 0 in HTTP",
        |_, scope, _| payload(scope, |txn| txn.bytes_out),
    ),
    fetch(
        "otel.context",
        spec(1, &[Context]),
        Kind::Bool,
        &TRANSACTION,
        "whether a context that a filter extracted is valid",
        |args, scope, _| match args {
            [Arg::Int(slot), ..] => {
                let slot = u8::try_from(*slot).ok()?;
                scope.txn?.contexts.get(slot).map(Value::Bool)
            }
            _ => None,
        },
    ),
];

fn payload<'a>(scope: &Scope<'a>, count: impl Fn(&Txn) -> u64) -> Option<Value<'a>> {
    let txn = scope.txn?;
    let bytes = if txn.is_http { 0 } else { count(txn) };
    Some(Value::Int(i64::try_from(bytes).unwrap_or(i64::MAX)))
}

#[cfg(test)]
mod tests {
    use crate::testing::Facts;
    use crate::{Compiler, ContextFacts, Place, Value};

    #[test]
    fn contexts_are_asked_for_by_name() {
        let mut compiler = Compiler::new();
        let mut ask = |name: &str| {
            let text = format!("otel.context({name})");
            compiler
                .expr(&[&text], Place::ALL)
                .expect("an expression")
                .0
        };
        let (one, other, again) = (ask("one"), ask("-other"), ask("one"));
        assert_eq!(compiler.contexts(), ["one", "-other"]);
        let mut facts = Facts::new();
        assert_eq!(one.eval(&facts.scope()), None);
        facts.txn.contexts.extracted(0, true);
        facts.txn.contexts.extracted(1, false);
        assert_eq!(one.eval(&facts.scope()), Some(Value::Bool(true)));
        assert_eq!(again.eval(&facts.scope()), Some(Value::Bool(true)));
        assert_eq!(other.eval(&facts.scope()), Some(Value::Bool(false)));
        facts.txn.contexts.forget(0);
        assert_eq!(one.eval(&facts.scope()), None);
        facts.txn.reset();
        assert_eq!(other.eval(&facts.scope()), None);
        assert_eq!(ContextFacts::default().get(200), None);
    }

    #[test]
    fn a_bounded_number_of_contexts_is_asked_for() {
        let mut compiler = Compiler::new();
        for number in 0..ContextFacts::MAX {
            let text = format!("otel.context(c{number})");
            assert!(compiler.expr(&[&text], Place::ALL).is_ok());
        }
        let error = compiler.expr(&["otel.context(more)"], Place::ALL);
        let message = error.expect_err("too many").message;
        assert!(message.contains("more than 64 contexts"), "{message}");
        assert!(compiler.expr(&["otel.context(c3)"], Place::ALL).is_ok());
        assert!(compiler.expr(&["otel.context"], Place::ALL).is_err());
    }

    #[test]
    fn payload_counts_in_tcp() {
        let mut compiler = Compiler::new();
        let mut expr = |text: &str| compiler.expr(&[text], Place::ALL).expect("an expression").0;
        let (bytes_in, bytes_out) = (expr("otel.bytes_in"), expr("otel.bytes_out"));
        let mut facts = Facts::new();
        (facts.txn.bytes_in, facts.txn.bytes_out) = (3, 5);
        assert_eq!(bytes_in.eval(&facts.scope()), Some(Value::Int(0)));
        facts.txn.is_http = false;
        assert_eq!(bytes_in.eval(&facts.scope()), Some(Value::Int(3)));
        assert_eq!(bytes_out.eval(&facts.scope()), Some(Value::Int(5)));
    }
}
