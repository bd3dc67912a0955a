//! Files with counters: `dump stats-file` writes them, and `stats-file` of section `global` reads
//! them (manual §3.1, management guide §9.3).
//!
//! A line `#fe guid,stot,…` or `#be guid,…` names the fields of the following lines. Each of these
//! begins with the permanent name of its object.

use std::fmt::Write as _;

use crate::column::{Column, FIELDS};
use crate::row::Row;

/// The largest accepted file in bytes.
pub const BYTES_MAX: u64 = 64 << 20;

/// The side of a part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Frontends and listeners.
    Front,
    /// Backends and servers.
    Back,
}

impl Side {
    const fn word(self) -> &'static str {
        match self {
            Side::Front => "#fe",
            Side::Back => "#be",
        }
    }

    /// The fields of this side that a file has.
    pub fn columns(self) -> impl Iterator<Item = Column> {
        let belongs = move |column: &Column| {
            let kinds = FIELDS[*column as usize].kinds;
            FIELDS[*column as usize].is_shared
                && match self {
                    Side::Front => kinds.is_front(),
                    Side::Back => kinds.is_back(),
                }
        };
        Column::ALL.iter().copied().filter(belongs)
    }
}

/// The line with the names of a side's fields.
pub fn header(side: Side, out: &mut String) {
    out.push_str(side.word());
    out.push_str(" guid,");
    for column in side.columns() {
        out.push_str(FIELDS[column as usize].name);
        out.push(',');
    }
    out.push('\n');
}

/// The line of an object.
pub fn row(side: Side, guid: &str, row: &Row<'_>, out: &mut String) {
    out.push_str(guid);
    out.push(',');
    for column in side.columns() {
        if let Some(value) = row.get(column) {
            // Writing to memory does not fail.
            let _ = write!(out, "{value}");
        }
        out.push(',');
    }
    out.push('\n');
}

/// A counter in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loaded<'a> {
    /// The side of its part.
    pub side: Side,
    /// The permanent name of its object.
    pub guid: &'a str,
    /// The field.
    pub column: Column,
    /// Its value.
    pub value: u64,
}

/// Parses a file. Unknown fields and values that are not numbers are skipped, as in HAProxy.
///
/// # Errors
/// The number of a line with values before any line with field names.
pub fn read(text: &str) -> Result<Vec<Loaded<'_>>, usize> {
    let mut loaded = Vec::new();
    // None: no line with names yet; `Some(None)`: the names of an unknown side.
    let mut part: Option<Option<(Side, Vec<Option<Column>>)>> = None;
    for (place, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with("//") {
            continue;
        }
        if line.starts_with('#') {
            part = Some(named(line));
            continue;
        }
        let Some((side, columns)) = part.as_ref().ok_or(place + 1)? else {
            continue;
        };
        let mut words = line.split(',');
        let guid = words.next().unwrap_or_default();
        for (column, word) in columns.iter().zip(words) {
            if let (Some(column), Ok(value)) = (column, word.parse()) {
                loaded.push(Loaded {
                    side: *side,
                    guid,
                    column: *column,
                    value,
                });
            }
        }
    }
    Ok(loaded)
}

/// The side and the fields in a line with names.
fn named(line: &str) -> Option<(Side, Vec<Option<Column>>)> {
    let (word, names) = line.split_once(' ')?;
    let side = [Side::Front, Side::Back]
        .into_iter()
        .find(|side| side.word() == word)?;
    let names = names.trim().trim_end_matches(',').strip_prefix("guid")?;
    let columns = names.split(',').skip(1).map(Column::named).collect();
    Some((side, columns))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::Kind;

    #[test]
    fn what_is_written_is_read() {
        let mut one = Row::new(Kind::Frontend);
        one.set(Column::Stot, 17_u64);
        one.set(Column::ReqTot, 99_u64);
        let mut text = String::new();
        header(Side::Front, &mut text);
        row(Side::Front, "guid-fe", &one, &mut text);
        assert!(text.starts_with("#fe guid,stot,bin,bout,dreq,dresp,ereq,rate,"));
        let loaded = read(&text).expect("a file");
        let values: Vec<(Column, u64)> = loaded.iter().map(|one| (one.column, one.value)).collect();
        assert_eq!(values, [(Column::Stot, 17), (Column::ReqTot, 99)]);
        assert_eq!((loaded[0].side, loaded[0].guid), (Side::Front, "guid-fe"));
    }

    #[test]
    fn what_is_not_known_is_left_out() {
        let text = "#fe guid,stot,\n\n// text\na,1024,\nb,abc,\n#inval guid,other,\nc,1,\n#be guid,unknown,stot,\nd,512,1024\n";
        let loaded = read(text).expect("a file");
        let all: Vec<(&str, Column, u64)> = loaded
            .iter()
            .map(|one| (one.guid, one.column, one.value))
            .collect();
        assert_eq!(all, [("a", Column::Stot, 1024), ("d", Column::Stot, 1024)]);
        assert_eq!(read("\na,1,\n"), Err(2));
    }
}
