//! What the runtime interface changes of TLS (management guide §9.3): files in transactions, and lines of lists.

use std::path::Path;
use std::sync::Arc;

use config::build::tls::added::AddedLine;
use config::model::{CertificateSource, ListLine};
use tls::{Authorities, IdentityError, Revocations};

use super::acceptors::BindAcceptors;
use super::build::Before;
use super::files::{Dependency, EditError, Files, Kind, Stored};
use super::{Tls, ocsp};

/// A transaction that a change went into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// The file.
    pub name: String,
    /// It began with this change.
    pub is_new: bool,
}

/// The part of a certificate that a payload replaces, by the extension of the name that was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// The certificate, its chain and its key.
    Pem,
    /// The key.
    Key,
    /// The status that is stapled, DER in base64.
    Ocsp,
    /// The issuer's certificate.
    Issuer,
    /// Timestamps, which are not sent.
    Sctl,
}

impl Part {
    /// The part that a name is for, and the certificate's name.
    fn of(name: &str) -> (Part, &str) {
        let Some((stem, extension)) = name.rsplit_once('.') else {
            return (Part::Pem, name);
        };
        match extension {
            "key" => (Part::Key, stem),
            "ocsp" => (Part::Ocsp, stem),
            "issuer" => (Part::Issuer, stem),
            "sctl" => (Part::Sctl, stem),
            _ => (Part::Pem, name),
        }
    }
}

/// The certificate's name in a name that may be of one of its parts (`x.pem.key`).
#[must_use]
pub fn certificate_name(name: &str) -> &str {
    Part::of(name).1
}

/// Certificates.
impl Tls {
    /// Makes an empty certificate of a new name.
    ///
    /// # Errors
    /// [`EditError::Exists`]
    pub fn new_certificate(&self, name: &str) -> Result<(), EditError> {
        let mut files = self.files();
        if files.certificates.files.contains_key(name) {
            return Err(EditError::Exists);
        }
        let source = CertificateSource {
            name: name.to_owned(),
            path: name.into(),
            ..CertificateSource::default()
        };
        let stored = Stored {
            source: Arc::new(source),
            ..Stored::default()
        };
        files.certificates.files.insert(name.to_owned(), stored);
        Ok(())
    }

    /// Replaces a part of a certificate in its transaction, which begins where there is none. The name's extension says which part.
    ///
    /// # Errors
    /// Another transaction is under way, there is no such certificate, or the payload is none.
    pub fn set_certificate(&self, name: &str, payload: &[u8]) -> Result<Draft, EditError> {
        let mut files = self.files();
        let files = &mut *files;
        let (part, stem) = Part::of(name);
        let mut name = stem.to_owned();
        let with_crt =
            (part != Part::Pem && files.global.takes_off_crt).then(|| format!("{stem}.crt"));
        let kind = &files.certificates;
        let is_known = |name: &str| match &kind.draft {
            Some((ongoing, _)) => ongoing == name,
            None => kind.files.contains_key(name),
        };
        if !is_known(&name)
            && let Some(with_crt) = with_crt
            && is_known(&with_crt)
        {
            name = with_crt;
        }
        kind.check_free(&name)?;
        let (before, is_new) = match kind.draft_of(&name) {
            Some(draft) => (draft, false),
            None => (kind.files.get(&name).ok_or(EditError::Unknown)?, true),
        };
        let mut stored = before.clone();
        set_part(&mut stored, part, payload, &name)?;
        files.certificates.draft = Some((name.clone(), stored));
        Ok(Draft { name, is_new })
    }

    /// Ends a transaction: what it made is served from now on. How many lines and servers use it.
    ///
    /// # Errors
    /// There is no such transaction, or what it made cannot be served: then the transaction goes on.
    pub fn commit_certificate(&self, name: &str) -> Result<usize, EditError> {
        let mut files = self.files();
        let files = &mut *files;
        files.certificates.check_ongoing(name)?;
        let Some((name, mut stored)) = files.certificates.draft.clone() else {
            return Err(EditError::NoTransaction);
        };
        let is_used = files.uses(Dependency::Certificate(&name)) > 0;
        match stored.prepare(&files.chains, &files.global) {
            Ok(()) => {}
            // Tokens need no key.
            Err(IdentityError::NoKey(_)) if !is_used => {}
            Err(error) => return Err(EditError::Wrong(error.to_string())),
        }
        let before = files.certificates.files.insert(name.clone(), stored);
        let rebuilt = self.rebuild(files, Dependency::Certificate(&name));
        let ended = end(&mut files.certificates, &name, before, rebuilt);
        let stored = files.certificates.files.get(&name);
        if let Some(stored) = stored.filter(|stored| stored.is_for_jwt) {
            stored.publish(&name);
        }
        ended
    }

    /// Has tokens verified by a certificate, or not any more.
    ///
    /// # Errors
    /// [`EditError::Unknown`]
    pub fn set_for_jwt(&self, name: &str, is_on: bool) -> Result<(), EditError> {
        let mut files = self.files();
        let stored = files.certificates.files.get_mut(name);
        let stored = stored.ok_or(EditError::Unknown)?;
        stored.is_for_jwt = is_on;
        stored.publish(name);
        Ok(())
    }

    /// Forgets a transaction.
    ///
    /// # Errors
    /// There is no such transaction.
    pub fn abort_certificate(&self, name: &str) -> Result<(), EditError> {
        abort(&mut self.files().certificates, name)
    }

    /// Forgets a certificate that nobody uses.
    ///
    /// # Errors
    /// A transaction changes it, there is none, or it is used.
    pub fn delete_certificate(&self, name: &str) -> Result<(), EditError> {
        let mut files = self.files();
        if files.certificates.draft_of(name).is_some() {
            return Err(EditError::Ongoing(name.to_owned()));
        }
        match files.certificates.files.get(name) {
            None => return Err(EditError::Unknown),
            Some(stored) if stored.is_for_jwt => return Err(EditError::UsedForJwt),
            Some(_) => {}
        }
        if files.uses(Dependency::Certificate(name)) > 0 {
            return Err(EditError::InUse);
        }
        files.certificates.files.remove(name);
        Ok(())
    }

    /// Replaces the status that is stapled to certificates, which says itself for which, in DER. How many certificates have it now.
    ///
    /// # Errors
    /// It is none, or for no certificate that is known.
    pub fn set_ocsp(&self, response: &[u8], now_s: u64) -> Result<usize, EditError> {
        let mut files = self.files();
        let files = &mut *files;
        let id = ocsp::check(response, now_s).map_err(EditError::Wrong)?;
        let of = |stored: &Stored| tls::CertId::of(&stored.material).is_some_and(|own| own == id);
        let known = files.certificates.files.iter();
        let names: Vec<String> = known
            .filter(|(_, stored)| of(stored))
            .map(|(name, _)| name.clone())
            .collect();
        for name in &names {
            let Some(stored) = files.certificates.files.get_mut(name) else {
                continue;
            };
            stored.material.set_ocsp(response.to_vec());
            if stored.prepare(&files.chains, &files.global).is_ok() {
                self.rebuild(files, Dependency::Certificate(name))
                    .map_err(EditError::Wrong)?;
            }
        }
        match names.len() {
            0 => Err(EditError::Unknown),
            count => Ok(count),
        }
    }
}

fn set_part(stored: &mut Stored, part: Part, payload: &[u8], name: &str) -> Result<(), EditError> {
    let path = Path::new(name);
    let material = &mut stored.material;
    match part {
        Part::Pem => {
            stored.chain_file = None;
            material.set_pem(payload, path)
        }
        Part::Key => material.set_key(payload, path),
        Part::Issuer => material.set_issuer(payload, path),
        Part::Sctl => Ok(()),
        Part::Ocsp => {
            let response = ocsp::decode(payload).map_err(EditError::Wrong)?;
            material.set_ocsp(response);
            Ok(())
        }
    }
    .map_err(|error| EditError::Wrong(error.to_string()))
}

/// Authorities.
impl Tls {
    /// Makes an empty file of authorities of a new name.
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

    /// As [`Tls::commit_certificate`]. Clients that an authority vouched for which is gone do not resume their sessions.
    ///
    /// # Errors
    /// As [`Tls::commit_certificate`].
    pub fn commit_authorities(&self, name: &str) -> Result<usize, EditError> {
        let mut files = self.files();
        let files = &mut *files;
        files.authorities.check_ongoing(name)?;
        let draft = files.authorities.draft.clone().map(|(_, draft)| draft);
        let new = draft.ok_or(EditError::NoTransaction)?;
        let before = files.authorities.files.insert(name.to_owned(), new);
        let rebuilt = self.rebuild(files, Dependency::Authorities(name));
        end(&mut files.authorities, name, before, rebuilt)
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

/// Lists of revoked certificates.
impl Tls {
    /// Makes an empty file of lists of a new name.
    ///
    /// # Errors
    /// [`EditError::Exists`]
    pub fn new_revocations(&self, name: &str) -> Result<(), EditError> {
        let mut files = self.files();
        files.check_trust_name(name)?;
        files.revocations.files.insert(name.to_owned(), None);
        Ok(())
    }

    /// Replaces the lists of a file in its transaction.
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
        let mut files = self.files();
        let files = &mut *files;
        files.revocations.check_ongoing(name)?;
        let draft = files.revocations.draft.clone().map(|(_, draft)| draft);
        let new = draft.ok_or(EditError::NoTransaction)?;
        let before = files.revocations.files.insert(name.to_owned(), new);
        let rebuilt = self.rebuild(files, Dependency::Revocations(name));
        end(&mut files.revocations, name, before, rebuilt)
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

/// Lists of certificates.
impl Tls {
    /// Adds a line to a list. How many bind lines use it, and the certificate's name.
    ///
    /// # Errors
    /// What is wrong with it, in words. Nothing changes then.
    pub fn add_to_list(&self, list: &str, line: &str) -> Result<(String, usize), String> {
        let mut files = self.files();
        let files = &mut *files;
        let Some(known) = files.lists.get(list) else {
            return Err(format!("crt-list '{list}' does not exist!"));
        };
        let line = AddedLine::parse(line, &files.global)?;
        let Some(line) = line else {
            return Err(
                "'add ssl crtlist' should contain the certificate name in the payload".to_owned(),
            );
        };
        let name = line.source.name.clone();
        match files.certificates.files.get(&name) {
            None => return Err(format!("certificate '{name}' does not exist!")),
            Some(stored) if stored.identity.is_none() => {
                return Err(format!("certificate '{name}' is empty!"));
            }
            Some(stored) => {
                let is_used = files.uses(Dependency::Certificate(&name)) > 0;
                let updates = |update: Option<bool>| update.unwrap_or(files.global.updates_ocsp);
                let (before, now) = (stored.source.ocsp_update, line.source.ocsp_update);
                if is_used && updates(before) != updates(now) {
                    return Err(format!(
                        "'{name}' is already instantiated with incompatible parameters:\n {}",
                        different_update(updates(now))
                    ));
                }
            }
        }
        if known.is_directory {
            if known.entries.iter().any(|entry| entry.certificate == name) {
                return Err("file already exists in this directory!".to_owned());
            }
            if !line.entry.options.is_empty() || !line.entry.filters.is_empty() {
                return Err(
                    "this is a directory, SSL configuration, crt-store keywords and \
                     filters are not allowed"
                        .to_owned(),
                );
            }
        }
        let last = known.entries.iter().map(|entry| entry.line).max();
        let number = match known.is_directory {
            true => 0,
            false => last.unwrap_or(0) + 1,
        };
        let place = ListLine {
            list: list.into(),
            line: number,
        };
        let before = std::mem::take(&mut files.binds);
        let mut binds = before.clone();
        let mut count = 0;
        for recipe in binds.iter_mut().flatten().flatten() {
            if recipe.uses(Dependency::List(list)) == 0 {
                continue;
            }
            let options = line.options_over(&recipe.words.options);
            let options = options.and_then(|options| {
                if let Some(options) = &options {
                    files.check(options)?;
                }
                Ok(options)
            });
            let options = match options {
                Ok(options) => options,
                Err(why) => {
                    files.binds = before;
                    return Err(why);
                }
            };
            recipe.words.certificates.push(Arc::new(CertificateSource {
                options: options.map(Box::new),
                list: Some(place.clone()),
                ..line.source.clone()
            }));
            count += 1;
        }
        files.binds = binds;
        if let Err(why) = self.rebuild(files, Dependency::List(list)) {
            files.binds = before;
            return Err(why);
        }
        // What an unused certificate is used with counts from now on.
        if let Some(stored) = files.certificates.files.get_mut(&name) {
            Arc::make_mut(&mut stored.source).ocsp_update = line.source.ocsp_update;
        }
        if let Some(known) = files.lists.get_mut(list) {
            let mut entry = line.entry;
            entry.line = number;
            known.entries.push(entry);
        }
        Ok((name, count))
    }

    /// Takes a line out of a list: that of a certificate, by its number where there are several.
    ///
    /// # Errors
    /// What is wrong with it, in words. Nothing changes then.
    pub fn delete_from_list(
        &self,
        list: &str,
        certificate: &str,
        line: Option<u32>,
    ) -> Result<(), String> {
        let mut files = self.files();
        let files = &mut *files;
        let Some(known) = files.lists.get(list) else {
            return Err(format!("crt-list '{list}' does not exist!"));
        };
        match files.certificates.files.get(certificate) {
            None => return Err(format!("certificate '{certificate}' does not exist!")),
            Some(stored) if stored.material.certificate().is_none() => {
                return Err(format!("certificate '{certificate}' is empty!"));
            }
            Some(_) => {}
        }
        let lines = known.entries.iter();
        let lines: Vec<u32> = lines
            .filter(|entry| entry.certificate == certificate)
            .map(|entry| entry.line)
            .collect();
        let all: Vec<_> = lines.iter().map(u32::to_string).collect();
        let all = all.join(", ");
        let found = match line {
            None => lines.first(),
            Some(line) => lines.iter().find(|each| **each == line),
        };
        let found = match found {
            None if lines.is_empty() => {
                return Err(format!(
                    "certificate '{certificate}' can't be found in crt-list '{list}'!"
                ));
            }
            None => {
                return Err(format!(
                    "found a certificate '{certificate}' but the line number is incorrect, please \
                     specify a correct line number preceded by colons ({all})!"
                ));
            }
            Some(_) if line.is_none() && lines.len() > 1 => {
                return Err(format!(
                    "found the certificate '{certificate}' in several entries, please specify a \
                     line number preceded by colons ({all})!"
                ));
            }
            Some(found) => *found,
        };
        let is_it = |source: &CertificateSource| {
            let place = source.list.as_ref();
            source.name == certificate
                && place.is_some_and(|place| &*place.list == list && place.line == found)
        };
        let recipes = files.binds.iter().flatten().flatten();
        let as_default = recipes.filter(|recipe| {
            let mut certificates = recipe.words.certificates.iter();
            !recipe.words.strict_sni && certificates.any(|each| each.is_default && is_it(each))
        });
        let origins: String = as_default
            .map(|recipe| format!("\t- {}\n", recipe.origin))
            .collect();
        if !origins.is_empty() {
            return Err(format!(
                "certificate '{certificate}' cannot be deleted, it is used as default certificate \
                 by the following frontends:\n{origins}"
            ));
        }
        let before = files.binds.clone();
        for recipe in files.binds.iter_mut().flatten().flatten() {
            recipe.words.certificates.retain(|each| !is_it(each));
        }
        if let Err(why) = self.rebuild(files, Dependency::List(list)) {
            files.binds = before;
            return Err(why);
        }
        if let Some(known) = files.lists.get_mut(list) {
            let entries = &mut known.entries;
            entries.retain(|entry| entry.certificate != certificate || entry.line != found);
        }
        Ok(())
    }
}

impl Tls {
    /// Makes anew what depends on a file, and has it served. How many lines and servers those are; nothing is replaced where one
    /// of them cannot be made.
    fn rebuild(&self, files: &Files, changed: Dependency<'_>) -> Result<usize, String> {
        let mut binds = Vec::new();
        let mut servers = Vec::new();
        let mut count = 0;
        for (proxy, (recipes, current)) in files.binds.iter().zip(&self.binds).enumerate() {
            for (recipe, current) in recipes.iter().zip(current) {
                let (Some(recipe), Some(current)) = (recipe, current) else {
                    continue;
                };
                let uses = recipe.uses(changed);
                // A line verifies by its own options also where every certificate has others.
                if uses == 0 && !changed.is_of(&recipe.words.options) {
                    continue;
                }
                count += uses;
                let acceptors: Arc<BindAcceptors> = current.load_full();
                let before = Before {
                    acceptors: &acceptors,
                    changed,
                };
                binds.push((current, files.build_bind(recipe, Some(before))?));
            }
            let recipes = files.servers.get(proxy).into_iter().flatten().enumerate();
            for (place, recipe) in recipes {
                let Some(recipe) = recipe else {
                    continue;
                };
                if recipe.uses(changed) {
                    count += 1;
                    servers.push((proxy, place, files.build_server(recipe)?));
                }
            }
        }
        for (current, new) in binds {
            current.store(Arc::new(new));
        }
        for (proxy, place, connector) in servers {
            self.put_server(proxy, place, Some(Arc::new(connector)));
        }
        Ok(count)
    }
}

/// Why a certificate cannot be used with two words about the update of its status.
pub(super) fn different_update(is_on: bool) -> String {
    let on = |is_on| if is_on { "on" } else { "off" };
    format!(
        "- different parameter 'ocsp-update' : previously '{}' vs '{}'",
        on(!is_on),
        on(is_on)
    )
}

impl Files {
    /// Authorities and lists of revoked certificates have different names.
    fn check_trust_name(&self, name: &str) -> Result<(), EditError> {
        let is_known =
            self.authorities.files.contains_key(name) || self.revocations.files.contains_key(name);
        match is_known {
            true => Err(EditError::Exists),
            false => Ok(()),
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

/// Ends a transaction whose file was replaced: where what depends on it could not be made, the file is as it was.
fn end<T>(
    kind: &mut Kind<T>,
    name: &str,
    before: Option<T>,
    rebuilt: Result<usize, String>,
) -> Result<usize, EditError> {
    match rebuilt {
        Ok(count) => {
            kind.draft = None;
            Ok(count)
        }
        Err(why) => {
            match before {
                Some(before) => kind.files.insert(name.to_owned(), before),
                None => kind.files.remove(name),
            };
            Err(EditError::Wrong(why))
        }
    }
}

fn abort<T>(kind: &mut Kind<T>, name: &str) -> Result<(), EditError> {
    kind.check_ongoing(name)?;
    kind.draft = None;
    Ok(())
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
