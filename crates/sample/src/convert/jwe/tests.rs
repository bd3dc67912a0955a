use aws_lc_rs::encoding::{AsBigEndian as _, AsDer as _};
use aws_lc_rs::rsa::{KeySize, OaepPublicEncryptingKey, Pkcs1PublicEncryptingKey};
use aws_lc_rs::{agreement, rand, rsa};

use super::*;
use crate::Place;
use crate::testing::{Facts, compiler};

/// The result of a converter on the token in `txn.v`, with `txn.k` as the argument.
fn ask(token: &str, converter: &str, argument: &str) -> Option<String> {
    let mut facts = Facts::new();
    let mut compiler = compiler();
    for (name, value) in [("txn.v", token), ("txn.k", argument)] {
        let var = compiler.var(name).expect("a variable");
        let value = Value::text(value.as_bytes()).detach();
        facts.txn.txn_vars.set(var.slot, value);
    }
    let text = format!("var(txn.v),{converter}(txn.k)");
    let (expr, _) = compiler.expr(&[&text], Place::ALL).expect("an expression");
    let scope = facts.scope();
    expr.eval(&scope)?;
    let mut out = Vec::new();
    expr.append_text(&scope, &mut out);
    Some(String::from_utf8_lossy(&out).into_owned())
}

fn base64(bytes: &[u8]) -> String {
    let mut out = Vec::new();
    crate::convert::coding::encode64(bytes, &mut out);
    String::from_utf8(out).expect("text")
}

fn url64(bytes: &[u8]) -> String {
    let text = base64(bytes).replace('+', "-").replace('/', "_");
    text.trim_end_matches('=').to_owned()
}

fn random(count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    rand::fill(&mut bytes).expect("random bytes");
    bytes
}

const PLAIN: &str = "what the token says, which is longer than a block";

/// A token whose content is encrypted with this key.
fn token(encryption: &Encryption, header: &str, encrypted_key: &[u8], key: &[u8]) -> String {
    let header = url64(header.as_bytes());
    let mut content = PLAIN.as_bytes().to_vec();
    let (vector, tag) = match &encryption.mode {
        Mode::Gcm(algorithm) => {
            let nonce = random(12);
            let sealing = LessSafeKey::new(UnboundKey::new(algorithm, key).unwrap());
            let nonce_value = Nonce::try_assume_unique_for_key(&nonce).unwrap();
            let additional = Aad::from(header.as_bytes());
            let tag = sealing.seal_in_place_separate_tag(nonce_value, additional, &mut content);
            (nonce, tag.unwrap().as_ref().to_vec())
        }
        Mode::Cbc(algorithm, hash) => {
            let (for_tag, for_content) = key.split_at(key.len() / 2);
            let sealing = UnboundCipherKey::new(algorithm, for_content).unwrap();
            let sealing = cipher::PaddedBlockEncryptingKey::cbc_pkcs7(sealing).unwrap();
            let DecryptionContext::Iv128(vector) = sealing.encrypt(&mut content).unwrap() else {
                panic!("a vector");
            };
            let vector = vector.as_ref().to_vec();
            let bits = (header.len() as u64 * 8).to_be_bytes();
            let all = [header.as_bytes(), &vector, &content, &bits].concat();
            let code = hmac::sign(&hmac::Key::new(*hash, for_tag), &all);
            (vector, code.as_ref()[..code.as_ref().len() / 2].to_vec())
        }
    };
    let parts = [encrypted_key, &vector, &content, &tag].map(url64);
    format!("{header}.{}", parts.join("."))
}

/// The token with a bit of one of its parts changed.
fn broken(token: &str, part: usize) -> String {
    let mut parts: Vec<String> = token.split('.').map(str::to_owned).collect();
    let first = parts[part].remove(0);
    parts[part].insert(0, if first == 'A' { 'B' } else { 'A' });
    parts.join(".")
}

#[test]
fn contents_are_decrypted_and_what_is_wrong_is_not() {
    for encryption in &ENCRYPTIONS {
        let name = encryption.name;
        let secret = random(encryption.key_bytes);
        let header = format!("{{\"alg\":\"dir\",\"enc\":\"{name}\"}}");
        let good = token(encryption, &header, b"", &secret);
        let key = base64(&secret);
        let jwk = format!("{{\"kty\":\"oct\",\"k\":\"{}\"}}", url64(&secret));
        let ask = |token: &str| ask(token, "jwt_decrypt_secret", &key);
        assert_eq!(ask(&good).as_deref(), Some(PLAIN), "{name}");
        let by_jwk = super::tests::ask(&good, "jwt_decrypt_jwk", &jwk);
        assert_eq!(by_jwk.as_deref(), Some(PLAIN), "{name}");
        for part in [0, 2, 3, 4] {
            assert_eq!(ask(&broken(&good, part)), None, "{name}, part {part}");
        }
        for bad in [
            good.rsplit_once('.').unwrap().0.to_owned(),
            format!("{good}.x"),
            good.replacen("..", ".AAAA.", 1),
            String::new(),
            token(encryption, &header.replace("dir", "none"), b"", &secret),
            token(
                encryption,
                &header.replace('}', ",\"zip\":\"DEF\"}"),
                b"",
                &secret,
            ),
            token(
                encryption,
                &header.replace('}', ",\"crit\":[\"x\"]}"),
                b"",
                &secret,
            ),
        ] {
            assert_eq!(ask(&bad), None, "{name}: {bad}");
        }
        let short = base64(&secret[1..]);
        let refused = super::tests::ask(&good, "jwt_decrypt_secret", &short);
        assert_eq!(refused, None, "{name}");
    }
}

/// RFC 7516 appendix A.3.
#[test]
fn wrapped_keys() {
    let token = "eyJhbGciOiJBMTI4S1ciLCJlbmMiOiJBMTI4Q0JDLUhTMjU2In0.\
                 6KB707dM9YTIgHtLvtgWQ8mKwboJW3of9locizkDTHzBC2IlrT1oOQ.AxY8DCtDaGlsbGljb3RoZQ.\
                 KDlTtXchhZTGufMYmOYGS4HffxPSUrfmqCHXaI9wOGY.U0m_YmjN04DJvceFICbCVQ";
    let wanted = Some("Live long and prosper.");
    let ask = |token: &str, key: &str| ask(token, "jwt_decrypt_secret", key);
    assert_eq!(ask(token, "GawgguFyGrWKav7AX4VKUg==").as_deref(), wanted);
    assert_eq!(ask(token, "HawgguFyGrWKav7AX4VKUg=="), None);
    assert_eq!(ask(&broken(token, 1), "GawgguFyGrWKav7AX4VKUg=="), None);
}

#[test]
fn keys_that_are_encrypted_with_gcm() {
    let encryption = &ENCRYPTIONS[3];
    let (secret, key, nonce) = (random(32), random(16), random(12));
    let sealing = LessSafeKey::new(UnboundKey::new(&aead::AES_256_GCM, &secret).unwrap());
    let mut encrypted = key.clone();
    let nonce_value = Nonce::try_assume_unique_for_key(&nonce).unwrap();
    let tag = sealing.seal_in_place_separate_tag(nonce_value, Aad::empty(), &mut encrypted);
    let header = format!(
        "{{\"alg\":\"A256GCMKW\",\"enc\":\"A128GCM\",\"iv\":\"{}\",\"tag\":\"{}\"}}",
        url64(&nonce),
        url64(tag.unwrap().as_ref())
    );
    let good = token(encryption, &header, &encrypted, &key);
    let ask = |token: &str| ask(token, "jwt_decrypt_secret", &base64(&secret));
    assert_eq!(ask(&good).as_deref(), Some(PLAIN));
    assert_eq!(ask(&broken(&good, 1)), None);
    let without = header.replace("\"iv\"", "\"xx\"");
    assert_eq!(ask(&token(encryption, &without, &encrypted, &key)), None);
}

#[test]
fn keys_of_rsa() {
    let encryption = &ENCRYPTIONS[0];
    let own = rsa::PrivateDecryptingKey::generate(KeySize::Rsa2048).unwrap();
    let der = own.as_der().unwrap();
    crate::set_token_certificate("jwe.rsa", None, Some(der.as_ref()));
    let key = random(encryption.key_bytes);
    let oaep = OaepPublicEncryptingKey::new(own.public_key()).unwrap();
    let with = |name: &str, encrypted: &[u8]| {
        let header = format!("{{\"alg\":\"{name}\",\"enc\":\"A128CBC-HS256\"}}");
        token(encryption, &header, encrypted, &key)
    };
    let mut encrypted = vec![0; 256];
    for (name, algorithm) in [
        ("RSA-OAEP", &rsa::OAEP_SHA1_MGF1SHA1),
        ("RSA-OAEP-256", &rsa::OAEP_SHA256_MGF1SHA256),
    ] {
        oaep.encrypt(algorithm, &key, &mut encrypted, None).unwrap();
        let good = with(name, &encrypted);
        let ask = |token: &str, of: &str| ask(token, "jwt_decrypt_cert", of);
        assert_eq!(ask(&good, "jwe.rsa").as_deref(), Some(PLAIN), "{name}");
        assert_eq!(ask(&broken(&good, 1), "jwe.rsa"), None, "{name}");
        assert_eq!(ask(&good, "jwe.unknown"), None, "{name}");
    }
    // It is not accepted unless it is named.
    let pkcs1 = Pkcs1PublicEncryptingKey::new(own.public_key()).unwrap();
    pkcs1.encrypt(&key, &mut encrypted).unwrap();
    let weak = with("RSA1_5", &encrypted);
    assert_eq!(ask(&weak, "jwt_decrypt_cert", "jwe.rsa"), None);
    let mut named = TokenAlgorithms::default();
    named.set_algorithms("RSA1_5").unwrap();
    let private = token_key::private(b"jwe.rsa").unwrap();
    let open = |token: &str| {
        let token = Token::parse(token.as_bytes()).unwrap();
        let key = keys::content_key(&token, &Key::Private(&private), encryption, named);
        encryption.open(token, &key.expect("a key, right or not"))
    };
    assert_eq!(open(&weak).as_deref(), Some(PLAIN.as_bytes()));
    assert_eq!(open(&broken(&weak, 1)), None);
    crate::set_token_certificate("jwe.rsa", None, None);
    let forgotten = ask(&with("RSA-OAEP", &encrypted), "jwt_decrypt_cert", "jwe.rsa");
    assert_eq!(forgotten, None);
}

/// RFC 7518 appendix C.
#[test]
fn keys_that_are_agreed_on() {
    let header = "{\"alg\":\"ECDH-ES\",\"enc\":\"A128GCM\",\"apu\":\"QWxpY2U\",\"apv\":\"Qm9i\",\
         \"epk\":{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"gI0GAILBdu7T53akrFmMyGcsF3n5dO7MmwNBHKW5SV0\",\
         \"y\":\"SLW_xSffzlPWrHEVI30DHM_4egVwt3NQqeUD7nMFpps\"}}";
    let jwk = "{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"weNJy2HscCSM6AEDTDg04biOvhFhyyWvOHQfeF_PxMQ\",\
         \"y\":\"e8lnCO-AlStT-NJVX-crhB7QRYhiix03illJOVAOyck\",\"d\":\"VEmDZpDXXK8p8N0Cndsxs924q6nS1RXFASRl6BfUqdw\"}";
    let mut key = Vec::new();
    decode_url64(b"VqqN6vgjbSBcIijNcacQGg", &mut key).unwrap();
    let encryption = &ENCRYPTIONS[3];
    let ask = |header: &str| {
        let token = token(encryption, header, b"", &key);
        ask(&token, "jwt_decrypt_jwk", jwk)
    };
    assert_eq!(ask(header).as_deref(), Some(PLAIN));
    // Another party, a point off the curve, another curve, an unknown curve.
    for (what, instead) in [
        ("Qm9i", "Qm9p"),
        ("SLW_", "SLX_"),
        ("\"P-256\"", "\"P-384\""),
        ("\"P-256\"", "\"X25519\""),
        ("\"EC\"", "\"OKP\""),
    ] {
        assert_eq!(ask(&header.replacen(what, instead, 1)), None, "{instead}");
    }
}

#[test]
fn agreed_keys_unwrap_others_on_every_curve() {
    let encryption = &ENCRYPTIONS[5];
    for (name, curve, coordinate) in [
        ("P-256", &agreement::ECDH_P256, 32),
        ("P-384", &agreement::ECDH_P384, 48),
        ("P-521", &agreement::ECDH_P521, 66),
    ] {
        let own = agreement::PrivateKey::generate(curve).unwrap();
        let sender = agreement::PrivateKey::generate(curve).unwrap();
        let number: aws_lc_rs::encoding::EcPrivateKeyBin<'_> = own.as_be_bytes().unwrap();
        let point = sender.compute_public_key().unwrap();
        let (x, y) = point.as_ref()[1..].split_at(coordinate);
        let header = format!(
            "{{\"alg\":\"ECDH-ES+A256KW\",\"enc\":\"A256GCM\",\"epk\":{{\"kty\":\"EC\",\"crv\":\"{name}\",\"x\":\"{}\",\"y\":\"{}\"}}}}",
            url64(x),
            url64(y)
        );
        let own_point = own.compute_public_key().unwrap();
        let peer = agreement::UnparsedPublicKey::new(curve, own_point.as_ref());
        let wrapping = agreement::agree(&sender, peer, (), |secret| {
            let mut info = (14_u32).to_be_bytes().to_vec();
            info.extend_from_slice(b"ECDH-ES+A256KW");
            info.extend_from_slice(&[0; 8]);
            info.extend_from_slice(&256_u32.to_be_bytes());
            let all = [&1_u32.to_be_bytes()[..], secret, &info].concat();
            Ok(aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, &all))
        });
        let kek = aws_lc_rs::key_wrap::AesKek::new(
            &aws_lc_rs::key_wrap::AES_256,
            wrapping.unwrap().as_ref(),
        );
        let key = random(32);
        let mut wrapped = vec![0; 40];
        let wrapped = aws_lc_rs::key_wrap::KeyWrap::wrap(kek.unwrap(), &key, &mut wrapped);
        let token = token(encryption, &header, wrapped.unwrap(), &key);
        let jwk = format!(
            "{{\"kty\":\"EC\",\"crv\":\"{name}\",\"d\":\"{}\"}}",
            url64(number.as_ref())
        );
        let got = ask(&token, "jwt_decrypt_jwk", &jwk);
        assert_eq!(got.as_deref(), Some(PLAIN), "{name}");
    }
}

#[test]
fn json_web_keys_are_looked_at_when_they_are_written() {
    for (jwk, why) in [
        ("{}", "Missing key type"),
        ("{\"kty\":\"x\"}", "Unmanaged key type"),
        ("{\"kty\":\"oct\"}", "Missing 'k' field in JWK"),
        (
            "{\"kty\":\"RSA\",\"n\":\"AQAB\"}",
            "Failed to parse RSA JWK",
        ),
        (
            "{\"kty\":\"EC\",\"crv\":\"P-256\",\"d\":\"AA\"}",
            "Failed to parse EC JWK",
        ),
    ] {
        let read = Key::read(jwk.as_bytes()).err();
        assert!(read.is_some_and(|read| read.starts_with(why)), "{jwk}");
    }
}

#[test]
fn lists_of_algorithms() {
    let mut taken = TokenAlgorithms::default();
    assert!(taken.has_algorithm("dir") && !taken.has_algorithm("RSA1_5"));
    taken.set_algorithms("ALL:!ECDH-ES").unwrap();
    assert!(taken.has_algorithm("RSA1_5") && !taken.has_algorithm("ECDH-ES"));
    taken.set_encryptions("A128GCM").unwrap();
    assert!(taken.has_encryption("A128GCM") && !taken.has_encryption("A256GCM"));
    assert_eq!(taken.set_encryptions("A128GCM:x"), Err("x".to_owned()));
}
