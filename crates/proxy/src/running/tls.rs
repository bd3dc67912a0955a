//! TLS of the running configuration: the files that it names are read, and made what bind lines and servers speak with.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use config::model::{
    BackendCheck, Bind, BindTls, CaFile, CertificateSource, CheckAction, CheckScript, Config, Mode,
    Proxy, Server, ServerTls, SniFilter, TlsGlobal, TlsOptions, TlsVerify, TlsVersion,
};
use sample::sniff::client_hello;
use tls::{
    Acceptor, AcceptorOptions, Certificate, Certificates, Chains, ClientCertificates, Connector,
    ConnectorOptions, Files, Identity, IgnoredErrors, Offer, TicketKeys, Trusted, Verification,
    Version,
};

use crate::ids::{BindId, ServerId};

/// The largest file of ticket keys, bytes.
const TICKET_KEYS_BYTES_MAX: u64 = 64 << 10;
/// Names whose sessions are remembered of a server.
const SERVER_SESSIONS_MAX: usize = 32;
/// What a client may send along with its first message (`allow-0rtt`): a request's head, as HAProxy takes it.
const EARLY_DATA_BYTES_MAX: u32 = 16 << 10;
/// Protocols of ALPN that are spoken here.
const PROTOCOLS: [&[u8]; 3] = [b"h2", b"http/1.1", b"http/1.0"];

/// What is wrong with a file that a configuration names, or doubtful.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFinding {
    /// The configuration cannot be served with it.
    pub is_fatal: bool,
    /// In words, with the file and the line that names it.
    pub text: String,
}

/// TLS of a configuration: what its files came to.
#[derive(Debug, Default)]
pub struct Tls {
    /// By proxy and bind line.
    binds: Vec<Vec<Option<BindAcceptors>>>,
    /// By proxy and server.
    servers: Vec<Vec<Option<Connector>>>,
    /// By proxy and server: of those whose health checks alone use TLS.
    checks: Vec<Vec<Option<Connector>>>,
}

/// Who speaks TLS with the clients of a bind line.
#[derive(Debug)]
pub(crate) struct BindAcceptors {
    certificates: Arc<Certificates>,
    /// The line's own, then those of certificates with options of their own.
    acceptors: Vec<Variant>,
    /// By certificate: its acceptor.
    of_certificate: Vec<u32>,
}

/// Who speaks TLS by some options.
#[derive(Debug)]
struct Variant {
    usual: Acceptor,
    /// For clients that offer none of its protocols; none where it has none.
    without_protocols: Option<Acceptor>,
}

impl Variant {
    fn new(usual: Acceptor) -> Variant {
        let without_protocols = (!usual.protocols().is_empty()).then(|| usual.without_protocols());
        Variant {
            usual,
            without_protocols,
        }
    }

    /// For a client that sends this extension of ALPN, or none.
    fn for_protocols(&self, offered: Option<&[u8]>) -> &Acceptor {
        match (&self.without_protocols, offered) {
            (Some(without), Some(offered)) if !has_protocol(offered, self.usual.protocols()) => {
                without
            }
            _ => &self.usual,
        }
    }
}

/// Whether an extension of ALPN has one of these protocols.
fn has_protocol(offered: &[u8], ours: &[Vec<u8>]) -> bool {
    let list = client_hello::list(offered, 2).unwrap_or_default();
    let mut at = 0;
    while let Some((protocol, next)) = client_hello::protocol_at(list, at) {
        if ours.iter().any(|our| our == protocol) {
            return true;
        }
        at = next;
    }
    false
}

impl BindAcceptors {
    /// Whether what a client says first decides on more than its certificate: the name that it asks for, or its protocols.
    pub fn depends_on_hello(&self) -> bool {
        self.acceptors.len() > 1 || self.acceptors[0].without_protocols.is_some()
    }

    /// The acceptor for clients that ask for this name and send this extension of ALPN.
    pub fn for_hello(&self, name: Option<&str>, protocols: Option<&[u8]>) -> &Acceptor {
        let place = self.certificates.choose(name);
        let acceptor = place.and_then(|place| self.of_certificate.get(place));
        self.acceptors[acceptor.copied().unwrap_or(0) as usize].for_protocols(protocols)
    }

    /// The line's own.
    pub fn usual(&self) -> &Acceptor {
        &self.acceptors[0].usual
    }
}

impl Tls {
    /// Reads the files of a configuration, `since_epoch` after the UNIX epoch. Beside what they came to, what was found wrong.
    #[must_use]
    pub fn load(config: &Config, since_epoch: Duration) -> (Tls, Vec<TlsFinding>) {
        let mut loader = Loader {
            since_epoch,
            global: &config.global.tls,
            findings: Vec::new(),
            known: Vec::new(),
            chains: Chains::default(),
        };
        loader.chains();
        let mut tls = Tls::default();
        for proxy in &config.proxies {
            let binds = proxy.binds.iter();
            tls.binds
                .push(binds.map(|bind| loader.bind(proxy, bind)).collect());
            let servers = proxy.servers.iter().map(|server| {
                let words = server.options.tls()?;
                loader.server(proxy, words, &server.name.to_string())
            });
            let servers: Vec<_> = servers.collect();
            tls.servers.push(servers);
            let checks = proxy.servers.iter().map(|server| {
                let words = checks_alone(proxy, server)?;
                loader.server(proxy, words, &server.name)
            });
            let checks: Vec<_> = checks.collect();
            tls.checks.push(checks);
        }
        (tls, loader.findings)
    }

    /// Who speaks TLS with a server that is not of the configuration; none where it is spoken to in the clear.
    ///
    /// # Errors
    /// What was found wrong.
    pub(crate) fn connector(
        config: &Config,
        proxy: &Proxy,
        server: &Server,
        since_epoch: Duration,
    ) -> Result<Option<Connector>, Vec<TlsFinding>> {
        let Some(words) = server.options.tls() else {
            return Ok(None);
        };
        let mut loader = Loader {
            since_epoch,
            global: &config.global.tls,
            findings: Vec::new(),
            known: Vec::new(),
            chains: Chains::default(),
        };
        loader.chains();
        let connector = loader.server(proxy, words, &server.name);
        connector.map(Some).ok_or(loader.findings)
    }

    /// Who speaks TLS with the clients of a bind line; none where they speak in the clear.
    #[inline]
    pub(crate) fn bind(&self, bind: BindId) -> Option<&BindAcceptors> {
        let frontend = self.binds.get(bind.frontend.place())?;
        frontend.get(bind.place)?.as_ref()
    }

    /// Who speaks TLS with a server for its health checks; none where that is not possible.
    #[must_use]
    pub fn check(&self, backend: usize, server: usize) -> Option<Connector> {
        let of = |table: &'_ [Vec<Option<Connector>>]| {
            Some(table.get(backend)?.get(server)?.as_ref()?.clone())
        };
        of(&self.servers).or_else(|| of(&self.checks))
    }

    /// Who speaks TLS with a server; none where it is spoken to in the clear.
    #[inline]
    pub(crate) fn server(&self, server: ServerId) -> Option<&Connector> {
        let backend = self.servers.get(server.backend.place())?;
        backend.get(server.place())?.as_ref()
    }
}

/// The TLS words of a server whose traffic is in the clear and whose checks are not.
fn checks_alone<'a>(proxy: &Proxy, server: &'a Server) -> Option<&'a ServerTls> {
    let words = server.tls_words.as_deref().filter(|words| !words.ssl)?;
    let of_backend = match &proxy.check {
        Some(BackendCheck::Script(script)) => Some(script),
        Some(BackendCheck::External(_)) | None => None,
    };
    let uses_tls = |script: &Arc<CheckScript>| {
        let mut rules = script.rules.iter();
        rules.any(|rule| matches!(&rule.action, CheckAction::Connect(connect) if connect.ssl))
    };
    let script = server.checks.script.as_ref().or(of_backend);
    let is_asked = words.check.ssl == Some(true) || script.is_some_and(uses_tls);
    (server.checks.enabled && is_asked).then_some(words)
}

/// Reads files; one that several lines name, once.
struct Loader<'a> {
    since_epoch: Duration,
    global: &'a TlsGlobal,
    findings: Vec<TlsFinding>,
    known: Vec<(CertificateSource, Identity)>,
    /// `issuers-chain-path`
    chains: Chains,
}

impl Loader<'_> {
    fn alert(&mut self, text: String) {
        self.findings.push(TlsFinding {
            is_fatal: true,
            text,
        });
    }

    fn notice(&mut self, text: String) {
        self.findings.push(TlsFinding {
            is_fatal: false,
            text,
        });
    }

    fn chains(&mut self) {
        let Some(directory) = &self.global.issuers_chain_path else {
            return;
        };
        match Chains::load(directory) {
            Ok(chains) => self.chains = chains,
            Err(error) => self.alert(format!("'issuers-chain-path' : {error}.")),
        }
    }

    // ---- clients

    fn bind(&mut self, proxy: &Proxy, bind: &Bind) -> Option<BindAcceptors> {
        let words = bind.tls.as_deref()?;
        let is_http = proxy.mode == Mode::Http;
        let mut certificates = Vec::new();
        let mut of_certificate = Vec::new();
        let mut variants: Vec<&TlsOptions> = vec![&words.options];
        for source in &words.certificates {
            let Some(identity) = self.identity(source) else {
                continue;
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
        let certificates = Arc::new(Certificates::new(&certificates, words.strict_sni));
        let mut acceptors = Vec::new();
        for options in variants {
            acceptors.push(Variant::new(self.acceptor(
                words,
                options,
                is_http,
                &certificates,
            )?));
        }
        Some(BindAcceptors {
            certificates,
            acceptors,
            of_certificate,
        })
    }

    fn acceptor(
        &mut self,
        words: &BindTls,
        options: &TlsOptions,
        is_http: bool,
        certificates: &Arc<Certificates>,
    ) -> Option<Acceptor> {
        let protocols = BindTls::alpn(options, is_http);
        let mut offer = self.offer(options, &protocols, &words.title);
        if is_http && !protocols.is_empty() && offer.protocols.is_empty() {
            offer.protocols.push(b"http/1.1".to_vec());
        }
        let clients = match options.verify {
            None | Some(TlsVerify::None) => None,
            Some(verify) => {
                let hints = self.trusted(options.ca_file.as_ref(), None, &words.title);
                let trusted = match &options.ca_verify_file {
                    None => hints.clone(),
                    Some(file) => self.trusted(Some(file), None, &words.title),
                };
                let mut trusted = trusted.or_else(|| hints.clone())?;
                self.add_revoked(&mut trusted, options.crl_file.as_ref(), &words.title);
                Some(ClientCertificates {
                    trusted,
                    hints: hints.filter(|_| !options.no_ca_names),
                    tells_no_names: options.no_ca_names,
                    is_optional: verify == TlsVerify::Optional,
                    ignored: ignored(&words.crt_ignore_err),
                    ignored_of_issuers: ignored(&words.ca_ignore_err),
                })
            }
        };
        let keys = words.tls_ticket_keys.as_deref();
        let acceptor_options = AcceptorOptions {
            offer,
            prefers_client_order: words.prefer_client_ciphers,
            clients,
            no_tickets: options.tickets == Some(false),
            ticket_keys: keys.and_then(|path| self.ticket_keys(path, &words.title)),
            sessions_max: self.global.cache_sessions as usize,
            lifetime_s: Some(self.global.lifetime.as_secs()),
            early_data_bytes_max: match options.allow_0rtt {
                true => EARLY_DATA_BYTES_MAX,
                false => 0,
            },
            record_bytes_max: self.global.hard_maxrecord_bytes.unwrap_or(0) as usize,
        };
        match Acceptor::new(&acceptor_options, certificates.clone()) {
            Ok(acceptor) => Some(acceptor),
            Err(error) => {
                self.alert(format!("{} : {error}.", words.title));
                None
            }
        }
    }

    fn ticket_keys(&mut self, path: &Path, title: &str) -> Option<TicketKeys> {
        let text = match read_text(path, TICKET_KEYS_BYTES_MAX) {
            Ok(text) => text,
            Err(why) => {
                self.alert(format!(
                    "{title} : 'tls-ticket-keys' : unable to load TLS ticket keys file '{}' : {why}.",
                    path.display()
                ));
                return None;
            }
        };
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let keys: Result<Vec<_>, _> = lines.map(|line| STANDARD.decode(line)).collect();
        let keys = keys.ok();
        let keys = keys.and_then(|keys| TicketKeys::new(keys.iter().map(Vec::as_slice)));
        if keys.is_none() {
            self.alert(format!(
                "{title} : 'tls-ticket-keys' : '{}' has to have base64 lines of 48 or 80 bytes each.",
                path.display()
            ));
        }
        keys
    }

    // ---- servers

    fn server(&mut self, proxy: &Proxy, words: &ServerTls, name: &str) -> Option<Connector> {
        let title = format!("'server {name}' of '{}'", proxy.name);
        let protocols: Vec<&[u8]> = match &words.options.alpn {
            Some(protocols) => protocols.iter().map(Vec::as_slice).collect(),
            None => Vec::new(),
        };
        let offer = self.offer(&words.options, &protocols, &title);
        let verification = match words.verifies() {
            false => Verification::None,
            true => {
                let crl = words.options.crl_file.as_ref();
                Verification::Required {
                    trusted: self.trusted(words.options.ca_file.as_ref(), crl, &title)?,
                    name: words.verifyhost.clone(),
                }
            }
        };
        let identity = match &words.certificate {
            None => None,
            Some(source) => Some(self.identity(source)?),
        };
        let options = ConnectorOptions {
            offer,
            verification,
            identity,
            sessions_max: match words.reuses_sessions {
                true => SERVER_SESSIONS_MAX,
                false => 0,
            },
            no_tickets: words.options.tickets == Some(false),
        };
        match Connector::new(&options) {
            Ok(connector) => Some(connector),
            Err(error) => {
                self.alert(format!("{title} : {error}."));
                None
            }
        }
    }

    // ---- both

    fn offer(&mut self, options: &TlsOptions, protocols: &[&[u8]], title: &str) -> Offer {
        let version = |version| match version {
            TlsVersion::Tls12 => Version::Tls12,
            TlsVersion::Tls13 => Version::Tls13,
        };
        let range = options.versions.range();
        let spoken = protocols
            .iter()
            .filter(|protocol| PROTOCOLS.contains(protocol));
        let spoken: Vec<_> = spoken.map(|protocol| protocol.to_vec()).collect();
        if options.alpn.is_some() && spoken.len() < protocols.len() {
            let absent = protocols.iter().filter(|each| !PROTOCOLS.contains(each));
            let absent: Vec<_> = absent.map(|each| String::from_utf8_lossy(each)).collect();
            self.notice(format!(
                "{title} : 'alpn' : {} is not spoken here and not offered.",
                absent.join(",")
            ));
        }
        Offer {
            lowest: range.map(|(lowest, _)| version(lowest)),
            highest: range.map(|(_, highest)| version(highest)),
            suites12: options.ciphers.clone(),
            suites13: options.ciphersuites.clone(),
            groups: options.curves.clone().unwrap_or_default(),
            signatures: options.sigalgs.clone(),
            client_signatures: options.client_sigalgs.clone(),
            protocols: spoken,
        }
    }

    fn identity(&mut self, source: &CertificateSource) -> Option<Identity> {
        let is_same = |known: &&(CertificateSource, Identity)| {
            let known = &known.0;
            (&known.path, &known.key, &known.ocsp) == (&source.path, &source.key, &source.ocsp)
        };
        if let Some((_, identity)) = self.known.iter().find(is_same) {
            return Some(identity.clone());
        }
        let files = Files {
            certificate: &source.path,
            key: source.key.as_deref(),
            key_beside: source.key_beside.as_deref(),
            issuer: source.issuer.as_deref(),
            ocsp: source.ocsp.as_deref(),
        };
        let place = match source.origin.as_str() {
            "" => String::new(),
            origin => format!("parsing [{origin}] : "),
        };
        match Identity::load(&files) {
            Ok(identity) => {
                let identity = identity.with_chain(&self.chains, self.global.skips_self_issued_ca);
                let path = source.path.display();
                for remark in identity.remarks(self.since_epoch) {
                    self.notice(format!("{place}'{path}' : {remark}."));
                }
                let key = source.key.as_ref().or(source.key_beside.as_ref());
                let key = key.unwrap_or(&source.path);
                if is_readable_by_all(key) {
                    let key = key.display();
                    self.notice(format!(
                        "{place}'{key}' : everyone on this machine may read the key."
                    ));
                }
                self.known.push((source.clone(), identity.clone()));
                Some(identity)
            }
            Err(error) => {
                self.alert(format!("{place}'crt' : {error}."));
                None
            }
        }
    }

    fn trusted(
        &mut self,
        file: Option<&CaFile>,
        revoked: Option<&PathBuf>,
        title: &str,
    ) -> Option<Trusted> {
        let loaded = match file? {
            CaFile::System => Trusted::system(),
            CaFile::Path(path) => Trusted::load(path),
        };
        match loaded {
            Ok(mut trusted) => {
                self.add_revoked(&mut trusted, revoked, title);
                Some(trusted)
            }
            Err(error) => {
                self.alert(format!("{title} : 'ca-file' : {error}."));
                None
            }
        }
    }

    fn add_revoked(&mut self, trusted: &mut Trusted, file: Option<&PathBuf>, title: &str) {
        if let Some(file) = file
            && let Err(error) = trusted.add_revoked(file)
        {
            self.alert(format!("{title} : 'crl-file' : {error}."));
        }
    }
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

/// Whether everyone on this machine may read a file.
fn is_readable_by_all(path: &Path) -> bool {
    const OTHERS_READ: u32 = 0o004;
    fs::metadata(path).is_ok_and(|file| file.permissions().mode() & OTHERS_READ != 0)
}

fn read_text(path: &Path, bytes_max: u64) -> Result<String, String> {
    let size = fs::metadata(path).map_err(|error| error.to_string())?.len();
    if size > bytes_max {
        return Err(format!("more than {bytes_max} bytes"));
    }
    fs::read_to_string(path).map_err(|error| error.to_string())
}
