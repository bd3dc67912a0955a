//! Certificates: of the client (`ssl_c_*`), of this side to the client (`ssl_f_*`), of the server
//! (`ssl_s_*`).

use super::{client, number, server};
use crate::args::{Arg, ArgKind, NONE, spec};
use crate::cast::written;
use crate::fetch::{CLIENT_CONNECTION, Fetch, fetch};
use crate::x509::{Certificate, Dn, NameFormat};
use crate::{Bytes, Kind, SAMPLE_BYTES_MAX, Scope, Value};
use sha1::{Digest as _, Sha1};

/// The arguments of a fetch of names: the entry (`CN`), its occurrence, and the output format.
const ENTRY: crate::args::Spec = spec(0, &[ArgKind::Str, ArgKind::Int, ArgKind::Str]);

/// The DER of a certificate.
type Whose = for<'a> fn(&Scope<'a>) -> Option<&'a [u8]>;

fn of_client<'a>(scope: &Scope<'a>) -> Option<&'a [u8]> {
    client(scope)?.peer.first().map(|der| &**der)
}

fn of_root<'a>(scope: &Scope<'a>) -> Option<&'a [u8]> {
    client(scope)?.root.as_deref()
}

fn of_frontend<'a>(scope: &Scope<'a>) -> Option<&'a [u8]> {
    client(scope)?.own.as_deref()
}

fn of_server<'a>(scope: &Scope<'a>) -> Option<&'a [u8]> {
    server(scope)?.peer.first().map(|der| &**der)
}

/// The entries that every certificate has.
macro_rules! certificates {
    ($($table:ident $whose:path, $der:literal $i_dn:literal $key_alg:literal $notafter:literal $notbefore:literal
        $s_dn:literal $serial:literal $sha1:literal $sig_alg:literal $version:literal;)*) => {$(
        #[rustfmt::skip]
        pub(crate) const $table: &[Fetch] = &[
            fetch($der, NONE, Kind::Bin, &CLIENT_CONNECTION, "the certificate (DER)",
                |_, scope, _| $whose(scope).filter(|der| der.len() <= SAMPLE_BYTES_MAX).map(|der| Value::Bin(der.into()))),
            fetch($i_dn, ENTRY, Kind::Str, &CLIENT_CONNECTION, "the name of the certificate's issuer, or an entry of it",
                |args, scope, _| name(args, scope, $whose, |certificate| certificate.issuer())).checked(format_of),
            fetch($key_alg, NONE, Kind::Str, &CLIENT_CONNECTION, "the algorithm of the certificate's key",
                |_, scope, _| Some(Value::text(parsed($whose(scope))?.key_algorithm()))),
            fetch($notafter, NONE, Kind::Str, &CLIENT_CONNECTION, "when the certificate ends, as YYMMDDhhmmssZ",
                |_, scope, _| owned(&parsed($whose(scope))?.not_after()?)),
            fetch($notbefore, NONE, Kind::Str, &CLIENT_CONNECTION, "when the certificate begins, as YYMMDDhhmmssZ",
                |_, scope, _| owned(&parsed($whose(scope))?.not_before()?)),
            fetch($s_dn, ENTRY, Kind::Str, &CLIENT_CONNECTION, "the name of the certificate's subject, or an entry of it",
                |args, scope, _| name(args, scope, $whose, |certificate| certificate.subject())).checked(format_of),
            fetch($serial, NONE, Kind::Bin, &CLIENT_CONNECTION, "the certificate's serial number",
                |_, scope, _| copied(parsed($whose(scope))?.serial()).map(Value::Bin)),
            fetch($sha1, NONE, Kind::Bin, &CLIENT_CONNECTION, "the SHA-1 fingerprint of the certificate",
                |_, scope, _| copied(&Sha1::digest($whose(scope)?)).map(Value::Bin)),
            fetch($sig_alg, NONE, Kind::Str, &CLIENT_CONNECTION, "the algorithm that the certificate is signed with",
                |_, scope, _| Some(Value::text(parsed($whose(scope))?.signature_algorithm()))),
            fetch($version, NONE, Kind::Int, &CLIENT_CONNECTION, "the version of the certificate's form",
                |_, scope, _| Some(Value::Int(parsed($whose(scope))?.version()))),
        ];
    )*};
}
certificates! {
    CLIENT of_client, "ssl_c_der" "ssl_c_i_dn" "ssl_c_key_alg" "ssl_c_notafter" "ssl_c_notbefore" "ssl_c_s_dn" "ssl_c_serial" "ssl_c_sha1" "ssl_c_sig_alg" "ssl_c_version";
    FRONTEND of_frontend, "ssl_f_der" "ssl_f_i_dn" "ssl_f_key_alg" "ssl_f_notafter" "ssl_f_notbefore" "ssl_f_s_dn" "ssl_f_serial" "ssl_f_sha1" "ssl_f_sig_alg" "ssl_f_version";
    SERVER of_server, "ssl_s_der" "ssl_s_i_dn" "ssl_s_key_alg" "ssl_s_notafter" "ssl_s_notbefore" "ssl_s_s_dn" "ssl_s_serial" "ssl_s_sha1" "ssl_s_sig_alg" "ssl_s_version";
}

/// The others.
#[rustfmt::skip]
pub(crate) const OTHERS: &[Fetch] = &[
    fetch("ssl_c_chain_der", NONE, Kind::Bin, &CLIENT_CONNECTION, "the certificates above the client's (DER)", |_, scope, _| {
        chain(client(scope)?.peer.get(1..)?)
    }),
    fetch("ssl_s_chain_der", NONE, Kind::Bin, &CLIENT_CONNECTION, "the server's certificates (DER)", |_, scope, _| {
        chain(&server(scope)?.peer)
    }),
    fetch("ssl_c_r_dn", ENTRY, Kind::Str, &CLIENT_CONNECTION, "the name of the authority that the client's certificate was traced to, or an entry of it",
        |args, scope, _| name(args, scope, of_root, |certificate| certificate.subject())).checked(format_of),
    fetch("ssl_c_san", NONE, Kind::Str, &CLIENT_CONNECTION, "the alternative names of the client's certificate", |_, scope, _| {
        owned(&parsed(of_client(scope))?.alternative_names()?)
    }),
    fetch("ssl_c_policies", spec(0, &[ArgKind::Str]), Kind::Str, &CLIENT_CONNECTION, "the policies of the client's certificate, or one of them if it is there", |args, scope, _| {
        let policies = parsed(of_client(scope))?.policies()?;
        match args.first() {
            Some(Arg::Str(wanted)) if !wanted.is_empty() => {
                policies.iter().any(|known| known.as_bytes() == &**wanted).then(|| Value::text(&**wanted))
            }
            _ => owned(&policies.join(", ")),
        }
    }),
];

fn parsed(der: Option<&[u8]>) -> Option<Certificate> {
    Certificate::parse(der?)
}

/// A copy. As in HAProxy, None if it is too long for a sample.
fn copied<'a>(bytes: &[u8]) -> Option<Bytes<'a>> {
    let fits = bytes.len() <= SAMPLE_BYTES_MAX;
    fits.then(|| written(|out| out.extend_from_slice(bytes)))
}

fn owned<'a>(text: &str) -> Option<Value<'a>> {
    copied(text.as_bytes()).map(Value::Str)
}

fn chain<'a>(certificates: &[Box<[u8]>]) -> Option<Value<'a>> {
    let bytes: usize = certificates.iter().map(|der| der.len()).sum();
    let fits = (1..=SAMPLE_BYTES_MAX).contains(&bytes);
    fits.then(|| {
        Value::Bin(written(|out| {
            certificates
                .iter()
                .for_each(|der| out.extend_from_slice(der));
        }))
    })
}

fn format_of(args: &mut [Arg]) -> Result<(), String> {
    match args.get(2) {
        Some(Arg::Str(format)) if !matches!(&**format, b"" | b"rfc2253") => {
            let format = String::from_utf8_lossy(format);
            Err(format!(
                "only rfc2253 or a zero-length string supported, but got '{format}'"
            ))
        }
        _ => Ok(()),
    }
}

fn name<'a>(
    args: &'a [Arg],
    scope: &Scope<'a>,
    whose: Whose,
    of: fn(&Certificate) -> Dn,
) -> Option<Value<'a>> {
    let name = of(&parsed(whose(scope))?);
    let argument = |index: usize| match args.get(index) {
        Some(Arg::Str(text)) => &**text,
        _ => b"",
    };
    let entry = argument(0);
    let occurrence = match args.len() {
        0 | 1 => 1,
        _ => number(args, 1),
    };
    let written = match argument(2) {
        _ if !entry.is_empty() => name.entry(entry, occurrence)?,
        b"rfc2253" => name.written(NameFormat::Rfc2253),
        _ => name.written(NameFormat::OneLine),
    };
    if written.is_empty() {
        None
    } else {
        copied(&written).map(Value::Str)
    }
}
