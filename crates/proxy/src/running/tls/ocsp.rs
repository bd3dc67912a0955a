//! The status of certificates that is stapled to them (RFC 6960).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tls::{CertId, OcspResponse};

/// How far clocks may be apart, seconds.
const SKEW_S: u64 = 300;

/// Reads base64 with line breaks.
///
/// # Errors
/// It is none, in words.
pub(super) fn decode(payload: &[u8]) -> Result<Vec<u8>, String> {
    let text: Vec<u8> = payload
        .iter()
        .copied()
        .filter(|byte| !byte.is_ascii_whitespace())
        .collect();
    STANDARD
        .decode(text)
        .map_err(|_| "Error reading OCSP response in base64 format".to_owned())
}

/// The certificate that a response is for, `now_s` after the UNIX epoch.
///
/// # Errors
/// It is no good response, in words.
pub(super) fn check(response: &[u8], now_s: u64) -> Result<CertId, String> {
    let response = OcspResponse::parse(response).map_err(|error| error.to_string())?;
    if response.this_update_s > now_s + SKEW_S {
        return Err("OCSP single response: not yet valid.".to_owned());
    }
    match response.next_update_s {
        Some(next) if next + SKEW_S < now_s => {
            Err("OCSP single response: no longer valid.".to_owned())
        }
        _ => Ok(response.id),
    }
}
