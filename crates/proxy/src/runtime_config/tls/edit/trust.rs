//! Changes of authority files and revocation list files.

use std::path::Path;

use tls::{Authorities, Revocations};

use super::super::Tls;
use super::super::files::{Dependency, EditError, Files, Kind};
use super::{Draft, abort, end};

/// Changes of authority files.
impl Tls {
    /// Creates an empty authority file with a new name.
    ///
    /// # Errors
    /// [`EditError::Exists`]
    pub fn new_authorities(&self, name: &str) -> Result<(), EditError> {
        let mut files = self.files();
        files.check_trust_name(name)?;
        files.authorities.files.insert(name.to_owned(), None);
        Ok(())
    }

    /// Replaces the authorities of a file in its transaction, or adds some.
    ///
    /// # Errors
    /// As [`Tls::set_certificate`].
    pub fn set_authorities(
        &self,
        name: &str,
        payload: &[u8],
        adds: bool,
    ) -> Result<Draft, EditError> {
        let mut files = self.files();
        let kind = &mut files.authorities;
        set(kind, name, |before| {
            let before = before.filter(|_| adds);
            let parsed = Authorities::parse(before, payload, Path::new(name));
            parsed.map_err(|error| EditError::Wrong(error.to_string()))
        })
    }

    /// As [`Tls::commit_certificate`]. Sessions of clients that a removed authority vouched for are
    /// not resumed.
    ///
    /// # Errors
    /// As [`Tls::commit_certificate`].
    pub fn commit_authorities(&self, name: &str) -> Result<usize, EditError> {
        let changed = Dependency::Authorities(name);
        self.commit_trust(name, |files| &mut files.authorities, changed)
    }

    /// As [`Tls::abort_certificate`].
    ///
    /// # Errors
    /// As [`Tls::abort_certificate`].
    pub fn abort_authorities(&self, name: &str) -> Result<(), EditError> {
        abort(&mut self.files().authorities, name)
    }

    /// As [`Tls::delete_certificate`].
    ///
    /// # Errors
    /// As [`Tls::delete_certificate`].
    pub fn delete_authorities(&self, name: &str) -> Result<(), EditError> {
        let mut files = self.files();
        let is_used = files.uses(Dependency::Authorities(name)) > 0;
        let is_other = files.revocations.files.contains_key(name);
        delete(&mut files.authorities, name, is_used, is_other)
    }
}

/// Changes of revocation list files.
impl Tls {
    /// Creates an empty revocation list file with a new name.
    ///
    /// # Errors
    /// [`EditError::Exists`]
    pub fn new_revocations(&self, name: &str) -> Result<(), EditError> {
        let mut files = self.files();
        files.check_trust_name(name)?;
        files.revocations.files.insert(name.to_owned(), None);
        Ok(())
    }

    /// Replaces the revocation lists of a file in its transaction.
    ///
    /// # Errors
    /// As [`Tls::set_certificate`].
    pub fn set_revocations(&self, name: &str, payload: &[u8]) -> Result<Draft, EditError> {
        let mut files = self.files();
        set(&mut files.revocations, name, |_| {
            let parsed = Revocations::parse(payload, Path::new(name));
            parsed.map_err(|error| EditError::Wrong(error.to_string()))
        })
    }

    /// As [`Tls::commit_authorities`].
    ///
    /// # Errors
    /// As [`Tls::commit_certificate`].
    pub fn commit_revocations(&self, name: &str) -> Result<usize, EditError> {
        let changed = Dependency::Revocations(name);
        self.commit_trust(name, |files| &mut files.revocations, changed)
    }

    /// As [`Tls::abort_certificate`].
    ///
    /// # Errors
    /// As [`Tls::abort_certificate`].
    pub fn abort_revocations(&self, name: &str) -> Result<(), EditError> {
        abort(&mut self.files().revocations, name)
    }

    /// As [`Tls::delete_certificate`].
    ///
    /// # Errors
    /// As [`Tls::delete_certificate`].
    pub fn delete_revocations(&self, name: &str) -> Result<(), EditError> {
        let mut files = self.files();
        let is_used = files.uses(Dependency::Revocations(name)) > 0;
        let is_other = files.authorities.files.contains_key(name);
        delete(&mut files.revocations, name, is_used, is_other)
    }
}

impl Tls {
    /// Ends the transaction of a file of one of these kinds.
    fn commit_trust<T: Clone>(
        &self,
        name: &str,
        kind: fn(&mut Files) -> &mut Kind<Option<T>>,
        changed: Dependency<'_>,
    ) -> Result<usize, EditError> {
        let mut files = self.files();
        let files = &mut *files;
        kind(files).check_ongoing(name)?;
        let draft = kind(files).draft.clone();
        let (_, new) = draft.ok_or(EditError::NoTransaction)?;
        let before = kind(files).files.insert(name.to_owned(), new);
        let rebuilt = self.rebuild(files, changed);
        end(kind(files), name, before, rebuilt)
    }
}

impl Files {
    /// Checks that no file of the other kind has the name of this authority or revocation list
    /// file.
    fn check_trust_name(&self, name: &str) -> Result<(), EditError> {
        let is_known =
            self.authorities.files.contains_key(name) || self.revocations.files.contains_key(name);
        if is_known {
            Err(EditError::Exists)
        } else {
            Ok(())
        }
    }
}

/// Changes a file in its transaction.
fn set<T>(
    kind: &mut Kind<Option<T>>,
    name: &str,
    change: impl FnOnce(Option<&T>) -> Result<T, EditError>,
) -> Result<Draft, EditError> {
    kind.check_free(name)?;
    let (before, is_new) = match kind.draft_of(name) {
        Some(draft) => (draft, false),
        None => (kind.files.get(name).ok_or(EditError::Unknown)?, true),
    };
    let new = change(before.as_ref())?;
    let name = name.to_owned();
    kind.draft = Some((name.clone(), Some(new)));
    Ok(Draft { name, is_new })
}

fn delete<T>(
    kind: &mut Kind<T>,
    name: &str,
    is_used: bool,
    is_other: bool,
) -> Result<(), EditError> {
    if kind.draft_of(name).is_some() {
        return Err(EditError::Ongoing(name.to_owned()));
    }
    match (kind.files.contains_key(name), is_other) {
        (false, true) => Err(EditError::OtherKind),
        (false, false) => Err(EditError::Unknown),
        (true, _) if is_used => Err(EditError::InUse),
        (true, _) => {
            kind.files.remove(name);
            Ok(())
        }
    }
}
