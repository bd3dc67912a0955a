//! Cryptographic digests and message authentication codes; comparison in constant time.

use super::{Convert, bytes_of, convert, written};
use crate::args::ArgKind::{Int, OtherVar, Str, StrOrVar};
use crate::args::{Arg, NONE, int_at, spec, str_at};
use crate::cast::cast;
use crate::{Bytes, Kind, Scope, Value};
use ctutils::CtEq as _;
use hmac::digest::Digest;
use hmac::{EagerHash, Hmac, KeyInit as _, Mac as _};

pub(crate) const CONVERTERS: &[Convert] = &[
    convert(
        "sha1",
        NONE,
        Kind::Bin,
        Kind::Bin,
        "SHA-1",
        |_, value, _| digest_with(&SHA1, value),
    ),
    convert(
        "sha2",
        spec(0, &[Int]),
        Kind::Bin,
        Kind::Bin,
        "SHA-2 of 224, 256 (the default), 384 or 512 bits",
        |args, value, _| digest_with(sha2_of(int_at(args, 0))?, value),
    )
    .checked(|args| match (int_at(args, 0), sha2_of(int_at(args, 0))) {
        (Some(bits), None) => Err(format!("Unsupported number of bits: '{bits}'")),
        _ => Ok(()),
    }),
    convert(
        "digest",
        spec(1, &[Str]),
        Kind::Bin,
        Kind::Bin,
        "a digest by name: md5, sha1, sha256, …",
        |args, value, _| digest_with(algorithm_at(args)?, value),
    )
    .checked(algorithm),
    convert(
        "hmac",
        spec(2, &[Str, StrOrVar]),
        Kind::Bin,
        Kind::Bin,
        "the HMAC (RFC 2104) under a key given in base64",
        |args, value, scope| {
            let key = base64_at(args, 1, scope)?;
            let bytes = bytes_of(value)?;
            let code = written(|out| {
                (algorithm_at(args)?.hmac)(&key, &bytes, out);
                Some(())
            });
            code.map(Value::Bin)
        },
    )
    .checked(|args| {
        algorithm(args)?;
        decode_base64_at(args, 1).map_err(|message| format!("failed to parse key : {message}"))
    })
    .secret(1),
    convert(
        "secure_memcmp",
        spec(1, &[OtherVar]),
        Kind::Bin,
        Kind::Bool,
        "whether it equals a variable, compared in constant time",
        |args, value, scope| {
            let Some(Arg::Var(var)) = args.first() else {
                return None;
            };
            let other = bytes_of(cast(scope.var(*var)?, Kind::Bin)?)?;
            let bytes = bytes_of(value)?;
            Some(Value::Bool(bytes.ct_eq(&other).to_bool()))
        },
    ),
];

/// A message digest.
pub(super) struct Algorithm {
    /// OpenSSL's name, in lower case.
    name: &'static str,
    digest: fn(&[u8], &mut Vec<u8>),
    /// HMAC of a key and a message.
    pub hmac: fn(&[u8], &[u8], &mut Vec<u8>),
}

const fn algorithm_of<D>(name: &'static str) -> Algorithm
where
    D: Digest + EagerHash,
{
    Algorithm {
        name,
        digest: |bytes, out| out.extend_from_slice(&D::digest(bytes)),
        hmac: |key, bytes, out| {
            // HMAC accepts keys of any length.
            if let Ok(mut mac) = Hmac::<D>::new_from_slice(key) {
                mac.update(bytes);
                out.extend_from_slice(&mac.finalize().into_bytes());
            }
        },
    }
}

static SHA1: Algorithm = algorithm_of::<sha1::Sha1>("sha1");
static SHA224: Algorithm = algorithm_of::<sha2::Sha224>("sha224");
pub(super) static SHA256: Algorithm = algorithm_of::<sha2::Sha256>("sha256");
pub(super) static SHA384: Algorithm = algorithm_of::<sha2::Sha384>("sha384");
pub(super) static SHA512: Algorithm = algorithm_of::<sha2::Sha512>("sha512");
static SHA512_224: Algorithm = algorithm_of::<sha2::Sha512_224>("sha512-224");
static SHA512_256: Algorithm = algorithm_of::<sha2::Sha512_256>("sha512-256");
static MD5: Algorithm = algorithm_of::<md5::Md5>("md5");

static ALGORITHMS: [&Algorithm; 8] = [
    &MD5,
    &SHA1,
    &SHA224,
    &SHA256,
    &SHA384,
    &SHA512,
    &SHA512_224,
    &SHA512_256,
];

/// Other names of these digests.
const ALIASES: &[(&str, &str)] = &[
    ("ssl3-md5", "md5"),
    ("sha-1", "sha1"),
    ("ssl3-sha1", "sha1"),
    ("sha2-224", "sha224"),
    ("sha-224", "sha224"),
    ("sha2-256", "sha256"),
    ("sha-256", "sha256"),
    ("sha2-384", "sha384"),
    ("sha-384", "sha384"),
    ("sha2-512", "sha512"),
    ("sha-512", "sha512"),
    ("sha2-512/224", "sha512-224"),
    ("sha-512/224", "sha512-224"),
    ("sha512/224", "sha512-224"),
    ("sha2-512/256", "sha512-256"),
    ("sha-512/256", "sha512-256"),
    ("sha512/256", "sha512-256"),
];

/// Further digests of OpenSSL.
const NOT_YET: &[&str] = &[
    "blake2b512",
    "blake2s256",
    "md5-sha1",
    "ripemd",
    "ripemd160",
    "rmd160",
    "sha3-224",
    "sha3-256",
    "sha3-384",
    "sha3-512",
    "shake128",
    "shake256",
    "sm3",
];

fn digest_with<'a>(algorithm: &Algorithm, value: Value<'_>) -> Option<Value<'a>> {
    let bytes = bytes_of(value)?;
    let digest = written(|out| {
        (algorithm.digest)(&bytes, out);
        Some(())
    });
    digest.map(Value::Bin)
}

fn sha2_of(bits: Option<i64>) -> Option<&'static Algorithm> {
    match bits {
        Some(224) => Some(&SHA224),
        None | Some(256) => Some(&SHA256),
        Some(384) => Some(&SHA384),
        Some(512) => Some(&SHA512),
        Some(_) => None,
    }
}

fn algorithm_at(args: &[Arg]) -> Option<&'static Algorithm> {
    let index = usize::try_from(int_at(args, 0)?).ok()?;
    ALGORITHMS.get(index).copied()
}

/// Replaces the first argument, a name, by its index in [`ALGORITHMS`].
fn algorithm(args: &mut [Arg]) -> Result<(), String> {
    let written = String::from_utf8_lossy(str_at(args, 0)).to_ascii_lowercase();
    let name = written.strip_prefix("rsa-").unwrap_or(&written);
    let alias = ALIASES.iter().find(|(alias, _)| *alias == name);
    let name = alias.map_or(name, |(_, name)| name);
    match ALGORITHMS.iter().position(|known| known.name == name) {
        Some(index) => {
            args[0] = Arg::Int(index as i64);
            Ok(())
        }
        None if NOT_YET.contains(&name) => Err(format!(
            "message digest '{written}' is known but not implemented yet"
        )),
        None => Err("algorithm must be a valid OpenSSL message digest name.".into()),
    }
}

/// The decoded bytes of an argument in base64, or of a variable with base64.
pub(super) fn base64_at<'a>(args: &'a [Arg], index: usize, scope: &Scope<'a>) -> Option<Bytes<'a>> {
    match args.get(index)? {
        Arg::Var(var) => {
            let text = bytes_of(cast(scope.var(*var)?, Kind::Str)?)?;
            written(|out| super::coding::decode64(&text, out))
        }
        Arg::Str(bytes) => Some(Bytes::Borrowed(bytes)),
        _ => None,
    }
}

/// Decodes such an argument when the configuration is loaded, unless it is a variable.
pub(super) fn decode_base64_at(args: &mut [Arg], index: usize) -> Result<(), String> {
    let Some(Arg::Str(text)) = args.get(index) else {
        return Ok(());
    };
    let mut bytes = Vec::new();
    super::coding::decode64(text, &mut bytes)
        .ok_or("argument needs to be base64 encoded, and can either be a string or a variable")?;
    args[index] = Arg::Str(bytes.into_boxed_slice());
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::{Facts, compiler, convert_text};
    use crate::{Place, Value};

    /// FIPS 180-4, RFC 1321 §A.5, RFC 2202, RFC 4231.
    #[test]
    fn published_values() {
        for (expr, wanted) in [
            (
                "str(abc),sha1,hex",
                "A9993E364706816ABA3E25717850C26C9CD0D89D",
            ),
            (
                "str(abc),sha2,hex",
                "BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD",
            ),
            (
                "str(abc),sha2(224),hex",
                "23097D223405D8228642A477BDA255B32AADBCE4BDA0B3F7E36C9DA7",
            ),
            (
                "str(abc),sha2(384),hex",
                "CB00753F45A35E8BB5A03D699AC65007272C32AB0EDED1631A8B605A43FF5BED\
                 8086072BA1E7CC2358BAECA134C825A7",
            ),
            (
                "str(abc),digest(SHA512),hex",
                "DDAF35A193617ABACC417349AE20413112E6FA4E89A97EA20A9EEEE64B55D39A\
                 2192992A274FC1A836BA3C23A3FEEBBD454D4423643CE80E2A9AC94FA54CA49F",
            ),
            (
                "str(abc),digest(sha512-256),hex",
                "53048E2681941EF99B2E29B76B4C7DABE4C2D0C634FC6D46E0E2F13107E7AF23",
            ),
            (
                "str(abc),digest(md5),hex",
                "900150983CD24FB0D6963F7D28E17F72",
            ),
            // The key is "Jefe".
            (
                "str('what do ya want for nothing?'),hmac(sha1,SmVmZQ==),hex",
                "EFFCDF6AE5EB2FA2D27416D5F184DF9C259A7C79",
            ),
            (
                "str('what do ya want for nothing?'),hmac(sha256,SmVmZQ==),hex",
                "5BDCC146BF60754E6A042426089575C75A003F089D2739839DEC58B964EC3843",
            ),
        ] {
            assert_eq!(convert_text(expr), wanted, "{expr}");
        }
    }

    #[test]
    fn keys_and_secrets_in_variables() {
        let mut facts = Facts::new();
        let mut compiler = compiler();
        let key = compiler.var("txn.key").expect("a variable");
        let token = compiler.var("txn.token").expect("a variable");
        facts.txn.txn_vars.set(key.slot, Value::text("SmVmZQ=="));
        facts.txn.txn_vars.set(token.slot, Value::text("secret"));
        for (expr, wanted) in [
            (
                "str('what do ya want for nothing?'),hmac(md5,txn.key),hex",
                "750C783E6AB0B503EAA86E310A5DB738",
            ),
            ("str(secret),secure_memcmp(txn.token)", "1"),
            ("str(secreT),secure_memcmp(txn.token)", "0"),
            ("str(secrets),secure_memcmp(txn.token)", "0"),
        ] {
            let (expr, _) = compiler.expr(&[expr], Place::ALL).expect("an expression");
            let mut out = Vec::new();
            expr.append_text(&facts.scope(), &mut out);
            assert_eq!(String::from_utf8_lossy(&out), wanted, "{expr:?}");
        }
    }
}
