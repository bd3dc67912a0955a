//! `redaction`: attributes that are not allowed are removed, and values are masked.

use super::{Processor, ProcessorSettings};
use crate::config::components::{EVERY, Entry, Parse, name};
use crate::config::options::{Kind, Opt, Section, opt};
use crate::config::pattern;

/// Attributes that stay, and text that is masked in their values and in the bodies of log records.
#[derive(Clone, Debug, PartialEq)]
pub struct Redaction {
    /// Whether every key is allowed.
    pub allows_all_keys: bool,
    /// Keys of attributes that stay.
    pub allowed_keys: Vec<String>,
    /// Keys whose values are not looked at.
    pub ignored_keys: Vec<String>,
    /// Regular expressions of such keys.
    pub ignored_key_patterns: Vec<String>,
    /// Regular expressions of keys whose whole values are masked.
    pub blocked_key_patterns: Vec<String>,
    /// Regular expressions of what is masked in values.
    pub blocked_values: Vec<String>,
    /// Regular expressions of values that are never masked.
    pub allowed_values: Vec<String>,
    /// Whether values that are not texts are looked at too, as texts.
    pub reads_all_types: bool,
    /// Replacement of masked text.
    pub mask: Mask,
    /// Level of detail of the summary attributes.
    pub summary: Summary,
}

/// Replacement of masked text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mask {
    /// `****`
    Asterisks,
    /// MD5 hash of the text. All hashes are in hexadecimal.
    Md5,
    /// SHA-1 hash of the text.
    Sha1,
    /// SHA3-256 hash of the text.
    Sha3,
    /// HMAC of the text with SHA-256 and this key.
    HmacSha256(String),
    /// HMAC of the text with SHA-512 and this key.
    HmacSha512(String),
}

/// Attributes that tell of the changes (`redaction.masked.count` and so on).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Summary {
    /// None.
    Silent,
    /// The number of keys.
    Counts,
    /// The number of keys, and their names.
    Keys,
}

impl ProcessorSettings for Redaction {}

const HASHES: &[&str] = &["md5", "sha1", "sha3", "hmac-sha256", "hmac-sha512"];
/// Bytes of the keys of HMACs at least: those of the hashes.
const KEY_BYTES_SHA256: usize = 32;
const KEY_BYTES_SHA512: usize = 64;

const NO_MODEL: &str =
    "a model that was trained for the Collector decides what is replaced; use 'blocked_values'";
const NO_PARSERS: &str = "statements of databases are not parsed; use 'blocked_values'";

#[rustfmt::skip]
const OPTIONS: &[Opt] = &[
    opt("allow_all_keys", Kind::Flag, "false", "attributes of all keys stay"),
    opt("allowed_keys", Kind::Texts, "", "keys of attributes that stay; without `allow_all_keys` all others are removed"),
    opt("ignored_keys", Kind::Texts, "", "keys of attributes that stay as they are, whatever their values"),
    opt("ignored_key_patterns", Kind::Texts, "", "regular expressions of such keys"),
    opt("redact_all_types", Kind::Flag, "false", "values of attributes that are not texts are looked at as texts too; one that is masked becomes a text"),
    opt("blocked_key_patterns", Kind::Texts, "", "regular expressions of keys whose whole values are masked"),
    opt("blocked_values", Kind::Texts, "", "regular expressions: what they match in a value is masked"),
    opt("allowed_values", Kind::Texts, "", "regular expressions: a value that one matches is not masked"),
    opt("hash_function", Kind::WordAnyCase(HASHES), "", "a hash in hexadecimal stands for masked text (`sha3`: SHA3-256); `****` where it is not written"),
    opt("hmac_key", Kind::Text, "", "the key of `hmac-sha256` (at least 32 bytes) and `hmac-sha512` (at least 64)"),
    opt("summary", Kind::Text, "", "attributes `redaction.*`: `debug` tells keys and their counts, `info` counts, `silent` nothing"),
    opt("url_sanitizer", Kind::Maybe(&[]), "", "identifiers in paths of URLs are replaced by `*`").refused(NO_MODEL),
    opt("db_sanitizer", Kind::Section(&[]), "", "values in statements and commands of databases are replaced by `?`").refused(NO_PARSERS),
];

pub(crate) const ENTRY: Entry = Entry {
    names: &[name("redaction")],
    doc: "removes attributes that are not allowed, and masks values",
    takes: EVERY,
    carries: EVERY,
    options: &[OPTIONS],
    parse: Parse::Processor(parse),
};

fn parse(section: &Section<'_>) -> Processor {
    Processor::new(Redaction {
        allows_all_keys: section.flag("allow_all_keys"),
        allowed_keys: section.texts("allowed_keys"),
        ignored_keys: section.texts("ignored_keys"),
        ignored_key_patterns: patterns(section, "ignored_key_patterns"),
        blocked_key_patterns: patterns(section, "blocked_key_patterns"),
        blocked_values: patterns(section, "blocked_values"),
        allowed_values: patterns(section, "allowed_values"),
        reads_all_types: section.flag("redact_all_types"),
        mask: mask(section),
        summary: summary(section),
    })
}

fn patterns(section: &Section<'_>, name: &str) -> Vec<String> {
    let texts = section.whole_texts_at(name).into_iter();
    texts
        .map(|(text, at)| {
            if let Err(reason) = pattern::check(&text) {
                let message = format!("{}::{name}: {reason}", section.path);
                section.notes.error(at, message);
            }
            text
        })
        .collect()
}

fn mask(section: &Section<'_>) -> Mask {
    let function = section.text("hash_function").to_ascii_lowercase();
    match &*function {
        "md5" => Mask::Md5,
        "sha1" => Mask::Sha1,
        "sha3" => Mask::Sha3,
        "hmac-sha256" => Mask::HmacSha256(key(section, &function, KEY_BYTES_SHA256)),
        "hmac-sha512" => Mask::HmacSha512(key(section, &function, KEY_BYTES_SHA512)),
        _ => Mask::Asterisks,
    }
}

fn key(section: &Section<'_>, function: &str, bytes_min: usize) -> String {
    let key = section.text("hmac_key");
    if key.len() < bytes_min {
        let has = key.len();
        let message = format!("must have at least {bytes_min} bytes for {function}, and has {has}");
        section.error("hmac_key", &message);
    }
    key
}

fn summary(section: &Section<'_>) -> Summary {
    match &*section.text("summary") {
        "debug" => Summary::Keys,
        "info" => Summary::Counts,
        "" | "silent" => Summary::Silent,
        _ => {
            // As in the Collector.
            section.warn("summary", "is not known: it is taken for silent");
            Summary::Silent
        }
    }
}
