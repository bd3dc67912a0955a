//! Comma-separated values: `show stat`, `;csv`.

use std::fmt::Write as _;

use crate::column::{Column, FIELDS, LAST_OF_PROXIES};
use crate::row::{Row, Value};

/// The line with the names of the fields. The field `-` precedes those of modules, whose places
/// differ between builds of HAProxy.
pub fn header(out: &mut String) {
    out.push_str("# ");
    for (column, field) in Column::ALL.iter().zip(FIELDS) {
        out.push_str(field.name);
        end_field(*column, out);
    }
    out.push('\n');
}

fn end_field(column: Column, out: &mut String) {
    out.push_str(if column == LAST_OF_PROXIES {
        ",-,"
    } else {
        ","
    });
}

/// A line of values.
pub fn row(row: &Row<'_>, out: &mut String) {
    for column in Column::ALL {
        if let Some(value) = row.get(*column) {
            write_value(value, out);
        }
        end_field(*column, out);
    }
    out.push('\n');
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
            lines[0].contains(",cache_hint_hits,-,h2_headers_rcvd,"),
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
