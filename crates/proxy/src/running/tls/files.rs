//! Certificates, authorities, lists of revoked certificates and lists of certificates by their names: what bind lines and servers are
//! made of, and what the runtime interface edits.
//!
//! A change goes into a copy first (a transaction, of which there is one a kind at a time); committed, it replaces what is known by its
//! name. Nothing here is read while traffic runs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use config::model::{BindTls, CertificateSource, CrtList, ServerTls, TlsGlobal, TlsOptions};
use tls::{
    Authorities, CaSigner, CacheUse, Chains, Identity, IdentityError, Material, Revocations,
    TicketKeys,
};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Files {
    pub global: TlsGlobal,
    /// `issuers-chain-path`
    pub chains: Chains,
    pub certificates: Kind<Stored>,
    /// None: made by the runtime interface and not filled yet.
    pub authorities: Kind<Option<Authorities>>,
    pub revocations: Kind<Option<Revocations>>,
    pub lists: BTreeMap<String, CrtList>,
    /// Authorities that sign certificates which are made (`ca-sign-file`), by their files.
    pub signers: BTreeMap<PathBuf, CaSigner>,
    /// Keys of tickets by their files, in the order of their identifiers.
    pub ticket_keys: Vec<(PathBuf, TicketKeys)>,
    /// How often clients asked for sessions without tickets.
    pub cache_use: CacheUse,
    /// By proxy and bind line.
    pub binds: Vec<Vec<Option<BindRecipe>>>,
    /// By proxy and server.
    pub servers: Vec<Vec<Option<ServerRecipe>>>,
}

/// Files of one kind, and the transaction that changes one of them.
#[derive(Debug)]
pub(super) struct Kind<T> {
    pub files: BTreeMap<String, T>,
    /// The name of the file that is changed, and what becomes of it.
    pub draft: Option<(String, T)>,
}

impl<T> Default for Kind<T> {
    fn default() -> Self {
        Kind {
            files: BTreeMap::new(),
            draft: None,
        }
    }
}

impl<T> Kind<T> {
    /// The copy that a transaction has of a file.
    pub fn draft_of(&self, name: &str) -> Option<&T> {
        let (of, draft) = self.draft.as_ref()?;
        (of == name).then_some(draft)
    }

    /// What is wrong with an edit of `name`: a transaction of another file.
    pub fn check_free(&self, name: &str) -> Result<(), EditError> {
        match &self.draft {
            Some((ongoing, _)) if ongoing != name => Err(EditError::Ongoing(ongoing.clone())),
            _ => Ok(()),
        }
    }

    /// What is wrong with ending a transaction of `name`.
    pub fn check_ongoing(&self, name: &str) -> Result<(), EditError> {
        match &self.draft {
            None => Err(EditError::NoTransaction),
            Some(_) => self.check_free(name),
        }
    }
}

/// Why an edit was not made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EditError {
    /// The transaction under way is about this file.
    Ongoing(String),
    /// No transaction is under way.
    NoTransaction,
    /// There is no such file.
    Unknown,
    /// There is one already.
    Exists,
    /// Bind lines or servers use it.
    InUse,
    /// Tokens are verified by it.
    UsedForJwt,
    /// It is of another kind.
    OtherKind,
    /// What came cannot be used, in words.
    Wrong(String),
}

/// A certificate by its name.
#[derive(Clone, Debug, Default)]
pub(super) struct Stored {
    pub source: Arc<CertificateSource>,
    pub material: Material,
    /// What is served; none while a part is missing.
    pub identity: Option<Identity>,
    /// The file of `issuers-chain-path` that completed its chain.
    pub chain_file: Option<PathBuf>,
    /// Tokens are verified by it.
    pub is_for_jwt: bool,
}

impl Stored {
    /// Says which keys verify and decrypt tokens by this certificate's name: its own, or none.
    pub fn publish(&self, name: &str) {
        let certificate = self.material.certificate().filter(|_| self.is_for_jwt);
        let key = self.material.key().filter(|_| self.is_for_jwt);
        sample::set_token_certificate(name, certificate, key.map(|(_, key)| key));
    }

    /// Makes what is served of its parts.
    pub fn prepare(&mut self, chains: &Chains, global: &TlsGlobal) -> Result<(), IdentityError> {
        if let Some(file) = self.material.complete(chains) {
            self.chain_file = Some(file.to_owned());
        }
        let path = &self.source.path;
        let identity = match global.skips_self_issued_ca {
            false => self.material.identity(path),
            true => {
                let mut sent = self.material.clone();
                sent.drop_roots();
                sent.identity(path)
            }
        };
        self.identity = Some(identity?);
        Ok(())
    }
}

/// What a bind line is made of.
#[derive(Clone, Debug)]
pub(super) struct BindRecipe {
    pub words: BindTls,
    pub is_http: bool,
    /// Its frontend's name.
    pub frontend: String,
    /// `file:line`
    pub origin: String,
}

/// What a server is made of.
#[derive(Clone, Debug)]
pub(super) struct ServerRecipe {
    pub words: ServerTls,
    /// What messages call it.
    pub title: String,
}

/// A file that lines may depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dependency<'a> {
    Certificate(&'a str),
    Authorities(&'a str),
    Revocations(&'a str),
    List(&'a str),
}

impl Dependency<'_> {
    /// Whether options of TLS name it.
    pub fn is_of(self, options: &TlsOptions) -> bool {
        let is = |path: &Option<PathBuf>, name: &str| {
            path.as_deref().is_some_and(|path| path == Path::new(name))
        };
        match self {
            Dependency::Authorities(name) => [&options.ca_file, &options.ca_verify_file]
                .into_iter()
                .flatten()
                .any(|file| super::load::name_of(file) == name),
            Dependency::Revocations(name) => is(&options.crl_file, name),
            Dependency::Certificate(_) | Dependency::List(_) => false,
        }
    }
}

impl BindRecipe {
    /// How many of its certificates depend on a file.
    pub fn uses(&self, dependency: Dependency<'_>) -> usize {
        let certificates = &self.words.certificates;
        match dependency {
            Dependency::Certificate(name) => {
                certificates.iter().filter(|each| each.name == name).count()
            }
            Dependency::List(name) => {
                let is_listed = self.words.crt_lists.iter().any(|list| list.name == name);
                usize::from(is_listed)
            }
            Dependency::Authorities(_) | Dependency::Revocations(_) => certificates
                .iter()
                .filter(|each| {
                    dependency.is_of(each.options.as_deref().unwrap_or(&self.words.options))
                })
                .count(),
        }
    }
}

impl ServerRecipe {
    /// Whether it depends on a file.
    pub fn uses(&self, dependency: Dependency<'_>) -> bool {
        match dependency {
            Dependency::Certificate(name) => {
                let certificate = self.words.certificate.as_ref();
                certificate.is_some_and(|certificate| certificate.name == name)
            }
            Dependency::List(_) => false,
            Dependency::Authorities(_) | Dependency::Revocations(_) => {
                self.words.verifies() && dependency.is_of(&self.words.options)
            }
        }
    }
}

impl Files {
    /// How many instances of lines and servers depend on a file.
    pub fn uses(&self, dependency: Dependency<'_>) -> usize {
        let binds = self.binds.iter().flatten().flatten();
        let servers = self.servers.iter().flatten().flatten();
        let of_binds: usize = binds.map(|bind| bind.uses(dependency)).sum();
        of_binds + servers.filter(|server| server.uses(dependency)).count()
    }
}
