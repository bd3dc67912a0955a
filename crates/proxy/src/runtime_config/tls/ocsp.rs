//! The stapled status of certificates (RFC 6960).

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tls::{CertId, CertStatus, Material, OCSP_SKEW_S, OcspResponse};

use super::Tls;
use super::files::{Dependency, EditError, Stored};

/// Decodes base64 with line breaks.
///
/// # Errors
/// The payload is not base64; the message for the user.
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

/// The identifier of the certificate that a response is for, checked at `now_s` after the UNIX
/// epoch.
///
/// # Errors
/// The response is invalid; the message for the user.
pub(super) fn check(response: &[u8], now_s: u64) -> Result<CertId, String> {
    let response = OcspResponse::parse(response).map_err(|error| error.to_string())?;
    if response.status == CertStatus::Unknown {
        return Err("OCSP single response: certificate status is unknown".to_owned());
    }
    let (Some(next_s), Some(expires_s)) = (response.next_update_s, response.expires_s()) else {
        return Err("OCSP single response: missing nextupdate".to_owned());
    };
    if response.this_update_s > now_s + OCSP_SKEW_S {
        return Err("OCSP single response: not yet valid.".to_owned());
    }
    if next_s + OCSP_SKEW_S < now_s {
        return Err("OCSP single response: no longer valid.".to_owned());
    }
    if expires_s < now_s {
        return Err(format!(
            "OCSP single response: no longer valid. Must be valid during at least {OCSP_SKEW_S}s."
        ));
    }
    Ok(response.id)
}

/// Checks the status that was read with a certificate, at `now_s` after the UNIX epoch.
///
/// # Errors
/// It is invalid, or for another certificate; the message for the user.
pub(super) fn check_own(material: &Material, now_s: u64) -> Result<(), String> {
    let Some(response) = material.ocsp() else {
        return Ok(());
    };
    let id = check(response, now_s)?;
    match CertId::of(material) {
        Some(own) if own != id => Err(
            "OCSP single response: Certificate ID does not match certificate and issuer".to_owned(),
        ),
        _ => Ok(()),
    }
}

/// A certificate whose status can be requested: its issuer is known, and it names a responder.
#[derive(Clone, Debug)]
pub struct OcspSubject {
    /// Its identifier for responders.
    pub id: CertId,
    /// Its name; the first one if several certificates have this identifier.
    pub name: String,
    /// The URI of its responder.
    pub uri: String,
    /// The issuer's certificate, DER.
    pub issuer: Vec<u8>,
    /// A status is stapled.
    pub has_response: bool,
    /// When that status is not stapled any more, seconds since the UNIX epoch.
    pub expires_s: Option<u64>,
    /// It is used, and its status is to be updated automatically.
    pub is_automatic: bool,
}

impl OcspSubject {
    fn new(stored: &Stored, name: &str, is_automatic: bool) -> Option<OcspSubject> {
        let material = &stored.material;
        let response = material.ocsp().map(OcspResponse::parse);
        let expires_s = response.as_ref().and_then(|response| match response {
            Ok(response) => response.expires_s(),
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
    /// The certificates whose status can be requested, one for each identifier: those of bind lines
    /// first, in the order of the lines.
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

    /// The certificate with this name, as in [`Tls::ocsp_subjects`].
    ///
    /// # Errors
    /// The certificate does not exist, or its status cannot be requested.
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
