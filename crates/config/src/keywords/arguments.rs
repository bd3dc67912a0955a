//! What may follow a keyword that has no parser of its own because its effect is absent. Enough to refuse what HAProxy refuses.

use crate::build::Shared;
use crate::build::line::{Cursor, Parse};

/// The words after a keyword.
#[derive(Clone, Copy, Debug)]
pub enum Args {
    /// Nothing.
    None,
    /// One word of any text.
    Word,
    /// Any words; HAProxy looks at none of them.
    Any,
    /// An integer in these bounds. What follows its digits does not count, as with C's `atoi`, which HAProxy reads such words with.
    Number(i64, i64),
    /// The same, and nothing follows its digits.
    Integer(i64, i64),
    /// A size in bytes, at least this.
    Size(usize),
    /// A time.
    Time,
    /// A time between so many milliseconds.
    TimeWithin(u32, u32),
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// At least one of these words.
    Several(&'static [&'static str]),
    /// One word: some of these with commas between them.
    List(&'static [&'static str]),
    /// These, or the end of the line.
    Optional(&'static Args),
    /// One after the other.
    Sequence(&'static [Args]),
    /// A sample expression.
    Sample,
    /// Has an address, in which environment variables are replaced.
    Address(AddressParser),
    /// Has a syntax of its own.
    Own(ArgsParser),
}

impl Args {
    /// How many words there are at least.
    #[must_use]
    pub fn words(&self) -> usize {
        match self {
            Args::None | Args::Any | Args::Optional(_) => 0,
            Args::Sequence(all) => all.iter().map(Args::words).sum(),
            _ => 1,
        }
    }
}

/// Takes the arguments of the word taken last.
pub type ArgsParser = fn(&mut Cursor<'_>) -> Parse;

/// The same where one of them is an address.
pub type AddressParser = fn(&mut Cursor<'_>, &Shared<'_>) -> Parse;

/// Any integer.
pub const INTEGER: Args = Args::Number(i64::MIN, i64::MAX);
/// An integer that is not negative.
pub const COUNT: Args = Args::Number(0, i64::MAX);
/// An integer above 0.
pub const POSITIVE: Args = Args::Number(1, i64::MAX);
/// A percentage.
pub const PERCENT: Args = Args::Number(0, 100);
/// `on` or `off`.
pub const ON_OFF: Args = Args::OneOf(&["on", "off"]);
