//! The secrets of sessions, which decrypt captured traffic. They are kept only on request.
//!
//! The library passes secrets to a hook without saying which session they are of. It does so within
//! the call that processes the session's bytes, so the hook leaves them on the thread, where the
//! session takes them after the call.

use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;

use rustls::{KeyLog, NoKeyLog};

/// The length of the random value of a hello, bytes (RFC 8446 §4.1.2).
pub const RANDOM_BYTES: usize = 32;
/// The random value of a hello that asks the client for another one (RFC 8446 §4.1.3): the hash of
/// `HelloRetryRequest`.
const RETRY_RANDOM: [u8; RANDOM_BYTES] = [
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91,
    0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
];
/// The type of records with handshake messages (RFC 8446 §5.1).
const HANDSHAKE: u8 = 22;
/// The type of a server's hello (RFC 8446 §4).
const SERVER_HELLO: u8 = 2;
/// The length of a record's header.
const RECORD_HEADER_BYTES: usize = 5;
/// The bytes of a server's hello before the random value: the message's header, the version.
const BEFORE_RANDOM_BYTES: usize = 4 + 2;

/// Which secrets the sessions of an acceptor or a connector keep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SecretsKept {
    /// None.
    #[default]
    None,
    /// The random values of the hellos, and [`Secret::Session`].
    Session,
    /// All.
    All,
}

/// A secret that the library shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Secret {
    /// The master secret of TLS 1.2.
    Session,
    /// Of the early data (TLS 1.3).
    ClientEarlyTraffic,
    /// Of the client's handshake messages (TLS 1.3).
    ClientHandshakeTraffic,
    /// Of the server's handshake messages (TLS 1.3).
    ServerHandshakeTraffic,
    /// Of the client's data (TLS 1.3).
    ClientTraffic,
    /// Of the server's data (TLS 1.3).
    ServerTraffic,
    /// Of exported keys (TLS 1.3).
    Exporter,
}

/// Every secret and its label in a key log file (draft-ietf-tls-keylogfile).
const LABELS: [(Secret, &str); 7] = [
    (Secret::Session, "CLIENT_RANDOM"),
    (Secret::ClientEarlyTraffic, "CLIENT_EARLY_TRAFFIC_SECRET"),
    (
        Secret::ClientHandshakeTraffic,
        "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
    ),
    (
        Secret::ServerHandshakeTraffic,
        "SERVER_HANDSHAKE_TRAFFIC_SECRET",
    ),
    (Secret::ClientTraffic, "CLIENT_TRAFFIC_SECRET_0"),
    (Secret::ServerTraffic, "SERVER_TRAFFIC_SECRET_0"),
    (Secret::Exporter, "EXPORTER_SECRET"),
];

impl SecretsKept {
    /// The library's hook.
    pub(crate) fn key_log(self) -> Arc<dyn KeyLog> {
        match self {
            SecretsKept::None => Arc::new(NoKeyLog {}),
            SecretsKept::Session | SecretsKept::All => Arc::new(Recorder(self)),
        }
    }

    /// A new session's secrets.
    pub(crate) fn begin(self) -> Option<Box<Secrets>> {
        match self {
            SecretsKept::None => None,
            SecretsKept::Session | SecretsKept::All => Some(Box::default()),
        }
    }
}

/// The secrets of a session so far.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secrets {
    /// The random value of the client's hello.
    pub client_random: Option<[u8; RANDOM_BYTES]>,
    /// The random value of the server's hello.
    pub server_random: Option<[u8; RANDOM_BYTES]>,
    secrets: [Option<Box<[u8]>>; LABELS.len()],
}

impl Secrets {
    /// A secret; none if the session does not have it or does not keep it.
    #[must_use]
    pub fn get(&self, secret: Secret) -> Option<&[u8]> {
        let place = LABELS.iter().position(|(known, _)| *known == secret)?;
        self.secrets[place].as_deref()
    }

    /// Adds what the hook has left on this thread.
    pub(crate) fn take_logged(&mut self) {
        let logged = take_logged();
        self.client_random = logged.client_random.or(self.client_random);
        for (own, logged) in self.secrets.iter_mut().zip(logged.secrets) {
            if logged.is_some() {
                *own = logged;
            }
        }
    }

    /// Looks for the random value of the server's hello at the beginning of handshake messages
    /// without records, as QUIC has them.
    #[cfg(feature = "quic")]
    pub(crate) fn look_in_messages(&mut self, messages: &[u8]) {
        self.server_random = self.server_random.or_else(|| random_of_hello(messages));
    }

    /// Looks for the random value of the server's hello in whole records on their way from the
    /// server.
    pub(crate) fn look_for_server_random(&mut self, mut records: &[u8]) {
        while let (None, Some((record, rest))) = (self.server_random, split_record(records)) {
            self.server_random = server_random(record);
            records = rest;
        }
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secrets").finish_non_exhaustive()
    }
}

/// The first record, which is whole, and the rest.
fn split_record(records: &[u8]) -> Option<(&[u8], &[u8])> {
    let [_, _, _, high, low, ..] = records else {
        return None;
    };
    let length = usize::from(u16::from_be_bytes([*high, *low]));
    records.split_at_checked(RECORD_HEADER_BYTES + length)
}

/// The random value, if a record begins with a server's hello that continues the handshake.
fn server_random(record: &[u8]) -> Option<[u8; RANDOM_BYTES]> {
    let HANDSHAKE = *record.first()? else {
        return None;
    };
    random_of_hello(record.get(RECORD_HEADER_BYTES..)?)
}

/// The random value, if messages begin with a server's hello that continues the handshake.
fn random_of_hello(messages: &[u8]) -> Option<[u8; RANDOM_BYTES]> {
    let SERVER_HELLO = *messages.first()? else {
        return None;
    };
    let random = messages.get(BEFORE_RANDOM_BYTES..)?.first_chunk()?;
    Some(*random).filter(|random| *random != RETRY_RANDOM)
}

thread_local! {
    static LOGGED: RefCell<Secrets> = RefCell::default();
}

/// The secrets that the hook has left on this thread.
pub(crate) fn take_logged() -> Secrets {
    LOGGED.take()
}

#[derive(Debug)]
struct Recorder(SecretsKept);

impl Recorder {
    fn keeps(&self, label: &str) -> bool {
        self.0 == SecretsKept::All || label == LABELS[0].1
    }
}

impl KeyLog for Recorder {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        LOGGED.with_borrow_mut(|logged| {
            logged.client_random = client_random.first_chunk().copied();
            let place = LABELS.iter().position(|(_, known)| *known == label);
            if let Some(place) = place.filter(|_| self.keeps(label)) {
                logged.secrets[place] = Some(secret.into());
            }
        });
    }

    fn will_log(&self, label: &str) -> bool {
        // The library shows the client's random value with a secret only.
        self.keeps(label) || label == "CLIENT_HANDSHAKE_TRAFFIC_SECRET"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello(random: [u8; RANDOM_BYTES]) -> Vec<u8> {
        let head = [HANDSHAKE, 3, 3, 0, 38, SERVER_HELLO, 0, 0, 34, 3, 3];
        [&head[..], &random].concat()
    }

    #[test]
    fn the_servers_random_value_is_found_after_a_request_to_try_again() {
        let mut secrets = Secrets::default();
        let change = [20, 3, 3, 0, 1, 1];
        let first = [hello(RETRY_RANDOM), change.to_vec()].concat();
        secrets.look_for_server_random(&first);
        assert_eq!(secrets.server_random, None);
        let wanted = hello([7; RANDOM_BYTES]);
        secrets.look_for_server_random(&wanted[..wanted.len() - 1]);
        assert_eq!(secrets.server_random, None);
        let later = [change.to_vec(), wanted, hello([8; RANDOM_BYTES])].concat();
        secrets.look_for_server_random(&later);
        assert_eq!(secrets.server_random, Some([7; RANDOM_BYTES]));
    }

    #[cfg(feature = "quic")]
    #[test]
    fn messages_without_records_have_the_servers_random_value() {
        let mut secrets = Secrets::default();
        let message = |random| hello(random)[RECORD_HEADER_BYTES..].to_vec();
        for messages in [
            message(RETRY_RANDOM),
            message([7; 32])[..37].to_vec(),
            vec![],
        ] {
            secrets.look_in_messages(&messages);
            assert_eq!(secrets.server_random, None);
        }
        secrets.look_in_messages(&[message([7; RANDOM_BYTES]), vec![11, 0]].concat());
        secrets.look_in_messages(&message([8; RANDOM_BYTES]));
        assert_eq!(secrets.server_random, Some([7; RANDOM_BYTES]));
    }

    #[test]
    fn odd_records_have_no_random_value() {
        let mut secrets = Secrets::default();
        for records in [
            &[][..],
            &[22],
            &[22, 3, 3, 0, 0],
            &[22, 3, 3, 0, 1, 2],
            &[22, 3, 3, 0xff, 0xff, 2],
        ] {
            secrets.look_for_server_random(records);
        }
        assert_eq!(secrets, Secrets::default());
    }
}
