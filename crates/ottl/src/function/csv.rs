//! `ParseCSV`: one row, by the rules of Go's `encoding/csv`.

use super::text::utf8;
use super::{Function, prepare, prepared};
use crate::eval::Failure;
use crate::value::{ENTRIES, Value, entry};
use otlp::write;

const PARAMS: &[&str] = &[
    "target",
    "header",
    "?delimiter",
    "?header_delimiter",
    "?mode",
];

pub const FUNCTIONS: &[Function] = &[prepare("ParseCSV", PARAMS, |written| {
    let delimiter = written.char(2)?.unwrap_or(',');
    let header_delimiter = written.char(3)?.unwrap_or(delimiter);
    let mode = match written.text(4)? {
        None | Some("strict") => Mode::Strict,
        Some("lazyQuotes") => Mode::LazyQuotes,
        Some("ignoreQuotes") => Mode::IgnoreQuotes,
        Some(_) => {
            let modes = "\"strict\", \"lazyQuotes\" or \"ignoreQuotes\"";
            return Err(format!("the argument mode of ParseCSV must be {modes}"));
        }
    };
    if mode != Mode::IgnoreQuotes && matches!(delimiter, '"' | '\r' | '\n') {
        return Err(
            "the argument delimiter of ParseCSV may be no quote and no line end".to_owned(),
        );
    }
    prepared(move |args, _| {
        let (row, header) = (utf8(&args[0])?, utf8(&args[1])?);
        if header.is_empty() {
            return Err(Failure::Syntax);
        }
        let fields = match mode {
            Mode::IgnoreQuotes => row.split(delimiter).map(str::to_owned).collect(),
            mode => fields(row, delimiter, mode == Mode::LazyQuotes)?,
        };
        let names: Vec<&str> = header.split(header_delimiter).collect();
        mapped(&names, &fields)
    })
})];

#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Strict,
    LazyQuotes,
    IgnoreQuotes,
}

fn mapped<'a>(names: &[&str], fields: &[String]) -> Result<Value<'a>, Failure> {
    if names.len() != fields.len() {
        return Err(Failure::Syntax);
    }
    // The last field of a repeated name wins.
    let mut last = std::collections::HashMap::new();
    for (at, name) in names.iter().enumerate() {
        last.insert(*name, at);
    }
    let mut out = Vec::new();
    for (at, (name, field)) in names.iter().zip(fields).enumerate() {
        if last.get(name) == Some(&at) {
            let mut any = Vec::new();
            write::bytes(&mut any, 1, field.as_bytes());
            entry(&mut out, name.as_bytes(), &any);
        }
    }
    Ok(Value::Map(out.into(), ENTRIES))
}

/// Splits a row into fields. A line end outside quotes is part of its field.
fn fields(row: &str, delimiter: char, is_lazy: bool) -> Result<Vec<String>, Failure> {
    let row = row.replace("\r\n", "\n");
    let mut rest = row.strip_suffix('\r').unwrap_or(&row);
    let mut fields: Vec<String> = Vec::new();
    loop {
        // Empty lines are skipped.
        rest = rest.trim_start_matches('\n');
        if rest.is_empty() {
            break;
        }
        let mut continues = !fields.is_empty();
        loop {
            let (field, after, end) = field(rest, delimiter, is_lazy)?;
            match fields.last_mut().filter(|_| continues) {
                Some(last) => {
                    last.push('\n');
                    last.push_str(&field);
                }
                None => fields.push(field),
            }
            continues = false;
            rest = after;
            if end == End::Line {
                break;
            }
        }
    }
    if fields.is_empty() {
        return Err(Failure::Syntax);
    }
    Ok(fields)
}

/// Where a field ends.
#[derive(PartialEq)]
enum End {
    Field,
    Line,
}

/// The first field, and what follows it.
fn field(rest: &str, delimiter: char, is_lazy: bool) -> Result<(String, &str, End), Failure> {
    let Some(mut rest) = rest.strip_prefix('"') else {
        let end = rest.find(['\n', delimiter]).unwrap_or(rest.len());
        let text = &rest[..end];
        if text.contains('"') && !is_lazy {
            return Err(Failure::Syntax);
        }
        let (after, end) = behind(&rest[end..], delimiter).unwrap_or(("", End::Line));
        return Ok((text.to_owned(), after, end));
    };
    let mut field = String::new();
    loop {
        let Some(quote) = rest.find('"') else {
            // The end of the row within quotes.
            if !is_lazy {
                return Err(Failure::Syntax);
            }
            field.push_str(rest);
            return Ok((field, "", End::Line));
        };
        field.push_str(&rest[..quote]);
        rest = &rest[quote + 1..];
        if let Some(after) = rest.strip_prefix('"') {
            field.push('"');
            rest = after;
        } else if let Some((after, end)) = behind(rest, delimiter) {
            return Ok((field, after, end));
        } else if is_lazy {
            field.push('"');
        } else {
            return Err(Failure::Syntax);
        }
    }
}

/// The rest after the end of a field; none if the field does not end here.
fn behind(rest: &str, delimiter: char) -> Option<(&str, End)> {
    if let Some(after) = rest.strip_prefix(delimiter) {
        return Some((after, End::Field));
    }
    if let Some(after) = rest.strip_prefix('\n') {
        return Some((after, End::Line));
    }
    rest.is_empty().then_some(("", End::Line))
}
