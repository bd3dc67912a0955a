//! Regular expressions in options.

use ottl::pattern::translated;
use regex_automata::meta::{BuildError, Config, Regex};
use regex_automata::util::syntax;

/// Bytes that one compiled expression may take.
pub const PATTERN_BYTES_MAX: usize = 1 << 20;
/// Groups and repetitions within each other.
const NEST_MAX: u32 = 50;

/// Whether a text is a regular expression; the error tells why not. The language is RE2's, as in
/// Go.
pub(crate) fn check(text: &str) -> Result<(), String> {
    compile(text).map(drop)
}

/// Whether an expression has groups and each a name; nothing where it is no expression.
pub(crate) fn groups_have_names(text: &str) -> Option<bool> {
    let regex = compile(text).ok()?;
    let mut names = regex
        .group_info()
        .pattern_names(regex_automata::PatternID::ZERO);
    // The first group is the whole match.
    names.next();
    let names: Vec<_> = names.collect();
    Some(!names.is_empty() && names.iter().all(Option::is_some))
}

/// An expression that is looked for anywhere in a text, as Go's `regexp` does.
pub(crate) fn compile(text: &str) -> Result<Regex, String> {
    build(&[translated(text).as_ref()]).map_err(|error| {
        let shown = crate::config::source::shortened(text);
        match error.syntax_error() {
            Some(error) => format!("'{shown}' is no regular expression: {}", reason(error)),
            None => format!("the regular expression '{shown}' is too large"),
        }
    })
}

/// Expressions of which one is enough.
pub(crate) fn compile_any(texts: &[String]) -> Result<Regex, String> {
    texts.iter().try_for_each(|text| check(text))?;
    let texts: Vec<_> = texts.iter().map(|text| translated(text)).collect();
    let texts: Vec<&str> = texts.iter().map(AsRef::as_ref).collect();
    build(&texts).map_err(|_| "the regular expressions are too large together".to_owned())
}

fn build(texts: &[&str]) -> Result<Regex, Box<BuildError>> {
    // What is matched need not be UTF-8: what is not is matched by no character.
    let syntax = syntax::Config::new().nest_limit(NEST_MAX).utf8(false);
    let config = Config::new()
        .utf8_empty(false)
        .nfa_size_limit(Some(PATTERN_BYTES_MAX));
    Regex::builder()
        .syntax(syntax)
        .configure(config)
        .build_many(texts)
        .map_err(Box::new)
}

/// The last line of an error, which is the one that says it.
fn reason(error: &impl std::fmt::Display) -> String {
    let text = error.to_string();
    let line = text.lines().last().unwrap_or_default();
    line.trim_start_matches("error: ").to_owned()
}

/// Whether a text that is compared as a whole looks like a regular expression or a pattern with
/// `*`.
pub(crate) fn looks_like_pattern(text: &str) -> bool {
    let parts = [
        ".*", ".+", "\\d", "\\w", "\\.", "\\/", "\\s", "[a-z", "[0-9", "[^",
    ];
    let has_part = parts.iter().any(|part| text.contains(part));
    let group = text.contains('(') && text.contains(')') && text.contains('|');
    let anchored = text.starts_with('^') || text.len() > 1 && text.ends_with('$');
    has_part || group || anchored || text.len() > 1 && text.ends_with('*')
}
