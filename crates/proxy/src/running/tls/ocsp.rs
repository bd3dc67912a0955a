//! The status of certificates that is stapled to them (RFC 6960).

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tls::{CertId, OcspResponse};

use super::Tls;
use super::files::{Dependency, EditError, Stored};

/// How far clocks may be apart, seconds.
const SKEW_S: u64 = 300;

/// Reads base64 with line breaks.
///
/// # Errors
/// It is none, in words.
pub(super) fn decode(payload: &[u8]) -> Result<Vec<u8>, String> {
    let text: Vec<u8> = payload
        .iter()
        .copied()
        .filter(|byte| !byte.is_ascii_whitespace())
        .collect();
    STANDARD
        .decode(text)
        .map_err(|_| "Error reading OCSP response in base64 format".to_owned())
}

/// The certificate that a response is for, `now_s` after the UNIX epoch.
///
/// # Errors
/// It is no good response, in words.
pub(super) fn check(response: &[u8], now_s: u64) -> Result<CertId, String> {
    let response = OcspResponse::parse(response).map_err(|error| error.to_string())?;
    if response.this_update_s > now_s + SKEW_S {
        return Err("OCSP single response: not yet valid.".to_owned());
    }
    match response.next_update_s {
        Some(next) if next + SKEW_S < now_s => {
            Err("OCSP single response: no longer valid.".to_owned())
        }
        _ => Ok(response.id),
    }
}

/// A certificate whose status can be asked for: its issuer is known, and it names a responder.
#[derive(Clone, Debug)]
pub struct OcspSubject {
    /// What names it to responders.
    pub id: CertId,
    /// Its name; of several with this identifier, the first one's.
    pub name: String,
    /// Its responder.
    pub uri: String,
    /// The issuer's certificate, DER.
    pub issuer: Vec<u8>,
    /// A status is stapled.
    pub has_response: bool,
    /// When that one expires, seconds after the UNIX epoch.
    pub expires_s: Option<u64>,
    /// It is used, and said to be updated.
    pub is_automatic: bool,
}

impl OcspSubject {
    fn new(stored: &Stored, name: &str, is_automatic: bool) -> Option<OcspSubject> {
        let material = &stored.material;
        let response = material.ocsp().map(OcspResponse::parse);
        let expires_s = response.as_ref().and_then(|response| match response {
            Ok(response) => response.next_update_s,
            Err(_) => None,
        });
        Some(OcspSubject {
            uri: sample::ocsp_uri(material.certificate()?)?,
            id: CertId::of(material)?,
            name: name.to_owned(),
            issuer: material.issuer()?.to_vec(),
            has_response: response.is_some(),
            expires_s,
            is_automatic,
        })
    }
}

impl Tls {
    /// The certificates whose status can be asked for, one for each identifier: those of bind lines first, in the order of the lines.
    #[must_use]
    pub fn ocsp_subjects(&self) -> Vec<OcspSubject> {
        let files = self.files();
        let recipes = files.binds.iter().flatten().flatten();
        let used = recipes.flat_map(|recipe| recipe.words.certificates.iter());
        let used = used.map(|source| source.name.as_str());
        let mut names = BTreeSet::new();
        let used: Vec<&str> = used.filter(|name| names.insert(*name)).collect();
        let unused = files.certificates.files.keys().map(String::as_str);
        let unused: Vec<&str> = unused.filter(|name| !names.contains(name)).collect();
        let mut known = BTreeSet::new();
        let mut subjects = Vec::new();
        let used = used.into_iter().map(|name| (name, true));
        for (name, is_used) in used.chain(unused.into_iter().map(|name| (name, false))) {
            let subject = files.certificates.files.get(name).and_then(|stored| {
                let updates = files.global.ocsp.are_on(stored.source.ocsp_update);
                OcspSubject::new(stored, name, is_used && updates)
            });
            if let Some(subject) = subject
                && known.insert(subject.id.clone())
            {
                subjects.push(subject);
            }
        }
        subjects
    }

    /// The certificate of a name, as in [`Tls::ocsp_subjects`].
    ///
    /// # Errors
    /// There is no such certificate, or its status cannot be asked for.
    pub fn ocsp_subject(&self, name: &str) -> Result<OcspSubject, EditError> {
        let files = self.files();
        let stored = files.certificates.files.get(name);
        let stored = stored.ok_or(EditError::Unknown)?;
        let is_automatic = files.global.ocsp.are_on(stored.source.ocsp_update)
            && files.uses(Dependency::Certificate(name)) > 0;
        let subject = OcspSubject::new(stored, name, is_automatic);
        subject.ok_or_else(|| EditError::Wrong("its status cannot be asked for".to_owned()))
    }
}
