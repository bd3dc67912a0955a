//! Random recordings, mirrored in a naive model: what is encoded is what the model says, in the
//! bytes of any other encoder.

use opentelemetry_proto::tonic::logs::v1::ScopeLogs;
use opentelemetry_proto::tonic::trace::v1::ScopeSpans;
use prost::Message;

use super::*;
use crate::program::{ContextName, LogLine, Ref, Scope, Value};
use model::{Decided, Model, Tell};
use otlp::tracestate;
use testing::Random;

mod model;

const NAMES: [&str; 5] = ["a", "request", "HTTP server", "b.c", "späte"];
const CONTEXTS: usize = 3;
const KEYS: [&str; 6] = [
    "k",
    "http.request.method",
    "größe",
    "event name",
    "0",
    "a.b_c-d",
];

/// Names, keys, and log lines of every severity, with an event and without.
fn program() -> Program {
    let field = |text: &&str| {
        let mut field = Vec::new();
        otlp::write::bytes(&mut field, 1, text.as_bytes());
        field.into()
    };
    let context = |number: usize| ContextName {
        name: format!("c{number}").into(),
        headers: None,
        vars: None,
    };
    let log = |severity: u8| LogLine {
        severity,
        event: severity
            .is_multiple_of(2)
            .then(|| format!("event {severity}").into()),
        span: None,
        time: None,
        attributes: Vec::new(),
        body: Value::Text(Box::default()),
        condition: None,
    };
    let mut program = Program {
        spans: NAMES.iter().map(|name| (*name).into()).collect(),
        contexts: (0..CONTEXTS).map(context).collect(),
        texts: KEYS.iter().map(field).collect(),
        scopes: vec![
            Scope::default(),
            Scope {
                logs: (1..=24).map(log).collect(),
                ..Scope::default()
            },
        ],
        ..Program::default()
    };
    program.seal();
    program
}

/// What a policy leaves on the spans that it kept.
fn mark() -> Vec<u8> {
    let mut out = Vec::new();
    otlp::write::bytes(&mut out, 1, b"tailsampling.policy");
    otlp::write::message(&mut out, 2, |out| otlp::write::bytes(out, 1, b"errors"));
    out
}

fn any<const N: usize>(random: &mut Random) -> u16 {
    random.below(N) as u16
}

/// A text, seldom a long one, now and then none that is UTF-8.
fn text(random: &mut Random) -> Vec<u8> {
    let len = match random.below(20) {
        0 => random.below(20_000),
        1..=4 => random.below(300),
        _ => random.below(12),
    };
    let alphabet: &[u8] = if random.chance(10) {
        b"ab\xff\xc3\x80"
    } else {
        b"abc \"%\n"
    };
    (0..len)
        .map(|_| alphabet[random.below(alphabet.len())])
        .collect()
}

fn state(random: &mut Random) -> &'static [u8] {
    random.pick(&[
        b"",
        b"",
        b"a=1",
        b"ot=th:8,a=1",
        b"v=x,ot=rv:0123456789abcd;th:c",
    ])
}

fn now(random: &mut Random) -> Now {
    Now::new(
        random.next() >> random.pick(&[8, 30, 60]),
        1_700_000_000_000_000_000 + (random.next() >> 16),
    )
}

fn direction(random: &mut Random) -> Direction {
    random.pick(&[Direction::Request, Direction::Response, Direction::Neither])
}

fn reference(random: &mut Random) -> Ref {
    Ref {
        span: random.chance(70).then(|| any::<5>(random)),
        context: random.chance(60).then(|| any::<3>(random)),
    }
}

/// One recording and its model.
struct Both<'p> {
    program: &'p Program,
    trace: &'p mut Trace,
    model: Model,
    ids: Ids,
    sampler: Sampler,
    outcome: Option<u64>,
    honours_parent: bool,
    owners: Vec<Owner>,
}

impl Both<'_> {
    fn text(&mut self, bytes: &[u8]) -> (Text, Vec<u8>) {
        (self.trace.arena.text(bytes), self.model.keep(bytes))
    }

    fn value(&mut self, random: &mut Random) -> (Evaluated, Tell) {
        match random.below(3) {
            0 => {
                let bytes = text(random);
                let (text, bytes) = self.text(&bytes);
                (Evaluated::Text(text), Tell::Text(bytes))
            }
            1 => {
                let number = random.next() as i64 >> random.pick(&[0, 40, 63]);
                (Evaluated::Int(number), Tell::Int(number))
            }
            _ => {
                let value = random.chance(50);
                (Evaluated::Bool(value), Tell::Bool(value))
            }
        }
    }

    fn foreign(&mut self, random: &mut Random) -> SpanContext {
        match random.below(8) {
            0 => SpanContext::default(),
            _ => SpanContext {
                trace_id: self.ids.trace_id(),
                span_id: self.ids.span_id(),
                flags: random.below(2) as u8,
                remote: random.chance(80),
            },
        }
    }

    fn start(&mut self, random: &mut Random) {
        let of = reference(random);
        let parent = self.trace.resolve(of);
        let told = self.model.resolve(of);
        assert_eq!(parent.is_some(), told.is_some());
        if let (Some(parent), Some(told)) = (&parent, &told) {
            assert_eq!(parent.context, told.context);
            assert_eq!(self.trace.arena.get(parent.state), told.state);
            assert_eq!(self.trace.arena.get(parent.baggage), told.baggage);
        }
        let (name, at) = (any::<5>(random), now(random));
        let kind = random.pick(&[
            SpanKind::Internal,
            SpanKind::Server,
            SpanKind::Client,
            SpanKind::Producer,
            SpanKind::Consumer,
        ]);
        let direction = direction(random);
        let head = Head {
            sampler: &self.sampler,
            outcome: self.outcome,
            honours_parent: self.honours_parent,
        };
        let tracer = Tracer {
            ids: &mut self.ids,
            head,
        };
        let made = self
            .trace
            .start_span(name, kind, parent, direction, at, tracer);
        let made = made.map(|place| self.trace.span(place).context);
        let decided = Decided {
            always: self.sampler == Sampler::AlwaysOn,
            outcome: self.outcome,
            honours_parent: self.honours_parent,
        };
        self.model
            .start(name, kind as i32, told, direction, at, made, decided);
        if made.is_some() {
            self.owners.push(Owner::Span(self.trace.spans().len() - 1));
        }
    }

    /// A span that has begun.
    fn some_span(&self, random: &mut Random) -> Option<SpanIndex> {
        let count = self.trace.spans().len();
        (count > 0).then(|| random.below(count))
    }

    fn log(&mut self, random: &mut Random) {
        let body = text(random);
        let (text, body) = self.text(&body);
        let line = random.below(24) as u32;
        let span = match self.some_span(random) {
            Some(span) if random.chance(60) => self.trace.span(span).context,
            _ => SpanContext::default(),
        };
        let (at, observed) = (now(random).wall_ns, now(random).wall_ns);
        let made = self
            .trace
            .log(Log::new((1, line), at, observed, span, text));
        self.model
            .log(line as u8 + 1, at, observed, span, body, made.is_some());
        self.owners.extend(made.map(Owner::Log));
    }

    fn step(&mut self, random: &mut Random) {
        let pick = random.below(100);
        match pick {
            0..20 => self.start(random),
            20..26 => self.log(random),
            26..34 => {
                let (name, at) = (any::<5>(random), now(random));
                assert_eq!(self.trace.finish(name, at), self.model.finish(name, at));
            }
            34..36 => {
                let which = random.chance(70).then(|| direction(random));
                let at = now(random);
                self.trace.finish_where(which, at);
                self.model.finish_where(which, at);
            }
            36..44 => {
                let name = any::<3>(random);
                if random.chance(30) {
                    let forgotten = self.trace.forget_context(name);
                    assert_eq!(forgotten, self.model.forget(name));
                    return;
                }
                let context = self.foreign(random);
                let (state, kept_state) = self.text(state(random));
                let (baggage, kept_baggage) = self.text(&text(random));
                let direction = direction(random);
                let found = Extracted {
                    context,
                    state,
                    baggage,
                    direction,
                };
                self.trace.extracted(name, found);
                self.model
                    .extracted(name, (context, kept_state, kept_baggage));
            }
            _ => self.detail(random, pick),
        }
        let valid = self.trace.has_valid_context();
        assert_eq!(valid, self.model.has_valid_context());
    }

    /// Something of a span that there is.
    fn detail(&mut self, random: &mut Random, pick: usize) {
        let Some(span) = self.some_span(random) else {
            return;
        };
        match pick {
            44..54 => {
                let (name, at) = (any::<6>(random), now(random).wall_ns);
                let made = self.trace.event(span, name, at);
                self.model
                    .event(span, KEYS[usize::from(name)], at, made.is_some());
                self.owners.extend(made.map(Owner::Event));
            }
            54..60 => {
                let to = self.foreign(random);
                let (state, kept) = self.text(state(random));
                let made = self.trace.link(span, to, state);
                self.model.link(span, to, kept, made.is_some());
                self.owners.extend(made.map(Owner::Link));
            }
            60..64 => {
                let code = random.pick(&[StatusCode::Unset, StatusCode::Ok, StatusCode::Error]);
                let (said, kept) = self.text(&text(random));
                let there = self.trace.span_mut(span);
                (there.status, there.status_text) = (code, said);
                self.model.status(span, code as i32, kept);
            }
            64..66 => {
                let (baggage, kept) = self.text(&text(random));
                self.trace.span_mut(span).baggage = baggage;
                self.model.baggage(span, kept);
            }
            _ => {
                let owner = random.pick(&self.owners);
                let key = any::<6>(random);
                let (value, told) = self.value(random);
                self.trace.attribute(owner, key, value);
                self.model.attribute(owner, KEYS[usize::from(key)], told);
            }
        }
    }

    fn check(&self, random: &mut Random) {
        let mark = mark();
        let kept = Kept {
            policy: random.chance(40).then_some(&*mark),
            threshold: random
                .chance(40)
                .then(|| random.next() & tracestate::THRESHOLD_MAX),
        };
        let end_mono_ns = now(random).mono_ns;
        let mut out = Outbox::default();
        self.trace.encode(self.program, kept, end_mono_ns, &mut out);
        let spans = ScopeSpans::decode(&out.spans.bytes[..]).expect("spans");
        let logs = ScopeLogs::decode(&out.logs.bytes[..]).expect("log records");
        assert!(spans.encode_to_vec() == out.spans.bytes, "{spans:?}");
        assert!(logs.encode_to_vec() == out.logs.bytes, "{logs:?}");
        assert_eq!(out.spans.records as usize, spans.spans.len());
        assert_eq!(out.logs.records as usize, logs.log_records.len());
        assert_eq!(spans.spans, self.model.spans(kept, end_mono_ns));
        assert_eq!(logs.log_records, self.model.logs());
        let all = self.trace.spans().iter();
        let recorded = all.filter(|span| span.is_recorded).count();
        assert_eq!(recorded, spans.spans.len());
    }
}

fn recording(trace: &mut Trace, program: &Program, seed: u64) {
    let mut random = Random::new(seed);
    trace.begin(program);
    let mut both = Both {
        program,
        trace,
        model: Model::new(NAMES.len(), CONTEXTS),
        ids: Ids::new([seed, 1, 2, 3]),
        sampler: random.pick(&[Sampler::AlwaysOn, Sampler::AlwaysOn, Sampler::AlwaysOff]),
        outcome: random
            .chance(40)
            .then(|| random.next() & tracestate::THRESHOLD_MAX),
        honours_parent: random.chance(50),
        owners: Vec::new(),
    };
    let steps = random.pick(&[3, 30, 30, 300]);
    for _ in 0..steps {
        both.step(&mut random);
    }
    both.check(&mut random);
}

#[test]
fn what_is_encoded_is_what_was_recorded() {
    let program = program();
    // One after the other in the same memory, as a worker has it.
    let mut trace = Trace::default();
    for seed in 0..3000 {
        let run = std::panic::AssertUnwindSafe(|| recording(&mut trace, &program, seed));
        if let Err(cause) = std::panic::catch_unwind(run) {
            eprintln_seed(seed);
            std::panic::resume_unwind(cause);
        }
    }
}

#[expect(clippy::print_stderr, reason = "which recording it was")]
fn eprintln_seed(seed: u64) {
    eprintln!("recording {seed}");
}

const AT: Now = Now::new(5, 1_000);

fn begun(trace: &mut Trace, ids: &mut Ids) -> Option<SpanIndex> {
    let head = Head {
        sampler: &Sampler::AlwaysOn,
        outcome: None,
        honours_parent: false,
    };
    let kind = SpanKind::Server;
    trace.start_span(0, kind, None, Direction::Request, AT, Tracer { ids, head })
}

#[test]
fn a_stream_has_so_many_spans() {
    let (program, mut ids) = (program(), Ids::new([1; 4]));
    let mut trace = Trace::default();
    for _ in 0..2 {
        trace.begin(&program);
        let made = (0..SPANS_MAX + 7).filter_map(|_| begun(&mut trace, &mut ids));
        assert_eq!(made.count(), SPANS_MAX);
        assert_eq!((trace.spans().len(), trace.spans_dropped), (SPANS_MAX, 7));
        // The last one that began is the open one of its name.
        assert_eq!(trace.open_span(0), Some(SPANS_MAX - 1));
        let mut out = Outbox::default();
        trace.encode(&program, Kept::default(), 9, &mut out);
        assert_eq!(out.spans.records as usize, SPANS_MAX);
    }
}

#[test]
fn a_stream_has_so_many_details() {
    let (program, mut ids) = (program(), Ids::new([1; 4]));
    let mut trace = Trace::default();
    trace.begin(&program);
    let span = begun(&mut trace, &mut ids).expect("a span");
    let log = |trace: &mut Trace| {
        let none = SpanContext::default();
        trace.log(Log::new((1, 0), 1, 2, none, Text::EMPTY))
    };
    let (mut events, mut links, mut logs) = (0, 0, 0);
    for turn in 0..DETAILS_MAX + 300 {
        match turn % 3 {
            0 => events += usize::from(trace.event(span, 0, 1).is_some()),
            1 => {
                let to = trace.span(span).context;
                links += usize::from(trace.link(span, to, Text::EMPTY).is_some());
            }
            _ => logs += usize::from(log(&mut trace).is_some()),
        }
    }
    assert_eq!(events + links + logs, DETAILS_MAX);
    assert_eq!(trace.log_count(), logs);
    assert_eq!(trace.logs_dropped, 100);
    // No attribute has room, wherever it is.
    for owner in [Owner::Span(span), Owner::Event(0), Owner::Link(0)] {
        trace.attribute(owner, 0, Evaluated::Int(1));
    }
    trace.attribute(Owner::Log(0), 0, Evaluated::Int(1));
    let mut out = Outbox::default();
    trace.encode(&program, Kept::default(), 9, &mut out);
    let spans = ScopeSpans::decode(&out.spans.bytes[..]).expect("spans");
    assert!(spans.encode_to_vec() == out.spans.bytes);
    let decoded = &spans.spans[0];
    assert_eq!(
        (
            decoded.attributes.len(),
            decoded.events.len(),
            decoded.links.len()
        ),
        (0, events, links)
    );
    let dropped = [
        decoded.dropped_attributes_count,
        decoded.dropped_events_count,
        decoded.dropped_links_count,
        decoded.events[0].dropped_attributes_count,
        decoded.links[0].dropped_attributes_count,
    ];
    assert_eq!(dropped, [1, 100, 100, 1, 1]);
    let records = ScopeLogs::decode(&out.logs.bytes[..]).expect("log records");
    assert!(records.encode_to_vec() == out.logs.bytes);
    assert_eq!(records.log_records[0].dropped_attributes_count, 1);
    assert_eq!(out.logs.records as usize, logs);
}

#[test]
fn a_full_stream_still_replaces_attributes() {
    let (program, mut ids) = (program(), Ids::new([1; 4]));
    let mut trace = Trace::default();
    trace.begin(&program);
    let span = begun(&mut trace, &mut ids).expect("a span");
    trace.attribute(Owner::Span(span), 0, Evaluated::Int(1));
    while trace.event(span, 0, 1).is_some() {}
    trace.attribute(Owner::Span(span), 0, Evaluated::Int(2));
    trace.attribute(Owner::Span(span), 1, Evaluated::Int(3));
    let mut out = Outbox::default();
    trace.encode(&program, Kept::default(), 9, &mut out);
    let decoded = ScopeSpans::decode(&out.spans.bytes[..]).expect("spans");
    assert_eq!(
        decoded.spans[0].attributes,
        [model::pair(KEYS[0], &Tell::Int(2))]
    );
    assert_eq!(decoded.spans[0].dropped_attributes_count, 1);
}

#[test]
fn a_stream_has_so_many_bytes_of_texts() {
    let mut arena = Arena::default();
    let half = vec![b'x'; TEXT_BYTES_MAX / 2];
    let (first, second) = (arena.text(&half), arena.text(&half));
    assert_eq!((first.len(), second.len()), (half.len(), half.len()));
    assert!(!arena.is_cut());
    assert!(arena.text(b"y").is_empty());
    assert!(arena.is_cut());
    assert!(arena.write(|out| out.push(b'y')).is_empty());
    assert!(
        arena
            .edit([first], |[old], out| out.extend_from_slice(old))
            .is_empty()
    );
    assert_eq!(arena.get(first), half);
    assert_eq!(arena.get(second), half);
    arena.clear();
    assert!(!arena.is_cut());
    let parts = ["", "a", "", "bc"].map(|part| arena.text(part.as_bytes()));
    let all = arena.edit(parts, |parts, out| {
        out.extend_from_slice(&parts.join(&b'|'))
    });
    assert_eq!(arena.get(all), b"|a||bc");
    arena.clear();
    assert_eq!(arena.get(first), b"");
    let again = arena.text(b"y");
    assert_eq!(arena.get(again), b"y");
}
