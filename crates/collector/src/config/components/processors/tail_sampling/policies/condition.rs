//! Conditions in OTTL: where their syntax is looked at.

use otlp::scan::Keys;
use ottl::Condition;
pub(super) use ottl::Context;
use tail::policy::unknown;

/// Whether a text is a condition; the error tells why not, and where in it.
pub(super) fn check(text: &str, context: Context) -> Result<(), String> {
    if text.trim().is_empty() {
        return Err("a condition must not be empty".to_owned());
    }
    // The places of its attributes are those of this condition alone: all policies together are
    // looked at later.
    let condition = Condition::parse(text, context, &mut Keys::default());
    let condition = condition.map_err(|error| error.to_string())?;
    unknown(&condition).map_or(Ok(()), |why| Err(why.to_owned()))
}
