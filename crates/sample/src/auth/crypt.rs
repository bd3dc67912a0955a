//! Password hashes in the formats of crypt(3): MD5 (`$1$`), SHA-256 (`$5$`), SHA-512 (`$6$`),
//! bcrypt (`$2a$`, `$2b$`, `$2y$`) and yescrypt (`$y$`).

use md5::{Digest, Md5};
use sha_crypt::Params as Rounds;
use yescrypt::Params as Costs;

use super::same;

/// A password hash with its parameters.
pub struct Hash {
    scheme: Scheme,
    salt: Box<[u8]>,
    /// The digest: the last part of the text.
    wanted: Box<str>,
}

/// Why a text is not a hash that can be verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotAHash {
    /// It may be a hash of a scheme or with parameters that this program lacks.
    Unknown(String),
    /// It is no hash of any scheme: crypt(3) returns another text for every password. Such texts
    /// lock an account.
    OfNoPassword(&'static str),
}

impl std::fmt::Display for NotAHash {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NotAHash::Unknown(why) => out.write_str(why),
            NotAHash::OfNoPassword(why) => out.write_str(why),
        }
    }
}

enum Scheme {
    /// The field is the scheme's name, which is part of the hash.
    Md5(&'static [u8]),
    Sha256(Rounds),
    Sha512(Rounds),
    Bcrypt,
    Yescrypt(Costs),
    /// The digest alone.
    Sha1([u8; 20]),
}

/// The most memory that one verification may take.
const MEMORY_BYTES_MAX: u64 = 256 << 20;

impl std::fmt::Debug for Hash {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Hash(…)")
    }
}

impl Hash {
    /// Parses a hash in a format of crypt(3).
    ///
    /// # Errors
    /// The text is no hash, or this program cannot verify it.
    pub fn parse(text: &str) -> Result<Hash, NotAHash> {
        const KNOWN: &str = "this version checks $1$ (MD5), $2a$, $2b$ and $2y$ (bcrypt), $5$ (SHA-256), $6$ (SHA-512) and $y$ (yescrypt)";
        let unknown = |why: &str| NotAHash::Unknown(why.to_owned());
        let Some(rest) = text.strip_prefix('$') else {
            return Err(if may_be_des(text) {
                unknown(KNOWN)
            } else {
                NotAHash::OfNoPassword("it has the form of no hash")
            });
        };
        let mut parts = rest.split('$');
        let mut part = || {
            let part = parts.next();
            part.ok_or(NotAHash::OfNoPassword("it ends too early"))
        };
        match part()? {
            "1" => {
                let (salt, wanted) = (part()?, part()?);
                Hash::new(Scheme::Md5(b"$1$"), salt.as_bytes(), wanted, 22)
            }
            scheme @ ("5" | "6") => {
                let mut salt = part()?;
                let mut rounds = Rounds::default();
                if let Some(number) = salt.strip_prefix("rounds=") {
                    let number = number
                        .parse()
                        .map_err(|_| NotAHash::OfNoPassword("its rounds are no number"))?;
                    rounds = Rounds::new(number)
                        .map_err(|_| NotAHash::OfNoPassword("its rounds are out of range"))?;
                    salt = part()?;
                }
                let (scheme, length) = match scheme {
                    "5" => (Scheme::Sha256(rounds), 43),
                    _ => (Scheme::Sha512(rounds), 86),
                };
                Hash::new(scheme, salt.as_bytes(), part()?, length)
            }
            "2a" | "2b" | "2y" => {
                // A text that parses cannot fail in a later verification.
                let parts: bcrypt::HashParts = text
                    .parse()
                    .map_err(|_| NotAHash::OfNoPassword("its length is wrong or its digits are"))?;
                if !(4..=31).contains(&parts.get_cost()) {
                    return Err(NotAHash::OfNoPassword("its cost is out of range"));
                }
                Hash::new(Scheme::Bcrypt, b"", text, text.len())
            }
            "y" => {
                let costs: Costs = part()?
                    .parse()
                    .map_err(|_| unknown("its parameters are wrong"))?;
                let memory = costs.n().saturating_mul(u64::from(costs.r()) * 128);
                if memory > MEMORY_BYTES_MAX {
                    return Err(unknown("it takes too much memory to check"));
                }
                let salt = decode(part()?).ok_or_else(|| unknown("its salt is wrong"))?;
                Hash::new(Scheme::Yescrypt(costs), &salt, part()?, 43)
            }
            _ => Err(unknown(KNOWN)),
        }
    }

    /// Parses a hash of Apache's `htpasswd`: its own MD5 format (`$apr1$`), or a format of
    /// crypt(3).
    ///
    /// # Errors
    /// As for [`Hash::parse`].
    pub fn parse_apache(text: &str) -> Result<Hash, NotAHash> {
        let Some(rest) = text.strip_prefix("$apr1$") else {
            return Hash::parse(text);
        };
        let (salt, wanted) = rest
            .split_once('$')
            .ok_or(NotAHash::OfNoPassword("it ends too early"))?;
        Hash::new(Scheme::Md5(b"$apr1$"), salt.as_bytes(), wanted, 22)
    }

    /// A bare SHA-1 digest, as `htpasswd -s` makes it. It protects no password: it is fast to
    /// compute and has no salt.
    #[must_use]
    pub fn sha1(digest: [u8; 20]) -> Hash {
        Hash {
            scheme: Scheme::Sha1(digest),
            salt: Box::default(),
            wanted: Box::default(),
        }
    }

    fn new(scheme: Scheme, salt: &[u8], wanted: &str, length: usize) -> Result<Hash, NotAHash> {
        if wanted.len() != length {
            return Err(NotAHash::OfNoPassword("its length is wrong"));
        }
        Ok(Hash {
            scheme,
            salt: salt.into(),
            wanted: wanted.into(),
        })
    }

    /// Whether this is the hash of the password. The time depends on the hash's parameters.
    #[must_use]
    pub fn is_of(&self, password: &[u8]) -> bool {
        let salt = &self.salt;
        let mut text = String::new();
        match &self.scheme {
            Scheme::Sha1(digest) => return same(&sha1::Sha1::digest(password), digest),
            Scheme::Bcrypt => return bcrypt::verify(password, &self.wanted).unwrap_or(false),
            Scheme::Md5(name) => {
                let hash = md5_crypt(password, salt, name);
                encode(&in_order(&hash, &MD5_ORDER), &mut text);
            }
            Scheme::Sha256(rounds) => {
                let hash = sha_crypt::sha256_crypt(password, salt, *rounds);
                encode(&in_order(&hash, &SHA256_ORDER), &mut text);
            }
            Scheme::Sha512(rounds) => {
                let hash = sha_crypt::sha512_crypt(password, salt, *rounds);
                encode(&in_order(&hash, &SHA512_ORDER), &mut text);
            }
            Scheme::Yescrypt(costs) => {
                let mut hash = [0; 32];
                if yescrypt::yescrypt(password, salt, costs, &mut hash).is_err() {
                    return false;
                }
                encode(&hash, &mut text);
            }
        }
        same(text.as_bytes(), self.wanted.as_bytes())
    }
}

/// Whether crypt(3) could return this text for a password by one of the old schemes on DES: two
/// digits of salt and eleven digits for each block of eight characters, or BSD's form with `_`.
fn may_be_des(text: &str) -> bool {
    const SALT: usize = 2;
    const BLOCK: usize = 11;
    const OF_BSD: usize = 19;
    let are_digits = |text: &str| text.bytes().all(|byte| DIGITS.contains(&byte));
    match text.strip_prefix('_') {
        Some(rest) => rest.len() == OF_BSD && are_digits(rest),
        None => {
            let blocks = text.len().checked_sub(SALT);
            blocks.is_some_and(|blocks| blocks > 0 && blocks.is_multiple_of(BLOCK))
                && are_digits(text)
        }
    }
}

/// The order in which the bytes of a digest are encoded, the lowest six bits first.
#[rustfmt::skip]
const MD5_ORDER: [usize; 16] = [12, 6, 0, 13, 7, 1, 14, 8, 2, 15, 9, 3, 5, 10, 4, 11];
#[rustfmt::skip]
const SHA256_ORDER: [usize; 32] = [
    20, 10, 0, 11, 1, 21, 2, 22, 12, 23, 13, 3, 14, 4, 24, 5, 25, 15, 26, 16, 6, 17, 7, 27, 8, 28, 18, 29, 19, 9,
    30, 31,
];
#[rustfmt::skip]
const SHA512_ORDER: [usize; 64] = [
    42, 21, 0, 1, 43, 22, 23, 2, 44, 45, 24, 3, 4, 46, 25, 26, 5, 47, 48, 27, 6, 7, 49, 28, 29, 8, 50, 51, 30, 9,
    10, 52, 31, 32, 11, 53, 54, 33, 12, 13, 55, 34, 35, 14, 56, 57, 36, 15, 16, 58, 37, 38, 17, 59, 60, 39, 18, 19,
    61, 40, 41, 20, 62, 63,
];

fn in_order<const N: usize>(hash: &[u8; N], order: &[usize; N]) -> [u8; N] {
    order.map(|place| hash[place])
}

const DIGITS: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Encodes three bytes as four digits, the first byte and the lowest bits first.
fn encode(bytes: &[u8], out: &mut String) {
    for chunk in bytes.chunks(3) {
        let value = chunk
            .iter()
            .rev()
            .fold(0_u32, |value, byte| value << 8 | u32::from(*byte));
        for digit in 0..=chunk.len() {
            out.push(char::from(DIGITS[(value >> (6 * digit)) as usize & 63]));
        }
    }
}

/// Decodes a text.
fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    for chunk in text.as_bytes().chunks(4) {
        let value = chunk.iter().rev().try_fold(0_u32, |value, digit| {
            let digit = DIGITS.iter().position(|known| known == digit)?;
            Some(value << 6 | digit as u32)
        })?;
        bytes.extend_from_slice(value.to_le_bytes().get(..chunk.len().checked_sub(1)?)?);
    }
    Some(bytes)
}

/// The longest salt that the MD5 scheme uses.
const MD5_SALT_BYTES: usize = 8;
const MD5_ROUNDS: usize = 1000;

/// The schemes of FreeBSD's `$1$` and of Apache's `$apr1$`.
fn md5_crypt(password: &[u8], salt: &[u8], name: &[u8]) -> [u8; 16] {
    let salt = &salt[..salt.len().min(MD5_SALT_BYTES)];
    let digest = |parts: &[&[u8]]| -> [u8; 16] {
        let mut hasher = Md5::new();
        for part in parts {
            hasher.update(part);
        }
        hasher.finalize().into()
    };
    let inner = digest(&[password, salt, password]);
    let mut hasher = Md5::new();
    for part in [password, name, salt] {
        hasher.update(part);
    }
    for at in (0..password.len()).step_by(inner.len()) {
        hasher.update(&inner[..inner.len().min(password.len() - at)]);
    }
    let mut bits = password.len();
    while bits > 0 {
        match (bits & 1, password.first()) {
            (0, Some(first)) => hasher.update([*first]),
            _ => hasher.update([0]),
        }
        bits >>= 1;
    }
    let mut hash: [u8; 16] = hasher.finalize().into();
    for round in 0..MD5_ROUNDS {
        let odd = round % 2 == 1;
        let (before, after): (&[u8], &[u8]) = if odd {
            (password, &hash)
        } else {
            (&hash, password)
        };
        let salted = if round % 3 > 0 { salt } else { b"" };
        let mixed = if round % 7 > 0 { password } else { b"" };
        hash = digest(&[before, salted, mixed, after]);
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Generated with `openssl passwd -apr1`.
    #[test]
    fn apache_has_its_own() {
        let hash = Hash::parse_apache("$apr1$aB3.zY/1$cnSQOKAK05JKu6zcOq4L71").unwrap();
        assert!(hash.is_of(b"secret") && !hash.is_of(b"secreT"));
        assert!(Hash::parse_apache("$apr1$x").is_err() && Hash::parse("$apr1$a$b").is_err());
        let other = "$5$rounds=1000$saltstring$S2dlplsLzofRuJ/frAjtaYev58CdqEN6fUby2laILG1";
        assert!(Hash::parse_apache(other).unwrap().is_of(b"password"));
    }

    /// Generated with libxcrypt from `password` and from the empty password.
    const MADE: &[(&str, &str)] = &[
        (
            "$1$saltsalt$qjXMvbEw8oaL.CzflDtaK/",
            "$1$saltsalt$5Jhcit4zN9UlGiA0txPkO0",
        ),
        (
            "$5$saltstring$OH4IDuTlsuTYPdED1gsuiRMyTAwNlRWyA6Xr3I4/dQ5",
            "$5$saltstring$FdNfA4gXqvCeO6iZs7G/.wwwoywYZqo0l1pwmfWaBA7",
        ),
        (
            "$5$rounds=1000$saltstring$S2dlplsLzofRuJ/frAjtaYev58CdqEN6fUby2laILG1",
            "$5$rounds=1000$saltstring$TzAJABAaJwl111nyuH1uQy8kjHahyMHq1D7Y09hLQV1",
        ),
        (
            "$6$saltstring$adDbXsJjcDlq2662QPgd.tkSOVmnG9Tt3oXl4HR60SusC3AGjirnDenVZp3DGwLwqy6iYKCzannhaX9DR72nN1",
            "$6$saltstring$kyGrqt6gmjAdtFLPrflEFifSYLCWWq1pyx95SvqinLDy2UHmj0sTF0MSLMwxPFZc3tu5kQckI8fks0zOPda3n1",
        ),
        (
            "$6$rounds=1400$anotherlongsalts$PAZqpKUKGek9w8oPgIGPxV0Y72OmDpdCthOX9H9O.5R1UbUeZcZS09hlVOfEnTt.66Pdgt7Jvf5Fcex6JIQox/",
            "$6$rounds=1400$anotherlongsalts$CvyNSQwf6bQerEu9N9SQOWtPnrIu1XZzaKZQpGKfoQ/SaumCMqHGCEvfGxtQ5xG2Au23d5sGapl8LQH64hLtn/",
        ),
        (
            "$2b$04$abcdefghijklmnopqrstuughE8Ev8uGFaUgY2cNEySvxngrb/Jzdm",
            "$2b$04$abcdefghijklmnopqrstuubyCG3zY1GIXMyxfivm.ClDiInHzxjiq",
        ),
        (
            "$2y$05$abcdefghijklmnopqrstuuWG29KuyeAicPCJODk1zjyGvyQUU2awu",
            "$2y$05$abcdefghijklmnopqrstuu0oImNDIy4flhldV9YqunRgBAePKmw7m",
        ),
        (
            "$y$j75$abcdefgh$hycRI05iyPwUdPZDaw/SJaABdj2h8B1Bgxi1Z/4Xke0",
            "$y$j75$abcdefgh$dnXG1KuMBmwYrnuKh9nriQRakI62k6mwFrGgxhxYD/2",
        ),
        (
            "$y$j9T$F5Jx5fExrKuPp53xLKQ..1$tnSYvahCwPBHKZUspmcxMfb0.WiB9W.zEaKlOBL35rC",
            "$y$j9T$F5Jx5fExrKuPp53xLKQ..1$5P1uc1zvKhieqEtKttbwCQrTPXpY1cK9wEnTDKAqLD8",
        ),
    ];

    #[test]
    fn hashes_of_libxcrypt() {
        for (of_password, of_nothing) in MADE {
            let hash = |text: &str| Hash::parse(text).unwrap_or_else(|why| panic!("{text}: {why}"));
            assert!(hash(of_password).is_of(b"password"), "{of_password}");
            assert!(!hash(of_password).is_of(b""), "{of_password}");
            assert!(hash(of_nothing).is_of(b""), "{of_nothing}");
            assert!(!hash(of_nothing).is_of(b"password"), "{of_nothing}");
        }
    }

    /// What libxcrypt's `crypt` never returns, and what it may return by schemes that are missing
    /// here.
    #[test]
    fn texts_that_are_no_hashes() {
        for text in [
            "",
            "secret",
            "*",
            "!",
            "!$5$saltstring$OH4IDuTlsuTYPdED1gsuiRMyTAwNlRWyA6Xr3I4/dQ5",
            "abJnggxhB/y!I",
            "abJnggxhB/yWIx",
            "$1$",
            "$1$salt$short",
            "$5$rounds=10$salt$S2dlplsLzofRuJ/frAjtaYev58CdqEN6fUby2laILG1",
            "$6$rounds=5000$salt$short",
            "$2b$04$short",
            "$y$j9T$F5Jx5fExrKuPp53xLKQ..1$short",
        ] {
            let is = Hash::parse(text);
            assert!(matches!(is, Err(NotAHash::OfNoPassword(_))), "{text}");
        }
        for text in [
            "abJnggxhB/yWI",
            "abJnggxhB/yWIJnggxhB/yWI",
            "_J9..rasmBYk8r9AiWNc",
            "$7$x$y",
            "$gy$j9T$x$y",
            "$y$jzzz$abcdefgh$hycRI05iyPwUdPZDaw/SJaABdj2h8B1Bgxi1Z/4Xke0",
        ] {
            let is = Hash::parse(text);
            assert!(matches!(is, Err(NotAHash::Unknown(_))), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_checked() {
        for text in [
            "",
            "secret",
            "abJnggxhB/yWI",
            "$1$",
            "$1$salt$short",
            "$5$rounds=10$salt$S2dlplsLzofRuJ/frAjtaYev58CdqEN6fUby2laILG1",
            "$2b$04$short",
            "$2b$99$abcdefghijklmnopqrstuughE8Ev8uGFaUgY2cNEySvxngrb/Jzdm",
            "$7$x$y",
            "$y$jzzz$abcdefgh$hycRI05iyPwUdPZDaw/SJaABdj2h8B1Bgxi1Z/4Xke0",
            "$y$$$",
        ] {
            assert!(Hash::parse(text).is_err(), "{text}");
        }
    }
}
