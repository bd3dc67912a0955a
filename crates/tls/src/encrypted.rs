//! Private keys that a passphrase encrypts: PKCS #8 (RFC 5958) with PBES2 (RFC 8018 §6.2), which
//! OpenSSL writes. The key derivation is PBKDF2 with HMAC-SHA, the cipher AES-CBC.

use std::num::NonZeroU32;
use std::path::Path;

use aws_lc_rs::cipher::{
    AES_128, AES_192, AES_256, Algorithm, DecryptionContext, PaddedBlockDecryptingKey,
    UnboundCipherKey,
};
use aws_lc_rs::iv::FixedLength;
use aws_lc_rs::pbkdf2;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject as _;

use crate::IdentityError;
use crate::der::{INTEGER, NULL, OBJECT_ID, OCTET_STRING, SEQUENCE, expect};
use crate::identity::malformed;

/// The most rounds of a key derivation, so that no file keeps the process from its start. OpenSSL's
/// default is 2048.
const ROUNDS_MAX: u64 = 10_000_000;
/// The longest key of a cipher, bytes.
const CIPHER_KEY_BYTES_MAX: usize = 32;
/// The initialization vector of AES-CBC, bytes.
const IV_BYTES: usize = 16;

const BEGIN: &[u8] = b"-----BEGIN ENCRYPTED PRIVATE KEY-----";
const END: &[u8] = b"-----END ENCRYPTED PRIVATE KEY-----";

const PBES2: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 5, 13];
const PBKDF2: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 5, 12];
/// The pseudorandom functions: the last byte of their identifiers after [`HMAC`].
const HMAC: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 2];
const HMACS: [(u8, pbkdf2::Algorithm); 4] = [
    (7, pbkdf2::PBKDF2_HMAC_SHA1),
    (9, pbkdf2::PBKDF2_HMAC_SHA256),
    (10, pbkdf2::PBKDF2_HMAC_SHA384),
    (11, pbkdf2::PBKDF2_HMAC_SHA512),
];
/// The ciphers: the last byte of their identifiers after [`AES`], and the bytes of their keys.
const AES: &[u8] = &[0x60, 0x86, 0x48, 1, 0x65, 3, 4, 1];
static CIPHERS: [(u8, &Algorithm, usize); 3] =
    [(2, &AES_128, 16), (22, &AES_192, 24), (42, &AES_256, 32)];

/// The passphrases of encrypted keys: those that opened a key are tried first for the next one.
pub struct Passphrases<'a> {
    known: Vec<Vec<u8>>,
    ask: &'a mut dyn FnMut(&Path) -> Result<Vec<u8>, String>,
}

impl<'a> Passphrases<'a> {
    /// `ask` returns the passphrase of the key in a file, or why there is none.
    pub fn new(ask: &'a mut dyn FnMut(&Path) -> Result<Vec<u8>, String>) -> Passphrases<'a> {
        Passphrases {
            known: Vec::new(),
            ask,
        }
    }

    /// Decrypts a key. `path`: its file, for the program that returns passphrases.
    fn open(&mut self, key: &Encrypted, path: &Path) -> Result<Vec<u8>, String> {
        let mut known = self.known.iter();
        if let Some(opened) = known.find_map(|passphrase| key.decrypt(passphrase)) {
            return Ok(opened);
        }
        let passphrase = (self.ask)(path)?;
        let opened = key.decrypt(&passphrase);
        let opened = opened.ok_or("its passphrase is another one")?;
        self.known.push(passphrase);
        Ok(opened)
    }
}

/// The first private key of a PEM text; none if it has no key. `path`: the file of the text, for
/// messages and for the program that returns passphrases.
///
/// # Errors
/// It is malformed, or encrypted and cannot be decrypted.
pub(crate) fn private_key(
    pem: &[u8],
    path: &Path,
    passphrases: &mut Passphrases<'_>,
) -> Result<Option<PrivateKeyDer<'static>>, IdentityError> {
    match PrivateKeyDer::from_pem_slice(pem) {
        Ok(key) => return Ok(Some(key)),
        Err(rustls::pki_types::pem::Error::NoItemsFound) => {}
        Err(error) => return Err(malformed(path, &error)),
    }
    let Some(der) = encrypted_section(pem) else {
        return Ok(None);
    };
    let encrypted = |why| IdentityError::Encrypted(path.to_owned(), why);
    let key = Encrypted::parse(&der)
        .ok_or_else(|| encrypted("only PBES2 with PBKDF2 and AES-CBC is implemented".to_owned()))?;
    let opened = passphrases.open(&key, path).map_err(encrypted)?;
    Ok(Some(PrivateKeyDer::Pkcs8(opened.into())))
}

/// The content of the first encrypted key. The library's parser does not know its label, so it gets
/// the section with the label of a plain key, which has the same form.
fn encrypted_section(pem: &[u8]) -> Option<Vec<u8>> {
    let start = find(pem, BEGIN)? + BEGIN.len();
    let end = start + find(&pem[start..], END)?;
    let plain = [
        b"-----BEGIN PRIVATE KEY-----",
        &pem[start..end],
        b"-----END PRIVATE KEY-----\n",
    ];
    let section = PrivateKeyDer::from_pem_slice(&plain.concat()).ok()?;
    Some(section.secret_der().to_vec())
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}

/// An encrypted key (RFC 5958 §3) with the parameters of its encryption.
struct Encrypted {
    salt: Vec<u8>,
    rounds: NonZeroU32,
    hmac: pbkdf2::Algorithm,
    cipher: &'static Algorithm,
    cipher_key_bytes: usize,
    iv: [u8; IV_BYTES],
    content: Vec<u8>,
}

impl Encrypted {
    /// None if it is malformed, or another scheme.
    fn parse(der: &[u8]) -> Option<Encrypted> {
        let (info, _) = expect(der, SEQUENCE)?;
        let (scheme, rest) = expect(info, SEQUENCE)?;
        let (content, _) = expect(rest, OCTET_STRING)?;
        let scheme = algorithm(scheme, PBES2)?;
        let (scheme, _) = expect(scheme, SEQUENCE)?;
        let (derivation, rest) = expect(scheme, SEQUENCE)?;
        let (encryption, _) = expect(rest, SEQUENCE)?;

        let (derivation, _) = expect(algorithm(derivation, PBKDF2)?, SEQUENCE)?;
        let (salt, rest) = expect(derivation, OCTET_STRING)?;
        let (rounds, rest) = expect(rest, INTEGER)?;
        let rounds = unsigned(rounds).filter(|rounds| *rounds <= ROUNDS_MAX)?;
        // The length of the key is optional, and given by the cipher.
        let rest = expect(rest, INTEGER).map_or(rest, |(_, rest)| rest);
        let hmac = match expect(rest, SEQUENCE) {
            // RFC 8018 §5.2: the default.
            None => pbkdf2::PBKDF2_HMAC_SHA1,
            Some((function, _)) => {
                let last = last_of(function, HMAC)?;
                HMACS.iter().find(|(known, _)| *known == last.0)?.1
            }
        };

        let (last, parameters) = last_of(encryption, AES)?;
        let (_, cipher, cipher_key_bytes) = *CIPHERS.iter().find(|(known, ..)| *known == last)?;
        let (iv, _) = expect(parameters, OCTET_STRING)?;
        Some(Encrypted {
            salt: salt.to_vec(),
            rounds: NonZeroU32::new(u32::try_from(rounds).ok()?)?,
            hmac,
            cipher,
            cipher_key_bytes,
            iv: iv.try_into().ok()?,
            content: content.to_vec(),
        })
    }

    /// The key as PKCS #8; none with another passphrase.
    fn decrypt(&self, passphrase: &[u8]) -> Option<Vec<u8>> {
        let mut derived = [0; CIPHER_KEY_BYTES_MAX];
        let derived = &mut derived[..self.cipher_key_bytes];
        pbkdf2::derive(self.hmac, self.rounds, &self.salt, passphrase, derived);
        let key = UnboundCipherKey::new(self.cipher, derived).ok()?;
        let key = PaddedBlockDecryptingKey::cbc_pkcs7(key).ok()?;
        let mut content = self.content.clone();
        let iv = DecryptionContext::Iv128(FixedLength::from(self.iv));
        let opened = key.decrypt(&mut content, iv).ok()?;
        // One wrong passphrase of 256 has valid padding.
        let (whole, rest) = expect(opened, SEQUENCE)?;
        (rest.is_empty() && expect(whole, INTEGER).is_some()).then(|| opened.to_vec())
    }
}

/// The parameters of an algorithm (RFC 5280 §4.1.1.2), which must be this one.
fn algorithm<'a>(content: &'a [u8], wanted: &[u8]) -> Option<&'a [u8]> {
    let (id, parameters) = expect(content, OBJECT_ID)?;
    (id == wanted).then_some(parameters)
}

/// The last byte of the identifier of an algorithm, which must have this beginning, and the
/// parameters.
fn last_of<'a>(content: &'a [u8], beginning: &[u8]) -> Option<(u8, &'a [u8])> {
    let (id, parameters) = expect(content, OBJECT_ID)?;
    let [last] = id.strip_prefix(beginning)? else {
        return None;
    };
    let parameters = expect(parameters, NULL).map_or(parameters, |(_, rest)| rest);
    Some((*last, parameters))
}

/// A number of at most eight bytes that is not negative.
fn unsigned(content: &[u8]) -> Option<u64> {
    let is_fitting = (1..=8).contains(&content.len()) && content[0] & 0x80 == 0;
    let value = content
        .iter()
        .fold(0, |sum, byte| sum << 8 | u64::from(*byte));
    is_fitting.then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One key, in files that OpenSSL 3.0 wrote; the passphrase is `open`.
    const PLAIN: &[u8] = include_bytes!("encrypted/plain.pem");
    const AES128: &[u8] = include_bytes!("encrypted/aes128-sha1.pem");
    const AES192: &[u8] = include_bytes!("encrypted/aes192-sha512.pem");
    const AES256: &[u8] = include_bytes!("encrypted/aes256-sha256.pem");
    const SCRYPT: &[u8] = include_bytes!("encrypted/scrypt.pem");

    fn read(pem: &[u8], passphrase: &str) -> Result<Option<Vec<u8>>, String> {
        let mut ask = |_: &Path| Ok(passphrase.as_bytes().to_vec());
        let key = private_key(pem, Path::new("f"), &mut Passphrases::new(&mut ask));
        let key = key.map_err(|error| error.to_string())?;
        Ok(key.map(|key| key.secret_der().to_vec()))
    }

    #[test]
    fn keys_of_each_form_are_opened() {
        let plain = read(PLAIN, "").expect("a key").expect("a key");
        for pem in [AES128, AES192, AES256] {
            assert_eq!(read(pem, "open"), Ok(Some(plain.clone())));
            let why = read(pem, "opens").expect_err("another passphrase");
            assert!(why.ends_with("its passphrase is another one"), "{why}");
        }
        let why = read(SCRYPT, "open").expect_err("another derivation");
        assert!(why.contains("only PBES2 with PBKDF2"), "{why}");
        assert_eq!(read(b"no key", "open"), Ok(None));
    }

    #[test]
    fn a_passphrase_that_opened_a_key_is_tried_for_the_next_one() {
        let mut asked = Vec::new();
        let mut ask = |file: &Path| {
            asked.push(file.to_owned());
            Ok(b"open".to_vec())
        };
        let mut passphrases = Passphrases::new(&mut ask);
        for (pem, file) in [(AES256, "one"), (AES128, "two")] {
            let key = private_key(pem, Path::new(file), &mut passphrases);
            assert!(key.expect("a key").is_some());
        }
        assert_eq!(asked, [Path::new("one")]);
    }

    #[test]
    fn odd_keys_are_refused() {
        let der = encrypted_section(AES256).expect("a section");
        for place in 0..der.len() {
            // Too short, and with another byte.
            assert!(Encrypted::parse(&der[..place]).is_none());
            let mut other = der.clone();
            other[place] ^= 0x41;
            if let Some(key) = Encrypted::parse(&other).filter(|key| key.rounds.get() < 10_000) {
                // The padding and the first bytes tell most other keys, not all.
                let _ = key.decrypt(b"open");
            }
        }
        let mut many = der.clone();
        let rounds = find(&der, &[2, 2, 8, 0]).expect("2048 rounds");
        many.splice(rounds..rounds + 4, [2, 2, 0x80, 0]);
        assert!(Encrypted::parse(&many).is_none());
    }
}
