//! The checks of protocols, as scripts equal to HAProxy's: one file per protocol.

mod ldap;
mod mysql;
mod pgsql;
mod redis;
mod smtp;
mod spop;
mod ssl_hello;

pub use ldap::PROTOCOL as LDAP;
pub use mysql::PROTOCOL as MYSQL;
pub use pgsql::PROTOCOL as PGSQL;
pub use redis::PROTOCOL as REDIS;
pub use smtp::PROTOCOL as SMTP;
pub use spop::PROTOCOL as SPOP;
pub use ssl_hello::PROTOCOL as SSL_HELLO;

use super::super::Shared;
use super::super::line::{Line, Parse};
use super::rules;
use crate::model::{
    CheckAction, CheckConnect, CheckExpect, CheckSend, CheckStatus, CustomExpect, Expectation,
};
use sample::Place;

/// Builds the rules; the option's arguments begin at the given word.
type MakeRules = fn(&mut Shared<'_>, &Line<'_>, usize) -> Parse<Vec<CheckAction>>;

/// One protocol.
pub struct Protocol {
    /// The name of the option, and of `type` in a section `healthcheck`.
    pub name: &'static str,
    /// What the option does, for the reference.
    pub doc: &'static str,
    /// Most words that may follow it.
    pub words_max: usize,
    /// Its rules.
    pub rules: MakeRules,
}

/// All protocols, in the order of HAProxy's message about an unknown one.
const PROTOCOLS: &[Protocol] = &[SSL_HELLO, SMTP, PGSQL, REDIS, MYSQL, LDAP, SPOP];

/// The names of all protocols.
pub fn names() -> impl Iterator<Item = &'static str> {
    PROTOCOLS.iter().map(|protocol| protocol.name)
}

/// The protocol that an option names.
pub fn find(name: &str) -> Option<&'static Protocol> {
    PROTOCOLS.iter().find(|protocol| protocol.name == name)
}

/// `tcp-check connect default linger`
fn connect() -> CheckAction {
    CheckAction::Connect(CheckConnect {
        is_default: true,
        linger: true,
        ..CheckConnect::default()
    })
}

fn send(bytes: impl AsRef<[u8]>) -> CheckAction {
    CheckAction::Send(CheckSend::Bytes(bytes.as_ref().into()))
}

/// A rule that checks the response with a function.
pub fn custom(what: CustomExpect) -> CheckAction {
    CheckAction::Expect(Box::new(rules::expect(Expectation::Custom(what))))
}

/// A rule that searches the response with a regular expression.
fn regex(pattern: &str, is_binary: bool) -> CheckExpect {
    let compiled = sample::regex::compile(pattern, false);
    match compiled {
        Ok(regex) => rules::expect(Expectation::Regex { regex, is_binary }),
        Err(message) => unreachable!("a pattern of ours, '{pattern}': {message}"),
    }
}

/// Modifiers of a rule, to be chained.
trait Expect: Sized {
    fn not(self) -> Self;
    fn min_recv(self, bytes: u32) -> Self;
    fn error_status(self, status: CheckStatus) -> Self;
    fn texts(self, shared: &mut Shared<'_>, texts: Texts) -> Self;
    fn rule(self) -> CheckAction;
}

/// The texts of a rule that expects, and the source of its code.
#[derive(Clone, Copy, Default)]
struct Texts {
    on_success: &'static str,
    on_error: &'static str,
    status_code: &'static str,
}

impl Expect for CheckExpect {
    fn not(mut self) -> Self {
        self.inverse = true;
        self
    }

    fn min_recv(mut self, bytes: u32) -> Self {
        self.min_recv = Some(bytes);
        self
    }

    fn error_status(mut self, status: CheckStatus) -> Self {
        self.error_status = Some(status);
        self
    }

    fn texts(mut self, shared: &mut Shared<'_>, texts: Texts) -> Self {
        let compiler = &mut shared.compiler;
        let mut format = |text: &str| match text {
            "" => None,
            text => {
                let style = sample::Style::Plain;
                let format = compiler.log_format_styled(text.as_bytes(), Place::CHECK, style);
                debug_assert!(format.is_ok(), "a format of ours: {text}");
                format.ok()
            }
        };
        self.on_success = format(texts.on_success);
        self.on_error = format(texts.on_error);
        if !texts.status_code.is_empty() {
            let expr = compiler.expr(&[texts.status_code], Place::CHECK);
            debug_assert!(expr.is_ok(), "an expression of ours");
            self.status_code = expr.ok().map(|(expr, _)| expr);
        }
        self
    }

    fn rule(self) -> CheckAction {
        CheckAction::Expect(Box::new(self))
    }
}

/// `user <name>` at word `at`: the name; None without one.
fn user<'a>(line: &Line<'a>, at: usize) -> Parse<Option<&'a [u8]>> {
    let option = line.texts(0)[..at].join(" ");
    match line.arg(at) {
        "" => Ok(None),
        "user" => {
            line.need(at + 1, || {
                format!("'{option} user' expects <username> as argument.")
            })?;
            Ok(Some(line.bytes(at + 1)))
        }
        word => Err(line.fault(
            at,
            format!("'{option}' only supports optional values: 'user' (got '{word}')."),
        )),
    }
}
