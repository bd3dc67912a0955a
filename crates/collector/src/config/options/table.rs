//! What an option table says.

/// Options of one map, in groups; where two groups have a name, the first one counts.
pub(crate) type Table = &'static [&'static [Opt]];

/// Largest count that an option takes.
pub(crate) const COUNT_MAX: i64 = i64::MAX;

/// One option.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opt {
    /// Its key.
    pub name: &'static str,
    pub kind: Kind,
    /// What counts where it is not written, as it would be written.
    pub default: &'static str,
    pub state: State,
    pub rank: Rank,
    /// What it does, in a few words.
    pub doc: &'static str,
}

/// Whether it must be written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Rank {
    Optional,
    Required,
}

/// What becomes of an option that is written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum State {
    /// It does what the Collector's does.
    Works,
    /// It is taken and does nothing, for a reason that one warning tells.
    NoEffect(&'static str),
    /// It cannot be honoured, for a reason that the error tells.
    Refused(&'static str),
    /// It works under an old name; the warning tells the new one.
    Deprecated(&'static str),
}

/// What an option takes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// `true` or `false`.
    Flag,
    /// A whole number of a range.
    Int(i64, i64),
    /// A list of whole numbers of a range.
    Ints(i64, i64),
    /// A number of a range.
    Number(f64, f64),
    /// Go's notation of durations, or nanoseconds.
    Duration,
    /// A list of durations.
    Durations,
    Text,
    /// One of some words.
    Word(&'static [&'static str]),
    /// One of some words, in any case.
    WordAnyCase(&'static [&'static str]),
    /// A list of texts, or one text with commas.
    Texts,
    /// A list of some words, or one text with commas.
    Words(&'static [&'static str]),
    /// A map of texts, or a list of maps with `name` and `value`.
    Pairs,
    /// A map of options.
    Section(Table),
    /// A map of options that counts once it is written, empty too, unless it says `enabled: false`.
    Maybe(Table),
    /// A list of maps of options.
    Sections(Table),
    /// A map of maps of options, by names of the user.
    Named(Table),
    /// A list of texts, or of maps of options.
    TextsOrSections(Table),
    /// Anything; its parser looks.
    Any,
}

/// An option that works.
pub(crate) const fn opt(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    doc: &'static str,
) -> Opt {
    Opt {
        name,
        kind,
        default,
        state: State::Works,
        rank: Rank::Optional,
        doc,
    }
}

/// An option that works and must be written.
pub(crate) const fn required(name: &'static str, kind: Kind, doc: &'static str) -> Opt {
    Opt {
        rank: Rank::Required,
        ..opt(name, kind, "", doc)
    }
}

impl Opt {
    pub(crate) const fn no_effect(self, reason: &'static str) -> Opt {
        Opt {
            state: State::NoEffect(reason),
            ..self
        }
    }

    pub(crate) const fn refused(self, reason: &'static str) -> Opt {
        Opt {
            state: State::Refused(reason),
            ..self
        }
    }

    pub(crate) const fn deprecated(self, instead: &'static str) -> Opt {
        Opt {
            state: State::Deprecated(instead),
            ..self
        }
    }
}

/// The option of a name.
pub(crate) fn find(table: Table, name: &str) -> Option<&'static Opt> {
    table.iter().copied().flatten().find(|opt| opt.name == name)
}

/// All options of a table, each name once.
pub(crate) fn all(table: Table) -> impl Iterator<Item = &'static Opt> {
    let flat = || table.iter().copied().flatten();
    flat()
        .enumerate()
        .filter(move |(index, opt)| flat().position(|other| other.name == opt.name) == Some(*index))
        .map(|(_, opt)| opt)
}
