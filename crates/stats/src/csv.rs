//! Comma-separated values: `show stat`, `;csv`.

use std::fmt::Write as _;

use crate::column::{Column, FIELDS};
use crate::row::{Row, Value};

/// The line with the names of the fields. `-` follows the last one, where HAProxy's fields of
/// modules begin.
pub fn header(out: &mut String) {
    out.push_str("# ");
    for field in FIELDS {
        out.push_str(field.name);
        out.push(',');
    }
    out.push_str("-,\n");
}

/// A line of values.
pub fn row(row: &Row<'_>, out: &mut String) {
    for column in Column::ALL {
        if let Some(value) = row.get(*column) {
            write_value(value, out);
        }
        out.push(',');
    }
    out.push_str("-,\n");
}

/// Quotes a value that would otherwise break its line (RFC 4180).
fn write_value(value: &Value<'_>, out: &mut String) {
    match value {
        Value::Text(text) if text.contains(['"', ',', '\n', '\r']) => {
            out.push('"');
            out.push_str(&text.replace('"', "\"\""));
            out.push('"');
        }
        // Writing to memory does not fail.
        value => {
            let _ = write!(out, "{value}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::COUNT;
    use crate::row::Kind;

    #[test]
    fn a_line_has_as_many_fields_as_the_header() {
        let mut text = String::new();
        header(&mut text);
        let mut one = Row::new(Kind::Server);
        one.set(Column::Pxname, "be");
        one.set(Column::Stot, 5_u64);
        one.set(Column::Status, "UP 1/3");
        row(&one, &mut text);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("# pxname,svname,qcur,"), "{text}");
        assert!(
            lines[0].ends_with(",cache_hint_hits,retr_refused,ejections,-,"),
            "{text}"
        );
        assert!(
            lines[1].starts_with("be,,,,,,,5,,,,,,,,,,UP 1/3,"),
            "{text}"
        );
        for line in lines {
            assert_eq!(line.matches(',').count(), COUNT + 1);
        }
    }

    #[test]
    fn what_breaks_a_line_is_quoted() {
        let mut text = String::new();
        write_value(&Value::from("a,\"b\"\n"), &mut text);
        assert_eq!(text, "\"a,\"\"b\"\"\n\"");
    }
}
