//! All references of a configuration: created while it is compiled, later found by name and number.
//!
//! A configuration may follow another one in the same process ([`References::follow`]). Then a
//! reference keeps the number of the previous one of its name, and its content too, unless its file
//! has changed since it was loaded.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_128;

use super::content::Content;
use super::file;
use super::reference::{Columns, Reference};
use super::set::ValueKinds;
use super::store::TEXT_BYTES_MAX;
use super::uses::How;
use super::{EditError, Lookup};
use syntax::octets::readable;

/// The pattern sets of a configuration, which are loaded with it and edited at run time. Cheap to
/// clone.
#[derive(Clone, Debug, Default)]
pub struct References {
    list: Vec<Arc<Reference>>,
    /// The references of the previous configuration, while this one is compiled.
    previous: Vec<Arc<Reference>>,
}

/// The current place in the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Source {
    pub file: String,
    pub line: usize,
    /// The folder to which names of files are relative.
    pub directory: PathBuf,
}

/// The requirements of a use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub columns: Columns,
    pub how: How,
    pub values: ValueKinds,
}

/// The origin of the entries, which the name states (manual §2.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    File,
    OptionalFile,
    Nowhere,
}

impl References {
    /// All references, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Reference>> {
        self.list.iter()
    }

    /// The reference of this name, in the syntax of the runtime interface: with or without `file@`
    /// and `opt@`, or `#<id>`.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&Arc<Reference>> {
        match name.strip_prefix('#') {
            Some(id) => {
                let id: u32 = id.parse().ok()?;
                self.list.iter().find(|reference| reference.id() == id)
            }
            None => {
                let (_, name) = origin(name);
                self.list.iter().find(|known| known.name() == Some(name))
            }
        }
    }

    /// Makes this the references of the configuration that follows one with these references.
    pub(crate) fn follow(&mut self, previous: &References) {
        self.previous.clone_from(&previous.list);
    }

    /// The reference of a name. A new one is empty and has no readers.
    pub(crate) fn named(&mut self, written: &str) -> Arc<Reference> {
        if let Some(known) = self.find_name(written) {
            return known.clone();
        }
        let (_, name) = origin(written);
        let reference = Arc::new(Reference::new(Some(name)));
        self.list.push(reference.clone());
        reference
    }

    /// Adds a use of the reference of a name. The first use reads its file.
    ///
    /// # Errors
    /// HAProxy's message about the file or the faulty entry.
    pub(crate) fn lookup(
        &mut self,
        name: &[u8],
        wanted: Wanted,
        source: &Source,
    ) -> Result<Lookup, String> {
        let written = &*readable(name).to_string();
        let reference = self.named(written);
        let first = !reference.is_read();
        if !reference.claim(wanted.columns) {
            let (is, not) = match wanted.columns {
                Columns::Keys => ("two", "one"),
                Columns::KeysAndValues => ("one", "two"),
            };
            return Err(format!(
                "The file \"{written}\" is already used as {is} column file and cannot be used by as {not} column file."
            ));
        }
        reference.used(written, wanted.columns == Columns::KeysAndValues, source);
        if first {
            self.fill(&reference, name, wanted.columns, source)?;
        }
        Lookup::new(reference, wanted).map_err(|(order, message)| {
            // The line is computed only for this message: the order of an entry from the file
            // is its index in the file.
            let text = read(name, source).unwrap_or_default();
            let entry = file::lines(&text, wanted.columns).nth(order as usize);
            match entry {
                None if !self.previous.is_empty() => {
                    format!("{message} in an entry that was added to '{written}' at run time")
                }
                _ => at_line(&message, entry.map_or(0, |entry| entry.line), written),
            }
        })
    }

    /// Gives a reference its first content: that of the previous configuration if its file has not
    /// changed since, otherwise the content of the file.
    fn fill(
        &self,
        reference: &Reference,
        name: &[u8],
        columns: Columns,
        source: &Source,
    ) -> Result<(), String> {
        let text = read(name, source)?;
        let hash = xxh3_128(&text);
        let previous = self.previous(reference).filter(|previous| {
            previous.is_read() && previous.columns() == columns && previous.content().is_of(hash)
        });
        if let Some(previous) = previous {
            reference.set_content(Arc::clone(previous.content()));
            return Ok(());
        }
        reference.set_content(Arc::new(Content::new(Some(hash))));
        let mut draft = reference.first_draft(memchr::memchr_iter(b'\n', &text).count());
        for line in file::lines(&text, columns) {
            if let Err(EditError::Refused(message)) = draft.add(line.key, line.value) {
                return Err(at_line(&message, line.line, &readable(name).to_string()));
            }
        }
        reference.commit(draft);
        Ok(())
    }

    /// The reference of the same name in the previous configuration.
    fn previous(&self, reference: &Reference) -> Option<&Arc<Reference>> {
        let name = reference.name()?;
        let mut previous = self.previous.iter();
        previous.find(|known| known.name() == Some(name))
    }

    /// Adds a use of a new reference for the patterns of an ACL with a number of its own (`-u`).
    ///
    /// # Errors
    /// The number is already used.
    pub(crate) fn with_id(
        &mut self,
        id: u32,
        keyword: &str,
        wanted: Wanted,
        source: &Source,
    ) -> Result<Lookup, String> {
        if self.list.iter().any(|known| known.given_id() == Some(id)) {
            return Err("the id is already used".into());
        }
        let reference = Arc::new(Reference::with_id(id));
        reference.owned(keyword, source);
        self.list.push(reference.clone());
        reference.claim(wanted.columns);
        Lookup::new(reference, wanted).map_err(|(_, message)| message)
    }

    /// Assigns numbers to references without one, and removes those without readers. Returns the
    /// names of the removed ones.
    pub(crate) fn finish(&mut self) -> Vec<String> {
        let unread = self.list.iter().filter(|known| !known.is_read());
        let unread = unread.filter_map(|known| known.name().map(str::to_owned));
        let unread = unread.collect();
        self.list.retain(|known| known.is_read());
        let given = self.list.iter().filter_map(|known| known.given_id());
        let mut taken: HashSet<u32> = given.collect();
        for reference in self.list.iter().filter(|known| known.given_id().is_none()) {
            let previous = self.previous(reference).map(|previous| previous.id());
            if let Some(id) = previous.filter(|id| taken.insert(*id)) {
                reference.set_id(id);
            }
        }
        self.previous.clear();
        let mut free = (0..).filter(|id| !taken.contains(id));
        for reference in self.list.iter().filter(|known| known.given_id().is_none()) {
            reference.set_id(free.next().unwrap_or(u32::MAX));
        }
        self.list.sort_by_key(|reference| reference.id());
        unread
    }

    fn find_name(&self, written: &str) -> Option<&Arc<Reference>> {
        let (_, name) = origin(written);
        self.list.iter().find(|known| known.name() == Some(name))
    }
}

fn at_line(message: &str, line: usize, written: &str) -> String {
    format!("{message} at line {line} of file '{written}'")
}

/// The first text of a reference.
fn read(written: &[u8], source: &Source) -> Result<Vec<u8>, String> {
    let (origin, name) = origin_of(written);
    if origin == Origin::Nowhere {
        return Ok(Vec::new());
    }
    let unopened = || format!("failed to open pattern file <{}>", readable(name));
    if name.is_empty() {
        return Err(unopened());
    }
    let path = source.directory.join(OsStr::from_bytes(name));
    match files::read(path, TEXT_BYTES_MAX as u64) {
        Err(_) if origin == Origin::OptionalFile => Ok(Vec::new()),
        read => read.map_err(|_| unopened()),
    }
}

/// The origin of the entries of a name, and the name without its prefix.
fn origin(written: &str) -> (Origin, &str) {
    let (origin, name) = origin_of(written.as_bytes());
    // The prefix is ASCII.
    (origin, &written[written.len() - name.len()..])
}

/// The same for bytes, because names of files are bytes.
fn origin_of(written: &[u8]) -> (Origin, &[u8]) {
    let after = |prefix: &[u8]| {
        written
            .strip_prefix(prefix)
            .filter(|name: &&[u8]| !name.is_empty())
    };
    match (after(b"file@"), after(b"opt@"), after(b"virt@")) {
        (Some(name), ..) => (Origin::File, name),
        (_, Some(name), _) => (Origin::OptionalFile, name),
        (.., Some(_)) => (Origin::Nowhere, written),
        _ => (Origin::File, written),
    }
}
