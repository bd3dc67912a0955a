//! TLS state as shown by the runtime interface.

use std::path::PathBuf;
use std::sync::Arc;

use config::model::{CertificateSource, CrtListEntry, SniFilter};
use tls::{Authorities, KeyKind, Material, Revocations, TicketKeys};

use super::Tls;
use super::files::{BindRecipe, Dependency, Files, Kind, Stored};

/// The state of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It has no content yet.
    Empty,
    /// It is the copy in a transaction.
    Uncommitted,
    /// Tokens are verified with it.
    UsedForJwt,
    /// It is not used.
    Unused,
    /// Bind lines or servers use it.
    Used,
}

/// A certificate.
#[derive(Clone, Debug)]
pub struct CertificateView {
    /// The files that it was read from.
    pub source: Arc<CertificateSource>,
    /// Its parts.
    pub material: Material,
    /// The file that completed its chain.
    pub chain_file: Option<PathBuf>,
    /// Its state.
    pub status: Status,
    /// Tokens are verified with it.
    pub is_for_jwt: bool,
}

/// An authority file or a revocation list file.
#[derive(Clone, Debug)]
pub struct TrustView<T> {
    /// Its state.
    pub status: Status,
    /// Its content; none where it is empty.
    pub content: Option<T>,
}

/// A file, and the number of its certificates.
pub type Counted = (String, usize);

/// A certificate list.
#[derive(Clone, Debug)]
pub struct ListView {
    /// Its lines, and the `ocsp-update` setting of their certificates.
    pub entries: Vec<(CrtListEntry, Option<bool>)>,
}

/// A name that clients may request, and the certificate for it.
#[derive(Clone, Debug)]
pub struct NameView {
    /// The frontend.
    pub frontend: String,
    /// `file:line` of the bind line.
    pub origin: String,
    /// The name; it may begin with `*`.
    pub name: String,
    /// The names that a wildcard does not cover.
    pub except: Vec<String>,
    /// The kind of its key.
    pub kind: KeyKind,
    /// The certificate's name.
    pub certificate: String,
    /// The certificate, DER.
    pub der: Vec<u8>,
}

/// The names of the files of one kind.
#[derive(Debug)]
pub struct FileNames {
    /// The file that the transaction changes.
    pub draft: Option<String>,
    /// All files, by name.
    pub all: Vec<String>,
}

fn names<T>(kind: &Kind<T>) -> FileNames {
    FileNames {
        draft: kind.draft.as_ref().map(|(name, _)| name.clone()),
        all: kind.files.keys().cloned().collect(),
    }
}

impl Tls {
    /// The certificate in the transaction, and all certificates by name.
    #[must_use]
    pub fn certificate_names(&self) -> FileNames {
        names(&self.files().certificates)
    }

    /// A certificate, or its copy in the transaction.
    #[must_use]
    pub fn certificate(&self, name: &str, is_draft: bool) -> Option<CertificateView> {
        let files = self.files();
        let stored = if is_draft {
            files.certificates.draft_of(name)?
        } else {
            files.certificates.files.get(name)?
        };
        Some(certificate_view(&files, name, stored, is_draft))
    }

    /// Every certificate.
    #[must_use]
    pub fn certificates(&self) -> Vec<CertificateView> {
        let files = self.files();
        let all = files.certificates.files.iter();
        all.map(|(name, stored)| certificate_view(&files, name, stored, false))
            .collect()
    }

    /// The authority file in the transaction, and all authority files, each with the number of its
    /// certificates.
    #[must_use]
    pub fn authority_counts(&self) -> (Option<Counted>, Vec<Counted>) {
        let files = self.files();
        let count = |found: &Option<Authorities>| {
            found.as_ref().map_or(0, |found| found.certificates().len())
        };
        let draft = files.authorities.draft.as_ref();
        let all = files.authorities.files.iter();
        (
            draft.map(|(name, found)| (name.clone(), count(found))),
            all.map(|(name, found)| (name.clone(), count(found)))
                .collect(),
        )
    }

    /// An authority file, or its copy in the transaction.
    #[must_use]
    pub fn authorities(&self, name: &str, is_draft: bool) -> Option<TrustView<Authorities>> {
        let files = self.files();
        let dependency = Dependency::Authorities(name);
        trust_view(&files, &files.authorities, dependency, (name, is_draft))
    }

    /// The revocation list file in the transaction, and all revocation list files.
    #[must_use]
    pub fn revocation_names(&self) -> FileNames {
        names(&self.files().revocations)
    }

    /// A revocation list file, or its copy in the transaction.
    #[must_use]
    pub fn revocations(&self, name: &str, is_draft: bool) -> Option<TrustView<Revocations>> {
        let files = self.files();
        let dependency = Dependency::Revocations(name);
        trust_view(&files, &files.revocations, dependency, (name, is_draft))
    }

    /// The ticket key files: their identifiers, names and keys.
    #[must_use]
    pub fn ticket_keys(&self) -> Vec<(usize, PathBuf, TicketKeys)> {
        let files = self.files();
        let all = files.ticket_keys.iter().enumerate();
        all.map(|(id, (file, keys))| (id, file.clone(), keys.clone()))
            .collect()
    }

    /// The names of the certificate lists.
    #[must_use]
    pub fn list_names(&self) -> Vec<String> {
        self.files().lists.keys().cloned().collect()
    }

    /// A certificate list.
    #[must_use]
    pub fn list(&self, name: &str) -> Option<ListView> {
        let files = self.files();
        let list = files.lists.get(name)?;
        let update = |entry: &CrtListEntry| {
            let stored = files.certificates.files.get(&entry.certificate)?;
            stored.source.ocsp_update
        };
        let entries = list.entries.iter();
        Some(ListView {
            entries: entries
                .map(|entry| (entry.clone(), update(entry)))
                .collect(),
        })
    }

    /// The names that clients of a frontend may request, or those of all frontends: full names
    /// first, then wildcards.
    #[must_use]
    pub fn server_names(&self, frontend: Option<&str>) -> Vec<NameView> {
        let files = self.files();
        let recipes = files.binds.iter().flatten().flatten();
        let mut all = Vec::new();
        for recipe in recipes {
            if frontend.is_none_or(|frontend| recipe.frontend == frontend) {
                all.extend(names_of(&files, recipe));
            }
        }
        all
    }
}

fn certificate_view(files: &Files, name: &str, stored: &Stored, is_draft: bool) -> CertificateView {
    let status = match stored.material.certificate() {
        None => Status::Empty,
        Some(_) if is_draft => Status::Uncommitted,
        Some(_) if stored.is_for_jwt => Status::UsedForJwt,
        Some(_) if files.uses(Dependency::Certificate(name)) == 0 => Status::Unused,
        Some(_) => Status::Used,
    };
    CertificateView {
        source: stored.source.clone(),
        material: stored.material.clone(),
        chain_file: stored.chain_file.clone(),
        status,
        is_for_jwt: stored.is_for_jwt,
    }
}

fn trust_view<T: Clone>(
    files: &Files,
    kind: &Kind<Option<T>>,
    dependency: Dependency<'_>,
    (name, is_draft): (&str, bool),
) -> Option<TrustView<T>> {
    let content = if is_draft {
        kind.draft_of(name)?
    } else {
        kind.files.get(name)?
    };
    Some(TrustView {
        status: match content {
            None => Status::Empty,
            Some(_) if is_draft => Status::Uncommitted,
            Some(_) if files.uses(dependency) == 0 => Status::Unused,
            Some(_) => Status::Used,
        },
        content: content.clone(),
    })
}

fn names_of(files: &Files, recipe: &BindRecipe) -> Vec<NameView> {
    let mut exact = Vec::new();
    let mut wildcards = Vec::new();
    for source in &recipe.words.certificates {
        let stored = files.certificates.files.get(&source.name);
        let Some((stored, identity)) =
            stored.and_then(|stored| Some((stored, stored.identity.as_ref()?)))
        else {
            continue;
        };
        let view = |name: String, except: &[String]| NameView {
            frontend: recipe.frontend.clone(),
            origin: recipe.origin.clone(),
            name,
            except: except.to_vec(),
            kind: identity.key_kind(),
            certificate: source.name.clone(),
            der: stored.material.certificate().unwrap_or_default().to_vec(),
        };
        let mut except = Vec::new();
        let mut names = Vec::new();
        for filter in &source.filters {
            match filter {
                SniFilter::Exact(name) => names.push(name.to_string()),
                SniFilter::Wildcard(end) => names.push(format!("*{end}")),
                SniFilter::Except(name) => except.push(name.to_string()),
            }
        }
        if source.filters.is_empty() {
            names.extend_from_slice(identity.names());
        }
        if source.is_default {
            names.push("*".to_owned());
        }
        for name in names {
            if name.starts_with('*') {
                wildcards.push(view(name, &except))
            } else {
                exact.push(view(name, &[]))
            }
        }
    }
    exact.sort_by(|a, b| a.name.cmp(&b.name));
    wildcards.sort_by(|a, b| a.name.cmp(&b.name));
    exact.extend(wildcards);
    exact
}
