//! Pattern sets: the actions that edit them, and the list of those in the configuration (manual
//! §2.7, §4.4).

use super::Shared;
use super::line::{Cursor, Line, Parse};
use super::proxy::ProxyBuild;
use crate::diagnostic::Severity;
use crate::model::{HttpAction, PatternChange, PatternEdit};
use sample::{LogFormat, Place, Reference, References};
use std::path::Path;
use std::sync::Arc;

/// `add-acl(<file>) <key>`
pub fn add_acl(
    build: &mut ProxyBuild<'_, '_>,
    cursor: &mut Cursor<'_>,
    place: Place,
) -> Parse<HttpAction> {
    let (set, [key]) = edit(build, cursor, place)?;
    let change = PatternChange::Add;
    Ok(HttpAction::EditPatterns(PatternEdit { set, key, change }))
}

/// `set-map(<file>) <key> <value>`
pub fn set_map(
    build: &mut ProxyBuild<'_, '_>,
    cursor: &mut Cursor<'_>,
    place: Place,
) -> Parse<HttpAction> {
    let (set, [key, value]) = edit(build, cursor, place)?;
    let change = PatternChange::Set(value);
    Ok(HttpAction::EditPatterns(PatternEdit { set, key, change }))
}

/// `del-acl(<file>) <key>`
pub fn del_acl(
    build: &mut ProxyBuild<'_, '_>,
    cursor: &mut Cursor<'_>,
    place: Place,
) -> Parse<HttpAction> {
    let (set, [key]) = edit(build, cursor, place)?;
    let change = PatternChange::Remove;
    Ok(HttpAction::EditPatterns(PatternEdit { set, key, change }))
}

/// `del-map(<file>) <key>`
pub fn del_map(
    build: &mut ProxyBuild<'_, '_>,
    cursor: &mut Cursor<'_>,
    place: Place,
) -> Parse<HttpAction> {
    del_acl(build, cursor, place)
}

/// The set between the parentheses of the action taken last, and the `FORMATS` formats after it.
fn edit<const FORMATS: usize>(
    build: &mut ProxyBuild<'_, '_>,
    cursor: &mut Cursor<'_>,
    place: Place,
) -> Parse<(Arc<Reference>, [LogFormat; FORMATS])> {
    let word = cursor.last();
    let inside = word
        .split_once('(')
        .and_then(|(_, rest)| rest.strip_suffix(')'));
    let name = inside.filter(|name| !name.is_empty()).ok_or_else(|| {
        cursor.fault(format!(
            "'{word}' expects the name of a file between parentheses."
        ))
    })?;
    let mut formats = Vec::with_capacity(FORMATS);
    for at in cursor.at..cursor.at + FORMATS {
        cursor.line.need(at, || {
            format!("'{word}' expects exactly {FORMATS} arguments.")
        })?;
        formats.push(build.shared.plain_format(&cursor.line, at, place)?);
    }
    let span = cursor.line.span(cursor.at - 1);
    build.shared.edited_patterns.push((name.to_owned(), span));
    cursor.at += FORMATS;
    let set = build.shared.compiler.reference(name);
    let formats = formats.try_into();
    // The array has the requested length.
    formats
        .map(|formats| (set, formats))
        .map_err(|_| cursor.fault(format!("'{word}' expects exactly {FORMATS} arguments.")))
}

/// The sets of the whole configuration. Reports edits of sets that no ACL and no map reads.
pub fn finish(shared: &mut Shared<'_>) -> References {
    let (references, unread) = shared.compiler.take_references();
    for (name, span) in std::mem::take(&mut shared.edited_patterns) {
        if references.find(&name).is_none() && !unread.is_empty() {
            let message = format!("no ACL and no map reads '{name}': this action has no effect.");
            shared
                .diagnostics
                .add(Severity::Warning, Some(&span), message);
        }
    }
    references
}

impl Shared<'_> {
    /// Tells the compiler the current place, for the files that an expression names.
    pub fn enter_line(&mut self, line: &Line<'_>) {
        let span = line.span(0);
        let source = &span.source.name;
        let directory = self.default_path.resolve(Path::new(""), source);
        self.compiler
            .enter_line(source, span.line as usize, &directory);
    }
}
