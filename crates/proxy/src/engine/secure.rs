//! TLS of connections from handshake to end: decrypts received bytes and passes them on as those of
//! a plain connection.

use std::sync::Arc;

use net::{Driver, Took};
use sample::{ConnError, HelloFacts, TlsFacts, TlsSecrets};
use tls::{Failure, FailureKind, Progress, Secret, Session};

use super::Turn;
use super::incoming::Fed;
use crate::ids::ConnId;
use crate::link::{Hold, Link, Opened, Role, Secure, Stage};
use crate::phases::ConnWait;
use crate::phases::account::TlsEnd;
use crate::shared::Pace;

impl<D: Driver> Turn<'_, D> {
    // ---- handshakes

    /// Starts to wait for the handshake with a client, if its bind line uses TLS.
    pub(super) fn begin_client_handshake(&mut self, link: ConnId) {
        let Some(bind) = self.cx.core.links.client(link).map(|client| client.bind) else {
            return;
        };
        let Some(acceptors) = self.cx.runtime_config.tls.bind(bind) else {
            return self.begin_session(link);
        };
        // Counted before the handshake, so that failed handshakes count too.
        self.cx.mark(Pace::TlsClients);
        self.cx.wait_on(link, ConnWait::Handshake(bind.frontend));
        self.set_stage(link, Stage::Handshake);
        if self
            .cx
            .core
            .links
            .get(link)
            .is_some_and(|entry| entry.quic.is_some())
        {
            // The endpoint has begun it.
            return;
        }
        let keeps_hello = self.cx.runtime_config.config.global.tls.capture_bytes > 0;
        let session = if acceptors.depends_on_hello() || keeps_hello {
            Ok(Session::awaiting_hello())
        } else {
            acceptors.usual().accept()
        };
        let Some(place) = self.cx.core.ambient.shared.enter_tls() else {
            return self.cx.close_client(link);
        };
        match session {
            Ok(session) => {
                if let Some(entry) = self.cx.core.links.get_mut(link) {
                    entry.secure = Some(Secure::new(session, place));
                }
            }
            Err(failure) => self.handshake_failed(link, &failure),
        }
    }

    /// A client's hello is complete, or cannot be read: the acceptors of its bind line continue
    /// (`BindAcceptors::accept`).
    fn choose_acceptor(&mut self, link: ConnId, opened: &mut Opened) -> Result<Progress, Failure> {
        let most = self.cx.runtime_config.config.global.tls.capture_bytes as usize;
        let Some(Link { role, secure, .. }) = self.cx.core.links.get_mut(link) else {
            return Ok(Progress::default());
        };
        let (Role::Client(client), Some(secure)) = (role, secure) else {
            return Ok(Progress::default());
        };
        let Some(acceptors) = self.cx.runtime_config.tls.bind(client.bind) else {
            return Ok(Progress::default());
        };
        if most > 0 {
            let hello = secure.session.hello().unwrap_or_default();
            client.hello = HelloFacts::of(hello, most).map(Box::new);
        }
        let (plain, out) = (&mut opened.plain, &mut opened.out);
        acceptors.accept(&mut secure.session, plain, out)
    }

    /// A connection to a server is established: sends the first message of the handshake.
    pub(super) fn begin_server_handshake(&mut self, link: ConnId) {
        let mut opened = std::mem::take(&mut self.cx.core.opened);
        let entry = self.cx.core.links.get_mut(link);
        let started = entry.and_then(|entry| entry.secure.as_mut()).map(|secure| {
            opened.out.clear();
            secure.session.start(&mut opened.out)
        });
        match started {
            Some(Ok(())) => self.cx.core.links.send_clear(self.cx.io, link, &opened.out),
            Some(Err(failure)) => self.handshake_failed(link, &failure),
            None => {}
        }
        self.cx.core.opened = opened;
    }

    /// A client has sent early data (`allow-0rtt`): its session begins before the handshake is
    /// complete.
    fn early_data_came(&mut self, link: ConnId) {
        let Some(entry) = self.cx.core.links.get_mut(link) else {
            return;
        };
        let (Some(secure), Role::Client(client)) = (&entry.secure, &mut entry.role) else {
            return;
        };
        if client.stage != Stage::Handshake || !secure.session.is_early() {
            return;
        }
        if let Some(agreed) = secure.session.facts() {
            let mut facts = tls_facts(agreed);
            facts.has_early = true;
            facts.hello = client.hello.take();
            client.session.tls = Some(Arc::new(facts));
            self.begin_session(link);
        }
    }

    /// The handshake of a client whose early data was served is complete: requests that waited for
    /// it continue.
    pub(super) fn early_data_was_good(&mut self, link: ConnId) {
        for exchange in self.cx.core.links.exchanges(link) {
            let Some(stream) = self.cx.core.links.stream(exchange) else {
                continue;
            };
            self.with_stream(stream, |cx, stream| {
                if stream.phase.awaits_handshake() {
                    cx.run(stream);
                }
            });
        }
    }

    /// The handshake is complete: keeps the negotiated parameters, and continues with the session
    /// or the request.
    fn handshake_done(&mut self, link: ConnId) {
        let entry = self.cx.core.links.get_mut(link);
        let secure = entry.and_then(|entry| entry.secure.as_ref());
        if let Some(agreed) = secure.and_then(|secure| secure.session.facts()) {
            let mut facts = tls_facts(agreed);
            let is_client = self.cx.core.links.client(link).is_some();
            self.cx.accounts().tell_tls(link, TlsEnd::Done);
            if facts.resumed {
                self.cx.accounts().tell_tls(link, TlsEnd::Resumed);
            } else {
                self.cx.mark(if is_client {
                    Pace::TlsClientKeys
                } else {
                    Pace::TlsServerKeys
                });
            }
            let links = &mut self.cx.core.links;
            if let Some(client) = links.client_mut(link) {
                let before = client.session.tls.as_ref();
                let kept = before.and_then(|before| before.hello.clone());
                facts.hello = client.hello.take().or(kept);
                client.session.tls = Some(Arc::new(facts));
            } else if let Some(server) = links.server_mut(link) {
                server.tls = Some(Arc::new(facts));
            }
        }
        match self.cx.core.links.get(link).map(|entry| &entry.role) {
            Some(Role::Client(client)) if client.stage == Stage::Handshake => {
                self.begin_session(link);
                // Early data that waited for the handshake.
                if self.cx.core.links.has_input(link) {
                    self.cx.core.work.links.push_back(link.into());
                }
            }
            Some(Role::Client(_)) => self.early_data_was_good(link),
            Some(Role::Server(_) | Role::Stream(_)) => self.server_stands(link),
            None => {}
        }
    }

    /// A TLS session has failed; the peer was sent an alert.
    fn handshake_failed(&mut self, link: ConnId, failure: &Failure) {
        let Some(entry) = self.cx.core.links.get_mut(link) else {
            return;
        };
        let is_handshake = match &entry.role {
            Role::Client(client) => client.stage == Stage::Handshake,
            Role::Server(server) => server.connecting,
            Role::Stream(_) => false,
        };
        if is_handshake {
            self.cx.accounts().tell_tls(link, TlsEnd::Failed);
        }
        let Some(entry) = self.cx.core.links.get_mut(link) else {
            return;
        };
        let session = entry.secure.as_ref().map(|secure| &secure.session);
        match &mut entry.role {
            Role::Client(client) if client.stage == Stage::Handshake => {
                let mut facts = failed_facts(session, Some(failure));
                facts.hello = client.hello.take();
                client.session.tls = Some(Arc::new(facts));
                let why = match failure.kind {
                    FailureKind::Authority => ConnError::TlsAuthority,
                    FailureKind::Certificate => ConnError::TlsCertificate,
                    FailureKind::Name | FailureKind::Protocol | FailureKind::Alert(_) => {
                        ConnError::TlsHandshake
                    }
                };
                self.fail_session(link, why, false);
            }
            Role::Server(server) if server.connecting => {
                server.tls = Some(Arc::new(failed_facts(session, Some(failure))));
                // HAProxy tells the parts of a certificate apart for clients only.
                let why = if failure.kind == FailureKind::Name {
                    ConnError::TlsName
                } else {
                    ConnError::TlsHandshake
                };
                self.server_refused(link, why);
            }
            // Further bytes cannot be used.
            Role::Client(_) | Role::Server(_) | Role::Stream(_) => {
                let sock = entry.sock;
                self.closed(link, net::Close::Reset);
                self.cx.io.close(sock);
            }
        }
    }

    /// A client's handshake ends without a failure of its session: keeps what is known of it for
    /// the log.
    pub(super) fn handshake_abandoned(&mut self, link: ConnId) {
        let Some(entry) = self.cx.core.links.get_mut(link) else {
            return;
        };
        let has_handshake = entry.secure.is_some() || entry.quic.is_some();
        if let Role::Client(client) = &mut entry.role
            && has_handshake
            && client.session.tls.is_none()
        {
            let session = entry.secure.as_ref().map(|secure| &secure.session);
            client.session.tls = Some(Arc::new(failed_facts(session, None)));
            self.cx.accounts().tell_tls(link, TlsEnd::Failed);
        }
    }

    // ---- bytes

    /// Bytes of a TLS connection were received.
    pub(super) fn receive_secure(&mut self, link: ConnId, data: &mut [u8]) -> Took {
        let mut opened = std::mem::take(&mut self.cx.core.opened);
        let took = self.open(link, data, &mut opened);
        self.cx.core.opened = opened;
        took
    }

    fn open(&mut self, link: ConnId, data: &mut [u8], opened: &mut Opened) -> Took {
        let gone = Took {
            bytes: data.len(),
            held: 0,
        };
        let Some(entry) = self.cx.core.links.get(link) else {
            return gone;
        };
        // Up to this size, the bytes are taken completely.
        let room = self.cx.io.read_bytes().saturating_sub(entry.input.len());
        let read_bytes = self.cx.io.read_bytes();
        let is_bulk = data.len() > room.max(1);
        let mut taken = 0;
        while taken < data.len() {
            let entry = self.cx.core.links.get_mut(link);
            let Some(secure) = entry.and_then(|entry| entry.secure.as_mut()) else {
                return gone;
            };
            opened.plain.clear();
            opened.out.clear();
            let mut progress = secure.session.read(
                &mut data[taken..],
                read_bytes,
                &mut opened.plain,
                &mut opened.out,
            );
            if let Ok(Progress {
                used,
                awaits_acceptor: true,
                ..
            }) = progress
            {
                taken += used;
                progress = self.choose_acceptor(link, opened);
            }
            if !opened.out.is_empty() {
                self.cx.core.links.send_clear(self.cx.io, link, &opened.out);
            }
            let progress = match progress {
                Ok(progress) => progress,
                Err(failure) => {
                    self.handshake_failed(link, &failure);
                    return gone;
                }
            };
            taken += progress.used;
            if progress.is_established {
                self.handshake_done(link);
            } else if !opened.plain.is_empty() {
                self.early_data_came(link);
            }
            let mut has_to_wait = false;
            if !opened.plain.is_empty() {
                has_to_wait = !self.receive_plain(link, &opened.plain).wants_more;
            }
            if progress.has_ended {
                if let Some(entry) = self.cx.core.links.get_mut(link) {
                    entry.eof = true;
                }
                self.process_input(link.into());
            }
            let Some(entry) = self.cx.core.links.get(link) else {
                return gone;
            };
            if is_bulk && has_to_wait && taken < data.len() && !entry.input.is_empty() {
                self.cx.core.links.hold(self.cx.io, link, Hold::Full);
                break;
            }
        }
        let entry = self.cx.core.links.get(link);
        Took {
            bytes: taken,
            held: entry.map_or(0, |entry| entry.input.len()),
        }
    }

    /// Uses plain bytes as far as possible; the rest waits with the connection.
    pub(super) fn receive_plain(&mut self, link: ConnId, bytes: &[u8]) -> Fed {
        let Some(entry) = self.cx.core.links.get_mut(link) else {
            return Fed::ALL;
        };
        let fed = if entry.input.is_empty() {
            let fed = self.feed(link.into(), bytes);
            if let Some(entry) = self.cx.core.links.get_mut(link) {
                entry.input.extend_from_slice(&bytes[fed.used..]);
            }
            fed
        } else {
            entry.input.extend_from_slice(bytes);
            self.use_input(link.into())
        };
        self.update_reading(link);
        fed
    }
}

/// What is known of a session that failed or was abandoned, in the form for expressions.
pub(super) fn failed_facts(session: Option<&Session>, failure: Option<&Failure>) -> TlsFacts {
    let reason = failure.and_then(|failure| failure.reason);
    let known = match session.and_then(Session::facts) {
        Some(agreed) => tls_facts(agreed),
        None => {
            let sni = session.and_then(Session::server_name);
            TlsFacts {
                sni: sni.map(|name| name.as_bytes().into()),
                ..TlsFacts::default()
            }
        }
    };
    TlsFacts {
        has_failed: true,
        error: reason.map_or(0, tls::Reason::number),
        error_text: reason.map(|reason| reason.text().into()),
        ..known
    }
}

/// The negotiated parameters in the form for expressions.
pub(super) fn tls_facts(agreed: tls::Facts) -> TlsFacts {
    TlsFacts {
        version: match agreed.version {
            tls::Version::Tls12 => 0x0303,
            tls::Version::Tls13 => 0x0304,
        },
        cipher: agreed.suite,
        group: agreed.group.unwrap_or(0),
        alpn: agreed.protocol.unwrap_or_default(),
        sni: agreed.server_name.map(|name| name.into_boxed_bytes()),
        resumed: agreed.is_resumed,
        received_early: agreed.has_early_data,
        own: agreed.own,
        root: agreed.root,
        verify: agreed.verdict.last,
        crt_error: agreed.verdict.own,
        ca_error: agreed.verdict.issuer,
        ca_error_depth: agreed.verdict.issuer_depth,
        peer: agreed.peer.into(),
        secrets: agreed
            .secrets
            .as_deref()
            .map(|kept| Box::new(tls_secrets(kept))),
        ..TlsFacts::default()
    }
}

/// The secrets of a session in the form for expressions.
fn tls_secrets(kept: &tls::Secrets) -> TlsSecrets {
    let raw = |secret| kept.get(secret).unwrap_or_default().into();
    let hexadecimal = |secret| {
        let bytes = kept.get(secret).unwrap_or_default();
        let digits = bytes.iter().flat_map(|byte| syntax::hex::digits(*byte));
        digits.collect()
    };
    let random = |random: &Option<[u8; tls::RANDOM_BYTES]>| {
        random
            .as_ref()
            .map_or_else(Box::default, |random| random[..].into())
    };
    TlsSecrets {
        client_random: random(&kept.client_random),
        server_random: random(&kept.server_random),
        session_key: raw(Secret::Session),
        client_early_traffic: hexadecimal(Secret::ClientEarlyTraffic),
        client_handshake_traffic: hexadecimal(Secret::ClientHandshakeTraffic),
        server_handshake_traffic: hexadecimal(Secret::ServerHandshakeTraffic),
        client_traffic: hexadecimal(Secret::ClientTraffic),
        server_traffic: hexadecimal(Secret::ServerTraffic),
        exporter: hexadecimal(Secret::Exporter),
    }
}
