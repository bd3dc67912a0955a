//! Queries of URLs.

/// Most parameters of a query.
const PAIRS_MAX: usize = 128;

/// The names and values of a query, decoded (`application/x-www-form-urlencoded`). Bytes that are
/// not UTF-8 are replaced.
pub fn pairs(query: &str) -> Vec<(String, String)> {
    let parts = query.split('&').filter(|part| !part.is_empty());
    let pairs = parts.take(PAIRS_MAX).map(|part| {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        (decoded(name), decoded(value))
    });
    pairs.collect()
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, behind)) = rest.split_first() {
        rest = behind;
        let digits = behind.first_chunk::<2>();
        match (first, digits.and_then(|digits| hex(*digits))) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &behind[2..];
            }
            (b'+', _) => bytes.push(b' '),
            (byte, _) => bytes.push(byte),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn hex([high, low]: [u8; 2]) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    Some((digit(high)? * 16 + digit(low)?) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_decoded() {
        let shown = |query: &str| {
            let pairs = pairs(query);
            let pairs = pairs.iter().map(|(name, value)| format!("{name}:{value}"));
            pairs.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(shown("a=b&c=d+e&&f"), "a:b c:d e f:");
        assert_eq!(shown("a%3d=%2Fx%2f&b=%C3%A9"), "a=:/x/ b:\u{e9}");
        assert_eq!(shown("a=%&b=%g0&c=%f"), "a:% b:%g0 c:%f");
        assert_eq!(shown("a=%ff"), "a:\u{fffd}");
        assert_eq!(pairs(&"a&".repeat(1000)).len(), PAIRS_MAX);
    }
}
