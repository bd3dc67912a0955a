//! AES in CBC and GCM mode (NIST SP 800-38A and 800-38D), with keys from the configuration or from
//! variables.
//!
//! The block cipher and GHASH come from a library. The modes are implemented here because the
//! length of a GCM nonce is known only at run time. Decrypted bytes are returned only after their
//! tag was verified.

use super::digest::{base64_at, decode_base64_at};
use super::{Convert, bytes_of, convert, written};
use crate::args::ArgKind::{Int, StrOrVar, TagVar};
use crate::args::{Arg, int_at, spec};
use crate::vars::SetConditions;
use crate::{Kind, Scope, Value};
use aes::cipher::{Block, BlockCipherDecrypt as _, BlockCipherEncrypt as _, KeyInit as _};
use ctutils::CtEq as _;
use ghash::universal_hash::UniversalHash as _;

pub(crate) const CONVERTERS: &[Convert] = &[
    convert(
        "aes_cbc_enc",
        spec(3, &[Int, StrOrVar, StrOrVar, StrOrVar]),
        Kind::Bin,
        Kind::Bin,
        "encrypted with AES-CBC: bits, nonce, key",
        |args, value, scope| cbc(args, value, scope, cbc_encrypt),
    )
    .checked(cbc_args)
    .secret(2),
    convert(
        "aes_cbc_dec",
        spec(3, &[Int, StrOrVar, StrOrVar, StrOrVar]),
        Kind::Bin,
        Kind::Bin,
        "decrypted with AES-CBC: bits, nonce, key",
        |args, value, scope| cbc(args, value, scope, cbc_decrypt),
    )
    .checked(cbc_args)
    .secret(2),
    convert(
        "aes_gcm_enc",
        spec(4, &[Int, StrOrVar, StrOrVar, TagVar, StrOrVar]),
        Kind::Bin,
        Kind::Bin,
        "encrypted with AES-GCM: bits, nonce, key, a variable for the tag, additional data",
        gcm_encrypt,
    )
    .scoped()
    .checked(|args| {
        key_args(args)?;
        additional_data(args, 4)
    })
    .secret(2),
    convert(
        "aes_gcm_dec",
        spec(4, &[Int, StrOrVar, StrOrVar, StrOrVar, StrOrVar]),
        Kind::Bin,
        Kind::Bin,
        "decrypted with AES-GCM: bits, nonce, key, tag, additional data",
        gcm_decrypt,
    )
    .checked(|args| {
        key_args(args)?;
        decode_base64_at(args, 3).map_err(|what| format!("failed to parse aead_tag : {what}"))?;
        additional_data(args, 4)
    })
    .secret(2),
];

/// Bytes of a block and of a GCM tag.
const BLOCK: usize = 16;

/// The longest GCM nonce, as OpenSSL has it.
const NONCE_BYTES_MAX: usize = 128;

fn key_args(args: &mut [Arg]) -> Result<(), String> {
    if !matches!(int_at(args, 0), Some(128 | 192 | 256)) {
        return Err("key size must be 128, 192 or 256 (bits).".into());
    }
    decode_base64_at(args, 1).map_err(|what| format!("failed to parse nonce : {what}"))?;
    decode_base64_at(args, 2).map_err(|what| format!("failed to parse key : {what}"))
}

fn cbc_args(args: &mut [Arg]) -> Result<(), String> {
    key_args(args)?;
    additional_data(args, 3)
}

fn additional_data(args: &mut [Arg], index: usize) -> Result<(), String> {
    decode_base64_at(args, index).map_err(|what| format!("failed to parse aad : {what}"))
}

/// The block cipher of one key size.
enum Cipher {
    Aes128(aes::Aes128),
    Aes192(aes::Aes192),
    Aes256(aes::Aes256),
}

type AesBlock = Block<aes::Aes128>;

impl Cipher {
    /// A key that is too long is truncated.
    fn new(bits: i64, key: &[u8]) -> Option<Cipher> {
        Some(match bits {
            128 => Cipher::Aes128(aes::Aes128::new_from_slice(key.get(..16)?).ok()?),
            192 => Cipher::Aes192(aes::Aes192::new_from_slice(key.get(..24)?).ok()?),
            256 => Cipher::Aes256(aes::Aes256::new_from_slice(key.get(..32)?).ok()?),
            _ => return None,
        })
    }

    fn encrypt(&self, block: &mut AesBlock) {
        match self {
            Cipher::Aes128(cipher) => cipher.encrypt_block(block),
            Cipher::Aes192(cipher) => cipher.encrypt_block(block),
            Cipher::Aes256(cipher) => cipher.encrypt_block(block),
        }
    }

    fn decrypt(&self, block: &mut AesBlock) {
        match self {
            Cipher::Aes128(cipher) => cipher.decrypt_block(block),
            Cipher::Aes192(cipher) => cipher.decrypt_block(block),
            Cipher::Aes256(cipher) => cipher.decrypt_block(block),
        }
    }
}

/// The initial value of key wrapping (RFC 3394 §2.2.3.1).
const WRAP_VECTOR: [u8; 8] = [0xa6; 8];
/// Most 8-byte blocks of a wrapped key, without the first.
const WRAPPED_BLOCKS_MAX: usize = 16;

/// Unwraps a key with another one (RFC 3394 §2.2.2). None if the check fails.
pub(super) fn unwrap_key(key: &[u8], wrapped: &[u8]) -> Option<Vec<u8>> {
    let cipher = Cipher::new(8 * i64::try_from(key.len()).ok()?, key)?;
    let (first, rest) = wrapped.split_first_chunk::<8>()?;
    let (blocks, []) = rest.as_chunks::<8>() else {
        return None;
    };
    let count = blocks.len();
    if !(2..=WRAPPED_BLOCKS_MAX).contains(&count) {
        return None;
    }
    let mut vector = *first;
    let mut blocks = blocks.to_vec();
    for step in (1..=6 * count).rev() {
        let place = (step - 1) % count;
        xor(&mut vector, &(step as u64).to_be_bytes());
        let mut block = AesBlock::default();
        block[..8].copy_from_slice(&vector);
        block[8..].copy_from_slice(&blocks[place]);
        cipher.decrypt(&mut block);
        vector.copy_from_slice(&block[..8]);
        blocks[place].copy_from_slice(&block[8..]);
    }
    let is_right = vector.as_slice().ct_eq(&WRAP_VECTOR).to_bool();
    is_right.then(|| blocks.concat())
}

fn xor(block: &mut [u8], other: &[u8]) {
    for (byte, other) in block.iter_mut().zip(other) {
        *byte ^= other;
    }
}

/// Cipher, initial vector, input, output.
type Mode = fn(&Cipher, AesBlock, &[u8], &mut Vec<u8>) -> Option<()>;

/// As in HAProxy, a nonce that is too short is padded with zeros, and one that is too long is
/// truncated. Additional data has no meaning in this mode; but if a variable is named for it, the
/// variable must be set.
fn cbc<'a>(args: &'a [Arg], value: Value<'a>, scope: &Scope<'a>, mode: Mode) -> Option<Value<'a>> {
    let nonce = base64_at(args, 1, scope)?;
    let key = base64_at(args, 2, scope)?;
    if args.len() > 3 {
        base64_at(args, 3, scope)?;
    }
    let cipher = Cipher::new(int_at(args, 0)?, &key)?;
    let mut vector = AesBlock::default();
    xor(&mut vector, &nonce);
    let bytes = bytes_of(value)?;
    written(|out| mode(&cipher, vector, &bytes, out)).map(Value::Bin)
}

/// Pads with PKCS #7 (RFC 5652 §6.3).
fn cbc_encrypt(
    cipher: &Cipher,
    mut vector: AesBlock,
    bytes: &[u8],
    out: &mut Vec<u8>,
) -> Option<()> {
    let (blocks, rest) = bytes.as_chunks::<BLOCK>();
    let mut last = [(BLOCK - rest.len()) as u8; BLOCK];
    last[..rest.len()].copy_from_slice(rest);
    for block in blocks.iter().chain([&last]) {
        xor(&mut vector, block);
        cipher.encrypt(&mut vector);
        out.extend_from_slice(&vector);
    }
    Some(())
}

fn cbc_decrypt(
    cipher: &Cipher,
    mut vector: AesBlock,
    bytes: &[u8],
    out: &mut Vec<u8>,
) -> Option<()> {
    let (blocks, []) = bytes.as_chunks::<BLOCK>() else {
        return None;
    };
    for input in blocks {
        let mut block = AesBlock::from(*input);
        cipher.decrypt(&mut block);
        xor(&mut block, &vector);
        vector = AesBlock::from(*input);
        out.extend_from_slice(&block);
    }
    let padding = usize::from(*out.last()?);
    let kept = out.len().checked_sub(padding)?;
    let valid = (1..=BLOCK).contains(&padding)
        && out[kept..].iter().all(|byte| usize::from(*byte) == padding);
    out.truncate(kept);
    valid.then_some(())
}

fn gcm_decrypt<'a>(args: &'a [Arg], value: Value<'a>, scope: &Scope<'a>) -> Option<Value<'a>> {
    let tag = base64_at(args, 3, scope)?;
    let gcm = Gcm::of(args, 4, scope)?;
    let bytes = bytes_of(value)?;
    if !gcm.tag(&bytes).as_slice().ct_eq(&tag).to_bool() {
        return None;
    }
    let mut buffer = bytes.into_buffer();
    gcm.apply(buffer.bytes_mut());
    Some(Value::Bin(buffer.into()))
}

/// The tag is stored in the variable, in base64.
fn gcm_encrypt<'a>(args: &'a [Arg], value: Value<'a>, scope: &Scope<'a>) -> Option<Value<'a>> {
    let Some(Arg::Var(tag_var)) = args.get(3) else {
        return None;
    };
    let gcm = Gcm::of(args, 4, scope)?;
    let mut buffer = bytes_of(value)?.into_buffer();
    gcm.apply(buffer.bytes_mut());
    let tag = gcm.tag(&buffer);
    let tag = Value::Str(written(|out| {
        super::coding::encode64(&tag, out);
        Some(())
    })?);
    scope
        .assign(*tag_var, SetConditions::default(), &tag)
        .then(|| Value::Bin(buffer.into()))
}

/// Galois/Counter Mode (GCM) for one message.
struct Gcm<'a> {
    cipher: Cipher,
    hash: ghash::GHash,
    /// The counter block that encrypts the tag.
    first: AesBlock,
    additional: crate::Bytes<'a>,
}

impl<'a> Gcm<'a> {
    /// Reads bits, nonce and key, and the additional data at `index`.
    fn of(args: &'a [Arg], index: usize, scope: &Scope<'a>) -> Option<Gcm<'a>> {
        let nonce = base64_at(args, 1, scope)?;
        let key = base64_at(args, 2, scope)?;
        let additional = match args.get(index) {
            Some(_) => base64_at(args, index, scope)?,
            None => crate::Bytes::from(""),
        };
        if !(1..=NONCE_BYTES_MAX).contains(&nonce.len()) {
            return None;
        }
        let cipher = Cipher::new(int_at(args, 0)?, &key)?;
        let mut subkey = AesBlock::default();
        cipher.encrypt(&mut subkey);
        let hash = ghash::GHash::new(&subkey);
        let mut first = AesBlock::default();
        if nonce.len() == 12 {
            first[..12].copy_from_slice(&nonce);
            first[15] = 1;
        } else {
            let mut hash = hash.clone();
            hash.update_padded(&nonce);
            hash.update(&[lengths(0, nonce.len())]);
            first = hash.finalize();
        }
        Some(Gcm {
            cipher,
            hash,
            first,
            additional,
        })
    }

    /// Encrypts or decrypts in place.
    fn apply(&self, bytes: &mut [u8]) {
        let mut counter = self.first;
        for chunk in bytes.chunks_mut(BLOCK) {
            let number = counter.last_chunk::<4>().copied().unwrap_or_default();
            let next = u32::from_be_bytes(number).wrapping_add(1);
            counter[12..].copy_from_slice(&next.to_be_bytes());
            let mut stream = counter;
            self.cipher.encrypt(&mut stream);
            xor(chunk, &stream);
        }
    }

    /// The authentication tag of encrypted bytes.
    fn tag(&self, encrypted: &[u8]) -> [u8; BLOCK] {
        let mut hash = self.hash.clone();
        hash.update_padded(&self.additional);
        hash.update_padded(encrypted);
        hash.update(&[lengths(self.additional.len(), encrypted.len())]);
        let mut tag: [u8; BLOCK] = hash.finalize().into();
        let mut mask = self.first;
        self.cipher.encrypt(&mut mask);
        xor(&mut tag, &mask);
        tag
    }
}

/// The block with the lengths in bits at the end of a hash.
fn lengths(first: usize, second: usize) -> AesBlock {
    let bits = (first as u128) << 67 | (second as u128) << 3;
    AesBlock::from(bits.to_be_bytes())
}

#[cfg(test)]
mod tests {
    use crate::Place;
    use crate::testing::{Facts, compiler, convert_text, none};

    /// Vectors of NIST SP 800-38A §F.2 and test cases 2 to 4 of the GCM specification; keys and
    /// nonces are in base64.
    #[test]
    fn published_vectors() {
        for (expr, wanted) in [
            (
                // F.2.1, the first block; the block of the padding follows it.
                "bin(6bc1bee22e409f96e93d7e117393172a),aes_cbc_enc(128,AAECAwQFBgcICQoLDA0ODw==,\
                 K34VFiiu0qar9xWICc9PPA==),bytes(0,16),hex",
                "7649ABAC8119B246CEE98E9B12E9197D",
            ),
            (
                // F.2.5
                "bin(6bc1bee22e409f96e93d7e117393172a),aes_cbc_enc(256,AAECAwQFBgcICQoLDA0ODw==,\
                 YD3rEBXKcb4rc67whX13gR81LAc7YQjXLZgQowkU3/Q=),bytes(0,16),hex",
                "F58C4C04D6E5F1BA779EABFB5F7BFBD6",
            ),
            (
                "str(plain),aes_cbc_enc(192,bm9uY2U=,c2l4dGVlbiBieXRlcyBvZiBhIGtleTEyMzQ=),\
                 aes_cbc_dec(192,bm9uY2U=,c2l4dGVlbiBieXRlcyBvZiBhIGtleTEyMzQ=)",
                "plain",
            ),
            (
                // Test case 3.
                "bin(42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e\
                 21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091473f5985),\
                 aes_gcm_dec(128,yv66vvrO263eyviI,/v/pkoZlcxxtao+UZzCDCA==,TVwq8yfNZKYs81q9K6b6tA==),hex",
                "D9313225F88406E5A55909C5AFF5269A86A7A9531534F7DA2E4C303D8A318A721C3C0C95956809532FCF0E2449A6B525\
                 B16AEDF5AA0DE657BA637B391AAFD255",
            ),
            (
                // Test case 4: with additional data.
                "bin(42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e\
                 21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091),\
                 aes_gcm_dec(128,yv66vvrO263eyviI,/v/pkoZlcxxtao+UZzCDCA==,W8lPvDIhpduU+ula5xIaRw==,\
                 /u36zt6tvu/+7frO3q2+76ut2tI=),bytes(0,8),hex",
                "D9313225F88406E5",
            ),
        ] {
            let wanted = wanted.replace(' ', "");
            assert_eq!(convert_text(&expr.replace(' ', "")), wanted, "{expr}");
        }
    }

    /// Test case 6 of the GCM specification has a nonce of another length. Decryption restores what
    /// was encrypted.
    #[test]
    fn tags_are_assigned() {
        let mut facts = Facts::new();
        let mut compiler = compiler();
        let expr = "bin(d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525\
                    b16aedf5aa0de657ba637b39),aes_gcm_enc(128,kxMiXfiEBuVVkJxa/1Jpqmp6lThTT32h5MMD0qMYpyjDwMlRVoCVOfzw4kKaa1JUFq7b9aDealemN7Ob,\
                    /v/pkoZlcxxtao+UZzCDCA==,txn.tag,/u36zt6tvu/+7frO3q2+76ut2tI=)";
        let expr = expr.replace(' ', "");
        let back = format!(
            "{expr},aes_gcm_dec(128,kxMiXfiEBuVVkJxa/1Jpqmp6lThTT32h5MMD0qMYpyjDwMlRVoCVOfzw4kKaa1JUFq7b9aDealemN7Ob,\
             /v/pkoZlcxxtao+UZzCDCA==,txn.tag,/u36zt6tvu/+7frO3q2+76ut2tI=),hex"
        );
        let hex = format!("{expr},hex");
        let [hex, tag, back] = [
            hex.as_str(),
            "var(txn.tag),b64dec,hex",
            &back.replace(' ', ""),
        ]
        .map(|text| compiler.expr(&[text], Place::ALL).expect("an expression").0);
        let mut text = |expr: &crate::Expr| {
            let mut out = Vec::new();
            expr.append_text(&facts.scope(), &mut out);
            facts.settle();
            String::from_utf8_lossy(&out).into_owned()
        };
        let encrypted = text(&hex);
        assert!(
            encrypted.starts_with("8CE24998625615B603A033ACA13FB894"),
            "{encrypted}"
        );
        assert_eq!(text(&tag), "619CC5AEFFFE0BFA462AF43C1699D050");
        assert!(text(&back).starts_with("D9313225F88406E5"));
    }

    #[test]
    fn what_was_changed_is_not_decrypted() {
        for expr in [
            // Another tag, a short tag.
            "bin(0388dace60b6a392f328c2b971b2fe78),aes_gcm_dec(128,AAAAAAAAAAAAAAAA,AAAAAAAAAAAAAAAAAAAAAA==,\
             AAAAAAAAAAAAAAAAAAAAAA==)",
            "bin(0388dace60b6a392f328c2b971b2fe78),aes_gcm_dec(128,AAAAAAAAAAAAAAAA,AAAAAAAAAAAAAAAAAAAAAA==,q24=)",
            // No block, bad padding, a key that is too short.
            "bin(00),aes_cbc_dec(128,bm9uY2U=,K34VFiiu0qar9xWICc9PPA==)",
            "bin(00000000000000000000000000000000),aes_cbc_dec(128,bm9uY2U=,K34VFiiu0qar9xWICc9PPA==)",
            "str(),aes_cbc_dec(128,bm9uY2U=,K34VFiiu0qar9xWICc9PPA==)",
            "str(a),aes_cbc_enc(256,bm9uY2U=,K34VFiiu0qar9xWICc9PPA==)",
        ] {
            none(&expr.replace(' ', ""));
        }
        // Test case 2.
        let expr = "bin(0388dace60b6a392f328c2b971b2fe78),aes_gcm_dec(128,AAAAAAAAAAAAAAAA,\
                    AAAAAAAAAAAAAAAAAAAAAA==,q25H1CzsE731OmeyEle93w==),hex";
        assert_eq!(
            convert_text(&expr.replace(' ', "")),
            "00000000000000000000000000000000"
        );
    }
}
