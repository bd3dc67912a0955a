//! MySQL packets: a three-byte length, a sequence number, and the payload; 0xff begins an error.

use config::model::CheckStatus;

use super::Parsed;

const HEADER_BYTES: usize = 4;
const ERROR: u8 = 0xff;

/// Parses the handshake with which a server begins.
pub(crate) fn handshake(input: &[u8]) -> Parsed {
    packet(input, 0)
}

/// Parses the reply to a login, which follows the handshake.
pub(crate) fn login(input: &[u8]) -> Parsed {
    match length(input) {
        Some(length) => packet(input, HEADER_BYTES + length),
        None => Parsed::Wait,
    }
}

/// The version in a handshake.
pub(crate) fn version(input: &[u8]) -> String {
    let text = input.get(HEADER_BYTES + 1..).unwrap_or_default();
    let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

fn length(packet: &[u8]) -> Option<usize> {
    let [first, second, third, _] = *packet.first_chunk::<HEADER_BYTES>()?;
    Some(u32::from_le_bytes([first, second, third, 0]) as usize)
}

fn packet(input: &[u8], from: usize) -> Parsed {
    let packet = input.get(from..).unwrap_or_default();
    let Some(length) = length(packet) else {
        return Parsed::Wait;
    };
    if packet.len() < HEADER_BYTES + length {
        return Parsed::Wait;
    }
    match packet.get(HEADER_BYTES..) {
        Some([ERROR, low, high, text @ ..]) => Parsed::Failed {
            status: CheckStatus::Layer7WrongStatus,
            code: i64::from(u16::from_le_bytes([*low, *high])),
            text: String::from_utf8_lossy(text).into_owned(),
        },
        Some([ERROR, ..]) => Parsed::invalid(""),
        _ => Parsed::Good,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_read_and_errors_told() {
        let hello = b"\x09\x00\x00\x00\x0a5.7.1\x00xy";
        assert_eq!(handshake(hello), Parsed::Good);
        assert_eq!(version(hello), "5.7.1");
        for cut in 0..hello.len() {
            assert_eq!(handshake(&hello[..cut]), Parsed::Wait, "{cut}");
            assert_eq!(login(&hello[..cut]), Parsed::Wait, "{cut}");
        }
        let refused = [hello, &b"\x06\x00\x00\x01\xff\x15\x04no"[..]].concat();
        // The length says more than there is.
        assert_eq!(login(&refused), Parsed::Wait);
        let refused = [hello, &b"\x05\x00\x00\x01\xff\x15\x04no"[..]].concat();
        assert_eq!(
            login(&refused),
            Parsed::Failed {
                status: CheckStatus::Layer7WrongStatus,
                code: 1045,
                text: "no".into()
            }
        );
    }
}
