//! Options as tables: the check, the defaults, the suggestions and the reference all come of them.
//!
//! [`check()`] walks a tree along a table and notes everything that is wrong with it; [`Section`]
//! then gives typed values, where nothing stands the table's default. A parser reads sections that
//! were checked, so it only asks what one option alone cannot tell.

mod check;
#[cfg(feature = "mute")]
mod mute;
mod section;
mod table;
#[cfg(test)]
mod tests;
pub(crate) mod value;

pub(crate) use check::check;
pub(crate) use section::Section;
pub(crate) use table::{COUNT_MAX, Kind, Opt, Rank, State, Table, all, opt, required};
