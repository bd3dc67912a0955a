//! What is written with a template is read back, and what fits one is read as the scan reads it.

use super::hole::{FROZEN_MAX, MISSES_MAX};
use super::*;
use crate::tests::{Model, Random, request};
use otlp::scan::{Keys, Slots};
use prost::Message;

/// Spans without their trace identifiers.
fn spans(seed: u64, count: usize) -> Vec<Vec<u8>> {
    let mut model = Model::new(seed);
    let mut spans = Vec::new();
    while spans.len() < count {
        let request = request(&mut model);
        for resource in request.resource_spans {
            let scopes = resource.scope_spans.into_iter();
            spans.extend(scopes.flat_map(|scope| scope.spans).map(|mut span| {
                span.trace_id.clear();
                span.encode_to_vec()
            }));
        }
    }
    spans
}

fn allowance(left: u64) -> Learner {
    let mut learn = Learner::default();
    learn.begin(left);
    learn
}

/// Keys that random spans have, and one that they do not.
const KEYS: [&str; 3] = ["tier", "k", "none"];

fn keys() -> Keys {
    let mut keys = Keys::default();
    for key in KEYS {
        keys.place(key.as_bytes()).unwrap();
    }
    keys
}

fn learn(span: &[u8]) -> Option<(Template, u64)> {
    Template::learn(span, &keys(), &mut allowance(0))
}

/// Writes a span with a template; none where it does not fit.
fn encode(template: &mut Template, span: &[u8], learn: &mut Learner) -> Option<Vec<u8>> {
    let mut kept = vec![0; span.len()];
    let mut out = Buffer::new(&mut kept);
    template.read(&mut Span::new(b"", [0; 16]), span, &mut (), learn, &mut out)?;
    let len = out.written();
    kept.truncate(len);
    Some(kept)
}

/// What is written with a template is read back as it was, and what fits one is well formed and
/// reads as the scan reads it.
fn same(template: &mut Template, span: &[u8]) -> bool {
    let keys = keys();
    let (mut read, mut slots) = (Span::new(b"", [0; 16]), Slots::new(&keys));
    let (mut learn, mut room) = (allowance(0), vec![0; span.len() + 9]);
    let mut out = Buffer::new(&mut room);
    let fits = template
        .read(&mut read, span, &mut slots, &mut learn, &mut out)
        .is_some();
    if fits {
        let mut scanned = Slots::new(&keys);
        let facts = otlp::scan::span(span, &mut scanned).unwrap();
        read.message = span;
        assert_eq!(format!("{read:?}"), format!("{facts:?}"));
        for place in 0..KEYS.len() as u8 {
            assert_eq!(slots.get(place), scanned.get(place));
        }
    }
    let Some(kept) = encode(template, span, &mut allowance(300)) else {
        return false;
    };
    assert!(fits, "what is written is also read");
    let mut back = Vec::new();
    template.decode(&kept, &mut back).unwrap();
    assert_eq!(back, span);
    back.clear();
    template.parts.decode(&kept, &mut back).unwrap();
    assert_eq!(back, span);
    true
}

#[test]
fn its_own_span_fits() {
    for span in spans(3, 1000) {
        let (mut template, held) = learn(&span).unwrap();
        assert!(held >= span.len() as u64 / 4);
        assert!(same(&mut template, &span));
    }
}

#[test]
fn no_changed_byte_is_lost() {
    let mut random = Random::new(9);
    let mut hits = 0;
    for span in spans(5, 400) {
        let Some((mut template, _)) = learn(&span) else {
            continue;
        };
        for _ in 0..200 {
            let mut changed = span.clone();
            for _ in 0..1 + random.below(2) {
                let at = random.below(changed.len().max(1) as u64) as usize;
                if let Some(byte) = changed.get_mut(at) {
                    *byte = random.next() as u8;
                }
            }
            hits += usize::from(same(&mut template, &changed));
            // Templates of bytes that are no span do no harm either.
            if let Some((mut odd, _)) = learn(&changed) {
                same(&mut odd, &changed);
                same(&mut odd, &span);
            }
        }
    }
    assert!(hits > 10_000, "{hits}");
}

#[test]
fn values_that_never_come_again_are_not_looked_up() {
    let span = |value: u32| {
        let mut out = b"\x12\x0812345678\x2a\x01n".to_vec();
        otlp::write::message(&mut out, 9, |out| {
            otlp::write::bytes(out, 1, b"id");
            otlp::write::message(out, 2, |out| {
                otlp::write::bytes(out, 1, value.to_string().as_bytes());
            });
        });
        out
    };
    let (mut template, _) = learn(&span(0)).unwrap();
    let mut learn = allowance(1 << 20);
    for value in 1000..1100 {
        let kept = encode(&mut template, &span(value), &mut learn).unwrap();
        // The identifier, a code and four digits.
        assert_eq!(kept.len(), 8 + 1 + 4);
    }
    assert_eq!(template.parts.holes[0].frozen.len() + 1, FROZEN_MAX);
    assert_eq!(template.parts.holes[0].misses, MISSES_MAX);
    assert!(same(&mut template, &span(1001)));
}
