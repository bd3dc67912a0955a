//! The cookie of an RDP connection request (MS-RDPBCGR §2.2.1.1): `Cookie: name=value` on a
//! separate line.

use super::Sniffed;

/// TPKT and X.224 heads before the cookie.
const HEAD_BYTES: usize = 11;
const LABEL: &[u8] = b"Cookie:";

/// The value of the first cookie, if it has this name, in any case; an empty name accepts any
/// cookie.
#[must_use]
pub fn cookie<'a>(bytes: &'a [u8], name: &[u8]) -> Sniffed<&'a [u8]> {
    let Some(text) = bytes
        .get(HEAD_BYTES..)
        .filter(|text| text.len() > LABEL.len())
    else {
        return Sniffed::More;
    };
    if !text[..LABEL.len()].eq_ignore_ascii_case(LABEL) {
        return Sniffed::No;
    }
    let text = &text[LABEL.len()..];
    let blanks = text.iter().take_while(|byte| **byte == b' ').count();
    let pair = &text[blanks..];
    value_start(pair, name).then(|start| {
        let value = &pair[start..];
        match memchr::memchr(b'\r', value) {
            Some(end) if end + 1 < value.len() => match value[end + 1] {
                b'\n' => Sniffed::Found(&value[..end]),
                _ => Sniffed::No,
            },
            _ => Sniffed::More,
        }
    })
}

/// The position of the value.
fn value_start(pair: &[u8], name: &[u8]) -> Sniffed<usize> {
    if name.is_empty() {
        return match pair
            .iter()
            .position(|byte| matches!(byte, b'=' | b'\r' | b'\n'))
        {
            Some(at) if pair[at] == b'=' => Sniffed::Found(at + 1),
            Some(_) => Sniffed::No,
            None => Sniffed::More,
        };
    }
    match pair.get(name.len()) {
        None => Sniffed::More,
        Some(b'=') if pair[..name.len()].eq_ignore_ascii_case(name) => {
            Sniffed::Found(name.len() + 1)
        }
        Some(_) => Sniffed::No,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(text: &str) -> Vec<u8> {
        let mut bytes = vec![0x03, 0, 0, 0x2a, 0x25, 0xe0, 0, 0, 0, 0, 0];
        bytes.extend_from_slice(text.as_bytes());
        bytes
    }

    #[test]
    fn the_first_cookie_by_its_name() {
        let bytes = request("cookie: mstshash=anna\r\n\x01\0\x08\0");
        assert_eq!(cookie(&bytes, b"MSTSHASH"), Sniffed::Found(&b"anna"[..]));
        assert_eq!(cookie(&bytes, b""), Sniffed::Found(&b"anna"[..]));
        assert_eq!(cookie(&bytes, b"msts"), Sniffed::No);
        assert_eq!(cookie(&bytes, b"mstshashes"), Sniffed::No);
        assert_eq!(
            cookie(&request("Cookie:=\r\n"), b""),
            Sniffed::Found(&b""[..])
        );
    }

    #[test]
    fn more_is_asked_for_as_long_as_it_may_help() {
        let whole = request("Cookie: a=b\r\n");
        for cut in 0..whole.len() {
            assert_eq!(cookie(&whole[..cut], b"a"), Sniffed::More, "{cut}");
            assert_eq!(cookie(&whole[..cut], b""), Sniffed::More, "{cut}");
        }
        for other in ["Biscuit: a=b\r\n", "Cookie: ab\r\n", "Cookie: a=b\rx"] {
            assert_eq!(cookie(&request(other), b""), Sniffed::No, "{other}");
        }
    }
}
