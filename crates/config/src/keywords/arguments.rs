//! The arguments of keywords without a parser, because they have no effect. They are detailed
//! enough to refuse what HAProxy refuses.

use crate::build::Shared;
use crate::build::line::{Cursor, Parse};

/// The words after a keyword.
#[derive(Clone, Copy, Debug)]
pub enum Args {
    /// Nothing.
    None,
    /// One word of any text.
    Word,
    /// Any words; HAProxy ignores all of them.
    Any,
    /// An integer in this range. Characters after its digits are ignored, as with C's `atoi`, which
    /// HAProxy uses for such words.
    Number(i64, i64),
    /// The same, but no character may follow its digits.
    Integer(i64, i64),
    /// A size in bytes, at least this.
    Size(usize),
    /// A time.
    Time,
    /// A time in this range of milliseconds.
    TimeWithin(u32, u32),
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// At least one of these words.
    Several(&'static [&'static str]),
    /// One word: some of these, separated by commas.
    List(&'static [&'static str]),
    /// These arguments, or the end of the line.
    Optional(&'static Args),
    /// These arguments, one after the other.
    Sequence(&'static [Args]),
    /// A sample expression.
    Sample,
    /// Arguments with an address, in which environment variables are expanded.
    Address(AddressParser),
    /// Arguments with a special syntax.
    Own(ArgsParser),
}

impl Args {
    /// The least number of words.
    #[must_use]
    pub fn words(&self) -> usize {
        match self {
            Args::None | Args::Any | Args::Optional(_) => 0,
            Args::Sequence(all) => all.iter().map(Args::words).sum(),
            _ => 1,
        }
    }
}

/// Consumes the arguments of the word taken last.
pub type ArgsParser = fn(&mut Cursor<'_>) -> Parse;

/// The same for arguments with an address.
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
