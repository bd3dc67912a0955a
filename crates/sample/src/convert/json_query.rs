//! JSON values by their paths, and the parts of a JSON Web Token (RFC 7519).

use super::coding::decode_url64;
use super::digest::{Algorithm, SHA256, SHA384, SHA512};
use super::json_path::{Found, find, number};
use std::sync::Arc;

use super::token_key::{self, PublicKey};
use super::{Convert, bytes_of, convert, written};
use crate::args::ArgKind::{Str, StrOrVar};
use crate::args::{Arg, int_at, spec, str_at};
use crate::cast::cast;
use crate::text::read_c_int;
use crate::{Bytes, Kind, Scope, Value};
use ctutils::CtEq as _;

pub(crate) const CONVERTERS: &[Convert] = &[
    convert(
        "json_query",
        spec(1, &[Str, Str]),
        Kind::Str,
        Kind::Any,
        "the value at a JSON path; a number as an integer with `int`",
        |args, value, _| query(args, bytes_of(value)?),
    )
    .checked(|args| {
        if str_at(args, 0).is_empty() {
            return Err("json_path must not be empty".into());
        }
        output_type(args)
    }),
    convert(
        "jwt_header_query",
        spec(0, &[Str, Str]),
        Kind::Bin,
        Kind::Any,
        "the header of a JSON Web Token, or what is at a path in it",
        |args, value, _| member(args, value, 0),
    )
    .checked(output_type),
    convert(
        "jwt_payload_query",
        spec(0, &[Str, Str]),
        Kind::Bin,
        Kind::Any,
        "the payload of a JSON Web Token, or what is at a path in it",
        |args, value, _| member(args, value, 1),
    )
    .checked(output_type),
    convert(
        "jwt_verify",
        spec(2, &[StrOrVar, StrOrVar]),
        Kind::Bin,
        Kind::Int,
        "1 for a JSON Web Token with the right HMAC or signature, 0 or less for others",
        verify,
    )
    .checked(verifiable)
    .secret(1),
    convert(
        "jwt_verify_cert",
        spec(2, &[StrOrVar, StrOrVar]),
        Kind::Bin,
        Kind::Int,
        "1 for a JSON Web Token with the signature of a certificate's key, 0 or less for others",
        verify_by_certificate,
    )
    .checked(verifiable_by_certificate),
];

/// The largest integer in JSON that all programs read alike (RFC 8259 §6).
const JSON_INT_MAX: i64 = (1 << 53) - 1;

fn output_type(args: &mut [Arg]) -> Result<(), String> {
    match str_at(args, 1) {
        b"" => Ok(()),
        b"int" => {
            args[1] = Arg::Int(0);
            Ok(())
        }
        _ => Err("output_type only supports \"int\" as argument".into()),
    }
}

fn query<'a>(args: &[Arg], text: Bytes<'a>) -> Option<Value<'a>> {
    Some(match find(&text, str_at(args, 0))? {
        Found::True => Value::Bool(true),
        Found::False => Value::Bool(false),
        Found::Number(start, _) if int_at(args, 1).is_some() => {
            let (number, _) = read_c_int(&text[start..]);
            if !(-JSON_INT_MAX..=JSON_INT_MAX).contains(&number) {
                return None;
            }
            Value::Int(number)
        }
        Found::Number(start, end) => Value::Str(written(|out| {
            push_general(out, number(&text[start..end]).0);
            Some(())
        })?),
        Found::Text(start, end) if !text[start..end].contains(&b'\\') => {
            Value::Str(text.slice(start, end))
        }
        Found::Text(start, end) => Value::Str(written(|out| unescape(&text[start..end], out))?),
        Found::Array(start, end) => Value::Str(text.slice(start, end)),
        Found::Other => return None,
    })
}

/// Resolves escapes. Only the first 256 code points can be written with four digits; each becomes
/// one byte.
fn unescape(mut rest: &[u8], out: &mut Vec<u8>) -> Option<()> {
    loop {
        rest = match rest {
            [] => return Some(()),
            [b'\\', b'u', first, second, high, low, after @ ..] => {
                if (*first, *second) != (b'0', b'0') {
                    return None;
                }
                out.push(hex(*high) << 4 | hex(*low));
                after
            }
            [b'\\', letter, after @ ..] => {
                out.push(match letter {
                    b'b' => 0x08,
                    b'f' => 0x0c,
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'\\' | b'"' => *letter,
                    _ => return None,
                });
                after
            }
            [byte, after @ ..] => {
                out.push(*byte);
                after
            }
        };
    }
}

/// The value of a hexadecimal digit. Other bytes give the result of the same sum.
fn hex(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        b'A'..=b'F' => digit - b'A' + 10,
        _ => digit.wrapping_sub(b'a').wrapping_add(10),
    }
}

/// Writes a number like C's `%g`: six significant digits, no trailing zeros, an exponent if it is
/// below -4 or above 5.
fn push_general(out: &mut Vec<u8>, number: f64) {
    use std::io::Write as _;
    if !number.is_finite() {
        let text = if number.is_nan() { "nan" } else { "inf" };
        let sign = if number.is_sign_negative() { "-" } else { "" };
        out.extend_from_slice(sign.as_bytes());
        return out.extend_from_slice(text.as_bytes());
    }
    let start = out.len();
    // Writing to a vector cannot fail.
    drop(write!(out, "{number:.5e}"));
    let Some(mark) = memchr::memchr(b'e', &out[start..]).map(|at| start + at) else {
        return;
    };
    let exponent = crate::text::read_int(&out[mark + 1..]).0;
    out.truncate(mark);
    if !(-4..6).contains(&exponent) {
        trim_zeros(out, start);
        let sign = if exponent < 0 { '-' } else { '+' };
        return drop(write!(out, "e{sign}{:02}", exponent.abs()));
    }
    out.truncate(start);
    // As many decimals as are needed for six digits.
    drop(write!(out, "{number:.*}", (5 - exponent) as usize));
    trim_zeros(out, start);
}

fn trim_zeros(out: &mut Vec<u8>, start: usize) {
    if out[start..].contains(&b'.') {
        let zeros = out.iter().rev().take_while(|byte| **byte == b'0').count();
        out.truncate(out.len() - zeros);
        out.pop_if(|byte| *byte == b'.');
    }
}

/// A decoded part of a token, or the value at a path in it.
fn member<'a>(args: &[Arg], value: Value<'a>, index: usize) -> Option<Value<'a>> {
    let token = bytes_of(value)?;
    let part = token.split(|byte| *byte == b'.').nth(index)?;
    let text = written(|out| decode_url64(part, out))?;
    if args.is_empty() {
        return Some(Value::Str(text));
    }
    query(args, text)
}

/// The results of `jwt_verify` other than 1 and 0 (manual §7.3.1).
const UNKNOWN_ALGORITHM: i64 = -1;
const INVALID_TOKEN: i64 = -3;

/// No expression names the file.
const UNKNOWN_CERTIFICATE: i64 = -5;

/// The certificate is not allowed to verify tokens.
const UNAVAILABLE_CERTIFICATE: i64 = -7;

/// A signature's algorithm (RFC 7518 §3.1).
enum Signature {
    Hmac(&'static Algorithm),
    /// Signed with a private key; verified with a public key.
    Key,
    None,
}

fn signature(name: &[u8]) -> Option<Signature> {
    Some(match name {
        b"HS256" => Signature::Hmac(&SHA256),
        b"HS384" => Signature::Hmac(&SHA384),
        b"HS512" => Signature::Hmac(&SHA512),
        b"none" => Signature::None,
        name if token_key::is_public(name) => Signature::Key,
        _ => return None,
    })
}

/// Checks the algorithm, and reads the key file. If the algorithm is in a variable, the key may
/// also be a secret.
fn verifiable(args: &mut [Arg]) -> Result<(), String> {
    let [algorithm, key] = args else {
        return Ok(());
    };
    let needs_file = match algorithm {
        Arg::Str(name) => match signature(name) {
            None => {
                let name = String::from_utf8_lossy(name);
                return Err(format!("unknown JWT algorithm: {name}"));
            }
            Some(Signature::Key) => true,
            Some(Signature::Hmac(_) | Signature::None) => return Ok(()),
        },
        _ => false,
    };
    match key {
        Arg::Str(path) => {
            token_key::load(path).or_else(|why| if needs_file { Err(why) } else { Ok(()) })
        }
        _ => Ok(()),
    }
}

/// Checks the algorithm, and registers the certificate, which is read with those of TLS.
fn verifiable_by_certificate(args: &mut [Arg]) -> Result<(), String> {
    let [algorithm, certificate] = args else {
        return Ok(());
    };
    if let Arg::Str(name) = algorithm {
        match signature(name) {
            None => {
                let name = String::from_utf8_lossy(name);
                return Err(format!("unknown JWT algorithm: {name}"));
            }
            Some(Signature::Hmac(_)) => {
                let why = "HMAC-signed tokens can't be processed by this converter";
                return Err(why.to_owned());
            }
            Some(Signature::Key | Signature::None) => {}
        }
    }
    if let Arg::Str(name) = certificate {
        token_key::want_certificate(name);
    }
    Ok(())
}

/// The text of an argument that may be a variable.
fn text_at<'a>(args: &'a [Arg], index: usize, scope: &Scope<'a>) -> Option<Bytes<'a>> {
    match args.get(index)? {
        Arg::Str(text) => Some(Bytes::Borrowed(text)),
        Arg::Var(var) => bytes_of(cast(scope.var(*var)?, Kind::Str)?),
        _ => None,
    }
    .filter(|text| !text.is_empty())
}

fn verify<'a>(args: &'a [Arg], value: Value<'a>, scope: &Scope<'a>) -> Option<Value<'a>> {
    let token = bytes_of(value)?;
    let name = text_at(args, 0, scope)?;
    let key = text_at(args, 1, scope)?;
    let known = |name: &[u8]| token_key::known(name).ok_or(UNKNOWN_CERTIFICATE);
    Some(Value::Int(verified(&token, &name, &key, known)))
}

fn verify_by_certificate<'a>(
    args: &'a [Arg],
    value: Value<'a>,
    scope: &Scope<'a>,
) -> Option<Value<'a>> {
    let token = bytes_of(value)?;
    let name = text_at(args, 0, scope)?;
    let certificate = text_at(args, 1, scope)?;
    let known = |name: &[u8]| match token_key::certificate(name) {
        None => Err(UNKNOWN_CERTIFICATE),
        Some(None) => Err(UNAVAILABLE_CERTIFICATE),
        Some(Some(key)) => Ok(key),
    };
    Some(Value::Int(verified(&token, &name, &certificate, known)))
}

/// Verifies an HMAC in constant time, or a signature with the public key in the file that `key`
/// names.
fn verified(
    token: &[u8],
    name: &[u8],
    key: &[u8],
    known: impl FnOnce(&[u8]) -> Result<Arc<PublicKey>, i64>,
) -> i64 {
    let Some(algorithm) = signature(name) else {
        return UNKNOWN_ALGORITHM;
    };
    let dot = memchr::memrchr(b'.', token);
    let Some(dot) =
        dot.filter(|dot| token[..*dot].iter().filter(|byte| **byte == b'.').count() == 1)
    else {
        return INVALID_TOKEN;
    };
    let (signed, code) = (&token[..dot], &token[dot + 1..]);
    match algorithm {
        Signature::None => return i64::from(code.is_empty()),
        _ if code.is_empty() => return INVALID_TOKEN,
        Signature::Key | Signature::Hmac(_) => {}
    }
    let Some(code) = written(|out| decode_url64(code, out)) else {
        return INVALID_TOKEN;
    };
    let hash = match algorithm {
        Signature::Hmac(hash) => hash,
        // The signature is two numbers of the same length (RFC 7518 §3.4).
        Signature::Key if name.starts_with(b"ES") && code.len() % 2 == 1 => return INVALID_TOKEN,
        Signature::Key | Signature::None => {
            return match known(key) {
                Err(why) => why,
                Ok(key) => key.verifies(name, signed, &code).into(),
            };
        }
    };
    let mut wanted = Bytes::buffer();
    (hash.hmac)(key, signed, wanted.as_vec());
    code.ct_eq(&wanted).to_bool().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Place;
    use crate::testing::{Facts, compiler};

    /// The text of an expression while `txn.v` holds `value`.
    fn ask(value: &str, converter: &str) -> Option<String> {
        let mut facts = Facts::new();
        let mut compiler = compiler();
        let var = compiler.var("txn.v").expect("a variable");
        facts
            .txn
            .txn_vars
            .set(var.slot, Value::text(value.as_bytes()).detach());
        let text = format!("var(txn.v),{converter}");
        let (expr, _) = compiler.expr(&[&text], Place::ALL).expect("an expression");
        let scope = facts.scope();
        expr.eval(&scope)?;
        let mut out = Vec::new();
        expr.append_text(&scope, &mut out);
        Some(String::from_utf8_lossy(&out).into_owned())
    }

    #[test]
    fn signatures_with_public_keys() {
        use aws_lc_rs::encoding::AsDer as _;
        use aws_lc_rs::rand::SystemRandom;
        use aws_lc_rs::rsa::KeySize;
        use aws_lc_rs::signature::{
            ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _, RSA_PKCS1_SHA256,
            RSA_PSS_SHA512, RsaKeyPair,
        };
        let url64 = |bytes: &[u8]| {
            let mut out = Vec::new();
            crate::convert::coding::encode64(bytes, &mut out);
            let text = String::from_utf8(out).expect("text");
            text.trim_end_matches('=')
                .replace('+', "-")
                .replace('/', "_")
        };
        let write = |name: &str, der: &[u8]| {
            let mut text = Vec::new();
            crate::convert::coding::encode64(der, &mut text);
            let text = String::from_utf8(text).expect("text");
            let file = std::env::temp_dir().join(format!("spangate-{}-{name}", std::process::id()));
            let pem = format!("-----BEGIN PUBLIC KEY-----\n{text}\n-----END PUBLIC KEY-----\n");
            std::fs::write(&file, pem).expect("a file");
            file.display().to_string()
        };
        let random = SystemRandom::new();
        let rsa = RsaKeyPair::generate(KeySize::Rsa2048).expect("a key");
        let ec = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).expect("a key");
        let rsa_file = write("rsa.pem", rsa.public_key().as_der().expect("DER").as_ref());
        let ec_file = write("ec.pem", ec.public_key().as_der().expect("DER").as_ref());
        let signed = "eyJhbGciOiJ4In0.e30";
        let mut of_rsa = vec![0; rsa.public_modulus_len()];
        let mut token = |padding: &'static dyn aws_lc_rs::signature::RsaEncoding| {
            rsa.sign(padding, &random, signed.as_bytes(), &mut of_rsa)
                .expect("a signature");
            format!("{signed}.{}", url64(&of_rsa))
        };
        let (rs256, ps512) = (token(&RSA_PKCS1_SHA256), token(&RSA_PSS_SHA512));
        let of_ec = ec.sign(&random, signed.as_bytes()).expect("a signature");
        let es256 = format!("{signed}.{}", url64(of_ec.as_ref()));
        for (token, args, wanted) in [
            (&rs256, format!("RS256,{rsa_file}"), "1"),
            (&rs256, format!("RS384,{rsa_file}"), "0"),
            (&rs256, format!("PS256,{rsa_file}"), "0"),
            (&ps512, format!("PS512,{rsa_file}"), "1"),
            (&es256, format!("ES256,{ec_file}"), "1"),
            (&es256, format!("ES256,{rsa_file}"), "0"),
            (&format!("{signed}.AAAA"), format!("ES256,{ec_file}"), "-3"),
            (&rs256, format!("RS256,{ec_file}"), "0"),
            (&signed.to_owned(), format!("RS256,{rsa_file}"), "-3"),
        ] {
            let said = ask(token, &format!("jwt_verify({args})"));
            assert_eq!(said.as_deref(), Some(wanted), "{args}");
        }
        // Certificates by name: known, forbidden, unknown.
        let certificate = include_bytes!("../x509/data/server.der");
        crate::set_token_certificate("tokens.known", Some(certificate), None);
        crate::set_token_certificate("tokens.forbidden", None, None);
        for (name, wanted) in [("tokens.known", "0"), ("tokens.forbidden", "-7")] {
            let said = ask(&rs256, &format!("jwt_verify_cert(RS256,{name})"));
            assert_eq!(said.as_deref(), Some(wanted), "{name}");
        }
        // A variable may name a file that an expression names.
        let said = ask(&rsa_file, "bytes(0),jwt_verify(txn.v,/nonexistent)");
        assert_eq!(said.as_deref(), Some("-1"), "no algorithm");
        for args in ["RS256,/nonexistent/x.pem", "XS256,x"] {
            let mut compiler = compiler();
            let refused = compiler.expr(&[&format!("str(x),jwt_verify({args})")], Place::ALL);
            assert!(refused.is_err(), "{args}");
        }
        for file in [rsa_file, ec_file] {
            std::fs::remove_file(file).expect("a file");
        }
    }

    #[test]
    fn values_of_json() {
        for (json, args, wanted) in [
            (r#"{"integer":4}"#, "'$.integer',int", Some("4")),
            (r#"{"integer":4}"#, "'$.integer'", Some("4")),
            (r#"{"f":4.25}"#, "$.f", Some("4.25")),
            (r#"{"f":4.25}"#, "$.f,int", Some("4")),
            (r#"{"f":1e10}"#, "$.f", Some("1e+10")),
            (r#"{"f":-12345678}"#, "$.f", Some("-1.23457e+07")),
            (r#"{"f":0.0001234}"#, "$.f", Some("0.0001234")),
            (r#"{"f":0.00001234}"#, "$.f", Some("1.234e-05")),
            (
                r#"{"f":9007199254740991}"#,
                "$.f,int",
                Some("9007199254740991"),
            ),
            (r#"{"f":9007199254740992}"#, "$.f,int", None),
            (r#"{"my.key":"myvalue"}"#, r"'$.my\.key'", Some("myvalue")),
            (r#"{"boolean-false":false}"#, "$.boolean-false", Some("0")),
            (r#"{"s":"a\n\"\u0041"}"#, "$.s", Some("a\n\"A")),
            (r#"{"s":"a\/"}"#, "$.s", None),
            (r#"{"s":"\u20ac"}"#, "$.s", None),
            (r#"{"s":""}"#, "$.s", Some("")),
            (r#"{"a":["x", 1]}"#, "$.a", Some(r#"["x", 1]"#)),
            (r#"{"a":["x", 1]}"#, "$.a[1]", Some("1")),
            (r#"{"a":null}"#, "$.a", None),
            (r#"{"a":{}}"#, "$.a", None),
        ] {
            let said = ask(json, &format!("json_query({args})"));
            assert_eq!(said.as_deref(), wanted, "{json} {args}");
        }
    }

    /// A token like that of RFC 7515 §A.1, whose key is binary; this one has the key
    /// `your-256-bit-secret`.
    const TOKEN: &str = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.\
        eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIiwiaWF0IjoxNTE2MjM5MDIyfQ.\
        SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c";

    #[test]
    fn parts_and_signatures_of_tokens() {
        for (converter, wanted) in [
            ("jwt_header_query($.alg)", Some("HS256")),
            ("jwt_payload_query($.iat,int)", Some("1516239022")),
            ("jwt_payload_query($.x)", None),
            ("jwt_verify(HS256,your-256-bit-secret)", Some("1")),
            ("jwt_verify(HS256,another)", Some("0")),
            ("jwt_verify(HS384,your-256-bit-secret)", Some("0")),
            ("jwt_verify(none,x)", Some("0")),
        ] {
            assert_eq!(ask(TOKEN, converter).as_deref(), wanted, "{converter}");
        }
        for (token, name, wanted) in [
            (TOKEN, "HS1", UNKNOWN_ALGORITHM),
            (TOKEN, "RS256", UNKNOWN_CERTIFICATE),
            ("a.b", "HS256", INVALID_TOKEN),
            ("a.b.c.d", "HS256", INVALID_TOKEN),
            ("a.b.", "HS256", INVALID_TOKEN),
            ("a.b.", "none", 1),
            ("a.b.+", "HS256", INVALID_TOKEN),
        ] {
            assert_eq!(
                verified(token.as_bytes(), name.as_bytes(), b"k", |_| Err(
                    UNKNOWN_CERTIFICATE
                )),
                wanted,
                "{token} {name}"
            );
        }
    }
}
