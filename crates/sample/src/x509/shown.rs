//! Certificates and revocation lists for the runtime interface, in the format of OpenSSL's
//! programs.

use std::time::Duration;

use x509_cert::der::asn1::{ObjectIdentifier, UintRef};
use x509_cert::der::{AnyRef, DateTime, Decode as _, Header, Reader as _, SliceReader, Tag};
use x509_cert::ext::pkix::AuthorityInfoAccessSyntax;
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::name::Name;
use x509_cert::spki::AlgorithmIdentifierOwned;
use x509_cert::time::Time;

use super::{ALGORITHMS, Certificate, Dn, NameFormat, name_of};

/// The fields of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownCertificate {
    /// The serial number in hexadecimal digits.
    pub serial: String,
    /// `Jun 10 08:57:45 2021 GMT`
    pub not_before: String,
    /// In the same format.
    pub not_after: String,
    /// The end of validity, in seconds after the UNIX epoch.
    pub not_after_s: u64,
    /// `DNS:` and a name, separated by commas.
    pub names: String,
    /// The kind of the key and its bits: `RSA2048`.
    pub algorithm: String,
    /// `/C=FR/CN=x`
    pub subject: String,
    /// In the same format.
    pub issuer: String,
    /// The address for status requests (RFC 5280 §4.2.2.1).
    pub ocsp_uri: Option<String>,
}

/// The fields of a list of revoked certificates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownRevocations {
    /// The version's number as users know it: 2.
    pub version: u8,
    /// OpenSSL's long name of the signature algorithm.
    pub algorithm: String,
    /// `/C=FR/CN=x`
    pub issuer: String,
    /// In the format of [`ShownCertificate::not_before`].
    pub last_update: String,
    /// In the same format; None if the list does not contain it.
    pub next_update: Option<String>,
    /// Serial numbers in hexadecimal digits, each with the time of its revocation.
    pub revoked: Vec<(String, String)>,
}

/// 1.3.6.1.5.5.7.48.1, id-ad-ocsp.
const OCSP: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.48.1");

/// Parses a certificate (DER). None if it is not valid.
#[must_use]
pub fn shown_certificate(der: &[u8]) -> Option<ShownCertificate> {
    let certificate = Certificate::parse(der)?;
    let tbs = certificate.0.tbs_certificate();
    let validity = tbs.validity();
    let names = tbs.get_extension().ok().flatten();
    let names = names.map_or_else(Vec::new, |(_, SubjectAltName(names))| {
        let host = |name: &GeneralName| match name {
            GeneralName::DnsName(name) => format!("DNS:{name}"),
            _ => String::new(),
        };
        names.iter().map(host).collect()
    });
    Some(ShownCertificate {
        serial: hex(certificate.serial()),
        not_before: shown_time(seconds(&validity.not_before)),
        not_after: shown_time(seconds(&validity.not_after)),
        not_after_s: seconds(&validity.not_after),
        names: names.join(", "),
        algorithm: key(&certificate).unwrap_or_default(),
        subject: one_line(tbs.subject()),
        issuer: one_line(tbs.issuer()),
        ocsp_uri: responder(&certificate),
    })
}

/// The address for status requests of a certificate (DER): the first OCSP responder that it names.
#[must_use]
pub fn ocsp_uri(der: &[u8]) -> Option<String> {
    responder(&Certificate::parse(der)?)
}

fn responder(certificate: &Certificate) -> Option<String> {
    let places = certificate.0.tbs_certificate().get_extension();
    let (_, AuthorityInfoAccessSyntax(places)) = places.ok().flatten()?;
    places
        .into_iter()
        .find_map(|place| match (place.access_method, place.access_location) {
            (OCSP, GeneralName::UniformResourceIdentifier(uri)) => Some(uri.to_string()),
            _ => None,
        })
}

/// The kind of the key of a certificate (DER) and its bits: `RSA2048`.
#[must_use]
pub fn certificate_key(der: &[u8]) -> Option<String> {
    key(&Certificate::parse(der)?)
}

/// The short name of a certificate's signature algorithm (DER), as in OpenSSL.
#[must_use]
pub fn certificate_signature(der: &[u8]) -> Option<&'static str> {
    Some(Certificate::parse(der)?.signature_algorithm())
}

/// The first common name of the subject of a certificate (DER).
#[must_use]
pub fn common_name(der: &[u8]) -> Option<Vec<u8>> {
    Certificate::parse(der)?.subject().entry(b"CN", 1)
}

/// Parses a list of revoked certificates (DER). None if it is not valid.
#[must_use]
pub fn shown_revocations(der: &[u8]) -> Option<ShownRevocations> {
    let mut reader = SliceReader::new(der).ok()?;
    let shown = reader.sequence(|reader| {
        let mut shown = reader.sequence(revocations)?;
        let algorithm = AlgorithmIdentifierOwned::decode(reader)?;
        AnyRef::decode(reader)?;
        shown.algorithm = long_name(&algorithm.oid);
        Ok::<_, x509_cert::der::Error>(shown)
    });
    shown.ok()
}

/// The signed part of a list (RFC 5280 §5.1.2), of either version.
fn revocations(reader: &mut SliceReader<'_>) -> x509_cert::der::Result<ShownRevocations> {
    let version = Option::<u8>::decode(reader)?;
    AlgorithmIdentifierOwned::decode(reader)?;
    let issuer = Name::decode(reader)?;
    let last_update = Time::decode(reader)?;
    let next_update = Option::<Time>::decode(reader)?;
    let mut revoked = Vec::new();
    if !reader.is_finished() && Header::peek(reader)?.tag() == Tag::Sequence {
        reader.sequence(|reader| {
            while !reader.is_finished() {
                revoked.push(reader.sequence(one_revoked)?);
            }
            Ok::<_, x509_cert::der::Error>(())
        })?;
    }
    // Extensions.
    while !reader.is_finished() {
        AnyRef::decode(reader)?;
    }
    Ok(ShownRevocations {
        version: version.unwrap_or(0) + 1,
        algorithm: String::new(),
        issuer: one_line(&issuer),
        last_update: shown_time(seconds(&last_update)),
        next_update: next_update.as_ref().map(|time| shown_time(seconds(time))),
        revoked,
    })
}

fn one_revoked(reader: &mut SliceReader<'_>) -> x509_cert::der::Result<(String, String)> {
    let serial = AnyRef::decode(reader)?;
    let since = Time::decode(reader)?;
    while !reader.is_finished() {
        AnyRef::decode(reader)?;
    }
    let serial = hex(unsigned(serial.value()));
    Ok((serial, shown_time(seconds(&since))))
}

/// A name (DER) in the format `C = FR, CN = x`. None if it is not valid.
#[must_use]
pub fn shown_name(der: &[u8]) -> Option<String> {
    let name = Name::from_der(der).ok()?;
    let text = Dn::of(&name).written(NameFormat::Spaced);
    Some(String::from_utf8_lossy(&text).into_owned())
}

/// A time, in seconds after the UNIX epoch, in the format `Jun 10 08:57:45 2021 GMT`.
#[must_use]
pub fn shown_time(seconds: u64) -> String {
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let Ok(date) = DateTime::from_unix_duration(Duration::from_secs(seconds)) else {
        return "Bad time value".to_owned();
    };
    format!(
        "{} {:2} {:02}:{:02}:{:02} {} GMT",
        MONTHS[usize::from(date.month()).saturating_sub(1) % MONTHS.len()],
        date.day(),
        date.hour(),
        date.minutes(),
        date.seconds(),
        date.year()
    )
}

fn seconds(time: &Time) -> u64 {
    time.to_unix_duration().as_secs()
}

fn one_line(name: &Name) -> String {
    let text = Dn::of(name).written(NameFormat::OneLine);
    String::from_utf8_lossy(&text).into_owned()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}

fn unsigned(bytes: &[u8]) -> &[u8] {
    match bytes {
        [0, rest @ ..] if !rest.is_empty() => rest,
        bytes => bytes,
    }
}

/// OpenSSL's long name of an algorithm.
fn long_name(identifier: &ObjectIdentifier) -> String {
    let short = name_of(ALGORITHMS, identifier).unwrap_or("undefined");
    match short.strip_prefix("RSA-") {
        Some(hash) => format!("{}WithRSAEncryption", hash.to_lowercase()),
        None => short.to_owned(),
    }
}

/// The kind of a certificate's key and its bits.
fn key(certificate: &Certificate) -> Option<String> {
    let key = certificate.0.tbs_certificate().subject_public_key_info();
    match name_of(ALGORITHMS, &key.algorithm.oid)? {
        "rsaEncryption" | "RSASSA-PSS" => {
            let bytes = key.subject_public_key.as_bytes()?;
            let mut reader = SliceReader::new(bytes).ok()?;
            let modulus = reader.sequence(|reader| {
                let modulus = UintRef::decode(reader)?;
                AnyRef::decode(reader)?;
                Ok::<_, x509_cert::der::Error>(modulus)
            });
            let modulus = modulus.ok()?;
            let first = modulus.as_bytes().first()?;
            let bits = modulus.as_bytes().len() * 8 - first.leading_zeros() as usize;
            Some(format!("RSA{bits}"))
        }
        "id-ecPublicKey" => {
            let parameters = key.algorithm.parameters.as_ref()?;
            let curve: ObjectIdentifier = parameters.decode_as().ok()?;
            let bits = match curve.to_string().as_str() {
                "1.2.840.10045.3.1.7" => 256,
                "1.3.132.0.34" => 384,
                "1.3.132.0.35" => 521,
                _ => return None,
            };
            Some(format!("EC{bits}"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_shown_in_openssls_words() {
        let shown = shown_certificate(include_bytes!("data/server.der")).expect("a certificate");
        assert!(shown.not_before.ends_with(" GMT"), "{shown:?}");
        assert!(
            shown.algorithm.starts_with("RSA") || shown.algorithm.starts_with("EC"),
            "{shown:?}"
        );
        assert!(shown.subject.contains("/CN="), "{shown:?}");
        assert_eq!(shown_certificate(b"x"), None);
        assert_eq!(shown_revocations(b"x"), None);
    }

    #[test]
    fn times() {
        assert_eq!(shown_time(1_623_315_465), "Jun 10 08:57:45 2021 GMT");
        assert_eq!(shown_time(0), "Jan  1 00:00:00 1970 GMT");
    }
}
