//! Reads the files that a configuration names. A file that several lines name is read once.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use config::model::{
    Bind, CaFile, CertificateSource, Config, Mode, Passphrase, Proxy, ServerTls, TlsOptions,
    TlsVerify,
};
use tls::{
    Authorities, CaSigner, Chains, IdentityError, Material, Passphrases, Revocations, SecretsKept,
    SessionCache, TicketKeys,
};

use super::TlsFinding;
use super::edit::different_update;
use super::files::{BindRecipe, Files, ServerRecipe, Stored};
use super::ocsp;

/// The largest file of a signing authority, with its key and its chain, bytes.
const CA_SIGN_BYTES_MAX: u64 = 1 << 20;
/// The largest file of ticket keys, bytes.
const TICKET_KEYS_BYTES_MAX: u64 = 64 << 10;

/// The name of an authority file in messages and commands.
pub(super) fn name_of(file: &CaFile) -> std::borrow::Cow<'_, str> {
    match file {
        CaFile::System => "@system-ca".into(),
        CaFile::Path(path) => path.to_string_lossy(),
    }
}

/// The errors and warnings.
#[derive(Debug, Default)]
pub(super) struct Findings(pub Vec<TlsFinding>);

impl Findings {
    pub fn alert(&mut self, text: String) {
        self.0.push(TlsFinding {
            is_fatal: true,
            text,
        });
    }

    pub fn notice(&mut self, text: String) {
        self.0.push(TlsFinding {
            is_fatal: false,
            text,
        });
    }
}

/// Reads the files.
pub(super) struct Loader<'a> {
    pub files: Files,
    pub findings: Findings,
    since_epoch: Duration,
    passphrases: Passphrases<'a>,
}

/// The name of a server in messages.
fn title(proxy: &Proxy, server: &impl std::fmt::Display) -> String {
    format!("'server {server}' of '{}'", proxy.name)
}

fn secrets_kept(config: &Config) -> SecretsKept {
    if config.global.tls.keylog {
        SecretsKept::All
    } else if config.needs.tls_secrets {
        SecretsKept::Session
    } else {
        SecretsKept::None
    }
}

impl<'a> Loader<'a> {
    /// Reads the files that a configuration names, `since_epoch` after the UNIX epoch.
    pub fn load(
        config: &Config,
        since_epoch: Duration,
        passphrases: Passphrases<'a>,
    ) -> Loader<'a> {
        let mut loader = Loader {
            files: Files {
                global: config.global.tls.clone(),
                secrets: secrets_kept(config),
                sessions: SessionCache::new(config.global.tls.cache_blocks as usize),
                ..Files::default()
            },
            findings: Findings::default(),
            since_epoch,
            passphrases,
        };
        loader.chains();
        for proxy in &config.proxies {
            let binds = proxy.binds.iter();
            let is_http = proxy.mode == Mode::Http;
            let binds = binds.map(|bind| loader.bind(&proxy.name.to_string(), is_http, bind));
            let binds = binds.collect();
            loader.files.binds.push(binds);
            let servers = proxy.servers.iter().map(|server| {
                let words = server.options.tls_words.as_deref()?;
                let words = Some(words).filter(|words| words.ssl || words.may_turn_on)?;
                Some(loader.server(title(proxy, &server.name), words))
            });
            let servers = servers.collect();
            loader.files.servers.push(servers);
            for server in &proxy.servers {
                if let Some(words) = super::checks::alone(proxy, server) {
                    // This loads their files; the connector is built when a check needs it.
                    loader.server(title(proxy, &server.name), words);
                }
            }
        }
        loader.logs(config);
        loader.peers(config);
        loader.token_certificates();
        loader
    }

    /// Loads the files of rings and of sections `log-forward`, whose places follow the proxies'.
    fn logs(&mut self, config: &Config) {
        for ring in &config.rings {
            let servers = ring.servers.iter().map(|server| {
                let title = format!("'server {}' of ring '{}'", server.name, ring.name);
                Some(self.server(title, server.tls.as_deref()?))
            });
            let servers = servers.collect();
            self.files.servers.push(servers);
            self.files.binds.push(Vec::new());
        }
        for forward in &config.log_forwards {
            let binds = forward.binds.iter();
            let binds = binds
                .map(|bind| self.bind(&forward.name, false, bind))
                .collect();
            self.files.binds.push(binds);
            self.files.servers.push(Vec::new());
        }
    }

    /// Loads the files of sections `peers`, whose places follow those of the sections `log-forward`.
    fn peers(&mut self, config: &Config) {
        for section in &config.peers {
            // Every section has its place; the files of those that share nothing are not needed.
            let is_active = section.is_active();
            let bind = section.bind.as_ref().filter(|_| is_active);
            let bind = bind.and_then(|bind| self.bind(&section.name, false, bind));
            self.files.binds.push(vec![bind]);
            let servers = section.peers.iter().map(|peer| {
                let title = format!("'server {}' of peers '{}'", peer.name, section.name);
                let words = peer.tls.as_deref().filter(|_| is_active)?;
                Some(self.server(title, words))
            });
            let servers = servers.collect();
            self.files.servers.push(servers);
        }
    }

    /// Loads the certificates that verify tokens: those of sections `crt-store`, and those that
    /// expressions name.
    fn token_certificates(&mut self) {
        let mut names = sample::wanted_token_certificates();
        for source in self.files.global.for_jwt.clone() {
            self.certificate(&source);
            names.push(source.name.clone());
        }
        for name in names {
            if !name.starts_with('@') && !self.files.certificates.files.contains_key(&name) {
                self.certificate(&Arc::new(CertificateSource {
                    path: PathBuf::from(&name),
                    name: name.clone(),
                    is_for_jwt: true,
                    ..CertificateSource::default()
                }));
            }
            if let Some(stored) = self.files.certificates.files.get_mut(&name) {
                stored.is_for_jwt = true;
                stored.publish(&name);
            }
        }
    }

    fn chains(&mut self) {
        let Some(directory) = &self.files.global.issuers_chain_path else {
            return;
        };
        match Chains::load(directory) {
            Ok(chains) => self.files.chains = chains,
            Err(error) => self
                .findings
                .alert(format!("'issuers-chain-path' : {error}.")),
        }
    }

    fn bind(&mut self, frontend: &str, is_http: bool, bind: &Bind) -> Option<BindRecipe> {
        let words = bind.tls.as_deref()?;
        for source in &words.certificates {
            self.certificate(source);
            if let Some(options) = &source.options {
                self.trust(options, true, &words.title);
            }
        }
        self.trust(&words.options, true, &words.title);
        for list in &words.crt_lists {
            let lists = &mut self.files.lists;
            let known = lists.entry(list.name.clone());
            known.or_insert_with(|| (**list).clone());
        }
        if let Some(path) = words.ca_sign_file.as_ref().filter(|_| words.generates) {
            self.signer(path, words.ca_sign_pass.as_ref(), &words.title);
        }
        if let Some(path) = &words.tls_ticket_keys {
            self.ticket_keys(path, &words.title);
        }
        Some(BindRecipe {
            words: words.clone(),
            is_http,
            is_quic: matches!(bind.address, config::model::BindAddress::Quic(_)),
            frontend: frontend.to_owned(),
            origin: bind.origin.clone(),
        })
    }

    fn server(&mut self, title: String, words: &ServerTls) -> ServerRecipe {
        if let Some(source) = &words.certificate {
            self.certificate(source);
        }
        self.trust(&words.options, words.verifies(), &title);
        ServerRecipe {
            words: words.clone(),
            title,
        }
    }

    fn certificate(&mut self, source: &Arc<CertificateSource>) {
        let place = match source.origin.as_str() {
            "" => String::new(),
            origin => format!("parsing [{origin}] : "),
        };
        if let Some(known) = self.files.certificates.files.get(&source.name) {
            let of = |source: &CertificateSource| {
                let source = source.clone();
                (source.path, source.key, source.ocsp, source.issuer)
            };
            if of(&known.source) != of(source) {
                self.findings.alert(format!(
                    "{place}'crt' : '{}' is already instantiated with incompatible parameters.",
                    source.name
                ));
            }
            let updates =
                |source: &CertificateSource| self.files.global.ocsp.are_on(source.ocsp_update);
            let (before, now) = (updates(&known.source), updates(source));
            if before != now {
                self.findings.alert(format!(
                    "{place}'crt' : '{}' is already instantiated with incompatible parameters: {}.",
                    source.name,
                    different_update(now)
                ));
            }
            return;
        }
        let files = tls::Files {
            certificate: &source.path,
            key: source.key.as_deref(),
            key_beside: source.key_beside.as_deref(),
            issuer: source.issuer.as_deref(),
            ocsp: source.ocsp.as_deref(),
        };
        let mut stored = Stored {
            source: source.clone(),
            ..Stored::default()
        };
        let loaded = Material::load(&files, &mut self.passphrases).and_then(|mut material| {
            if let Err(why) = ocsp::check_own(&material, self.since_epoch.as_secs()) {
                self.findings
                    .notice(format!("Loading: {why}. Content will be ignored."));
                material.set_ocsp(Vec::new());
            }
            stored.material = material;
            stored.prepare(&self.files.chains, &self.files.global)
        });
        match loaded {
            Ok(()) => {
                let path = source.path.display();
                let identity = stored.identity.iter();
                for remark in identity.flat_map(|identity| identity.remarks(self.since_epoch)) {
                    self.findings.notice(format!("{place}'{path}' : {remark}."));
                }
                let key = source.key.as_ref().or(source.key_beside.as_ref());
                let key = key.unwrap_or(&source.path);
                if is_readable_by_all(key) {
                    let key = key.display();
                    self.findings.notice(format!(
                        "{place}'{key}' : everyone on this machine may read the key."
                    ));
                }
            }
            // A certificate for tokens needs no private key.
            Err(IdentityError::NoKey(_)) if source.is_for_jwt => {}
            Err(error) => self.findings.alert(format!("{place}'crt' : {error}.")),
        }
        let certificates = &mut self.files.certificates.files;
        certificates.insert(source.name.clone(), stored);
    }

    /// Reads authorities and revocation lists. They are only needed where certificates are
    /// verified.
    fn trust(&mut self, options: &TlsOptions, verifies: bool, title: &str) {
        let verifies = verifies && options.verify != Some(TlsVerify::None);
        for file in [&options.ca_file, &options.ca_verify_file]
            .into_iter()
            .flatten()
        {
            let name = name_of(file);
            if self.files.authorities.files.contains_key(&*name) {
                continue;
            }
            let loaded = match file {
                CaFile::System => Authorities::system(),
                CaFile::Path(path) => Authorities::load(path),
            };
            match loaded {
                Ok(authorities) => {
                    let all = &mut self.files.authorities.files;
                    all.insert(name.into_owned(), Some(authorities));
                }
                Err(error) if verifies => self
                    .findings
                    .alert(format!("{title} : 'ca-file' : {error}.")),
                Err(error) => self
                    .findings
                    .notice(format!("{title} : 'ca-file' : {error}.")),
            }
        }
        let Some(file) = &options.crl_file else {
            return;
        };
        let name = file.to_string_lossy();
        if self.files.revocations.files.contains_key(&*name) {
            return;
        }
        match Revocations::load(file) {
            Ok(revocations) => {
                let all = &mut self.files.revocations.files;
                all.insert(name.into_owned(), Some(revocations));
            }
            Err(error) if verifies => self
                .findings
                .alert(format!("{title} : 'crl-file' : {error}.")),
            Err(error) => self
                .findings
                .notice(format!("{title} : 'crl-file' : {error}.")),
        }
    }

    /// `passphrase` is that of the authority's key (`ca-sign-pass`).
    fn signer(&mut self, path: &Path, passphrase: Option<&Passphrase>, title: &str) {
        if self.files.signers.contains_key(path) {
            return;
        }
        let text = read_text(path, CA_SIGN_BYTES_MAX)
            .map_err(|why| format!("unable to load '{}' : {why}", path.display()));
        let parsed = text.and_then(|text| {
            let parsed = match passphrase {
                None => CaSigner::parse(text.as_bytes(), path, &mut self.passphrases),
                Some(own) => {
                    let mut ask = |_: &Path| Ok(own.0.clone());
                    CaSigner::parse(text.as_bytes(), path, &mut Passphrases::new(&mut ask))
                }
            };
            parsed.map_err(|error| error.to_string())
        });
        match parsed {
            Ok(signer) => drop(self.files.signers.insert(path.to_owned(), signer)),
            Err(why) => self
                .findings
                .alert(format!("{title} : 'ca-sign-file' : {why}.")),
        }
    }

    fn ticket_keys(&mut self, path: &PathBuf, title: &str) {
        let mut known = self.files.ticket_keys.iter();
        if known.any(|(known, _)| known == path) {
            return;
        }
        let text = match read_text(path, TICKET_KEYS_BYTES_MAX) {
            Ok(text) => text,
            Err(why) => {
                return self.findings.alert(format!(
                    "{title} : 'tls-ticket-keys' : unable to load TLS ticket keys file '{}' : {why}.",
                    path.display()
                ));
            }
        };
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let keys: Result<Vec<_>, _> = lines.map(|line| STANDARD.decode(line)).collect();
        let keys = keys.ok();
        let keys = keys.and_then(|keys| TicketKeys::new(keys.iter().map(Vec::as_slice)));
        match keys {
            Some(keys) => self.files.ticket_keys.push((path.clone(), keys)),
            None => self.findings.alert(format!(
                "{title} : 'tls-ticket-keys' : '{}' has to have base64 lines of 48 or 80 bytes each.",
                path.display()
            )),
        }
    }
}

/// Whether all users of this machine may read a file.
fn is_readable_by_all(path: &Path) -> bool {
    const OTHERS_READ: u32 = 0o004;
    files::info(path).is_ok_and(|file| file.mode & OTHERS_READ != 0)
}

fn read_text(path: &Path, bytes_max: u64) -> Result<String, String> {
    let text = files::read(path, bytes_max + 1).map_err(|error| error.to_string())?;
    if text.len() as u64 > bytes_max {
        return Err(format!("more than {bytes_max} bytes"));
    }
    String::from_utf8(text).map_err(|_| "not UTF-8".to_owned())
}
