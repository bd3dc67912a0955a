//! Matching methods (manual §7.1).

use crate::Kind;
use crate::cast::{Cast, cast_of};

/// A matching method (`-m`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    /// There is a sample.
    Found,
    /// The sample is not 0.
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
    /// The text begins with the pattern.
    Beg,
    /// The text contains the pattern.
    Sub,
    /// The pattern is one of the parts between slashes.
    Dir,
    /// The pattern is one of the parts between dots.
    Dom,
    /// The text ends with the pattern.
    End,
    /// A regular expression matches.
    Reg,
    /// The same HTTP method. Only for the keyword `method`.
    Verb,
    /// A version `major.minor` in a range. Only for keywords.
    Version,
}

/// Methods by their names for `-m`.
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

    /// Whether samples of this type can be compared with this method.
    pub(crate) fn suits(self, kind: Kind) -> bool {
        cast_of(kind, self.kind()) != Cast::Never
    }

    /// The default method for a type.
    pub(crate) fn default_of(kind: Kind) -> Option<Method> {
        match kind {
            Kind::Bool => Some(Method::Bool),
            Kind::Int => Some(Method::Int),
            Kind::Addr | Kind::Ipv4 | Kind::Ipv6 => Some(Method::Ip),
            Kind::Str => Some(Method::Str),
            Kind::Any | Kind::Bin | Kind::Method => None,
        }
    }

    /// Whether it uses patterns.
    pub(crate) fn has_patterns(self) -> bool {
        !matches!(self, Method::Found | Method::Bool)
    }

    /// Whether patterns are numbers, before which operators (`gt`, `le`, …) are valid.
    pub(crate) fn takes_operators(self) -> bool {
        matches!(self, Method::Int | Method::Len | Method::Version)
    }

    /// Whether it can ignore case.
    pub(crate) fn may_ignore_case(self) -> bool {
        self.folds() || matches!(self, Method::Reg | Method::Verb)
    }

    /// Whether it ignores case by comparing in lower case.
    pub(crate) fn folds(self) -> bool {
        use Method::{Beg, Dir, Dom, End, Str, Sub};
        matches!(self, Str | Beg | Sub | Dir | Dom | End)
    }
}
