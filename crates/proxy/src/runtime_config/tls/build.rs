//! Builds the TLS acceptors of bind lines and the connectors of servers from loaded files.

use std::path::Path;
use std::sync::Arc;

use config::model::{BindTls, CaFile, SniFilter, TlsGlobal, TlsOptions, TlsVerify, TlsVersion};
use tls::{
    Acceptor, AcceptorOptions, Authorities, Certificate, Certificates, ClientCertificates,
    Connector, ConnectorOptions, IgnoredErrors, Offer, Revocations, Trusted, Verification, Version,
};

use super::acceptors::{BindAcceptors, Variant};
use super::files::{BindRecipe, Dependency, Files, ServerRecipe};
use super::load::{Findings, name_of};

/// For how many names of a server sessions are remembered.
const SERVER_SESSIONS_MAX: usize = 32;
/// The most early data that a client may send (`allow-0rtt`) over TCP, bytes: a request's head, as
/// in HAProxy.
const EARLY_DATA_BYTES_MAX: u32 = 16 << 10;
/// The supported ALPN protocols.
const PROTOCOLS: [&[u8]; 3] = [b"h2", b"http/1.1", b"http/1.0"];
/// Those over QUIC.
const QUIC_PROTOCOLS: [&[u8]; 1] = [b"h3"];

/// The previous state of a line that is rebuilt.
#[derive(Clone, Copy)]
pub(super) struct Before<'a> {
    pub acceptors: &'a BindAcceptors,
    /// The changed file.
    pub changed: Dependency<'a>,
}

impl Before<'_> {
    /// The previous acceptor for these options, unless a file that they name has changed. Its
    /// sessions can then be resumed. After a change of authorities sessions cannot be resumed,
    /// because an authority that vouched for them may be gone.
    fn reusable(&self, options: &TlsOptions) -> Option<&Acceptor> {
        if self.changed.is_of(options) {
            return None;
        }
        let mut variants = self.acceptors.acceptors.iter();
        let same = variants.find(|variant| variant.options == *options)?;
        Some(&same.usual)
    }
}

impl Files {
    /// Builds the acceptors of a bind line.
    ///
    /// # Errors
    /// A file is missing or cannot be used; the message for the user.
    pub fn build_bind(
        &self,
        recipe: &BindRecipe,
        before: Option<Before<'_>>,
    ) -> Result<BindAcceptors, String> {
        let words = &recipe.words;
        let mut certificates = Vec::new();
        let mut of_certificate = Vec::new();
        let mut variants: Vec<&TlsOptions> = vec![&words.options];
        for source in &words.certificates {
            let stored = self.certificates.files.get(&source.name);
            let identity = stored.and_then(|stored| stored.identity.clone());
            let Some(identity) = identity else {
                return Err(format!("certificate '{}' is empty!", source.name));
            };
            certificates.push(Certificate {
                identity,
                filters: source.filters.iter().map(filter).collect(),
                is_default: source.is_default,
            });
            let options = source.options.as_deref().unwrap_or(&words.options);
            let known = variants.iter().position(|variant| *variant == options);
            of_certificate.push(known.unwrap_or_else(|| {
                variants.push(options);
                variants.len() - 1
            }) as u32);
        }
        let mut certificates = Certificates::new(&certificates, words.strict_sni);
        if let Some(path) = words.ca_sign_file.as_ref().filter(|_| words.generates) {
            let signer = self.signers.get(path);
            let signer = signer.ok_or_else(|| format!("unable to load {}", path.display()))?;
            let kept_max = self.global.cache_made as usize;
            certificates = certificates.generating(signer.clone(), kept_max);
        }
        let certificates = Arc::new(certificates);
        let mut acceptors = Vec::new();
        for options in variants {
            let reusable = before.as_ref().and_then(|before| before.reusable(options));
            let acceptor = match reusable {
                Some(acceptor) => acceptor.with_certificates(certificates.clone()),
                None => self.acceptor(recipe, options, &certificates)?,
            };
            acceptors.push(Variant::new(options, acceptor));
        }
        Ok(BindAcceptors {
            certificates,
            acceptors,
            of_certificate,
        })
    }

    fn acceptor(
        &self,
        recipe: &BindRecipe,
        options: &TlsOptions,
        certificates: &Arc<Certificates>,
    ) -> Result<Acceptor, String> {
        let words = &recipe.words;
        let protocols = BindTls::alpn(options, recipe.is_http, recipe.is_quic);
        let mut offer = offer(options, &protocols);
        if recipe.is_quic {
            offer_over_quic(&mut offer, &protocols);
        } else if recipe.is_http && !protocols.is_empty() && offer.protocols.is_empty() {
            offer.protocols.push(b"http/1.1".to_vec());
        }
        let clients = match options.verify {
            None | Some(TlsVerify::None) => None,
            Some(verify) => Some(self.clients(words, options, verify == TlsVerify::Optional)?),
        };
        // A session of TCP is not resumed over QUIC, whose clients were told other parameters.
        let scope = if recipe.is_quic {
            format!("{} over QUIC", recipe.frontend)
        } else {
            recipe.frontend.clone()
        };
        let keys = words.tls_ticket_keys.as_ref();
        let keys = keys.and_then(|path| {
            let mut known = self.ticket_keys.iter();
            known.find(|(known, _)| known == path)
        });
        let options = AcceptorOptions {
            offer,
            prefers_client_order: words.prefer_client_ciphers,
            clients,
            no_tickets: options.tickets == Some(false),
            ticket_keys: keys.map(|(_, keys)| keys.clone()),
            resumption_scope: scope,
            sessions: self.sessions.clone(),
            lifetime_s: Some(self.global.lifetime.as_secs()),
            early_data_bytes_max: early_data_bytes_max(recipe, options),
            record_bytes_max: record_bytes_max(&self.global),
            secrets: self.secrets,
        };
        Acceptor::new(&options, certificates.clone())
            .map_err(|error| format!("{} : {error}.", words.title))
    }

    fn clients(
        &self,
        words: &BindTls,
        options: &TlsOptions,
        is_optional: bool,
    ) -> Result<ClientCertificates, String> {
        // Both verify clients; only the authorities of `ca_file` are announced to them.
        let told = options.ca_file.as_ref();
        let told = told.map(|file| self.authorities(file)).transpose()?;
        let untold = options.ca_verify_file.as_ref();
        let untold = untold.map(|file| self.authorities(file)).transpose()?;
        let all = match (told, untold) {
            (Some(told), Some(untold)) => told.with(untold),
            (Some(one), None) | (None, Some(one)) => one.clone(),
            (None, None) => {
                return Err(format!("{} : 'verify' : there is no ca-file.", words.title));
            }
        };
        let hints = told.map(|told| Trusted::new(told, None));
        let revocations = self.revocations(options.crl_file.as_deref())?;
        Ok(ClientCertificates {
            trusted: Trusted::new(&all, revocations),
            hints: hints.filter(|_| !options.no_ca_names),
            tells_no_names: options.no_ca_names,
            is_optional,
            ignored: ignored(&words.crt_ignore_err),
            ignored_of_issuers: ignored(&words.ca_ignore_err),
        })
    }

    /// Builds the connector of a server.
    ///
    /// # Errors
    /// As [`Files::build_bind`].
    pub fn build_server(&self, recipe: &ServerRecipe) -> Result<Connector, String> {
        let words = &recipe.words;
        let protocols: Vec<&[u8]> = match &words.options.alpn {
            Some(protocols) => protocols.iter().map(Vec::as_slice).collect(),
            None => Vec::new(),
        };
        let mut offered = offer(&words.options, &protocols);
        if words.is_quic {
            offer_over_quic(&mut offered, &protocols);
        }
        let connector = self.build_connector(recipe, offered)?;
        let of_tcp = words.alpn_of_tcp();
        if of_tcp.is_empty() {
            return Ok(connector);
        }
        let over_tcp = self.build_connector(recipe, offer(&words.options, &of_tcp))?;
        Ok(connector.with_tcp(over_tcp))
    }

    fn build_connector(&self, recipe: &ServerRecipe, offer: Offer) -> Result<Connector, String> {
        let words = &recipe.words;
        let verification = match (words.verifies(), &words.options.ca_file) {
            (false, _) => Verification::None,
            (true, Some(file)) => Verification::Required {
                trusted: Trusted::new(
                    self.authorities(file)?,
                    self.revocations(words.options.crl_file.as_deref())?,
                ),
                name: words.verifyhost.clone(),
            },
            (true, None) => {
                return Err(format!(
                    "{} : 'verify' : there is no ca-file.",
                    recipe.title
                ));
            }
        };
        let identity = match &words.certificate {
            None => None,
            Some(source) => {
                let stored = self.certificates.files.get(&source.name);
                let identity = stored.and_then(|stored| stored.identity.clone());
                Some(identity.ok_or_else(|| format!("certificate '{}' is empty!", source.name))?)
            }
        };
        let options = ConnectorOptions {
            offer,
            verification,
            identity,
            sessions_max: if words.reuses_sessions {
                SERVER_SESSIONS_MAX
            } else {
                0
            },
            no_tickets: words.options.tickets == Some(false),
            secrets: self.secrets,
            early_data: words.is_quic && words.options.allow_0rtt,
        };
        Connector::new(&options).map_err(|error| format!("{} : {error}.", recipe.title))
    }

    fn authorities(&self, file: &CaFile) -> Result<&Authorities, String> {
        let name = name_of(file);
        let known = self.authorities.files.get(&*name);
        known
            .and_then(Option::as_ref)
            .ok_or_else(|| format!("unable to load {name}"))
    }

    fn revocations(&self, file: Option<&Path>) -> Result<Option<&Revocations>, String> {
        let Some(file) = file else {
            return Ok(None);
        };
        let name = file.to_string_lossy();
        let known = self.revocations.files.get(&*name);
        match known.and_then(Option::as_ref) {
            Some(known) => Ok(Some(known)),
            None => Err(format!("unable to load {name}")),
        }
    }

    /// Checks the files that options name: each must be known and not empty.
    ///
    /// # Errors
    /// The message for the user.
    pub fn check(&self, options: &TlsOptions) -> Result<(), String> {
        for file in [&options.ca_file, &options.ca_verify_file]
            .into_iter()
            .flatten()
        {
            self.authorities(file)?;
        }
        self.revocations(options.crl_file.as_deref()).map(|_| ())
    }
}

/// Reports configured protocols that are not supported.
pub(super) fn tell_unspoken(options: &TlsOptions, title: &str, findings: &mut Findings) {
    let protocols = options.alpn.iter().flatten();
    let is_spoken = |each: &&[u8]| PROTOCOLS.contains(each) || QUIC_PROTOCOLS.contains(each);
    let absent = protocols.filter(|each| !is_spoken(&each.as_slice()));
    let absent: Vec<_> = absent.map(|each| String::from_utf8_lossy(each)).collect();
    if !absent.is_empty() {
        findings.notice(format!(
            "{title} : 'alpn' : {} is not spoken here and not offered.",
            absent.join(",")
        ));
    }
}

/// Changes an offer of a line to one over QUIC.
fn offer_over_quic(offer: &mut Offer, protocols: &[&[u8]]) {
    let spoken = protocols.iter();
    let spoken = spoken.filter(|protocol| QUIC_PROTOCOLS.contains(protocol));
    offer.protocols = spoken.map(|protocol| protocol.to_vec()).collect();
    // RFC 9001 §4.2. As in HAProxy, the versions that a line allows are those of TCP.
    offer.lowest = Some(Version::Tls13);
    offer.highest = Some(Version::Tls13);
}

/// The most early data that a client of a line may send, bytes ([`AcceptorOptions`]).
fn early_data_bytes_max(recipe: &BindRecipe, options: &TlsOptions) -> u32 {
    match (options.allow_0rtt, recipe.is_quic) {
        (false, _) => 0,
        // The limits of its connection apply.
        (true, true) => u32::MAX,
        (true, false) => EARLY_DATA_BYTES_MAX,
    }
}

fn offer(options: &TlsOptions, protocols: &[&[u8]]) -> Offer {
    let version = |version| match version {
        TlsVersion::Tls12 => Version::Tls12,
        TlsVersion::Tls13 => Version::Tls13,
    };
    let range = options.versions.range();
    let spoken = protocols
        .iter()
        .filter(|protocol| PROTOCOLS.contains(protocol));
    Offer {
        lowest: range.map(|(lowest, _)| version(lowest)),
        highest: range.map(|(_, highest)| version(highest)),
        suites12: options.ciphers.clone(),
        suites13: options.ciphersuites.clone(),
        groups: options.curves.clone().unwrap_or_default(),
        signatures: options.sigalgs.clone(),
        client_signatures: options.client_sigalgs.clone(),
        protocols: spoken.map(|protocol| protocol.to_vec()).collect(),
    }
}

fn record_bytes_max(global: &TlsGlobal) -> usize {
    global.hard_maxrecord_bytes.unwrap_or(0) as usize
}

fn ignored(errors: &config::model::IgnoredErrors) -> IgnoredErrors {
    IgnoredErrors {
        all: errors.all,
        numbers: errors.numbers.clone(),
    }
}

fn filter(filter: &SniFilter) -> String {
    match filter {
        SniFilter::Exact(name) => name.to_string(),
        SniFilter::Wildcard(end) => format!("*{end}"),
        SniFilter::Except(name) => format!("!{name}"),
    }
}
