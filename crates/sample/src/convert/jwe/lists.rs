//! The accepted algorithms of encrypted tokens (manual §3.1 jwt.decrypt_alg_list,
//! jwt.decrypt_enc_list).

/// Key management algorithms (RFC 7518 §4.1), and whether each is accepted by default. RSA1_5 must
/// be named (RFC 8725 §3.2).
const ALGORITHMS: [(&str, bool); 17] = [
    ("RSA1_5", false),
    ("RSA-OAEP", true),
    ("RSA-OAEP-256", true),
    ("A128KW", true),
    ("A192KW", true),
    ("A256KW", true),
    ("dir", true),
    ("ECDH-ES", true),
    ("ECDH-ES+A128KW", true),
    ("ECDH-ES+A192KW", true),
    ("ECDH-ES+A256KW", true),
    ("A128GCMKW", true),
    ("A192GCMKW", true),
    ("A256GCMKW", true),
    // These may be named, but are never accepted.
    ("PBES2-HS256+A128KW", false),
    ("PBES2-HS384+A192KW", false),
    ("PBES2-HS512+A256KW", false),
];

/// Content encryption algorithms (RFC 7518 §5.1).
const ENCRYPTIONS: [(&str, bool); 6] = [
    ("A128CBC-HS256", true),
    ("A192CBC-HS384", true),
    ("A256CBC-HS512", true),
    ("A128GCM", true),
    ("A192GCM", true),
    ("A256GCM", true),
];

/// The algorithms that a token may use. Bit n of a field stands for entry n of its list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenAlgorithms {
    algorithms: u32,
    encryptions: u32,
}

impl Default for TokenAlgorithms {
    fn default() -> Self {
        TokenAlgorithms {
            algorithms: by_default(&ALGORITHMS),
            encryptions: by_default(&ENCRYPTIONS),
        }
    }
}

impl TokenAlgorithms {
    /// Accepts only the key management algorithms of a list: names separated by `:`, `ALL`, and `!`
    /// before excluded ones.
    ///
    /// # Errors
    /// The unknown name.
    pub fn set_algorithms(&mut self, list: &str) -> Result<(), String> {
        self.algorithms = parse(&ALGORITHMS, list)?;
        Ok(())
    }

    /// The same for content encryption algorithms.
    ///
    /// # Errors
    /// The unknown name.
    pub fn set_encryptions(&mut self, list: &str) -> Result<(), String> {
        self.encryptions = parse(&ENCRYPTIONS, list)?;
        Ok(())
    }

    pub(super) fn has_algorithm(self, name: &str) -> bool {
        has(&ALGORITHMS, self.algorithms, name)
    }

    pub(super) fn has_encryption(self, name: &str) -> bool {
        has(&ENCRYPTIONS, self.encryptions, name)
    }
}

fn by_default(list: &[(&str, bool)]) -> u32 {
    let bits = list.iter().enumerate();
    bits.fold(0, |all, (place, (_, is_on))| {
        all | u32::from(*is_on) << place
    })
}

fn has(list: &[(&str, bool)], bits: u32, name: &str) -> bool {
    let place = list.iter().position(|(known, _)| *known == name);
    place.is_some_and(|place| bits & 1 << place != 0)
}

fn parse(list: &[(&str, bool)], text: &str) -> Result<u32, String> {
    let mut bits = 0;
    for word in text.split(':').filter(|word| !word.is_empty()) {
        let (name, is_on) = match word.strip_prefix('!') {
            Some(name) => (name, false),
            None => (word, true),
        };
        if name == "ALL" {
            bits = (1 << list.len()) - 1;
            continue;
        }
        let place = list.iter().position(|(known, _)| *known == name);
        let bit = 1 << place.ok_or_else(|| name.to_owned())?;
        if is_on { bits |= bit } else { bits &= !bit }
    }
    Ok(bits)
}
