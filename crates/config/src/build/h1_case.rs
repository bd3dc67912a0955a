//! `h1-case-adjust` and `h1-case-adjust-file` (manual §3.1): the case of header names for peers
//! that need a special one.

use super::global::GlobalBuild;
use super::line::{Line, Parse};
use std::collections::HashMap;
use syntax::octets::readable;

/// The largest accepted file.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// `h1-case-adjust <from> <to>`
pub fn adjust(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    for at in [1, 2] {
        line.need(at, || {
            "'h1-case-adjust' expects <from> and <to> as arguments.".into()
        })?;
    }
    line.at_most(2)?;
    let result = add(&mut build.global.h1_case, line.bytes(1), line.bytes(2));
    result.map_err(|what| line.fault(1, format!("'h1-case-adjust' : {what}.")))
}

/// `h1-case-adjust-file <file>`
pub fn adjust_file(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let name = line.need(1, || {
        "'h1-case-adjust-file' expects <file> as argument.".into()
    })?;
    line.at_most(1)?;
    let fault =
        |what: String| line.fault(1, format!("h1-headers-case-adjust-file '{name}' : {what}."));
    let from = &line.span(1).source.name;
    let path = build.shared.default_path.resolve(line.path(1), from);
    let text = files::read(&path, FILE_BYTES_MAX);
    let text = text.map_err(|_| fault("failed to open file".into()))?;
    for (number, entry) in text.split(|byte| *byte == b'\n').enumerate() {
        let entry = entry.trim_ascii();
        if entry.is_empty() || entry.starts_with(b"#") {
            continue;
        }
        let end = memchr::memchr2(b' ', b'\t', entry).unwrap_or(entry.len());
        let (from, to) = (&entry[..end], entry[end..].trim_ascii_start());
        let result = add(&mut build.global.h1_case, from, to);
        result.map_err(|what| fault(format!("{what} at line {}", number + 1)))?;
    }
    Ok(())
}

fn add(names: &mut HashMap<Box<[u8]>, Box<[u8]>>, from: &[u8], to: &[u8]) -> Result<(), String> {
    if to.is_empty() {
        return Err("expect <to>".into());
    }
    if !from.eq_ignore_ascii_case(to) {
        return Err("<from> and <to> must not differ except the case".into());
    }
    match names.insert(from.into(), to.into()) {
        Some(_) => Err(format!("duplicate entry '{}'", readable(from))),
        None => Ok(()),
    }
}
