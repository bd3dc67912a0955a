//! Users, their groups and passwords (`userlist`, manual §12.2), and the verification of passwords.
//!
//! Password hashes are slow by design: milliseconds each. A client sends its password with every
//! request. So each thread remembers the passwords that it verified (`verified`). A wrong password
//! is hashed every time.

mod crypt;
mod verified;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ctutils::CtEq;
use syntax::octets::Octets;

pub use crypt::{Hash, NotAHash};

/// The longest password that is compared with a hash, as in libxcrypt. Hashing takes longer for
/// longer passwords.
pub const PASSWORD_BYTES_MAX: usize = 512;

/// Users by name.
#[derive(Debug)]
pub struct Userlist {
    /// Distinguishes this list from every other list of the process.
    id: u64,
    users: Vec<User>,
    by_name: HashMap<Box<[u8]>, usize>,
    groups: Vec<Octets>,
}

/// A user.
#[derive(Debug)]
pub struct User {
    /// The name that the client sends.
    pub name: Octets,
    /// The expected password.
    pub password: Password,
    /// The user's groups.
    pub groups: Vec<Octets>,
}

/// The expected password.
#[derive(Debug)]
pub enum Password {
    /// No password is right.
    Never,
    /// This password (`insecure-password`).
    Plain(Octets),
    /// A password with this hash (`password`).
    Hash(Hash),
}

impl Userlist {
    /// A list of users with different names, and of all groups.
    #[must_use]
    pub fn new(users: Vec<User>, groups: Vec<Octets>) -> Userlist {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let names = users.iter().enumerate();
        let by_name = names
            .map(|(index, user)| (user.name.as_bytes().into(), index))
            .collect();
        Userlist {
            id: NEXT.fetch_add(1, Relaxed),
            users,
            by_name,
            groups,
        }
    }

    /// Whether it has a group of this name.
    #[must_use]
    pub fn has_group(&self, name: &[u8]) -> bool {
        self.groups.iter().any(|group| **group == *name)
    }

    /// The user of this name, if the password is correct.
    #[must_use]
    pub fn verify(&self, name: &[u8], password: &[u8]) -> Option<&User> {
        let index = *self.by_name.get(name)?;
        let user = &self.users[index];
        let right = match &user.password {
            Password::Never => false,
            Password::Plain(plain) => same(plain.as_bytes(), password),
            Password::Hash(_) if password.len() > PASSWORD_BYTES_MAX => false,
            Password::Hash(hash) => {
                let known_as = verified::UserName {
                    list: self.id,
                    place: index,
                };
                verified::once(known_as, password, || hash.is_of(password))
            }
        };
        right.then_some(user)
    }
}

/// Whether two texts are equal. The time depends only on their lengths.
fn same(one: &[u8], other: &[u8]) -> bool {
    one.ct_eq(other).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_and_passwords() {
        let user = |name: &str, password| User {
            name: name.into(),
            password,
            groups: Vec::new(),
        };
        let hash = "$5$rounds=1000$saltstring$S2dlplsLzofRuJ/frAjtaYev58CdqEN6fUby2laILG1";
        let list = Userlist::new(
            vec![
                user("never", Password::Never),
                user("plain", Password::Plain("secret".into())),
                user("hash", Password::Hash(Hash::parse(hash).expect("a hash"))),
            ],
            Vec::new(),
        );
        let is = |name: &str, password: &str| {
            list.verify(name.as_bytes(), password.as_bytes()).is_some()
        };
        assert!(is("plain", "secret") && !is("plain", "secre") && !is("plain", ""));
        assert!(!is("never", "") && !is("nobody", ""));
        for _ in 0..3 {
            assert!(is("hash", "password") && !is("hash", "passwork"));
        }
        assert!(!is("hash", &"x".repeat(PASSWORD_BYTES_MAX + 1)));
    }
}
