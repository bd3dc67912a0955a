//! One line per field, with its properties: `show stat typed`.

use std::fmt::Write as _;

use crate::column::Column;
use crate::row::Row;

/// The lines of a row; empty fields have none. `described`: with the fields' descriptions.
pub fn row(row: &Row<'_>, described: bool, out: &mut String) {
    let (iid, sid) = (row.number(Column::Iid), row.number(Column::Sid));
    for (column, value) in row.filled() {
        let field = column.field();
        let (origin, nature, scope) = column.tags(row.kind);
        let lasting = if field.is_shared { 'P' } else { 'V' };
        // Writing to memory does not fail.
        let _ = write!(
            out,
            "{}.{iid}.{sid}.{}.{}.1:{}{}{}{lasting}:{}:{value}",
            row.kind.letter(),
            column as usize,
            field.name,
            origin.letter(),
            nature.letter(),
            scope.letter(),
            value.kind(),
        );
        if described {
            let _ = write!(out, ":\"{}\"", field.about);
        }
        out.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::Kind;

    #[test]
    fn lines_as_haproxy_has_them() {
        let mut one = Row::new(Kind::Frontend);
        one.set(Column::Pxname, "fe");
        one.set(Column::Iid, 2_u32);
        one.set(Column::Sid, 0_u32);
        one.set(Column::Stot, 1024_u64);
        let mut text = String::new();
        row(&one, false, &mut text);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "F.2.0.0.pxname.1:KNSV:str:fe");
        assert_eq!(lines[1], "F.2.0.7.stot.1:MCPP:u64:1024");
        text.clear();
        row(&one, true, &mut text);
        assert!(text.contains(":u64:1024:\"Connections or streams since the start\"\n"));
    }
}
