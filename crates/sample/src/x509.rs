//! Certificates (RFC 5280) for expressions, with OpenSSL's names and formats. Only this module uses
//! the certificate library.

mod shown;

use std::net::{Ipv4Addr, Ipv6Addr};

use x509_cert::certificate::{CertificateInner, Raw};
use x509_cert::der::asn1::ObjectIdentifier;
use x509_cert::der::{Decode as _, Encode as _};
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::ext::pkix::{CertificatePolicies, SubjectAltName};
use x509_cert::name::Name;
use x509_cert::time::Time;

use crate::text::push_hex;
pub use shown::{
    ShownCertificate, ShownRevocations, certificate_key, certificate_signature, common_name,
    ocsp_uri, shown_certificate, shown_name, shown_revocations, shown_time,
};

/// A parsed certificate.
pub(crate) struct Certificate(CertificateInner<Raw>);

/// The format of a distinguished name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameFormat {
    /// `/C=FR/CN=x`
    OneLine,
    /// `CN=x,C=FR` (RFC 2253)
    Rfc2253,
    /// `C = FR, CN = x`
    Spaced,
}

impl Certificate {
    pub(crate) fn parse(der: &[u8]) -> Option<Certificate> {
        CertificateInner::from_der(der).ok().map(Certificate)
    }

    /// The version's number as users know it: 3.
    pub(crate) fn version(&self) -> i64 {
        self.0.tbs_certificate().version() as i64 + 1
    }

    /// The serial number without its sign.
    pub(crate) fn serial(&self) -> &[u8] {
        match self.0.tbs_certificate().serial_number().as_bytes() {
            [0, rest @ ..] if !rest.is_empty() => rest,
            bytes => bytes,
        }
    }

    pub(crate) fn signature_algorithm(&self) -> &'static str {
        name_of(ALGORITHMS, &self.0.signature_algorithm().oid).unwrap_or("UNDEF")
    }

    pub(crate) fn key_algorithm(&self) -> &'static str {
        let key = self.0.tbs_certificate().subject_public_key_info();
        name_of(ALGORITHMS, &key.algorithm.oid).unwrap_or("UNDEF")
    }

    pub(crate) fn not_before(&self) -> Option<String> {
        written_time(&self.0.tbs_certificate().validity().not_before)
    }

    pub(crate) fn not_after(&self) -> Option<String> {
        written_time(&self.0.tbs_certificate().validity().not_after)
    }

    pub(crate) fn issuer(&self) -> Dn {
        Dn::of(self.0.tbs_certificate().issuer())
    }

    pub(crate) fn subject(&self) -> Dn {
        Dn::of(self.0.tbs_certificate().subject())
    }

    /// The alternative names, separated by commas.
    pub(crate) fn alternative_names(&self) -> Option<String> {
        let found = self.0.tbs_certificate().get_extension();
        let (_, SubjectAltName(names)) = found.ok()??;
        let all: Vec<String> = names.iter().map(alternative_name).collect();
        Some(all.join(", "))
    }

    /// The identifiers of its policies.
    pub(crate) fn policies(&self) -> Option<Vec<String>> {
        let found = self.0.tbs_certificate().get_extension();
        let (_, CertificatePolicies(policies)) = found.ok()??;
        let all = policies.iter().map(|policy| policy.policy_identifier);
        Some(all.map(|identifier| identifier.to_string()).collect())
    }
}

/// `YYMMDDhhmmssZ`, as in HAProxy; None for another century.
fn written_time(time: &Time) -> Option<String> {
    let (date, is_short) = match time {
        Time::UtcTime(time) => (time.to_date_time(), true),
        Time::GeneralTime(time) => (time.to_date_time(), false),
    };
    let is_known = is_short || (2000..2100).contains(&date.year());
    is_known.then(|| {
        format!(
            "{:02}{:02}{:02}{:02}{:02}{:02}Z",
            date.year() % 100,
            date.month(),
            date.day(),
            date.hour(),
            date.minutes(),
            date.seconds()
        )
    })
}

fn alternative_name(name: &GeneralName) -> String {
    match name {
        GeneralName::OtherName(_) => "othername:<unsupported>".to_owned(),
        GeneralName::Rfc822Name(name) => format!("email:{name}"),
        GeneralName::DnsName(name) => format!("DNS:{name}"),
        GeneralName::DirectoryName(name) => {
            let name = Dn::of(name).written(NameFormat::Spaced);
            format!("DirName:{}", String::from_utf8_lossy(&name))
        }
        GeneralName::EdiPartyName(_) => "EdiPartyName:<unsupported>".to_owned(),
        GeneralName::UniformResourceIdentifier(name) => format!("URI:{name}"),
        GeneralName::IpAddress(address) => format!("IP Address:{}", ip(address.as_bytes())),
        GeneralName::RegisteredId(identifier) => format!("Registered ID:{identifier}"),
    }
}

fn ip(bytes: &[u8]) -> String {
    if let Ok(bytes) = <[u8; 4]>::try_from(bytes) {
        return Ipv4Addr::from(bytes).to_string();
    }
    let Ok(bytes) = <[u8; 16]>::try_from(bytes) else {
        return "<invalid>".to_owned();
    };
    let groups = Ipv6Addr::from(bytes).segments();
    groups.map(|group| format!("{group:X}")).join(":")
}

/// A distinguished name.
pub(crate) struct Dn(Vec<Entry>);

struct Entry {
    /// OpenSSL's short name, or the identifier.
    name: String,
    is_known: bool,
    /// Its bytes without the type.
    value: Vec<u8>,
    /// Its bytes with the type.
    der: Vec<u8>,
    /// It belongs to the same set as the previous entry.
    is_further: bool,
}

impl Dn {
    fn of(name: &Name) -> Dn {
        let sets = name.iter_rdn();
        let entries = sets.flat_map(|set| {
            set.iter().enumerate().map(|(index, entry)| {
                let short = name_of(ENTRIES, &entry.oid);
                Entry {
                    name: short.map_or_else(|| entry.oid.to_string(), str::to_owned),
                    is_known: short.is_some(),
                    value: entry.value.value().to_vec(),
                    der: entry.value.to_der().unwrap_or_default(),
                    is_further: index > 0,
                }
            })
        });
        Dn(entries.collect())
    }

    /// The value of an entry with this name, by occurrence: the first is 1, the last is -1.
    pub(crate) fn entry(&self, name: &[u8], occurrence: i64) -> Option<Vec<u8>> {
        let is_named = |entry: &&Entry| entry.name.as_bytes().eq_ignore_ascii_case(name);
        let mut of_name = self.0.iter().filter(is_named);
        let skipped = usize::try_from(occurrence.unsigned_abs().checked_sub(1)?).ok()?;
        let entry = if occurrence > 0 {
            of_name.nth(skipped)
        } else {
            of_name.rev().nth(skipped)
        };
        entry.map(|entry| entry.value.clone())
    }

    /// The whole name.
    pub(crate) fn written(&self, format: NameFormat) -> Vec<u8> {
        let mut out = Vec::new();
        match format {
            NameFormat::OneLine => {
                for entry in &self.0 {
                    out.push(b'/');
                    out.extend_from_slice(entry.name.as_bytes());
                    out.push(b'=');
                    out.extend_from_slice(&entry.value);
                }
            }
            NameFormat::Spaced => {
                for (index, entry) in self.0.iter().enumerate() {
                    let between = match (index, entry.is_further) {
                        (0, _) => "",
                        (_, true) => " + ",
                        (_, false) => ", ",
                    };
                    out.extend_from_slice(between.as_bytes());
                    out.extend_from_slice(entry.name.as_bytes());
                    out.extend_from_slice(b" = ");
                    out.extend_from_slice(&entry.value);
                }
            }
            NameFormat::Rfc2253 => self.rfc2253(&mut out),
        }
        out
    }

    /// Writes the entries from the last to the first.
    fn rfc2253(&self, out: &mut Vec<u8>) {
        let mut follows_set = false;
        for (index, entry) in self.0.iter().rev().enumerate() {
            match (index, follows_set) {
                (0, _) => {}
                (_, true) => out.push(b'+'),
                (_, false) => out.push(b','),
            }
            follows_set = entry.is_further;
            out.extend_from_slice(entry.name.as_bytes());
            out.push(b'=');
            if entry.is_known {
                escaped(&entry.value, out)
            } else {
                out.push(b'#');
                entry.der.iter().for_each(|byte| push_hex(out, *byte));
            }
        }
    }
}

/// Escapes a value (RFC 2253 §2.4), in ASCII.
fn escaped(value: &[u8], out: &mut Vec<u8>) {
    for (index, byte) in value.iter().enumerate() {
        let is_first = index == 0;
        let is_last = index + 1 == value.len();
        match byte {
            b',' | b'+' | b'"' | b'\\' | b'<' | b'>' | b';' => out.extend([b'\\', *byte]),
            b'#' if is_first => out.extend([b'\\', *byte]),
            b' ' if is_first || is_last => out.extend([b'\\', *byte]),
            b' '..=b'~' => out.push(*byte),
            _ => {
                out.push(b'\\');
                push_hex(out, *byte);
            }
        }
    }
}

/// The public key of a certificate (DER): its `SubjectPublicKeyInfo`.
pub(crate) fn public_key(der: &[u8]) -> Option<Vec<u8>> {
    let certificate = Certificate::parse(der)?;
    let key = certificate.0.tbs_certificate().subject_public_key_info();
    key.to_der().ok()
}

type Names = &'static [(&'static str, &'static str)];

fn name_of(names: Names, identifier: &ObjectIdentifier) -> Option<&'static str> {
    let identifier = identifier.to_string();
    let mut known = names.iter();
    known
        .find(|(known, _)| *known == identifier)
        .map(|(_, name)| *name)
}

/// OpenSSL's names of key and signature algorithms.
const ALGORITHMS: Names = &[
    ("1.2.840.113549.1.1.1", "rsaEncryption"),
    ("1.2.840.113549.1.1.4", "RSA-MD5"),
    ("1.2.840.113549.1.1.5", "RSA-SHA1"),
    ("1.2.840.113549.1.1.10", "RSASSA-PSS"),
    ("1.2.840.113549.1.1.11", "RSA-SHA256"),
    ("1.2.840.113549.1.1.12", "RSA-SHA384"),
    ("1.2.840.113549.1.1.13", "RSA-SHA512"),
    ("1.2.840.113549.1.1.14", "RSA-SHA224"),
    ("1.2.840.10040.4.1", "dsaEncryption"),
    ("1.2.840.10045.2.1", "id-ecPublicKey"),
    ("1.2.840.10045.4.1", "ecdsa-with-SHA1"),
    ("1.2.840.10045.4.3.1", "ecdsa-with-SHA224"),
    ("1.2.840.10045.4.3.2", "ecdsa-with-SHA256"),
    ("1.2.840.10045.4.3.3", "ecdsa-with-SHA384"),
    ("1.2.840.10045.4.3.4", "ecdsa-with-SHA512"),
    ("1.3.101.112", "ED25519"),
    ("1.3.101.113", "ED448"),
];

/// OpenSSL's short names of the entries in distinguished names.
const ENTRIES: Names = &[
    ("2.5.4.3", "CN"),
    ("2.5.4.4", "SN"),
    ("2.5.4.5", "serialNumber"),
    ("2.5.4.6", "C"),
    ("2.5.4.7", "L"),
    ("2.5.4.8", "ST"),
    ("2.5.4.9", "street"),
    ("2.5.4.10", "O"),
    ("2.5.4.11", "OU"),
    ("2.5.4.12", "title"),
    ("2.5.4.13", "description"),
    ("2.5.4.15", "businessCategory"),
    ("2.5.4.16", "postalAddress"),
    ("2.5.4.17", "postalCode"),
    ("2.5.4.20", "telephoneNumber"),
    ("2.5.4.41", "name"),
    ("2.5.4.42", "GN"),
    ("2.5.4.43", "initials"),
    ("2.5.4.44", "generationQualifier"),
    ("2.5.4.45", "x500UniqueIdentifier"),
    ("2.5.4.46", "dnQualifier"),
    ("2.5.4.65", "pseudonym"),
    ("2.5.4.72", "role"),
    ("2.5.4.97", "organizationIdentifier"),
    ("1.2.840.113549.1.9.1", "emailAddress"),
    ("1.2.840.113549.1.9.2", "unstructuredName"),
    ("0.9.2342.19200300.100.1.1", "UID"),
    ("0.9.2342.19200300.100.1.25", "DC"),
    ("1.3.6.1.4.1.311.60.2.1.1", "jurisdictionL"),
    ("1.3.6.1.4.1.311.60.2.1.2", "jurisdictionST"),
    ("1.3.6.1.4.1.311.60.2.1.3", "jurisdictionC"),
];
