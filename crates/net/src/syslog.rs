//! Syslog messages: the header of RFC 5424 §6 and of RFC 3164 §4.1, as far as it can be recognised.
//!
//! Anything is a message: what is not recognised as a header is text.

#[cfg(test)]
mod tests;

/// The length of a time as in `Nov 27 13:01:02`, bytes.
pub const BSD_TIME_BYTES: usize = 15;
/// The length of the part of an RFC 5424 time before the fraction, bytes.
pub const ISO_MOMENT_BYTES: usize = 19;
/// Most digits of a priority. RFC 5424 §6.2.1 allows values up to 191.
const PRIORITY_DIGITS_MAX: usize = 3;

/// The names of months in times of RFC 3164.
pub const MONTHS: [&[u8]; 12] = [
    b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec",
];

/// The time of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Time<'a> {
    /// There is none.
    #[default]
    Missing,
    /// `-` (RFC 5424).
    Nil,
    /// `Nov 27 13:01:02`: [`BSD_TIME_BYTES`], which begin with one of [`MONTHS`].
    Bsd(&'a [u8]),
    /// `2026-11-27T13:01:02.123+01:00`: [`ISO_MOMENT_BYTES`] or more.
    Iso(&'a [u8]),
}

/// A message; fields that it lacks are empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Message<'a> {
    /// The facility and the severity; none if the message does not begin with `<priority>`.
    pub priority: Option<Priority>,
    /// Its time.
    pub time: Time<'a>,
    /// The name of the host that wrote it.
    pub host: &'a [u8],
    /// The program.
    pub tag: &'a [u8],
    /// The process.
    pub pid: &'a [u8],
    /// RFC 5424's MSGID.
    pub id: &'a [u8],
    /// RFC 5424's structured data.
    pub sd: &'a [u8],
    /// The rest.
    pub text: &'a [u8],
}

/// A priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priority {
    /// The facility.
    pub facility: u8,
    /// 0 (emergency) to 7 (debug).
    pub severity: u8,
}

impl<'a> Message<'a> {
    /// A message without a header.
    #[must_use]
    pub fn plain(text: &'a [u8]) -> Message<'a> {
        Message {
            text,
            ..Message::default()
        }
    }

    /// Recognises the header.
    #[must_use]
    pub fn parse(bytes: &'a [u8]) -> Message<'a> {
        let Some((priority, rest)) = priority(bytes) else {
            return Message::plain(bytes);
        };
        let parsed = match rest.strip_prefix(b"1 ") {
            Some(header) => rfc5424(header),
            None => rfc3164(rest),
        };
        Message {
            priority: Some(priority),
            // As in HAProxy, a faulty header is text.
            ..parsed.unwrap_or_else(|| Message::plain(rest))
        }
    }
}

/// `<34>`
fn priority(bytes: &[u8]) -> Option<(Priority, &[u8])> {
    let rest = bytes.strip_prefix(b"<")?;
    let end = rest.iter().take(PRIORITY_DIGITS_MAX + 1);
    let end = end.take_while(|byte| byte.is_ascii_digit()).count();
    if end > PRIORITY_DIGITS_MAX || rest.get(end) != Some(&b'>') {
        return None;
    }
    let digits = rest[..end].iter();
    let value = digits.fold(0_u16, |value, digit| value * 10 + u16::from(digit - b'0'));
    let priority = Priority {
        // At most 124.
        facility: (value >> 3) as u8,
        severity: (value & 7) as u8,
    };
    Some((priority, &rest[end + 1..]))
}

/// The bytes up to a space, which must not be the first byte, and those after it.
fn word(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|byte| *byte == b' ')?;
    if end == 0 {
        return None;
    }
    Some((&bytes[..end], &bytes[end + 1..]))
}

/// A field of RFC 5424, where `-` stands for nothing.
fn field(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (field, rest) = word(bytes)?;
    Some((if field == b"-" { b"" } else { field }, rest))
}

/// `TIMESTAMP HOSTNAME APP-NAME PROCID MSGID STRUCTURED-DATA text`
fn rfc5424(bytes: &[u8]) -> Option<Message<'_>> {
    let (time, rest) = word(bytes)?;
    let time = match time {
        b"-" => Time::Nil,
        time => Time::Iso(Some(time).filter(|time| is_iso(time))?),
    };
    let (host, rest) = field(rest)?;
    let (tag, rest) = field(rest)?;
    let (pid, rest) = field(rest)?;
    let (id, rest) = field(rest)?;
    let (sd, text) = structured_data(rest)?;
    Some(Message {
        priority: None,
        time,
        host,
        tag,
        pid,
        id,
        sd,
        text,
    })
}

/// Whether a word is a time of RFC 5424 §6.2.3: `1970-01-01T00:00:00`, an optional fraction, and
/// `Z` or an offset.
fn is_iso(time: &[u8]) -> bool {
    const SHAPE: &[u8; ISO_MOMENT_BYTES] = b"0000-00-00T00:00:00";
    const OFFSET: &[u8; 5] = b"00:00";
    let has_shape = |bytes: &[u8], shape: &[u8]| {
        let mut pairs = bytes.iter().zip(shape);
        bytes.len() == shape.len()
            && pairs.all(|(byte, shape)| match shape {
                b'0' => byte.is_ascii_digit(),
                shape => byte == shape,
            })
    };
    let Some((moment, rest)) = time.split_at_checked(ISO_MOMENT_BYTES) else {
        return false;
    };
    let zone = match rest.strip_prefix(b".") {
        Some(rest) => {
            let digits = rest.iter().take_while(|byte| byte.is_ascii_digit());
            &rest[digits.count()..]
        }
        None => rest,
    };
    let is_zone = match zone.split_first() {
        Some((b'Z', rest)) => rest.is_empty(),
        Some((b'+' | b'-', rest)) => has_shape(rest, OFFSET),
        _ => false,
    };
    has_shape(moment, SHAPE) && is_zone
}

/// Structured data or `-`, and the text after the space that follows it.
fn structured_data(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    if let Some(text) = bytes.strip_prefix(b"- ") {
        return Some((b"", text));
    }
    let (mut is_inside, mut before) = (false, 0);
    for (at, byte) in bytes.iter().enumerate() {
        match (is_inside, byte) {
            (true, b']') => is_inside = before == b'\\',
            (true, _) => {}
            (false, b'[') => is_inside = true,
            (false, b' ') if at > 0 => return Some((&bytes[..at], &bytes[at + 1..])),
            (false, _) => return None,
        }
        before = *byte;
    }
    None
}

/// `Nov 27 13:01:02 host tag[pid]: text`; the tag may be missing.
fn rfc3164(bytes: &[u8]) -> Option<Message<'_>> {
    // A short message has no header.
    let (time, rest) = bytes.split_at_checked(BSD_TIME_BYTES)?;
    if !MONTHS.contains(&&time[..3]) {
        return None;
    }
    let (host, rest) = word(rest.strip_prefix(b" ")?)?;
    let mut message = Message {
        time: Time::Bsd(time),
        host,
        ..Message::plain(rest)
    };
    if let Some((tag, text)) = tag(rest) {
        let open = tag.iter().position(|byte| *byte == b'[');
        let open = open.filter(|open| *open > 0 && tag.ends_with(b"]"));
        match open {
            Some(open) => {
                (message.tag, message.pid) = (&tag[..open], &tag[open + 1..tag.len() - 1])
            }
            None => message.tag = tag,
        }
        message.text = text;
    }
    Some(message)
}

/// `tag[pid]: `
fn tag(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|byte| matches!(byte, b' ' | b':'))?;
    let text = bytes[end..].strip_prefix(b": ")?;
    (end > 0).then_some((&bytes[..end], text))
}
