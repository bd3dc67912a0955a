//! Certificates, authorities, revocation lists and certificate lists by name: the parts of
//! acceptors and connectors, which the runtime interface edits.
//!
//! A change goes into a copy first, in a transaction; each kind has at most one open transaction. A
//! commit replaces the known file of that name. The data path reads nothing here.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use config::model::{BindTls, CertificateSource, CrtList, ServerTls, TlsGlobal, TlsOptions};
use tls::{
    Authorities, CaSigner, Chains, Identity, IdentityError, Material, Revocations, SecretsKept,
    SessionCache, TicketKeys,
};

/// The files of a configuration's TLS.
#[derive(Debug, Default)]
pub(super) struct Files {
    pub global: TlsGlobal,
    /// The secrets that sessions keep.
    pub secrets: SecretsKept,
    /// `issuers-chain-path`
    pub chains: Chains,
    pub certificates: Kind<Stored>,
    /// None for a file that the runtime interface created and has not filled yet.
    pub authorities: Kind<Option<Authorities>>,
    pub revocations: Kind<Option<Revocations>>,
    pub lists: BTreeMap<String, CrtList>,
    /// Authorities that sign generated certificates (`ca-sign-file`), by file.
    pub signers: BTreeMap<PathBuf, CaSigner>,
    /// Ticket keys by file, in the order of their identifiers.
    pub ticket_keys: Vec<(PathBuf, TicketKeys)>,
    /// The sessions remembered for clients without tickets. They do not outlive the configuration:
    /// a client that sends early data keeps to the limits that it was told with its session, and
    /// they must not be lower now (RFC 9000 §7.4.1, RFC 9114 §7.2.4.2).
    pub sessions: SessionCache,
    /// By proxy and bind line.
    pub binds: Vec<Vec<Option<BindRecipe>>>,
    /// By proxy and server.
    pub servers: Vec<Vec<Option<ServerRecipe>>>,
}

/// The files of one kind, and its open transaction.
#[derive(Debug)]
pub(super) struct Kind<T> {
    pub files: BTreeMap<String, T>,
    /// The name of the file in the transaction, and its changed copy.
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
    /// The transaction's copy of a file.
    pub fn draft_of(&self, name: &str) -> Option<&T> {
        let (of, draft) = self.draft.as_ref()?;
        (of == name).then_some(draft)
    }

    /// Fails if the open transaction is about another file than `name`.
    pub fn check_free(&self, name: &str) -> Result<(), EditError> {
        match &self.draft {
            Some((ongoing, _)) if ongoing != name => Err(EditError::Ongoing(ongoing.clone())),
            _ => Ok(()),
        }
    }

    /// Fails if there is no open transaction of `name`.
    pub fn check_ongoing(&self, name: &str) -> Result<(), EditError> {
        match &self.draft {
            None => Err(EditError::NoTransaction),
            Some(_) => self.check_free(name),
        }
    }
}

/// Why an edit failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EditError {
    /// The open transaction is about this file.
    Ongoing(String),
    /// There is no open transaction.
    NoTransaction,
    /// The file does not exist.
    Unknown,
    /// The file exists already.
    Exists,
    /// Bind lines or servers use it.
    InUse,
    /// Tokens are verified with it.
    UsedForJwt,
    /// The file is of another kind.
    OtherKind,
    /// The payload cannot be used; the message for the user.
    Wrong(String),
}

/// A certificate with its parts.
#[derive(Clone, Debug, Default)]
pub(super) struct Stored {
    pub source: Arc<CertificateSource>,
    pub material: Material,
    /// The identity in use; none while a part is missing.
    pub identity: Option<Identity>,
    /// The file of `issuers-chain-path` that completed its chain.
    pub chain_file: Option<PathBuf>,
    /// Tokens are verified with it.
    pub is_for_jwt: bool,
}

impl Stored {
    /// Sets the keys that verify and decrypt tokens under this certificate's name: its own, or
    /// none.
    pub fn publish(&self, name: &str) {
        let certificate = self.material.certificate().filter(|_| self.is_for_jwt);
        let key = self.material.key().filter(|_| self.is_for_jwt);
        sample::set_token_certificate(name, certificate, key.map(|(_, key)| key));
    }

    /// Builds the identity from the parts.
    pub fn prepare(&mut self, chains: &Chains, global: &TlsGlobal) -> Result<(), IdentityError> {
        if let Some(file) = self.material.complete(chains) {
            self.chain_file = Some(file.to_owned());
        }
        let path = &self.source.path;
        let identity = if global.skips_self_issued_ca {
            let mut sent = self.material.clone();
            sent.drop_roots();
            sent.identity(path)
        } else {
            self.material.identity(path)
        };
        self.identity = Some(identity?);
        Ok(())
    }
}

/// The data from which a bind line's acceptors are built.
#[derive(Clone, Debug)]
pub(super) struct BindRecipe {
    pub words: BindTls,
    pub is_http: bool,
    /// Its connections are those of QUIC.
    pub is_quic: bool,
    /// Its frontend's name.
    pub frontend: String,
    /// `file:line`
    pub origin: String,
}

/// The data from which a server's connector is built.
#[derive(Clone, Debug)]
pub(super) struct ServerRecipe {
    pub words: ServerTls,
    /// Its name in messages.
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
    /// Whether TLS options name it.
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
