//! The keyword table: every section and keyword of HAProxy 3.5, once. The parser, the generated reference
//! ([`crate::docs`]) and "did you mean" all read it; adding a keyword touches one entry and its parser.
//!
//! An entry's state decides what a use of it means, so nothing is ever silently ignored: it is parsed, refused as not
//! implemented yet, accepted with a diagnostic that says why it has no meaning here, or refused as removed.

pub mod actions;
pub mod bind;
pub mod global;
pub mod options;
pub mod other;
pub mod proxy;
pub mod server;
pub mod timeouts;

/// A set of section kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sections(u8);

impl Sections {
    /// No section in particular: the table itself says where its entries stand.
    pub const NONE: Sections = Sections(0);
    /// `defaults`, named or not.
    pub const DEFAULTS: Sections = Sections(1);
    /// `frontend` and `listen`.
    pub const FRONTEND: Sections = Sections(2);
    /// `backend` and `listen`.
    pub const BACKEND: Sections = Sections(4);
    /// A `defaults` that has a name; an anonymous one is refused.
    pub const NAMED_DEFAULTS: Sections = Sections(8);

    /// Both sets.
    #[must_use]
    pub const fn or(self, other: Sections) -> Sections {
        Sections(self.0 | other.0)
    }

    /// Whether the sets have a section in common.
    #[must_use]
    pub const fn intersects(self, other: Sections) -> bool {
        self.0 & other.0 != 0
    }
}

/// Short names for the tables.
pub(crate) mod at {
    use super::Sections;
    pub const F: Sections = Sections::FRONTEND;
    pub const B: Sections = Sections::BACKEND;
    pub const FB: Sections = F.or(B);
    pub const DF: Sections = F.or(Sections::DEFAULTS);
    pub const DB: Sections = B.or(Sections::DEFAULTS);
    pub const DFB: Sections = FB.or(Sections::DEFAULTS);
    pub const NFB: Sections = FB.or(Sections::NAMED_DEFAULTS);
    pub const NF: Sections = F.or(Sections::NAMED_DEFAULTS);
    pub const NB: Sections = B.or(Sections::NAMED_DEFAULTS);
}

/// What a use of a keyword means. `P` is what its table parses with.
#[derive(Clone, Copy, Debug)]
pub enum State<P> {
    /// It does what HAProxy's manual says.
    Supported(P),
    /// Known, refused: not implemented by this version.
    NotYet,
    /// Accepted with a diagnostic: it tunes something that does not exist here. The reason.
    NoMeaning(&'static str),
    /// HAProxy refuses it too. What to write instead.
    Removed(&'static str),
}

/// One keyword.
#[derive(Clone, Copy, Debug)]
pub struct Keyword<P> {
    /// As written in the file. A name that ends in `*` goes on with parentheses or a number, as `set-var(txn.x)`.
    pub name: &'static str,
    /// Where it may stand, for the keywords of proxies.
    pub sections: Sections,
    /// How many words follow it, for the keywords of `bind` and `server` lines.
    pub args: u8,
    /// What a use of it means.
    pub state: State<P>,
    /// One line of reference.
    pub doc: &'static str,
}

impl<P> Keyword<P> {
    pub(crate) const fn yes(
        name: &'static str,
        sections: Sections,
        parser: P,
        doc: &'static str,
    ) -> Self {
        Keyword {
            name,
            sections,
            args: 0,
            state: State::Supported(parser),
            doc,
        }
    }

    pub(crate) const fn not_yet(name: &'static str, sections: Sections, doc: &'static str) -> Self {
        Keyword {
            name,
            sections,
            args: 0,
            state: State::NotYet,
            doc,
        }
    }

    pub(crate) const fn moot(
        name: &'static str,
        sections: Sections,
        reason: &'static str,
        doc: &'static str,
    ) -> Self {
        Keyword {
            name,
            sections,
            args: 0,
            state: State::NoMeaning(reason),
            doc,
        }
    }

    pub(crate) const fn gone(name: &'static str, instead: &'static str) -> Self {
        Keyword {
            name,
            sections: at::DFB,
            args: 0,
            state: State::Removed(instead),
            doc: "Removed from the language by HAProxy.",
        }
    }

    /// Sets [`Keyword::args`].
    pub(crate) const fn args(mut self, args: u8) -> Self {
        self.args = args;
        self
    }

    /// Whether `word` is this keyword.
    #[must_use]
    pub fn matches(&self, word: &str) -> bool {
        match self.name.strip_suffix('*') {
            Some(stem) => word.strip_prefix(stem).is_some_and(|rest| {
                rest.is_empty() || rest.starts_with(|c: char| c == '(' || c.is_ascii_digit())
            }),
            None => self.name == word,
        }
    }
}

/// The entry for `word`.
#[must_use]
pub fn find<'a, P>(table: &'a [Keyword<P>], word: &str) -> Option<&'a Keyword<P>> {
    table.iter().find(|keyword| keyword.matches(word))
}

/// A row of the reference.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The keyword.
    pub name: &'static str,
    /// Where it may stand.
    pub sections: Sections,
    /// What a use of it means.
    pub state: State<()>,
    /// One line of reference.
    pub doc: &'static str,
}

/// A titled part of the reference.
#[derive(Clone, Debug)]
pub struct Group {
    /// Its heading.
    pub title: &'static str,
    /// Whether [`Row::sections`] says something.
    pub by_section: bool,
    /// Its keywords in the table's order.
    pub rows: Vec<Row>,
}

/// The whole table, for the reference and for checks of its completeness.
#[must_use]
pub fn groups() -> Vec<Group> {
    let mut groups = vec![
        group("Section `global`", false, global::KEYWORDS),
        group(
            "Sections `defaults`, `frontend`, `listen` and `backend`",
            true,
            proxy::KEYWORDS,
        ),
        group("`option`", true, options::KEYWORDS),
        group("`timeout`", true, timeouts::KEYWORDS),
        group("Options of a `bind` line", false, bind::KEYWORDS),
        group(
            "Options of `server`, `default-server` and `server-template` lines",
            false,
            server::KEYWORDS,
        ),
        group("Actions of `http-request`", false, actions::HTTP_REQUEST),
        group("Actions of `http-response`", false, actions::HTTP_RESPONSE),
        group(
            "Actions of `http-after-response`",
            false,
            actions::HTTP_AFTER_RESPONSE,
        ),
        group(
            "Actions of `tcp-request connection`",
            false,
            actions::TCP_CONNECTION,
        ),
        group(
            "Actions of `tcp-request session`",
            false,
            actions::TCP_SESSION,
        ),
        group(
            "Actions of `tcp-request content`",
            false,
            actions::TCP_CONTENT,
        ),
        group(
            "Actions of `tcp-response content`",
            false,
            actions::TCP_RESPONSE,
        ),
        group("Actions of `quic-initial`", false, actions::QUIC_INITIAL),
        group("Section names", false, other::SECTIONS),
    ];
    groups.push(group(
        "Section `collector`",
        false,
        crate::build::collector::keywords(),
    ));
    groups.push(group(
        "Section `otel-instrumentation` of a filter's file",
        false,
        crate::build::otel::instrumentation_keywords(),
    ));
    groups.push(group(
        "Section `otel-scope` of a filter's file",
        false,
        crate::build::otel::scope_keywords(),
    ));
    groups.extend(
        other::TABLES
            .iter()
            .map(|(title, table)| group(title, false, table)),
    );
    groups
}

fn group<P>(title: &'static str, by_section: bool, table: &'static [Keyword<P>]) -> Group {
    let rows = table
        .iter()
        .map(|keyword| Row {
            name: keyword.name,
            sections: keyword.sections,
            state: match keyword.state {
                State::Supported(_) => State::Supported(()),
                State::NotYet => State::NotYet,
                State::NoMeaning(reason) => State::NoMeaning(reason),
                State::Removed(instead) => State::Removed(instead),
            },
            doc: keyword.doc,
        })
        .collect();
    Group {
        title,
        by_section,
        rows,
    }
}
