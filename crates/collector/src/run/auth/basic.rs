//! `basicauth` (RFC 7617).
//!
//! Hashes of passwords are slow by design and come with every request: they are checked where
//! waiting holds up nobody, a few at a time, and what was right is remembered as a keyed digest.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use sample::auth::{Hash, Password, User, Userlist};
use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;

use super::gate::{Denied, Gate};
use super::{Editor, Identity, read, text};
use crate::config::components::extensions::basic_auth::Credential;

/// Passwords that are checked at a time; one more is told to come again.
const CHECKS_MAX: usize = 4;
/// Credentials that are remembered as right.
const KNOWN_MAX: usize = 256;
/// Bytes of what a client sends.
const SENT_BYTES_MAX: usize = 4096;

/// Users, and who was right before.
pub struct Users {
    list: Arc<Userlist>,
    known: Mutex<VecDeque<[u8; 32]>>,
    /// Makes digests useless to whoever reads them.
    key: [u8; 16],
    room: Arc<Semaphore>,
}

/// Who may send: the users of a file, and of lines that count more.
pub(super) fn gate(file: Option<&str>, inline: &str) -> Result<Gate, String> {
    let from_file = file.map_or(Ok(String::new()), read)?;
    let users = users(&[inline, &from_file].join("\n"))?;
    if users.is_empty() {
        return Err("nobody is in the list".into());
    }
    Ok(Gate::Basic(Users {
        list: Arc::new(Userlist::new(users, Vec::new())),
        known: Mutex::default(),
        key: random_key(),
        room: Arc::new(Semaphore::new(CHECKS_MAX)),
    }))
}

fn random_key() -> [u8; 16] {
    use std::hash::{BuildHasher, Hasher, RandomState};
    let half = || RandomState::new().build_hasher().finish().to_ne_bytes();
    let mut key = [0; 16];
    key[..8].copy_from_slice(&half());
    key[8..].copy_from_slice(&half());
    key
}

/// The users of a list as Apache's `htpasswd` writes it; of two of a name the first counts.
///
/// # Errors
/// A line that is none, or a password that cannot be checked here.
pub fn users(list: &str) -> Result<Vec<User>, String> {
    let mut names = HashSet::new();
    let mut users = Vec::new();
    for line in list.lines().map(str::trim) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let user = user(line)?;
        if names.insert(user.name.clone()) {
            users.push(user);
        }
    }
    Ok(users)
}

/// `name:password`, the password hashed or plain.
fn user(line: &str) -> Result<User, String> {
    let (name, password) = line.split_once(':').ok_or("a line has no colon")?;
    let refuse = |why: String| format!("the password of '{}': {why}", name.escape_debug());
    let password = match password {
        hash if hash.starts_with('$') => {
            let hash = Hash::parse_apache(hash).map_err(|why| refuse(why.to_string()))?;
            Password::Hash(hash)
        }
        hash if hash.starts_with('{') => Password::Hash(sha1(hash).map_err(refuse)?),
        plain => Password::Plain(plain.into()),
    };
    Ok(User {
        name: name.into(),
        password,
        groups: Vec::new(),
    })
}

/// `{SHA}` and the digest in base64.
fn sha1(text: &str) -> Result<Hash, String> {
    let Some(digest) = text.strip_prefix("{SHA}") else {
        return Err("of the forms in braces {SHA} is checked".into());
    };
    let digest = STANDARD.decode(digest).ok();
    let digest = digest.and_then(|digest| digest.try_into().ok());
    let digest = digest.ok_or("it is no digest of SHA-1 in base64")?;
    Ok(Hash::sha1(digest))
}

impl Users {
    pub(super) async fn admit(&self, headers: &HeaderMap) -> Result<(), Denied> {
        let sent = sent(headers)?;
        let digest = Sha256::new()
            .chain_update(self.key)
            .chain_update(sent)
            .finalize();
        let digest: [u8; 32] = digest.into();
        if self.known().contains(&digest) {
            return Ok(());
        }
        let pair = STANDARD
            .decode(sent.trim_ascii())
            .map_err(|_| Denied::Wrong)?;
        let list = Arc::clone(&self.list);
        let place = Arc::clone(&self.room).try_acquire_owned();
        let place = place.map_err(|_| Denied::Busy)?;
        let check = move || {
            let _place = place;
            let colon = pair.iter().position(|byte| *byte == b':');
            let right = colon.and_then(|at| list.verify(&pair[..at], &pair[at + 1..]).map(drop));
            right.is_some()
        };
        match tokio::task::spawn_blocking(check).await {
            Ok(true) => {
                let mut known = self.known();
                if known.len() >= KNOWN_MAX {
                    known.pop_front();
                }
                known.push_back(digest);
                Ok(())
            }
            _ => Err(Denied::Wrong),
        }
    }

    /// Whom a request names that was admitted.
    pub(super) fn identity(headers: &HeaderMap) -> Option<Identity> {
        let raw = std::str::from_utf8(sent(headers).ok()?).ok()?;
        Identity::of_basic(raw.trim_ascii())
    }

    fn known(&self) -> std::sync::MutexGuard<'_, VecDeque<[u8; 32]>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The credentials of a request, behind the name of their scheme.
fn sent(headers: &HeaderMap) -> Result<&[u8], Denied> {
    let sent = headers.get(AUTHORIZATION).ok_or(Denied::Missing)?;
    let sent = sent.as_bytes();
    let is_basic = sent.len() > 6 && sent[..6].eq_ignore_ascii_case(b"basic ");
    if is_basic && sent.len() <= SENT_BYTES_MAX {
        Ok(&sent[6..])
    } else {
        Err(Denied::Wrong)
    }
}

/// Tells who we are.
pub(super) fn editor(username: &Credential, password: &Credential) -> Result<Editor, String> {
    let (username, password) = (text(username)?, text(password)?);
    Ok(Arc::new(move |headers, _| {
        let pair = STANDARD.encode(format!("{}:{}", username.get(), password.get()));
        if let Ok(mut value) = HeaderValue::try_from(format!("Basic {pair}")) {
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        Ok(())
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(text: &str) -> HeaderMap {
        let value = format!("Basic {}", STANDARD.encode(text));
        HeaderMap::from_iter([(AUTHORIZATION, value.parse().unwrap())])
    }

    #[tokio::test]
    async fn users_of_all_forms() {
        let lines = "plain:secret\n# nobody\nsha1:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=\n\
                     md5:$apr1$aB3.zY/1$cnSQOKAK05JKu6zcOq4L71\n\
                     sha:$5$rounds=1000$saltstring$S2dlplsLzofRuJ/frAjtaYev58CdqEN6fUby2laILG1\n\
                     plain:other\n";
        let gate = gate(None, lines).unwrap();
        for right in [
            "plain:secret",
            "md5:secret",
            "sha:password",
            "sha:password",
            "sha1:password",
        ] {
            let fields = fields(right);
            assert_eq!(gate.admit(&fields).await, Ok(()), "{right}");
            let identity = gate.identity(&fields).unwrap();
            let (user, _) = right.split_once(':').unwrap();
            assert_eq!(identity.attribute("username"), Some(user));
        }
        for wrong in [
            "plain:other",
            "plain",
            "nobody:",
            "md5:secreT",
            "sha1:secret",
            ":",
            "",
        ] {
            assert_eq!(
                gate.admit(&fields(wrong)).await,
                Err(Denied::Wrong),
                "{wrong}"
            );
        }
        assert_eq!(gate.admit(&HeaderMap::new()).await, Err(Denied::Missing));
        let Gate::Basic(users) = &gate else {
            panic!("another gate");
        };
        // Each that was right once, and nobody else.
        assert_eq!(users.known().len(), 4);
    }

    #[test]
    fn lists_that_are_wrong() {
        for wrong in [
            "",
            "name",
            "a:{SHA}W6ph5Mm5",
            "a:{SSHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=",
            "a:$9$x",
        ] {
            assert!(gate(None, wrong).is_err(), "{wrong}");
        }
        assert!(gate(Some("/none/of/these"), "").is_err());
    }
}
