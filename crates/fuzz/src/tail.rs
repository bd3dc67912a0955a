//! What the collector's engine is sent, and the conditions that it is told.

use ::otlp::scan::{self, Malformed, PointKind, Scanner, Span, Visitor, event, span};
use ::ottl::{Condition, Context, Record, Statement, Subject};
use ::tail::account::Cause;
use ::tail::policy::Program;
use ::tail::settings::{ErrorMode, Policy, PolicyKind, SECOND_NS, StatusCodes, TailSampling};
use ::tail::shard::{Options, Shard};
use ::tail::store::Budget;
use otlp::scan::{Around, Keys, Slots};
use std::sync::Arc;

/// Counts spans, and sees that every slice is inside the request.
#[derive(Default)]
struct Count {
    spans: u64,
    bytes: usize,
}

impl<'a> Visitor<'a> for Count {
    fn resource(&mut self, _: &[u8], resource: &'a [u8]) {
        self.bytes = self.bytes.max(resource.len());
    }

    fn scope(&mut self, _: &[u8], scope: &'a [u8]) {
        self.bytes = self.bytes.max(scope.len());
    }

    fn span(&mut self, message: &'a [u8]) -> Result<(), Malformed> {
        let span = span(message, &mut ())?;
        self.bytes = self.bytes.max(message.len());
        let attributes = span.attributes().count();
        assert!(attributes <= message.len());
        self.spans += 1;
        Ok(())
    }
}

fn count(request: &[u8]) -> Result<u64, Malformed> {
    let mut count = Count::default();
    Scanner::default().walk(request, &mut count)?;
    assert!(count.bytes <= request.len());
    Ok(count.spans)
}

/// The walk over a request: it ends, and two requests one after the other are a request with the
/// spans of both.
pub fn tail_scan(data: &[u8]) {
    let spans = count(data);
    if let Ok(spans) = spans {
        let twice = [data, data].concat();
        assert_eq!(count(&twice), Ok(spans * 2));
    }
}

fn settings() -> TailSampling {
    let policy = |name: &str, kind| Policy {
        name: name.to_owned(),
        kind,
    };
    let error = StatusCodes {
        error: true,
        ..StatusCodes::default()
    };
    let condition = PolicyKind::OttlCondition {
        span: vec!["attributes[\"k\"][0] == \"v\" or Len(attributes[\"l\"]) > 1".to_owned()],
        span_event: vec!["name == \"e\"".to_owned()],
        error_mode: ErrorMode::Propagate,
    };
    let drop = PolicyKind::Drop(vec![policy("flags", PolicyKind::TraceFlags)]);
    TailSampling {
        policies: vec![
            policy("errors", PolicyKind::StatusCode(error)),
            policy("condition", condition),
            policy("drop", drop),
            policy("many", PolicyKind::SpanCount { min: 3, max: 0 }),
        ],
        decision_wait_ns: SECOND_NS,
        wait_after_root_ns: SECOND_NS / 4,
        traces_max: 8,
        trace_bytes_max: 1000,
        ..TailSampling::default()
    }
}

/// A shard that is sent requests while time passes: a byte says what comes next, and for a request
/// two more its length. The account adds up after every step, kept spans are a request again, and
/// in the end nothing is left.
pub fn tail_shard(data: &[u8]) {
    let options = Options {
        segment_bytes: 1024,
        batch_spans_max: 4,
        record_policy: data.len() % 2 == 1,
        templates: data.len() % 5 > 1,
        ..Options::default()
    };
    let budget = Arc::new(Budget::new(300 << 10));
    let mut shard = Shard::tail_sampling(&settings(), options, budget.clone()).expect("policies");
    let (mut rest, mut now_ns) = (data, 0_u64);
    while let Some((step, after)) = rest.split_first() {
        rest = after;
        match step % 4 {
            0 | 1 => {
                let Some((len, after)) = rest.split_first_chunk::<2>() else {
                    break;
                };
                let len = usize::from(u16::from_le_bytes(*len)).min(after.len());
                let (request, after) = after.split_at(len);
                rest = after;
                if let Ok(accepted) = shard.accept(request, now_ns) {
                    assert_eq!(Ok(accepted.spans), count(request));
                }
            }
            2 => {
                now_ns += u64::from(*step) * SECOND_NS / 256;
                shard.tick(now_ns, u64::from(step % 16));
            }
            _ => settle(&mut shard, *step % 8 == 3),
        }
        check(&shard, &budget);
    }
    while shard.shutdown(now_ns, 2).more {}
    settle(&mut shard, true);
    check(&shard, &budget);
    let account = shard.account();
    assert_eq!((account.pending, account.in_export), (0, 0));
    drop(shard);
    assert_eq!(budget.used_bytes(), 0);
}

fn settle(shard: &mut Shard, acked: bool) {
    while let Some(batch) = shard.pop() {
        assert_eq!(
            count(&batch.bytes),
            Ok(batch.spans),
            "what is kept is a request"
        );
        let bytes = batch.bytes.len() as u64;
        if acked {
            shard.acked(batch.spans, bytes);
        } else {
            shard.lost(batch.spans, bytes, Cause::ExportFailed);
        }
    }
}

fn check(shard: &Shard, budget: &Budget) {
    assert_eq!(shard.account().difference(), 0);
    assert_eq!(shard.held_bytes(), budget.used_bytes());
}

/// A condition: it is parsed or refused within its text, and evaluated it says something.
pub fn ottl(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let message = b"\x2a\x01n\x4a\x09\x0a\x01k\x12\x04\x0a\x02v1";
    let log = scan::log(b"\x1a\x01n\x2a\x03\x0a\x01b").expect("a log record");
    let metric =
        scan::metric(b"\x0a\x01n\x2a\x0b\x0a\x09\x31\x07\0\0\0\0\0\0\0").expect("a metric");
    let point = b"\x21\x03\0\0\0\0\0\0\0";
    let point = scan::point(PointKind::Exponential, point).expect("a data point");
    let exemplar = scan::exemplar(b"\x31\x07\0\0\0\0\0\0\0").expect("an exemplar");
    for context in Context::ALL {
        if let Err(error) = Statement::parse(&text, context, false) {
            assert!(error.at <= text.len() && !error.why.is_empty());
        }
        let mut keys = Keys::default();
        let condition = match Condition::parse(&text, context, &mut keys) {
            Ok(condition) => condition,
            Err(error) => {
                assert!(error.at <= text.len() && !error.why.is_empty());
                continue;
            }
        };
        // The slots of no policy: attributes that a condition names are not there.
        let program = Program::new(&TailSampling::default()).expect("no policies");
        let slots = Slots::new(program.matcher().keys());
        let span: Span<'_> = span(message, &mut ()).expect("a span");
        let subject = Subject {
            span: &span,
            slots: Some(&slots),
            cache: b"",
            client: None,
            schemas: ::ottl::Schemas::default(),
            outside: ::ottl::Outside::default(),
            around: Around::default(),
            event: (context == Context::SpanEvent).then(|| (event(b""), 0)),
            record: match context {
                Context::Log => Record::Log(&log),
                Context::Metric => Record::Metric(&metric),
                Context::DataPoint => Record::Point(&metric, &point),
                Context::Exemplar => Record::Exemplar(&metric, &point, &exemplar),
                Context::Resource | Context::Scope | Context::Span | Context::SpanEvent => {
                    Record::None
                }
            },
        };
        let first = condition.is_true(&subject);
        assert_eq!(first, condition.is_true(&subject));
    }
}
