//! Changes of TLS by the runtime interface (management guide §9.3): files are changed in
//! transactions, lists line by line. The transactions of certificates are in this file.

mod lists;
mod trust;

use std::path::Path;
use std::sync::Arc;

use config::model::CertificateSource;
use tls::IdentityError;

use super::acceptors::BindAcceptors;
use super::build::Before;
use super::files::{Dependency, EditError, Files, Kind, Stored};
use super::{Tls, ocsp};
pub(super) use lists::different_update;

/// The transaction of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// The name of the file.
    pub name: String,
    /// The transaction began with this change.
    pub is_new: bool,
}

/// The part of a certificate that a payload replaces, chosen by the extension of the given name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// The certificate, its chain and its key.
    Pem,
    /// The key.
    Key,
    /// The stapled status, DER in base64.
    Ocsp,
    /// The issuer's certificate.
    Issuer,
    /// Timestamps, which are not sent.
    Sctl,
}

impl Part {
    /// The part that a name refers to, and the certificate's name.
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

/// The certificate's name for a name that may refer to one of its parts (`x.pem.key`).
#[must_use]
pub fn certificate_name(name: &str) -> &str {
    Part::of(name).1
}

/// Changes of certificates.
impl Tls {
    /// Creates an empty certificate with a new name.
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

    /// Replaces a part of a certificate in its transaction, and begins one if there is none. The
    /// name's extension chooses the part.
    ///
    /// # Errors
    /// Another transaction is open, the certificate does not exist, or the payload is invalid.
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

    /// Ends a transaction: its certificate is used from now on. Returns how many lines and servers
    /// use it.
    ///
    /// # Errors
    /// There is no such transaction, or its certificate cannot be used: then the transaction stays
    /// open.
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
            // A certificate for tokens needs no private key.
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

    /// Sets whether a certificate verifies tokens.
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

    /// Discards a transaction.
    ///
    /// # Errors
    /// There is no such transaction.
    pub fn abort_certificate(&self, name: &str) -> Result<(), EditError> {
        abort(&mut self.files().certificates, name)
    }

    /// Deletes an unused certificate.
    ///
    /// # Errors
    /// The certificate does not exist, is used, or is being changed by a transaction.
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

    /// Replaces the stapled status of certificates; the DER response names the certificate. Returns
    /// how many certificates have it now.
    ///
    /// # Errors
    /// The response is invalid, or not for a known certificate.
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

impl Tls {
    /// Rebuilds the acceptors and connectors that depend on a file and puts them into use. Returns
    /// the number of lines and servers. Nothing is replaced if one of them cannot be built.
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
                // The line's own options may be used for verification even if every certificate has
                // others.
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

/// Ends a transaction whose file was replaced. If a dependent acceptor or connector could not be
/// built, the file is restored.
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
