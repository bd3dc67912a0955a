//! The keyword table: every section and keyword of HAProxy 3.5, once. The parser, the generated
//! reference ([`crate::docs`]) and "did you mean" read it. Adding a keyword changes one entry and
//! its parser.
//!
//! The state of an entry determines the result of a use, so that nothing is silently ignored. A
//! keyword is parsed, refused as not implemented yet, checked and reported to have no effect, or
//! refused as removed.

pub mod actions;
pub mod arguments;
pub mod bind;
pub mod checks;
pub mod features;
pub mod filters;
pub mod global;
pub mod options;
pub mod other;
pub mod proxy;
pub mod server;
pub mod timeouts;
pub mod tls;

use crate::build::legacy::Rewrite;
use arguments::Args;
use features::Feature;

/// The places where a keyword is valid: a set of section kinds, of rule sets or of kinds of lines.
/// Each table uses one of the three.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Places(u32);

impl Places {
    /// No place: the table itself determines where its entries are valid.
    pub const NONE: Places = Places(0);
    /// `defaults`, with or without a name.
    pub const DEFAULTS: Places = Places(1);
    /// `frontend` and `listen`.
    pub const FRONTEND: Places = Places(1 << 1);
    /// `backend` and `listen`.
    pub const BACKEND: Places = Places(1 << 2);
    /// A `defaults` with a name; one without a name is refused.
    pub const NAMED_DEFAULTS: Places = Places(1 << 3);
    /// `bind` lines.
    pub const BIND: Places = Places(1 << 4);
    /// `server`, `default-server` and `server-template` lines.
    pub const SERVER: Places = Places(1 << 5);
    /// `ssl-default-bind-options`.
    pub const BIND_DEFAULTS: Places = Places(1 << 6);
    /// `ssl-default-server-options`.
    pub const SERVER_DEFAULTS: Places = Places(1 << 7);

    /// `http-request` rules.
    pub const HTTP_REQUEST: Places = Places(1 << 8);
    /// `http-response` rules.
    pub const HTTP_RESPONSE: Places = Places(1 << 9);
    /// `http-after-response` rules.
    pub const HTTP_AFTER_RESPONSE: Places = Places(1 << 10);
    /// `tcp-request connection` rules.
    pub const TCP_CONNECTION: Places = Places(1 << 11);
    /// `tcp-request session` rules.
    pub const TCP_SESSION: Places = Places(1 << 12);
    /// `tcp-request content` rules.
    pub const TCP_CONTENT: Places = Places(1 << 13);
    /// `tcp-response content` rules.
    pub const TCP_RESPONSE: Places = Places(1 << 14);
    /// `quic-initial` rules.
    pub const QUIC_INITIAL: Places = Places(1 << 15);
    /// Options in the brackets of a `crt-list` and of `ssl-f-use`.
    pub const CRT_LIST: Places = Places(1 << 16);

    /// The names of the sections and the rule sets in the reference.
    pub const NAMES: [(Places, &str); 12] = [
        (Places::DEFAULTS, "defaults"),
        (Places::NAMED_DEFAULTS, "named defaults"),
        (Places::FRONTEND, "frontend"),
        (Places::BACKEND, "backend"),
        (Places::HTTP_REQUEST, "http-request"),
        (Places::HTTP_RESPONSE, "http-response"),
        (Places::HTTP_AFTER_RESPONSE, "http-after-response"),
        (Places::TCP_CONNECTION, "tcp-request connection"),
        (Places::TCP_SESSION, "tcp-request session"),
        (Places::TCP_CONTENT, "tcp-request content"),
        (Places::TCP_RESPONSE, "tcp-response content"),
        (Places::QUIC_INITIAL, "quic-initial"),
    ];

    /// The union of both sets.
    #[must_use]
    pub const fn or(self, other: Places) -> Places {
        Places(self.0 | other.0)
    }

    /// Whether the sets have a place in common.
    #[must_use]
    pub const fn intersects(self, other: Places) -> bool {
        self.0 & other.0 != 0
    }
}

/// Short names, for the tables.
pub(crate) mod at {
    use super::Places;
    pub const F: Places = Places::FRONTEND;
    pub const B: Places = Places::BACKEND;
    pub const FB: Places = F.or(B);
    pub const DF: Places = F.or(Places::DEFAULTS);
    pub const DB: Places = B.or(Places::DEFAULTS);
    pub const DFB: Places = FB.or(Places::DEFAULTS);
    pub const NFB: Places = FB.or(Places::NAMED_DEFAULTS);
    pub const NF: Places = F.or(Places::NAMED_DEFAULTS);
    pub const NB: Places = B.or(Places::NAMED_DEFAULTS);
}

/// The result of using a keyword. `P` is the parser type of the table.
#[derive(Clone, Copy, Debug)]
pub enum State<P> {
    /// It does what HAProxy's manual says.
    Supported(P),
    /// The same, except for the parts named here, which are refused as not implemented.
    Partly(P, &'static str),
    /// Known and refused: this version does not implement it.
    NotYet,
    /// Its arguments are checked. A notice says that it has no effect.
    NoEffect(Why),
    /// HAProxy refuses it too. The text names the replacement.
    Removed(&'static str),
}

/// The result of using a keyword in a proxy without the capability for it, in HAProxy's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elsewhere {
    /// A warning that it is ignored, followed by this text.
    Ignored(&'static str),
    /// The same, for keywords about log lines.
    IgnoredFormat,
    /// An error that names the missing capability.
    Refused,
    /// An error that names the sections.
    OnlyIn(&'static str),
}

/// Why a keyword has no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// It configures a feature that does not exist here yet. The keyword that enables the feature
    /// is refused ([`State::NotYet`]).
    Absent(Feature),
    /// It configures something that only HAProxy has. The text is the reason, as a clause.
    Foreign(&'static str),
}

impl<P: Copy> State<P> {
    /// The parser, if there is one.
    #[must_use]
    pub const fn parser(self) -> Option<P> {
        match self {
            State::Supported(parser) | State::Partly(parser, _) => Some(parser),
            State::NotYet | State::NoEffect(_) | State::Removed(_) => None,
        }
    }
}

/// One keyword.
#[derive(Clone, Copy, Debug)]
pub struct Keyword<P> {
    /// The name in the file. A name that ends in `*` is followed by parentheses or a number, as in
    /// `set-var(txn.x)`.
    pub name: &'static str,
    /// The places where it is valid.
    pub places: Places,
    /// The arguments of a keyword without a parser; for an option of a line, at least their number.
    pub args: Args,
    /// The result of using it.
    pub state: State<P>,
    /// The result of using it in a section for which it is not valid.
    pub elsewhere: Elsewhere,
    /// For a removed directive: writes the replacement of a line, if it can be derived
    /// automatically.
    pub instead: Option<Rewrite>,
    /// Which of its arguments hold a secret. They are hidden where the file is shown.
    pub secret: Secret,
    /// One line of reference.
    pub doc: &'static str,
}

/// The arguments of a keyword that hold a secret: a password or a key. Without data, so that each
/// entry of the large tables of keywords has a byte of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Secret {
    /// None that the keyword determines. [`crate::secrets`] still hides what has the name of a
    /// secret.
    No,
    /// All. An option of a line has only one.
    All,
    /// All but the first.
    AllButFirst,
    /// The bytes that a check sends: the argument after `send-binary`.
    SentBytes,
    /// The password of a user: the argument after `password` or `insecure-password`.
    Password,
    /// A user and a password, separated by a colon, after `auth`.
    AuthAccount,
    /// A user and a password, separated by a colon.
    Account,
}

impl<P> Keyword<P> {
    const fn new(name: &'static str, places: Places, state: State<P>, doc: &'static str) -> Self {
        Keyword {
            name,
            places,
            args: Args::None,
            state,
            elsewhere: Elsewhere::Ignored(""),
            instead: None,
            secret: Secret::No,
            doc,
        }
    }

    pub(crate) const fn yes(
        name: &'static str,
        places: Places,
        parser: P,
        doc: &'static str,
    ) -> Self {
        Keyword::new(name, places, State::Supported(parser), doc)
    }

    /// Implemented except for `missing`.
    pub(crate) const fn partly(
        name: &'static str,
        places: Places,
        parser: P,
        missing: &'static str,
        doc: &'static str,
    ) -> Self {
        Keyword::new(name, places, State::Partly(parser, missing), doc)
    }

    pub(crate) const fn not_yet(name: &'static str, places: Places, doc: &'static str) -> Self {
        Keyword::new(name, places, State::NotYet, doc)
    }

    /// Configures a feature that does not exist yet.
    pub(crate) const fn tunes(
        name: &'static str,
        places: Places,
        feature: Feature,
        args: Args,
        doc: &'static str,
    ) -> Self {
        let state = State::NoEffect(Why::Absent(feature));
        Keyword::new(name, places, state, doc).args(args)
    }

    /// Configures something that only HAProxy has.
    pub(crate) const fn moot(
        name: &'static str,
        places: Places,
        reason: &'static str,
        args: Args,
        doc: &'static str,
    ) -> Self {
        let state = State::NoEffect(Why::Foreign(reason));
        Keyword::new(name, places, state, doc).args(args)
    }

    pub(crate) const fn gone(name: &'static str, places: Places, instead: &'static str) -> Self {
        let doc = "Removed from the language by HAProxy.";
        Keyword::new(name, places, State::Removed(instead), doc)
    }

    /// Sets [`Keyword::args`].
    pub(crate) const fn args(mut self, args: Args) -> Self {
        self.args = args;
        self
    }

    /// Sets [`Keyword::elsewhere`].
    pub(crate) const fn elsewhere(mut self, elsewhere: Elsewhere) -> Self {
        self.elsewhere = elsewhere;
        self
    }

    /// Sets [`Keyword::instead`].
    pub(crate) const fn instead(mut self, rewrite: Rewrite) -> Self {
        self.instead = Some(rewrite);
        self
    }

    /// Sets [`Keyword::secret`].
    pub(crate) const fn secret(mut self, secret: Secret) -> Self {
        self.secret = secret;
        self
    }

    /// Whether `word` is this keyword.
    #[must_use]
    pub fn matches(&self, word: &str) -> bool {
        is_named(self.name, word)
    }
}

/// Whether `word` is the keyword with this name, which may end in `*`.
pub(crate) fn is_named(name: &str, word: &str) -> bool {
    match name.strip_suffix('*') {
        Some(stem) => word.strip_prefix(stem).is_some_and(|rest| {
            rest.is_empty() || rest.starts_with(|c: char| c == '(' || c.is_ascii_digit())
        }),
        None => name == word,
    }
}

/// The entry of a shared table for `word`, among those valid in `place`.
#[must_use]
pub fn find_in<'a, P>(
    table: &'a [Keyword<P>],
    word: &str,
    place: Places,
) -> Option<&'a Keyword<P>> {
    let known = table.iter().filter(|keyword| keyword.matches(word));
    let known = known.filter(|keyword| keyword.places.intersects(place));
    // `sc-inc-gpc0` must not match `sc-inc-gpc*`: the longest name wins.
    known.max_by_key(|keyword| keyword.name.len())
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
    /// The places where it is valid.
    pub places: Places,
    /// The result of using it.
    pub state: State<()>,
    /// One line of reference.
    pub doc: &'static str,
}

/// A titled part of the reference.
#[derive(Clone, Debug)]
pub struct Group {
    /// Its heading.
    pub title: String,
    /// Whether [`Row::places`] differs between the rows.
    pub by_place: bool,
    /// Its keywords in the table's order.
    pub rows: Vec<Row>,
}

/// The whole table, for the reference and for checks that it is complete.
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
        group("Options of a `bind` line", false, bind::KEYWORDS).with(tls::OPTIONS, Places::BIND),
        group(
            "Options of `server`, `default-server` and `server-template` lines",
            false,
            server::KEYWORDS,
        )
        .with(tls::OPTIONS, Places::SERVER)
        .with(checks::OPTIONS, Places::SERVER),
        group("Actions of rules", true, actions::KEYWORDS),
        group("`filter`", false, filters::KEYWORDS),
        group("Section names", false, other::SECTIONS),
    ];
    groups.push(group(
        "Section `collector`",
        false,
        crate::build::collector::keywords(),
    ));
    groups.push(group(
        "Section `dashboard`",
        false,
        crate::build::dashboard::keywords(),
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
            .map(|(name, table)| group(&format!("Section `{name}`"), false, table)),
    );
    groups
}

fn group<P: Copy>(title: &str, by_place: bool, table: &[Keyword<P>]) -> Group {
    Group {
        title: title.to_owned(),
        by_place,
        rows: table.iter().map(row).collect(),
    }
}

fn row<P: Copy>(keyword: &Keyword<P>) -> Row {
    Row {
        name: keyword.name,
        places: keyword.places,
        state: match keyword.state {
            State::Supported(_) => State::Supported(()),
            State::Partly(_, missing) => State::Partly((), missing),
            State::NotYet => State::NotYet,
            State::NoEffect(why) => State::NoEffect(why),
            State::Removed(instead) => State::Removed(instead),
        },
        doc: keyword.doc,
    }
}

impl Group {
    /// Adds the rows of a shared table that are valid in `place`.
    fn with<P: Copy>(mut self, shared: &[Keyword<P>], place: Places) -> Group {
        let shared = shared
            .iter()
            .filter(|keyword| keyword.places.intersects(place));
        self.rows.extend(shared.map(row));
        self.rows.sort_by_key(|row| row.name);
        self
    }
}
