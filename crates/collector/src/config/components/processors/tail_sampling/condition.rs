//! Conditions in OTTL: where their syntax is looked at.

/// What a condition is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Context {
    Span,
    SpanEvent,
}

/// Whether a text is a condition; the error tells why not.
///
/// The one place to ask the parser of conditions: `tail` brings it. Until then each text that is not empty is taken.
pub(super) fn check(text: &str, _context: Context) -> Result<(), String> {
    match text.trim() {
        "" => Err("a condition must not be empty".to_owned()),
        _ => Ok(()),
    }
}
