//! Conditions of `.if`, `.elif` and `-cc` (manual §2.4), evaluated against a [`BuildInfo`] and an
//! [`Environment`].
//!
//! `expression := and { "||" and }`, `and := term { "&&" term }`, `term := { "!" } ( number | "("
//! expression ")" | predicate )`. A condition is first parsed as a whole, so that a syntax error is
//! always found. Then it is evaluated from left to right, only as far as needed. Chains are loops;
//! only parentheses recurse, at most [`MAX_CONDITION_DEPTH`] deep.

mod parse;
mod predicate;
#[cfg(test)]
mod tests;
mod version;

use crate::environment::Environment;
use crate::lexer::{self, Context};
use syntax::octets::Octets;

/// Most nested parentheses; HAProxy's limit is about the same.
pub const MAX_CONDITION_DEPTH: usize = 340;

/// Facts about this program for conditions; the binary supplies them.
#[derive(Clone, Debug, Default)]
pub struct BuildInfo {
    /// The reported version, in HAProxy's format: `3.5-dev5`, `3.5.1`, `3.5-dev5-50872d-2`.
    pub version: String,
    /// Names with `+` (present) or `-` (absent), as in `-vv`: `+OPENSSL -LUA …`.
    pub features: String,
    /// The OpenSSL version for `openssl_version_*`, in its format (`3.0.13`, `1.1.1w`). None: not
    /// OpenSSL; the predicate is an error.
    pub openssl_version: Option<String>,
    /// The full name of the TLS library, for `ssllib_name_startswith`: `OpenSSL 3.0.13 …`, `AWS-LC
    /// 1.32.0`.
    pub ssllib_name: Option<String>,
    /// The AWS-LC API number. None: not AWS-LC; the predicate is an error.
    pub awslc_api: Option<i64>,
    /// Enabled options, for `enabled()`: `EPOLL`, `SPLICE`, `REUSEPORT`, …
    pub enabled: Vec<String>,
    /// Whether the TLS library runs in FIPS mode.
    pub fips_mode: bool,
}

/// Why a condition cannot be evaluated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConditionError {
    /// Byte offset in the expression.
    pub offset: usize,
    /// What is wrong, without the place.
    pub message: String,
}

/// Evaluates `expr`, whose words are already resolved and joined by single spaces. The empty
/// expression is false.
pub fn evaluate(
    expr: &[u8],
    build: &BuildInfo,
    environment: &Environment,
) -> Result<bool, ConditionError> {
    if expr.is_empty() {
        return Ok(false);
    }
    let parsed = parse::expression(expr)?;
    parsed
        .holds(build, environment)
        .map_err(|message| ConditionError {
            offset: expr.len(),
            message,
        })
}

/// Like [`evaluate`], for the argument of `-cc`: it is first split into words, and its quotes,
/// escapes and variables are resolved; comments are not supported. The exit code is 0 for true, 1
/// for false and 2 for an error.
pub fn evaluate_argument(
    argument: &[u8],
    build: &BuildInfo,
    environment: &Environment,
) -> Result<bool, ConditionError> {
    let context = Context {
        environment,
        file: "",
        line: 0,
        section: None,
        comments: false,
    };
    let line = lexer::split(argument, &context).map_err(|error| ConditionError {
        offset: error.offset,
        message: format!("{} in condition", error.kind),
    })?;
    let words: Vec<&[u8]> = line.words.iter().map(|word| word.text.bytes()).collect();
    evaluate(&words.join(&b' '), build, environment)
}

/// Terms joined by `&&`; these groups are joined by `||`.
struct Expression(Vec<Vec<Term>>);

struct Term {
    negated: bool,
    kind: TermKind,
}

enum TermKind {
    Constant(bool),
    Parentheses(Expression),
    Predicate(&'static predicate::Predicate, Vec<Octets>),
}

impl Expression {
    fn holds(&self, build: &BuildInfo, environment: &Environment) -> Result<bool, String> {
        for alternative in &self.0 {
            if all_hold(alternative, build, environment)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

fn all_hold(terms: &[Term], build: &BuildInfo, environment: &Environment) -> Result<bool, String> {
    for term in terms {
        if !term.holds(build, environment)? {
            return Ok(false);
        }
    }
    Ok(true)
}

impl Term {
    fn holds(&self, build: &BuildInfo, environment: &Environment) -> Result<bool, String> {
        let bare = match &self.kind {
            TermKind::Constant(value) => *value,
            TermKind::Parentheses(inner) => inner.holds(build, environment)?,
            TermKind::Predicate(predicate, args) => predicate.holds(args, build, environment)?,
        };
        Ok(bare != self.negated)
    }
}
