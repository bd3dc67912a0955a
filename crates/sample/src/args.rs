//! Arguments of fetches and converters: the requirements of a table entry, and the parser of
//! argument lists (manual §7.3).

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::pattern::method::Method;
use crate::pattern::{Lookup, Output};
use crate::vars::SetConditions;
use crate::{Condition, VarRef};

/// What an argument must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ArgKind {
    Int,
    Str,
    Ipv4,
    Ipv6,
    Mask4,
    Mask6,
    /// A regular expression; flags `i` and `g` may stand in the third argument.
    Regex,
    /// A variable's name.
    Var,
    /// A variable's name, or nothing.
    VarOrNothing,
    /// The name of a variable to compare with.
    OtherVar,
    /// The name of the variable for a tag.
    TagVar,
    /// An integer or a variable's name.
    IntOrVar,
    /// A text or a variable's name. A text with the form of a variable's name is a variable.
    StrOrVar,
    /// Numbers of nested protobuf fields, with dots between.
    FieldNumbers,
    /// An ACL's name after the word `acl` or `!acl`; after another word, anything.
    AclOfWhen,
    /// A frontend; the current one if it is omitted.
    Frontend,
    /// A backend; the current one if it is omitted.
    Backend,
    /// `backend/server` or a server of the current backend.
    Server,
    /// A `userlist`.
    Userlist,
    /// A stick table; that of the current proxy if the name is empty.
    Table,
    /// A context that the filter `opentelemetry` extracts.
    Context,
    /// A map; the converter determines the lookup.
    Map(Method, Output),
    /// Never written: the proxy in whose section the expression stands.
    CurrentProxy,
    /// Names of ACLs, each optionally with `!` before it. Takes all remaining arguments.
    Acls,
}

impl ArgKind {
    /// The type's name in HAProxy's messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            ArgKind::Int => "integer",
            ArgKind::Str
            | ArgKind::Var
            | ArgKind::VarOrNothing
            | ArgKind::OtherVar
            | ArgKind::TagVar
            | ArgKind::IntOrVar
            | ArgKind::Map(..)
            | ArgKind::StrOrVar
            | ArgKind::AclOfWhen
            | ArgKind::Context
            | ArgKind::Acls => "string",
            ArgKind::FieldNumbers => "Protocol buffers field number",
            ArgKind::Ipv4 => "IPv4 address",
            ArgKind::Ipv6 => "IPv6 address",
            ArgKind::Mask4 => "IPv4 mask",
            ArgKind::Mask6 => "IPv6 mask",
            ArgKind::Regex => "regex",
            ArgKind::Frontend => "frontend",
            ArgKind::Backend | ArgKind::CurrentProxy => "backend",
            ArgKind::Server => "server",
            ArgKind::Userlist => "userlist",
            ArgKind::Table => "table",
        }
    }

    /// Whether it cannot be empty.
    pub(crate) fn needs_text(self) -> bool {
        use ArgKind::{Context, FieldNumbers, Int, Ipv4, Ipv6, Mask4, Mask6, Userlist};
        matches!(
            self,
            Context | FieldNumbers | Int | Ipv4 | Ipv6 | Mask4 | Mask6 | Userlist
        )
    }

    /// Whether HAProxy first reads it as text and parses it after the whole list. The messages
    /// differ in this case.
    pub(crate) fn is_read_later(self) -> bool {
        use ArgKind::{
            AclOfWhen, Acls, IntOrVar, Map, OtherVar, Regex, StrOrVar, TagVar, Var, VarOrNothing,
        };
        matches!(
            self,
            AclOfWhen
                | Acls
                | IntOrVar
                | Map(..)
                | OtherVar
                | Regex
                | StrOrVar
                | TagVar
                | Var
                | VarOrNothing
        )
    }
}

/// The arguments of a table entry: the first `required` must be given.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spec {
    pub required: usize,
    pub kinds: &'static [ArgKind],
}

impl Spec {
    /// Whether the entry accepts no arguments at all.
    pub(crate) fn takes_none(self) -> bool {
        matches!(self.kinds, [] | [ArgKind::CurrentProxy])
    }
}

/// No arguments.
pub(crate) const NONE: Spec = Spec {
    required: 0,
    kinds: &[],
};

/// At least `required` of `kinds`.
pub(crate) const fn spec(required: usize, kinds: &'static [ArgKind]) -> Spec {
    Spec { required, kinds }
}

/// A compiled argument.
#[derive(Clone, Debug)]
pub(crate) enum Arg {
    Int(i64),
    Str(Box<[u8]>),
    Numbers(Box<[u32]>),
    Ipv4(Ipv4Addr),
    Ipv6(Ipv6Addr),
    Regex {
        regex: Box<crate::regex::Regex>,
        global: bool,
    },
    Var(VarRef),
    /// A header field's name.
    Field(http::FieldName),
    /// The conditions after a variable's name in `set-var`.
    Conditions(SetConditions),
    Proxy(u32),
    Server {
        backend: u32,
        server: u32,
    },
    Userlist(std::sync::Arc<crate::auth::Userlist>),
    Table(std::sync::Arc<tables::Table>),
    Condition(Condition),
    Map(Box<MapUse>),
}

/// A map and the part of its entries that is wanted.
#[derive(Clone, Debug)]
pub(crate) struct MapUse {
    pub lookup: Lookup,
    pub output: Output,
}

/// The compiled arguments of one call.
pub(crate) type Args = Box<[Arg]>;

/// The bytes of a string argument; empty if it was omitted.
pub(crate) fn str_at(args: &[Arg], index: usize) -> &[u8] {
    match args.get(index) {
        Some(Arg::Str(text)) => text,
        _ => b"",
    }
}

/// An integer argument.
pub(crate) fn int_at(args: &[Arg], index: usize) -> Option<i64> {
    match args.get(index) {
        Some(Arg::Int(value)) => Some(*value),
        _ => None,
    }
}

/// An argument as written, with quotes and escapes resolved, and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Written {
    pub text: Vec<u8>,
    pub start: usize,
    pub end: usize,
}

/// A fault in an argument list and its place.
#[derive(Debug)]
pub(crate) struct ListError {
    /// The argument that could not be parsed; None if all were parsed but are inconsistent.
    pub index: Option<usize>,
    pub start: usize,
    pub end: usize,
    pub message: String,
}

impl ListError {
    /// A fault in one argument.
    pub(crate) fn in_arg(
        index: usize,
        start: usize,
        end: usize,
        message: impl Into<String>,
    ) -> ListError {
        ListError {
            index: Some(index),
            start,
            end,
            message: message.into(),
        }
    }

    /// A fault in arguments that were parsed but are inconsistent.
    pub(crate) fn check(start: usize, end: usize, message: impl Into<String>) -> ListError {
        ListError {
            index: None,
            start,
            end,
            message: message.into(),
        }
    }
}

/// Splits an argument list that opens at `at`. Returns the arguments and the position after the
/// closing parenthesis. Without a parenthesis there are no arguments.
pub(crate) fn split(bytes: &[u8], at: usize) -> Result<(Vec<Written>, usize), ListError> {
    if bytes.get(at) != Some(&b'(') {
        return Ok((Vec::new(), at));
    }
    let mut list = Vec::new();
    let mut position = at + 1;
    loop {
        let (argument, end) = cut(bytes, position)?;
        list.push(argument);
        position = end + 1;
        match bytes.get(end) {
            Some(b',') => {}
            Some(b')') => break,
            _ => {
                return Err(ListError::in_arg(list.len() - 1, at, end, "expected ')'"));
            }
        }
    }
    Ok((list, position))
}

/// Splits off one argument: up to a comma or parenthesis outside of quotes.
fn cut(bytes: &[u8], start: usize) -> Result<(Written, usize), ListError> {
    let mut text = Vec::new();
    let mut quote = None;
    let mut at = start;
    while let Some(&byte) = bytes.get(at) {
        at += 1;
        match (byte, quote) {
            (b'"' | b'\'', None) => quote = Some(byte),
            (b'"' | b'\'', Some(open)) if open == byte => quote = None,
            (b'\\', None | Some(b'"')) => match bytes.get(at) {
                None => return Err(unfinished(start, at)),
                Some(&escaped) => {
                    let (byte, used) = unescape(escaped);
                    text.push(byte);
                    at += used;
                }
            },
            (b',' | b')', None) => {
                return Ok((
                    Written {
                        text,
                        start,
                        end: at - 1,
                    },
                    at - 1,
                ));
            }
            _ => text.push(byte),
        }
    }
    if quote.is_some() {
        return Err(unfinished(start, at));
    }
    Ok((
        Written {
            text,
            start,
            end: at,
        },
        at,
    ))
}

fn unfinished(start: usize, end: usize) -> ListError {
    ListError::in_arg(0, start, end, "unterminated quote or escape")
}

/// The byte that a backslash and `escaped` represent, and the number of bytes consumed after the
/// backslash.
fn unescape(escaped: u8) -> (u8, usize) {
    match escaped {
        b'\\' | b' ' | b'"' | b'\'' => (escaped, 1),
        b'r' => (b'\r', 1),
        b'n' => (b'\n', 1),
        b't' => (b'\t', 1),
        // A backslash before any other byte is literal (regular expressions).
        _ => (b'\\', 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(word: &str) -> Vec<String> {
        let (list, end) = split(word.as_bytes(), 0).expect("a list");
        assert_eq!(end, word.len());
        list.into_iter()
            .map(|written| String::from_utf8(written.text).expect("text"))
            .collect()
    }

    #[test]
    fn lists_are_cut_at_commas_outside_quotes() {
        for (word, wanted) in [
            ("", &[][..]),
            ("()", &[""]),
            ("(a)", &["a"]),
            ("(a,b)", &["a", "b"]),
            ("(a,,b)", &["a", "", "b"]),
            ("(,)", &["", ""]),
            (r#"("a,b)",c)"#, &["a,b)", "c"]),
            (r"('a\b',\,)", &[r"a\b", "\\", ""]),
            (r#"(\\d\.\n\"x)"#, &["\\d\\.\n\"x"]),
        ] {
            assert_eq!(texts(word), wanted, "{word}");
        }
    }

    #[test]
    fn unfinished_lists_are_refused() {
        for word in ["(", "(a", "(a,", "(\"a)", "(a\\"] {
            assert!(split(word.as_bytes(), 0).is_err(), "{word}");
        }
    }
}
