//! `baggage` (W3C Baggage): names and values that are propagated with a request.
//!
//! Baggage is kept as the bytes of one field. Values are percent-encoded there; the properties
//! after a value are forwarded unchanged.

use otlp::tracestate::trim;
use syntax::hex;

/// The most pairs of a list: as many as OpenTelemetry's SDKs forward, which is more than the
/// required minimum ("limits").
pub const PAIRS_MAX: usize = 180;
/// The most bytes of one pair, including its properties.
pub const PAIR_BYTES_MAX: usize = 4096;
/// The most bytes of a list.
pub const BAGGAGE_BYTES_MAX: usize = 8192;

/// One name and its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair<'a> {
    /// The name: a token (RFC 9110 §5.6.2).
    pub key: &'a [u8],
    /// The value, percent-encoded.
    pub value: &'a [u8],
    /// The properties after the first `;`, including inner blanks.
    pub metadata: &'a [u8],
    /// The whole pair, without blanks at its ends.
    text: &'a [u8],
}

/// The well-formed pairs of a list within its limits; all others are left out.
pub fn pairs(list: &[u8]) -> impl Iterator<Item = Pair<'_>> {
    let mut room = BAGGAGE_BYTES_MAX + 1;
    list.split(|byte| *byte == b',')
        .take_while(move |text| {
            // Blanks and the comma of a pair count; only whole pairs are used.
            let fits = text.len() < room;
            room -= (text.len() + 1).min(room);
            fits
        })
        .filter_map(parse)
        .take(PAIRS_MAX)
}

/// Appends the list from a field's lines, in order; malformed pairs and those beyond the limits are
/// left out.
pub fn read<'a>(lines: impl IntoIterator<Item = &'a [u8]>, out: &mut Vec<u8>) {
    let (start, mut count) = (out.len(), 0);
    for line in lines {
        append(line, start, &mut count, out);
    }
}

/// Appends one line to the list that begins at `start` and has `count` pairs.
pub(super) fn append(line: &[u8], start: usize, count: &mut usize, out: &mut Vec<u8>) {
    for pair in pairs(line) {
        if *count == PAIRS_MAX || !push(pair.text, start, out) {
            return;
        }
        *count += 1;
    }
}

/// Appends the decoded value of a name; returns whether there is one. Bytes that do not decode to
/// UTF-8 become U+FFFD ("value").
pub fn get(list: &[u8], key: &[u8], out: &mut Vec<u8>) -> bool {
    // If a name occurs twice, the later pair counts, as in most maps.
    let Some(pair) = pairs(list).filter(|pair| pair.key == key).last() else {
        return false;
    };
    let start = out.len();
    decode(pair.value, out);
    if let Err(error) = std::str::from_utf8(&out[start..]) {
        let from = start + error.valid_up_to();
        let fixed = String::from_utf8_lossy(&out[from..]).into_owned();
        out.truncate(from);
        out.extend_from_slice(fixed.as_bytes());
    }
    true
}

/// Appends the list with this pair at its end; the pair replaces all others of that name. If the
/// name is not a token or the pair does not fit, appends the list unchanged and returns false.
pub fn set(list: &[u8], key: &[u8], value: &[u8], out: &mut Vec<u8>) -> bool {
    let start = out.len();
    let mut count = 0;
    for pair in pairs(list).filter(|pair| pair.key != key) {
        count += 1;
        // These pairs fitted before.
        push(pair.text, start, out);
    }
    let end = out.len();
    if end > start {
        out.push(b',');
    }
    let pair = out.len();
    out.extend_from_slice(key);
    out.push(b'=');
    encode(value, out);
    let fits = out.len() - pair <= PAIR_BYTES_MAX
        && out.len() - start <= BAGGAGE_BYTES_MAX
        && count < PAIRS_MAX
        && http::is_token(key);
    if !fits {
        out.truncate(start);
        read([list], out);
    }
    fits
}

/// Appends a pair to the list at `start`, if it fits.
fn push(text: &[u8], start: usize, out: &mut Vec<u8>) -> bool {
    let comma = usize::from(out.len() > start);
    let fits = out.len() - start + comma + text.len() <= BAGGAGE_BYTES_MAX;
    if fits {
        if comma == 1 {
            out.push(b',');
        }
        out.extend_from_slice(text);
    }
    fits
}

/// `list-member`: `key = value ; properties`.
fn parse(text: &[u8]) -> Option<Pair<'_>> {
    let text = trim(text);
    if text.len() > PAIR_BYTES_MAX {
        return None;
    }
    let mut parts = text.splitn(2, |byte| *byte == b';');
    let pair = parts.next()?;
    let metadata = trim(parts.next().unwrap_or_default());
    let equals = pair.iter().position(|byte| *byte == b'=')?;
    let (key, value) = (trim(&pair[..equals]), trim(&pair[equals + 1..]));
    let good = http::is_token(key)
        && value.iter().all(|byte| is_octet(*byte))
        && metadata
            .iter()
            .all(|byte| matches!(byte, b'\t' | b' '..=b'~'));
    good.then_some(Pair {
        key,
        value,
        metadata,
        text,
    })
}

/// `baggage-octet`: the bytes that a value may contain unencoded, and `%`, which begins an encoded
/// one.
#[inline]
fn is_octet(byte: u8) -> bool {
    matches!(byte, b'!'..=b'~') && !matches!(byte, b'"' | b',' | b';' | b'\\')
}

fn encode(value: &[u8], out: &mut Vec<u8>) {
    for byte in value {
        if is_octet(*byte) && *byte != b'%' {
            out.push(*byte);
        } else {
            let [high, low] = hex::upper(*byte);
            out.extend_from_slice(&[b'%', high, low]);
        }
    }
}

fn decode(mut value: &[u8], out: &mut Vec<u8>) {
    while let [byte, rest @ ..] = value {
        if let (b'%', [high, low, rest @ ..]) = (byte, rest)
            && let (Some(high), Some(low)) = (hex::digit(*high), hex::digit(*low))
        {
            out.push(high << 4 | low);
            value = rest;
        } else {
            out.push(*byte);
            value = rest;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn got(list: &str, key: &str) -> Option<String> {
        let mut out = Vec::new();
        get(list.as_bytes(), key.as_bytes(), &mut out).then(|| String::from_utf8(out).unwrap())
    }

    fn changed(list: &str, key: &str, value: &str) -> Option<String> {
        let mut out = b"x".to_vec();
        let good = set(list.as_bytes(), key.as_bytes(), value.as_bytes(), &mut out);
        good.then(|| String::from_utf8(out.split_off(1)).unwrap())
    }

    #[test]
    fn the_examples_of_the_specification_are_read() {
        let list = "key1=value1;property1;property2, key2 = value2, key3=value3; propertyKey=propertyValue";
        assert_eq!(got(list, "key1").unwrap(), "value1");
        assert_eq!(got(list, "key2").unwrap(), "value2");
        let third = pairs(list.as_bytes()).nth(2).unwrap();
        assert_eq!(
            (third.key, third.metadata),
            (&b"key3"[..], &b"propertyKey=propertyValue"[..])
        );
        assert_eq!(
            got("serverNode=DF%2028,userId=Am%C3%A9lie", "userId").unwrap(),
            "Amélie"
        );
        assert_eq!(got("a=%zz%4,b=%ff%41", "a").unwrap(), "%zz%4");
        assert_eq!(got("a=%zz%4,b=%ff%41", "b").unwrap(), "\u{fffd}A");
        assert_eq!(got("a=,b", "a").unwrap(), "");
        assert_eq!(got("a=1,b", "b"), None);
        assert_eq!(got("a b=1,c=\"2\",d=a\\b,e=x y,=f", "e"), None);
        assert_eq!(pairs(b"a b=1,c=\"2\",d=a\\b,e=x y,=f").count(), 0);
    }

    #[test]
    fn a_pair_is_set() {
        assert_eq!(changed("", "a", "b").unwrap(), "a=b");
        assert_eq!(
            changed("a=1;m , b=2;n", "a", "x, y%").unwrap(),
            "b=2;n,a=x%2C%20y%25"
        );
        assert_eq!(changed("a=1,b,a=2", "c", "é").unwrap(), "a=1,a=2,c=%C3%A9");
        assert_eq!(changed("a=1", "no token", "x"), None);
        assert_eq!(changed("a=1", "", "x"), None);
    }

    #[test]
    fn what_does_not_fit_changes_nothing() {
        let many: Vec<_> = (0..PAIRS_MAX + 5).map(|at| format!("k{at}=v")).collect();
        let list = many.join(",");
        assert_eq!(pairs(list.as_bytes()).count(), PAIRS_MAX);
        let mut out = Vec::new();
        assert!(!set(list.as_bytes(), b"new", b"v", &mut out));
        assert_eq!(out, many[..PAIRS_MAX].join(",").as_bytes());
        assert!(changed(&list, "k0", "w").unwrap().ends_with(",k0=w"));
        assert_eq!(changed("a=1", "b", &"v".repeat(PAIR_BYTES_MAX - 1)), None);
        assert!(changed("a=1", "b", &"v".repeat(PAIR_BYTES_MAX - 2)).is_some());
        let long = format!("a={v},b={v}", v = "v".repeat(4093));
        assert_eq!(long.len(), 8191);
        assert_eq!(pairs(long.as_bytes()).count(), 2);
        assert_eq!(changed(&long, "c", ""), None);
        assert_eq!(pairs(format!("{long}vv").as_bytes()).count(), 1);
    }

    #[test]
    fn lines_are_joined_up_to_the_limits() {
        let mut out = b"x".to_vec();
        let lines: [&[u8]; 3] = [b"a=1, b=2;p", b"", b"bad,c=3"];
        read(lines, &mut out);
        assert_eq!(out, b"xa=1,b=2;p,c=3");
        let long = format!("a={}", "v".repeat(4000));
        let mut out = Vec::new();
        read([long.as_bytes(); 5], &mut out);
        assert_eq!(pairs(&out).count(), 2);
    }

    #[test]
    fn what_is_set_is_got() {
        let mut ids = crate::Ids::new([9, 9, 9, 1]);
        let (mut list, mut next, mut out) = (Vec::new(), Vec::new(), Vec::new());
        for turn in 0..500_u32 {
            let value: String = (0..turn % 20)
                .filter_map(|_| char::from_u32(ids.next_u64() as u32 % 0x800))
                .collect();
            let key = [b'k', b'a' + (turn % 7) as u8];
            next.clear();
            assert!(set(&list, &key, value.as_bytes(), &mut next));
            std::mem::swap(&mut list, &mut next);
            out.clear();
            assert!(get(&list, &key, &mut out));
            assert_eq!(out, value.as_bytes());
            assert!(pairs(&list).count() <= 7);
        }
    }
}
