//! Options that both sides share.

use super::super::line::{Cursor, Parse};
use super::super::{Shared, line::Fault};
use super::{Chosen, Words, certificates, ciphers, groups};
use crate::diagnostic::Severity;
use crate::model::{CaFile, TlsVerify, TlsVersion, TlsVersions};
use crate::tree::Span;
use std::path::PathBuf;

/// The number of the lowest implemented version.
const LOWEST: u16 = TlsVersion::ALL[0].number();

/// Versions by their HAProxy names.
const VERSIONS: [(&str, u16); 5] = [
    ("SSLv3", 0x0300),
    ("TLSv1.0", 0x0301),
    ("TLSv1.1", 0x0302),
    ("TLSv1.2", 0x0303),
    ("TLSv1.3", 0x0304),
];

/// An option whose value is a list in OpenSSL's syntax.
struct ListOption {
    word: &'static str,
    /// What the list holds, in messages.
    what: &'static str,
    /// The only version of TLS that uses the list; none: all versions use it.
    only: Option<TlsVersion>,
    parser: fn(&str) -> Result<Chosen, &'static str>,
}

/// Options whose value is a list in OpenSSL's syntax.
macro_rules! lists {
    ($($name:ident $word:literal $what:literal $parser:path, $only:expr;)*) => {$(
        #[doc = concat!("`", $word, "`")]
        pub fn $name(words: &mut Words, cursor: &mut Cursor<'_>, _shared: &mut Shared<'_>) -> Parse {
            let option = ListOption { word: $word, what: $what, only: $only, parser: $parser };
            words.options.$name = Some(list(words, cursor, &option)?);
            Ok(())
        }
    )*};
}
lists! {
    ciphers "ciphers" "SSL cipher list" ciphers::tls12, Some(TlsVersion::Tls12);
    ciphersuites "ciphersuites" "TLS 1.3 cipher suites" ciphers::tls13, Some(TlsVersion::Tls13);
    curves "curves" "SSL curves list" groups::curves, None;
    sigalgs "sigalgs" "SSL Signature Algorithm list" groups::sigalgs, None;
    client_sigalgs "client-sigalgs" "SSL Client Signature Algorithm list" groups::sigalgs, None;
}

/// `ecdhe`
pub fn ecdhe(words: &mut Words, cursor: &mut Cursor<'_>, _shared: &mut Shared<'_>) -> Parse {
    let option = ListOption {
        word: "ecdhe",
        what: "elliptic named curve",
        only: None,
        parser: groups::curves,
    };
    words.ecdhe = Some(list(words, cursor, &option)?);
    Ok(())
}

/// Consumes a list, and records its faults.
fn list(words: &mut Words, cursor: &mut Cursor<'_>, option: &ListOption) -> Parse<Vec<u16>> {
    let ListOption { word, what, .. } = option;
    let text = value(cursor, &format!("missing {word} list"))?;
    let chosen = (option.parser)(text);
    let unable = |why: &str| {
        let message = format!("unable to set {what} to '{text}': {why}.");
        Some((Severity::Alert, message))
    };
    let found = match &chosen {
        Err(why) => unable(why),
        Ok(chosen) if chosen.numbers.is_empty() => unable("nothing of it is available here"),
        Ok(chosen) if !chosen.dropped.is_empty() => {
            let dropped = chosen.dropped.join(", ");
            let message = format!("not available here, and left out of '{word}': {dropped}.");
            Some((Severity::Notice, message))
        }
        Ok(_) => None,
    };
    words.note(cursor, word, option.only, found);
    Ok(chosen.unwrap_or_default().numbers)
}

/// Consumes the value of an option, which must exist.
pub(super) fn value<'a>(cursor: &mut Cursor<'a>, missing: &str) -> Parse<&'a str> {
    let word = cursor.last();
    let text = cursor
        .line
        .need(cursor.at, || format!("'{word}' : {missing}."))?;
    cursor.take();
    Ok(text)
}

/// A file name; a relative one is resolved from `base`.
pub(super) fn file(
    cursor: &mut Cursor<'_>,
    missing: &str,
    base: Option<&PathBuf>,
) -> Parse<PathBuf> {
    value(cursor, missing)?;
    let path = cursor.line.path(cursor.at - 1);
    Ok(certificates::from_base(path, base))
}

/// Options without arguments.
macro_rules! switches {
    ($($name:ident $($field:ident).+ = $value:expr;)*) => {$(
        #[doc = concat!("`", stringify!($name), "`, with `-` for `_`.")]
        pub fn $name(words: &mut Words, _cursor: &mut Cursor<'_>, _shared: &mut Shared<'_>) -> Parse {
            words.options.$($field).+ = $value;
            Ok(())
        }
    )*};
}
switches! {
    allow_0rtt allow_0rtt = true;
    no_alpn alpn = Some(Vec::new());
    no_ca_names no_ca_names = true;
    no_tls_tickets tickets = Some(false);
    tls_tickets tickets = Some(true);
}

/// `no-` and `force-` for each version.
macro_rules! versions {
    ($($no:ident $force:ident $number:literal;)*) => {$(
        #[doc = concat!("`", stringify!($no), "`, with `-` for `_`.")]
        pub fn $no(words: &mut Words, _cursor: &mut Cursor<'_>, _shared: &mut Shared<'_>) -> Parse {
            if !words.options.versions.off.contains(&$number) {
                words.options.versions.off.push($number);
            }
            Ok(())
        }
        #[doc = concat!("`", stringify!($force), "`, with `-` for `_`.")]
        pub fn $force(words: &mut Words, _cursor: &mut Cursor<'_>, _shared: &mut Shared<'_>) -> Parse {
            words.options.versions.min = Some($number);
            words.options.versions.max = Some($number);
            Ok(())
        }
    )*};
}
versions! {
    no_sslv3 force_sslv3 0x0300;
    no_tlsv10 force_tlsv10 0x0301;
    no_tlsv11 force_tlsv11 0x0302;
    no_tlsv12 force_tlsv12 0x0303;
    no_tlsv13 force_tlsv13 0x0304;
}

/// `ssl-min-ver`
pub fn ssl_min_ver(words: &mut Words, cursor: &mut Cursor<'_>, _shared: &mut Shared<'_>) -> Parse {
    words.options.versions.min = Some(version(cursor)?);
    Ok(())
}

/// `ssl-max-ver`
pub fn ssl_max_ver(words: &mut Words, cursor: &mut Cursor<'_>, _shared: &mut Shared<'_>) -> Parse {
    words.options.versions.max = Some(version(cursor)?);
    Ok(())
}

fn version(cursor: &mut Cursor<'_>) -> Parse<u16> {
    let text = value(cursor, "missing the version")?;
    let known = VERSIONS.iter().find(|(name, _)| *name == text);
    let number = known.map(|(_, number)| *number);
    number.ok_or_else(|| cursor.fault(format!("'{text}' : unknown ssl/tls version.")))
}

fn name_of(version: u16) -> &'static str {
    let known = VERSIONS.iter().find(|(_, number)| *number == version);
    known.map_or("", |(name, _)| name)
}

/// Reports faults in the versions of a line that uses TLS.
pub(super) fn check_versions(
    versions: &TlsVersions,
    title: &str,
    span: &Span,
    shared: &mut Shared<'_>,
) {
    let has_bounds = versions.min.is_some() || versions.max.is_some();
    if has_bounds && !versions.off.is_empty() {
        let message = format!(
            "no-sslv3/no-tlsv1x are ignored for {title}. Use only 'ssl-min-ver' and 'ssl-max-ver' to fix."
        );
        shared.settle(Err(Fault::new(span.clone(), message).as_warning()));
    }
    let message = match (versions.min, versions.max, versions.range()) {
        (_, Some(max), None) if max < LOWEST => format!(
            "TLSv1.2 is the lowest version here: the highest version {} leaves none for {title}.",
            name_of(max)
        ),
        (_, _, None) => format!("all SSL/TLS versions are disabled for {title}."),
        (Some(min), _, Some(_)) if min < LOWEST => {
            let name = name_of(min);
            let message = format!(
                "TLSv1.2 is the lowest version here: the lowest version {name} is not available."
            );
            let mut notice = *Fault::new(span.clone(), message);
            notice.severity = Severity::Notice;
            shared.tls.notices.push(notice);
            return;
        }
        (_, _, Some(_)) => return,
    };
    shared.settle(Err(Fault::new(span.clone(), message)));
}

/// `alpn`
pub fn alpn(words: &mut Words, cursor: &mut Cursor<'_>, _shared: &mut Shared<'_>) -> Parse {
    words.options.alpn = Some(protocols(cursor)?);
    Ok(())
}

/// A list of protocols, separated by commas.
pub fn protocols(cursor: &mut Cursor<'_>) -> Parse<Vec<Vec<u8>>> {
    value(cursor, "missing the comma-delimited ALPN protocol suite")?;
    let text = cursor.line.bytes(cursor.at - 1);
    // HAProxy ignores empty names.
    let names = text.split(|byte| *byte == b',').filter(|n| !n.is_empty());
    let names: Vec<Vec<u8>> = names.map(<[u8]>::to_vec).collect();
    if names.iter().any(|name| name.len() > usize::from(u8::MAX)) {
        Err(cursor.fault("ALPN protocol name is longer than 255 bytes."))
    } else {
        Ok(names)
    }
}

/// `verify` on a bind line.
pub fn verify_client(
    words: &mut Words,
    cursor: &mut Cursor<'_>,
    _shared: &mut Shared<'_>,
) -> Parse {
    words.options.verify = Some(match value(cursor, "missing verify method")? {
        "none" => TlsVerify::None,
        "optional" => TlsVerify::Optional,
        "required" => TlsVerify::Required,
        word => {
            return Err(cursor.fault(format!(
                "'verify' : unknown verify method '{word}', only 'none', 'optional', and 'required' are supported."
            )));
        }
    });
    Ok(())
}

/// `verify` on a server line.
pub fn verify_server(
    words: &mut Words,
    cursor: &mut Cursor<'_>,
    _shared: &mut Shared<'_>,
) -> Parse {
    words.options.verify = Some(match value(cursor, "missing verify method")? {
        "none" => TlsVerify::None,
        "required" => TlsVerify::Required,
        word => {
            return Err(cursor.fault(format!(
                "'verify' : unknown verify method '{word}', only 'none' and 'required' are supported."
            )));
        }
    });
    Ok(())
}

/// `ca-file`
pub fn ca_file(words: &mut Words, cursor: &mut Cursor<'_>, shared: &mut Shared<'_>) -> Parse {
    words.options.ca_file = Some(authorities(cursor, shared)?);
    Ok(())
}

/// `ca-verify-file`
pub fn ca_verify_file(
    words: &mut Words,
    cursor: &mut Cursor<'_>,
    shared: &mut Shared<'_>,
) -> Parse {
    words.options.ca_verify_file = Some(authorities(cursor, shared)?);
    Ok(())
}

fn authorities(cursor: &mut Cursor<'_>, shared: &Shared<'_>) -> Parse<CaFile> {
    if cursor.peek() == "@system-ca" {
        cursor.take();
        return Ok(CaFile::System);
    }
    file(cursor, "missing CAfile path", shared.tls.ca_base.as_ref()).map(CaFile::Path)
}

/// `crl-file`
pub fn crl_file(words: &mut Words, cursor: &mut Cursor<'_>, shared: &mut Shared<'_>) -> Parse {
    let base = shared.tls.ca_base.as_ref();
    words.options.crl_file = Some(file(cursor, "missing CRLfile path", base)?);
    Ok(())
}
