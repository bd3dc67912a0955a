//! A file for each value of a resource's attribute.

use std::collections::{BTreeMap, VecDeque};
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use otlp::scan::Any;

use super::rotate::Writer;
use super::{Attempt, make_folder};
use crate::config::Signal;
use crate::config::components::exporters::file::{FileExporter, GroupBy};
use crate::run::process::edit::List;
use otlp::count;
use otlp::wire::{Fields, one_bytes};

/// `Export*ServiceRequest.resource_*`, `Resource*.resource` and `Resource.attributes`.
const FIRST: u32 = 1 << 3 | 2;
/// Files that are open at a time, whatever the settings say.
const OPEN_FILES_MAX: u64 = 4096;

/// See the module.
pub(super) struct Groups {
    /// What stands before and behind the `*` of the path.
    path: (String, String),
    attribute: Vec<u8>,
    append: bool,
    permissions: u32,
    open_max: usize,
    /// Those that are open, the one that was used last at the end.
    open: VecDeque<(PathBuf, Writer)>,
    /// Files of this run: whoever comes back to one continues it.
    begun: std::collections::HashSet<PathBuf>,
}

/// Files of a run that are remembered; one more is continued if it is there, as with `append`.
const BEGUN_MAX: usize = 100_000;

impl Groups {
    pub(super) fn new(settings: &FileExporter, group_by: &GroupBy) -> Groups {
        let (before, behind) = settings
            .path
            .split_once('*')
            .unwrap_or((&settings.path, ""));
        Groups {
            path: (before.to_owned(), behind.to_owned()),
            attribute: group_by.resource_attribute.clone().into_bytes(),
            append: settings.append,
            permissions: settings.directory_permissions,
            open_max: group_by.open_files_max.min(OPEN_FILES_MAX) as usize,
            open: VecDeque::new(),
            begun: Default::default(),
        }
    }

    /// Writes each resource of a request to its file. Records whose file cannot exist are rejected;
    /// those whose file cannot be written now are left for the next attempt.
    ///
    /// # Errors
    /// The request cannot be read.
    pub(super) fn write(
        &mut self,
        (signal, request): (Signal, &[u8]),
        message: impl Fn(&[u8]) -> Result<Vec<u8>, String>,
    ) -> Result<Attempt, String> {
        let mut groups: BTreeMap<String, Vec<u8>> = BTreeMap::new();
        let mut nameless = Vec::new();
        for field in Fields::new(request) {
            let field = field.map_err(|fault| fault.to_string())?;
            let value = field.message(1).and_then(|resource| self.value(resource));
            let to = value.map_or(&mut nameless, |value| groups.entry(value).or_default());
            to.extend_from_slice(field.whole);
        }
        let records =
            |bytes: &[u8]| count::records(signal, bytes).map_err(|fault| fault.to_string());
        let mut attempt = Attempt {
            rejected: records(&nameless)?,
            why: "their resource does not say which file".to_owned(),
            ..Attempt::default()
        };
        for (value, bytes) in groups {
            let path = place(&self.path, &value);
            let failed = match message(&bytes) {
                Ok(message) => {
                    let writer = self.writer(&path);
                    let written = writer.and_then(|writer| writer.write(&message));
                    let Err(error) = written else { continue };
                    let why = format!("{}: {error}", path.display());
                    if !is_of_name(error.kind()) {
                        attempt.rest.extend_from_slice(&bytes);
                        attempt.busy = Some(why);
                        continue;
                    }
                    why
                }
                Err(why) => format!("{}: {why}", path.display()),
            };
            attempt.rejected += records(&bytes)?;
            attempt.why = failed;
        }
        Ok(attempt)
    }

    /// The attribute of a `Resource*`.
    fn value(&self, resource: &[u8]) -> Option<String> {
        let resource = one_bytes(resource, FIRST).ok()??;
        let mut attributes = List::default();
        attributes.read(resource, FIRST).ok()?;
        match attributes.get(&self.attribute)? {
            Any::Text(text) => String::from_utf8(text.to_vec()).ok(),
            _ => None,
        }
    }

    fn writer(&mut self, path: &Path) -> std::io::Result<&mut Writer> {
        let found = self.open.iter().position(|(other, _)| other == path);
        let used = match found.and_then(|place| self.open.remove(place)) {
            Some(used) => used,
            None => {
                if self.open.len() >= self.open_max {
                    self.open.pop_front();
                }
                make_folder(path, self.permissions)?;
                let is_full = self.begun.len() >= BEGUN_MAX;
                let append = self.append || is_full || self.begun.contains(path);
                let writer = Writer::open(path, append, None)?;
                if !is_full {
                    self.begun.insert(path.to_owned());
                }
                (path.to_owned(), writer)
            }
        };
        self.open.push_back(used);
        let (_, writer) = self.open.back_mut().ok_or(std::io::ErrorKind::NotFound)?;
        Ok(writer)
    }
}

/// Whether a file fails because of its name, so that another attempt fails too.
fn is_of_name(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::InvalidFilename
            | ErrorKind::InvalidInput
            | ErrorKind::IsADirectory
            | ErrorKind::NotADirectory
            | ErrorKind::PermissionDenied
    )
}

/// The file of a value. What the value says stays below the folder of the pattern, whatever it is.
fn place((before, behind): &(String, String), value: &str) -> PathBuf {
    let folder = match before.rfind('/') {
        Some(end) => &before[..=end],
        None => "",
    };
    let name = format!("{}{value}{behind}", &before[folder.len()..]);
    let mut path = PathBuf::from(folder);
    // A NUL is no part of a name, and neither is the way up.
    let name = name.replace('\0', "_");
    for part in Path::new(&name).components() {
        if let Component::Normal(part) = part {
            path.push(part);
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_leads_to_no_other_folder() {
        let pattern = ("/var/t/a-".to_owned(), ".json".to_owned());
        for (value, expected) in [
            ("x", "/var/t/a-x.json"),
            ("x/y", "/var/t/a-x/y.json"),
            ("/../../etc/x", "/var/t/a-/etc/x.json"),
            ("../../x", "/var/t/a-../x.json"),
            ("\0", "/var/t/a-_.json"),
        ] {
            assert_eq!(place(&pattern, value), Path::new(expected), "{value:?}");
        }
        let bare = (String::new(), String::new());
        assert_eq!(place(&bare, "/etc/passwd"), Path::new("etc/passwd"));
    }
}
