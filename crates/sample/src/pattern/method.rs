//! Matching methods (manual §7.1).

use crate::Kind;
use crate::cast::{Cast, cast_of};

/// A matching method (`-m`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    /// There is a value.
    Found,
    /// It is not 0.
    Bool,
    /// An integer in a range.
    Int,
    /// An address in a network.
    Ip,
    /// The same bytes.
    Bin,
    /// A length in a range.
    Len,
    /// The same text.
    Str,
    /// It begins with it.
    Beg,
    /// It contains it.
    Sub,
    /// It is one of the parts between slashes.
    Dir,
    /// It is one of the parts between dots.
    Dom,
    /// It ends with it.
    End,
    /// A regular expression matches.
    Reg,
    /// The same HTTP method. Only of the keyword `method`.
    Verb,
    /// A version `major.minor` in a range. Only of keywords.
    Version,
}

/// Methods by the name that `-m` gives them.
pub(crate) const METHODS: &[(&str, Method)] = &[
    ("found", Method::Found),
    ("bool", Method::Bool),
    ("int", Method::Int),
    ("ip", Method::Ip),
    ("bin", Method::Bin),
    ("len", Method::Len),
    ("str", Method::Str),
    ("beg", Method::Beg),
    ("sub", Method::Sub),
    ("dir", Method::Dir),
    ("dom", Method::Dom),
    ("end", Method::End),
    ("reg", Method::Reg),
    ("regm", Method::Reg),
];

impl Method {
    /// The type a sample is cast to before it is compared.
    pub(crate) fn kind(self) -> Kind {
        match self {
            Method::Found => Kind::Any,
            Method::Bool | Method::Int | Method::Version => Kind::Int,
            Method::Ip => Kind::Addr,
            Method::Bin => Kind::Bin,
            Method::Verb => Kind::Method,
            _ => Kind::Str,
        }
    }

    /// Whether samples of this type can be compared this way.
    pub(crate) fn suits(self, kind: Kind) -> bool {
        cast_of(kind, self.kind()) != Cast::Never
    }

    /// The method of a type when none is given.
    pub(crate) fn default_of(kind: Kind) -> Option<Method> {
        match kind {
            Kind::Bool => Some(Method::Bool),
            Kind::Int => Some(Method::Int),
            Kind::Addr | Kind::Ipv4 | Kind::Ipv6 => Some(Method::Ip),
            Kind::Str => Some(Method::Str),
            Kind::Any | Kind::Bin | Kind::Method => None,
        }
    }

    /// Whether it compares with patterns at all.
    pub(crate) fn has_patterns(self) -> bool {
        !matches!(self, Method::Found | Method::Bool)
    }

    /// Whether patterns are numbers, which operators (`gt`, `le`, …) may stand before.
    pub(crate) fn takes_operators(self) -> bool {
        matches!(self, Method::Int | Method::Len | Method::Version)
    }

    /// Whether the case of letters can be left out of account.
    pub(crate) fn may_ignore_case(self) -> bool {
        self.folds() || matches!(self, Method::Reg | Method::Verb)
    }

    /// Whether that is done by comparing in lower case.
    pub(crate) fn folds(self) -> bool {
        use Method::{Beg, Dir, Dom, End, Str, Sub};
        matches!(self, Str | Beg | Sub | Dir | Dom | End)
    }
}
