//! `trace_state`: the `tracestate` of a span has one of some values.

use super::{Block, Kind, PolicyKind, Section, Type, key, opt, text, texts};

/// Bytes of a key and a value of a tracestate together.
const TRACE_STATE_BYTES_MAX: usize = 255;

#[rustfmt::skip]
pub(super) const TYPE: Type = Type {
    options: opt("trace_state", Kind::Section(&[&[
        opt("key", Kind::Text, "", "key of the tracestate"),
        opt("values", Kind::Texts, "", "one of these values keeps a trace"),
    ]]), "", "options of type trace_state"),
    read,
    write,
};

fn read(options: &Section<'_>) -> Option<PolicyKind> {
    let key = key(options);
    let values = options.texts("values");
    for value in &values {
        if key.len() + value.len() > TRACE_STATE_BYTES_MAX {
            let message = format!(
                "a key and a value are longer than {TRACE_STATE_BYTES_MAX} bytes: no tracestate has them"
            );
            options.warn("values", &message);
        }
    }
    if values.is_empty() {
        options.warn("values", "there are none: nothing matches");
    }
    Some(PolicyKind::TraceState { key, values })
}

fn write(kind: &PolicyKind, block: &mut Block<'_>) {
    if let PolicyKind::TraceState { key, values } = kind {
        block.put("key", text(key));
        block.put("values", texts(values));
    }
}
