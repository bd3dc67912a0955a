//! Cipher lists in OpenSSL's syntax (its manual page `openssl-ciphers`), applied to the suites that
//! are available here.

use super::Chosen;

/// Most elements of a list; HAProxy's lines are shorter.
const ELEMENTS_MAX: usize = 1024;

/// A suite of TLS 1.2.
struct Suite {
    number: u16,
    /// OpenSSL's name.
    name: &'static str,
    /// The registered name (RFC 5289, RFC 7905).
    standard: &'static str,
    /// Words other than its names that select it.
    classes: &'static [&'static str],
    strength_bits: u16,
}

/// Words that select every suite of the table.
const COMMON: &[&str] = &[
    "ALL", "ECDH", "HIGH", "ECDHE", "EECDH", "kECDHE", "kEECDH", "TLSv1.2",
];

/// The available suites in the order of OpenSSL 3.
#[rustfmt::skip]
const SUITES: [Suite; 6] = [
    Suite { number: 0xc02c, name: "ECDHE-ECDSA-AES256-GCM-SHA384", standard: "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", classes: &["ECDSA", "aECDSA", "AES", "AES256", "AESGCM", "FIPS", "SUITEB192"], strength_bits: 256 },
    Suite { number: 0xc030, name: "ECDHE-RSA-AES256-GCM-SHA384", standard: "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", classes: &["aRSA", "AES", "AES256", "AESGCM", "FIPS"], strength_bits: 256 },
    Suite { number: 0xcca9, name: "ECDHE-ECDSA-CHACHA20-POLY1305", standard: "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", classes: &["ECDSA", "aECDSA", "CHACHA20"], strength_bits: 256 },
    Suite { number: 0xcca8, name: "ECDHE-RSA-CHACHA20-POLY1305", standard: "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", classes: &["aRSA", "CHACHA20"], strength_bits: 256 },
    Suite { number: 0xc02b, name: "ECDHE-ECDSA-AES128-GCM-SHA256", standard: "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", classes: &["ECDSA", "aECDSA", "AES", "AES128", "AESGCM", "FIPS", "SUITEB128ONLY"], strength_bits: 128 },
    Suite { number: 0xc02f, name: "ECDHE-RSA-AES128-GCM-SHA256", standard: "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", classes: &["aRSA", "AES", "AES128", "AESGCM", "FIPS"], strength_bits: 128 },
];

/// The suites of TLS 1.3 (RFC 8446 §B.4). OpenSSL knows all of them; those with a number are
/// available here.
const TLS13: [(&str, Option<u16>); 5] = [
    ("TLS_AES_256_GCM_SHA384", Some(0x1302)),
    ("TLS_CHACHA20_POLY1305_SHA256", Some(0x1303)),
    ("TLS_AES_128_GCM_SHA256", Some(0x1301)),
    ("TLS_AES_128_CCM_SHA256", None),
    ("TLS_AES_128_CCM_8_SHA256", None),
];

/// The required bits of each security level (OpenSSL's SSL_CTX_set_security_level).
const LEVEL_BITS: [u16; 6] = [0, 80, 112, 128, 192, 256];

impl Suite {
    fn is_selected_by(&self, element: &str) -> bool {
        element.split('+').all(|word| {
            word == self.name
                || word == self.standard
                || self.classes.contains(&word)
                || COMMON.contains(&word)
        })
    }
}

/// The TLS 1.2 suites that a list selects. The error is OpenSSL's reason to refuse it.
pub fn tls12(list: &str) -> Result<Chosen, &'static str> {
    let mut order = Order {
        suites: SUITES.iter().collect(),
        chosen: 0,
    };
    let mut dropped: Vec<String> = Vec::new();
    let mut least_bits = 0;
    let elements = list.split([':', ',', ' ', ';']).filter(|e| !e.is_empty());
    for (index, element) in elements.enumerate() {
        if index == ELEMENTS_MAX {
            return Err("it is too long");
        }
        let (operator, words) = match element.as_bytes()[0] {
            operator @ (b'!' | b'-' | b'+' | b'@') => (operator, &element[1..]),
            _ => (b' ', element),
        };
        match (operator, words) {
            (b'!', _) => order.kill(words),
            (b'-', _) => order.remove(words),
            (b'+', _) => order.move_last(words),
            (b'@', "STRENGTH") => order.by_strength(),
            (b'@', _) => {
                let level = words.strip_prefix("SECLEVEL=");
                let level = level.and_then(|level| level.parse::<usize>().ok());
                let bits = level.and_then(|level| LEVEL_BITS.get(level));
                least_bits = *bits.ok_or("it has an unknown command")?;
            }
            (_, "SUITEB128" | "SUITEB192" | "SUITEB128ONLY") => return Ok(suite_b(words)),
            // The word is valid only at the beginning.
            (_, "DEFAULT") if index == 0 => order.add("ALL"),
            _ => {
                order.add(words);
                let is_served = SUITES.iter().any(|suite| suite.is_selected_by(words));
                if !is_served && !dropped.iter().any(|known| known == words) {
                    dropped.push(words.to_owned());
                }
            }
        }
    }
    let chosen = &order.suites[..order.chosen];
    let strong = chosen
        .iter()
        .filter(|suite| suite.strength_bits >= least_bits);
    Ok(Chosen {
        numbers: strong.map(|suite| suite.number).collect(),
        dropped,
    })
}

/// The suites for the two words that are a whole list (RFC 6460).
fn suite_b(word: &str) -> Chosen {
    let of_word = |suite: &&Suite| match word {
        "SUITEB128" => suite
            .classes
            .iter()
            .any(|class| class.starts_with("SUITEB")),
        word => suite.classes.contains(&word),
    };
    let suites = SUITES.iter().rev().filter(of_word);
    Chosen {
        numbers: suites.map(|suite| suite.number).collect(),
        dropped: Vec::new(),
    }
}

/// The suites that can still be selected. The first `chosen` ones are selected, in order of
/// preference.
struct Order {
    suites: Vec<&'static Suite>,
    chosen: usize,
}

impl Order {
    /// Selects the suites of `words`, after those that are selected already.
    fn add(&mut self, words: &str) {
        let others = self.suites.split_off(self.chosen);
        let (on, off) = selected(others, words);
        self.chosen += on.len();
        self.suites.extend(on);
        self.suites.extend(off);
    }

    /// Removes the suites of `words` permanently.
    fn kill(&mut self, words: &str) {
        let others = self.suites.split_off(self.chosen);
        let (_, on) = selected(std::mem::take(&mut self.suites), words);
        let (_, off) = selected(others, words);
        self.chosen = on.len();
        self.suites = on;
        self.suites.extend(off);
    }

    /// Deselects the suites of `words`. If they are selected again, they precede suites that were
    /// never selected.
    fn remove(&mut self, words: &str) {
        let others = self.suites.split_off(self.chosen);
        let (off, on) = selected(std::mem::take(&mut self.suites), words);
        self.chosen = on.len();
        self.suites = [on, off, others].concat();
    }

    /// Moves the selected suites of `words` after the other selected ones.
    fn move_last(&mut self, words: &str) {
        let others = self.suites.split_off(self.chosen);
        let (last, first) = selected(std::mem::take(&mut self.suites), words);
        self.suites = [first, last, others].concat();
    }

    fn by_strength(&mut self) {
        self.suites[..self.chosen].sort_by_key(|suite| std::cmp::Reverse(suite.strength_bits));
    }
}

/// The suites that `words` select, and the others.
fn selected(
    suites: Vec<&'static Suite>,
    words: &str,
) -> (Vec<&'static Suite>, Vec<&'static Suite>) {
    suites
        .into_iter()
        .partition(|suite| suite.is_selected_by(words))
}

/// The TLS 1.3 suites that a list of names selects. The error is OpenSSL's reason to refuse it.
pub fn tls13(list: &str) -> Result<Chosen, &'static str> {
    let mut chosen = Chosen::default();
    for name in list.split(':').filter(|name| !name.is_empty()) {
        match TLS13.iter().find(|(known, _)| *known == name) {
            Some((_, Some(number))) => chosen.push(*number),
            Some((_, None)) => chosen.dropped.push(name.to_owned()),
            None => return Err("it has an unknown name"),
        }
    }
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(list: &str) -> String {
        let Ok(chosen) = tls12(list) else {
            return "refused".to_owned();
        };
        let short = chosen.numbers.iter().map(|number| match number {
            0xc02c => "E256",
            0xc030 => "R256",
            0xcca9 => "EC20",
            0xcca8 => "RC20",
            0xc02b => "E128",
            0xc02f => "R128",
            _ => "?",
        });
        short.collect::<Vec<_>>().join(" ")
    }

    /// The output of `openssl ciphers` of OpenSSL 3.0, without the suites that are not available
    /// here.
    #[test]
    fn lists_come_to_what_openssl_makes_of_them() {
        let table = include_str!("ciphers/openssl.txt");
        let mut rows = 0;
        for row in table.lines().filter(|row| !row.starts_with('#')) {
            let (list, expected) = row.split_once('\t').expect("two cells");
            assert_eq!(names(list), expected, "{list}");
            rows += 1;
        }
        assert!(rows > 40, "{rows}");
    }

    #[test]
    fn what_is_not_available_is_named() {
        let chosen = tls12(
            "AES128-SHA:ECDHE-RSA-AES128-GCM-SHA256:DHE-RSA-AES128-GCM-SHA256:!aNULL:-RC4:+SHA:AES128-SHA:kRSA+AES",
        );
        let chosen = chosen.expect("a list");
        assert_eq!(chosen.numbers, [0xc02f]);
        assert_eq!(
            chosen.dropped,
            ["AES128-SHA", "DHE-RSA-AES128-GCM-SHA256", "kRSA+AES"]
        );
    }

    #[test]
    fn suites_of_tls_1_3_are_named_one_by_one() {
        let chosen = tls13("TLS_AES_128_GCM_SHA256:TLS_AES_128_CCM_SHA256:TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256")
            .expect("a list");
        assert_eq!(chosen.numbers, [0x1301, 0x1303]);
        assert_eq!(chosen.dropped, ["TLS_AES_128_CCM_SHA256"]);
        assert!(tls13("foo").is_err());
    }
}
