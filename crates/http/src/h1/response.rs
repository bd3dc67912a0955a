//! The rules of whole responses.

use super::facts::Facts;
use super::hops::keep_end_to_end;
use super::parse::{Parser, Stop};
use super::{Framing, ParseError, Parsed};
use crate::bytes::skip_text;
use crate::head::span;
use crate::{Head, Method, Name, Version};

/// Parses a response head with all its rules.
pub(super) fn parse(parser: &mut Parser<'_>, to: Method) -> Result<Parsed, Stop> {
    parser.empty_lines()?;
    let mut facts = Facts::response(parser.relaxed);
    status_line(parser)?;
    parser.fields(&mut facts)?;
    let relaxed = parser.relaxed;
    let (head, consumed) = (&mut *parser.head, parser.at);
    if facts.other_coding {
        return Err(ParseError::UnknownTransferCoding.into());
    }
    let framing = framing(head, &facts, to);
    let upgrade = head.status() == 101 && facts.upgrade_option && facts.upgrade_field;
    if upgrade && facts.websocket && !relaxed && !head.has(Name::SecWebsocketAccept) {
        return Err(ParseError::BadWebSocketKey.into());
    }
    keep_end_to_end(head, &facts);
    let http11 = head.version() == Version::Http11;
    let insecure = facts.transfer_encoding && (facts.length.is_some() || !http11);
    let lives = !facts.close && !insecure && (http11 || facts.keep_alive);
    Ok(Parsed {
        consumed,
        framing,
        keep_alive: lives && framing != Framing::UntilClose,
        keep_alive_asked: facts.keep_alive,
        upgrade,
        expect_continue: false,
    })
}

/// RFC 9112 §4. The reason phrase and the space before it may be missing.
fn status_line(parser: &mut Parser<'_>) -> Result<(), Stop> {
    let from = parser.at;
    let (version_len, status, digits) = match usual_status(&parser.head.buf[from..]) {
        Some(status) => {
            parser.at += 12;
            parser.head.start.version = Version::Http11;
            (Some(8), status, 3)
        }
        None => version_and_status(parser)?,
    };

    let reason = if matches!(parser.byte(parser.at), b'\r' | b'\n') {
        parser.at
    } else {
        parser.space(ParseError::BadStatus)?;
        parser.at
    };
    loop {
        parser.at = skip_text(&parser.head.buf, parser.at);
        match parser.byte(parser.at) {
            b'\r' | b'\n' => break,
            b'\t' => parser.at += 1,
            _ if parser.relaxed && parser.at < parser.end => parser.at += 1,
            _ => return Err(parser.bad(parser.at, ParseError::BadReason)),
        }
    }
    let reason_len = parser.at - reason;
    parser.line_end(ParseError::BadReason)?;
    parser.head.start.status = status;
    parser.head.start.reason = span(reason, reason_len);
    if let Some(version_len) = version_len {
        parser.keep_line(from, version_len + digits + reason_len);
    }
    Ok(())
}

/// The status of a line of the usual form: the version, one space, three digits.
#[inline]
fn usual_status(line: &[u8]) -> Option<u16> {
    let (version, rest) = line.split_first_chunk::<8>()?;
    match rest.first_chunk::<5>()? {
        [
            b' ',
            a @ b'1'..=b'9',
            b @ b'0'..=b'9',
            c @ b'0'..=b'9',
            b' ' | b'\r',
        ] if version == b"HTTP/1.1" => {
            Some(u16::from(a - b'0') * 100 + u16::from(b - b'0') * 10 + u16::from(c - b'0'))
        }
        _ => None,
    }
}

/// The version's length if it is written unchanged, the status, and the number of its digits.
fn version_and_status(parser: &mut Parser<'_>) -> Result<(Option<usize>, u16, usize), Stop> {
    let from = parser.at;
    while parser.byte(parser.at) > b' ' {
        parser.at += 1;
    }
    if parser.at >= parser.end {
        return Err(Stop::More);
    }
    let version_len = parser.version(from, parser.at)?;
    parser.space(ParseError::BadStatus)?;
    let (status, digits) = status(parser)?;
    Ok((version_len, status, digits))
}

/// Three digits, from 100 on. A relaxed parser accepts more, as long as the number fits.
fn status(parser: &mut Parser<'_>) -> Result<(u16, usize), Stop> {
    let from = parser.at;
    let mut status = Some(0u16);
    while let digit @ b'0'..=b'9' = parser.byte(parser.at) {
        status = status.and_then(|sum| sum.checked_mul(10)?.checked_add(u16::from(digit - b'0')));
        parser.at += 1;
    }
    if parser.at >= parser.end {
        return Err(Stop::More);
    }
    let digits = parser.at - from;
    match status {
        Some(status @ 100..) if digits == 3 || parser.relaxed => Ok((status, digits)),
        _ => Err(ParseError::BadStatus.into()),
    }
}

/// RFC 9112 §6.3 for responses.
fn framing(head: &mut Head, facts: &Facts, to: Method) -> Framing {
    if facts.transfer_encoding {
        head.remove_id(Name::ContentLength);
        if facts.relaxed() {
            one_transfer_encoding(head, facts.chunked);
        }
    }
    match head.status() {
        100..=199 | 204 => {
            head.remove_id(Name::ContentLength);
            head.remove_id(Name::TransferEncoding);
            Framing::None
        }
        200..=299 if to == Method::Connect => {
            head.remove_id(Name::ContentLength);
            head.remove_id(Name::TransferEncoding);
            Framing::None
        }
        304 => Framing::None,
        _ if to == Method::Head => Framing::None,
        _ if facts.chunked => Framing::Chunked,
        _ => match facts.length {
            Some(length) if !facts.transfer_encoding => Framing::Length(length),
            _ => Framing::UntilClose,
        },
    }
}

/// Leaves one `Transfer-Encoding`, so that what a relaxed parser accepted cannot confuse the next
/// recipient.
fn one_transfer_encoding(head: &mut Head, chunked: bool) {
    let is_chunked = |(_, value): (_, &[u8])| value.eq_ignore_ascii_case(b"chunked");
    let one = head.get_all(Name::TransferEncoding).count() == 1;
    if one && head.get_all(Name::TransferEncoding).all(is_chunked) {
        return;
    }
    head.set_framing(if chunked {
        Framing::Chunked
    } else {
        Framing::None
    });
}
