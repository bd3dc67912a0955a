//! The fields that a trace's context comes in.

use otlp::tracestate as state;
use telemetry::SpanContext;
use telemetry::propagation::{
    Sampling, b3 as b3_codec, baggage as list, jaeger, traceparent as parent,
};

/// `traceparent` and Jaeger's field: what is read is valid, and reads the same once it is written.
pub fn traceparent(data: &[u8]) {
    if let Some(context) = parent::parse(data) {
        check(&context);
        let written = parent::write(&context);
        assert_eq!(parent::parse(&written), Some(context));
        if data.starts_with(b"00") {
            let same = data[..parent::BYTES - 2] == written[..parent::BYTES - 2];
            assert!(same, "version 00 has one form, but for its flags");
        }
    }
    if let Some(context) = jaeger::parse(data) {
        check(&context);
        assert_eq!(jaeger::parse(&jaeger::write(&context)), Some(context));
    }
}

/// `tracestate`, each line of the input one of the field: what is accepted is within the limits and
/// is accepted again, and a threshold that is set can be read, while other members stay.
pub fn tracestate(data: &[u8]) {
    let mut read = Vec::new();
    if !state::read(data.split(|byte| *byte == b'\n'), &mut read) {
        assert!(read.is_empty(), "nothing of a malformed list is kept");
    }
    let mut again = Vec::new();
    assert!(state::read([&read[..]], &mut again) && again == read);
    assert!(read.len() <= state::STATE_BYTES_MAX);
    // Bytes that were never checked are taken too.
    for from in [&read[..], data] {
        for threshold in [None, Some(0), Some(state::THRESHOLD_MAX - 1)] {
            set_threshold(from, threshold);
        }
    }
}

fn set_threshold(from: &[u8], threshold: Option<u64>) {
    let mut out = Vec::new();
    state::set_threshold(from, threshold, &mut out);
    let mut read = Vec::new();
    assert!(
        state::read([&out[..]], &mut read),
        "what is written is well formed"
    );
    let set = state::threshold(&out);
    // Nothing is set where the other values of `ot` leave no room.
    assert!(set == threshold || set.is_none(), "{set:?}");
    assert_eq!(state::randomness(&out), state::randomness(from));
    for (key, value) in state::members(&out) {
        let kept = state::members(from).any(|member| member == (key, value));
        assert!(kept || key == b"ot", "members come from the list");
    }
}

/// `baggage`: a line is the list, the last line a value to set. What is set is got, others stay,
/// and limits hold.
pub fn baggage(data: &[u8]) {
    let (from, value) = match data.iter().rposition(|byte| *byte == b'\n') {
        Some(at) => (&data[..at], &data[at + 1..]),
        None => (data, &b"value"[..]),
    };
    let (mut read, mut out, mut got) = (Vec::new(), Vec::new(), Vec::new());
    list::read(from.split(|byte| *byte == b'\n'), &mut read);
    assert!(read.len() <= list::BAGGAGE_BYTES_MAX && list::pairs(&read).count() <= list::PAIRS_MAX);
    for pair in list::pairs(&read) {
        assert!(!pair.key.is_empty());
        got.clear();
        assert!(list::get(&read, pair.key, &mut got));
        assert!(std::str::from_utf8(&got).is_ok());
    }
    let good = list::set(&read, b"key", value, &mut out);
    assert!(out.len() <= list::BAGGAGE_BYTES_MAX && list::pairs(&out).count() <= list::PAIRS_MAX);
    if !good {
        assert_eq!(out, read, "what does not fit changes nothing");
        return;
    }
    got.clear();
    assert!(list::get(&out, b"key", &mut got));
    assert_eq!(got, String::from_utf8_lossy(value).as_bytes());
    let others = list::pairs(&read).filter(|pair| pair.key != b"key");
    assert!(others.eq(list::pairs(&out).filter(|pair| pair.key != b"key")));
}

/// B3, as one field and as the lines of its many: a context is valid, and sampled as was decided.
pub fn b3(data: &[u8]) {
    let mut lines = data.split(|byte| *byte == b'\n');
    let many = b3_codec::parse_multi(lines.next(), lines.next(), lines.next(), lines.next());
    for incoming in [b3_codec::parse(data), many] {
        if let Some(context) = incoming.context {
            check(&context);
            let kept = matches!(incoming.sampling, Sampling::Accept | Sampling::Debug);
            assert_eq!(context.is_sampled(), kept);
            assert_eq!(
                b3_codec::parse(&b3_codec::write(&context)).context,
                Some(context)
            );
        }
    }
}

fn check(context: &SpanContext) {
    assert!(context.is_valid() && context.remote);
}
