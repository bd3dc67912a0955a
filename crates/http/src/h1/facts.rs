//! What fields say about framing and the connection, collected while they are parsed.

use super::ParseError;
use crate::Name;
use crate::bytes::{decimal, list, trim};
use crate::head::{Span, span};
use crate::target::is_bad_host;

/// Which part of a message the fields belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Request,
    Response,
    Trailers,
}

/// Whether a field is kept.
pub(super) enum Keep {
    Yes,
    /// The field is dropped.
    No,
    /// The field is kept with this part of its value.
    Only(Span),
}

/// The facts seen so far.
#[derive(Debug)]
pub(super) struct Facts {
    part: Part,
    relaxed: bool,
    pub host: Option<Span>,
    pub length: Option<u64>,
    pub transfer_encoding: bool,
    /// `chunked` is the last transfer coding so far.
    pub chunked: bool,
    chunked_seen: bool,
    pub other_coding: bool,
    /// There is a `Connection` or an `Upgrade`.
    pub hop_by_hop: bool,
    pub close: bool,
    pub keep_alive: bool,
    pub upgrade_option: bool,
    /// `Connection` names fields.
    pub names_fields: bool,
    pub upgrade_field: bool,
    pub upgrade_to_http2: bool,
    pub websocket: bool,
    pub expect_continue: bool,
    pub te: bool,
}

impl Facts {
    pub fn request(relaxed: bool) -> Self {
        Facts::new(Part::Request, relaxed)
    }

    pub fn response(relaxed: bool) -> Self {
        Facts::new(Part::Response, relaxed)
    }

    /// Fields of a trailer section have no effect; those that would have one elsewhere are dropped.
    pub fn trailers() -> Self {
        Facts::new(Part::Trailers, false)
    }

    /// Whether violations are accepted.
    pub fn relaxed(&self) -> bool {
        self.relaxed
    }

    fn new(part: Part, relaxed: bool) -> Self {
        Facts {
            part,
            relaxed,
            host: None,
            length: None,
            transfer_encoding: false,
            chunked: false,
            chunked_seen: false,
            other_coding: false,
            hop_by_hop: false,
            close: false,
            keep_alive: false,
            upgrade_option: false,
            names_fields: false,
            upgrade_field: false,
            upgrade_to_http2: false,
            websocket: false,
            expect_continue: false,
            te: false,
        }
    }

    /// Records a field whose value lies in `buf`. Kept out of the loop over fields, because most
    /// fields do not need it.
    #[inline(never)]
    pub fn field(&mut self, buf: &[u8], id: Name, value: Span) -> Result<Keep, ParseError> {
        let text = || &buf[value.at as usize..(value.at + value.len) as usize];
        if self.part == Part::Trailers {
            // Of these names, only this one may be in a trailer section.
            return Ok(if id == Name::Expect {
                Keep::Yes
            } else {
                Keep::No
            });
        }
        match id {
            Name::ContentLength => return self.content_length(text(), value),
            Name::TransferEncoding => self.transfer_encoding(text())?,
            Name::Connection => self.connection(text()),
            Name::Upgrade => self.upgrade(text()),
            Name::Host if self.part == Part::Request => return self.host(buf, text(), value),
            Name::Expect => self.expect_continue |= text().eq_ignore_ascii_case(b"100-continue"),
            Name::Te => self.te = true,
            _ => {}
        }
        Ok(Keep::Yes)
    }

    /// All values, in one field or several, must be the same number (RFC 9110 §8.6); one is kept.
    fn content_length(&mut self, text: &[u8], value: Span) -> Result<Keep, ParseError> {
        let known = self.length.is_some();
        // The usual case: one number, once, as it will be written.
        if !known
            && (text.len() == 1 || !text.starts_with(b"0"))
            && let Some(length) = decimal(text)
        {
            self.length = Some(length);
            return Ok(Keep::Yes);
        }
        for word in list(text) {
            let length = decimal(word).ok_or(ParseError::BadContentLength)?;
            if *self.length.get_or_insert(length) != length {
                return Err(ParseError::DifferentContentLengths);
            }
        }
        if known {
            return Ok(Keep::No);
        }
        // The first number of the list, without leading zeros.
        let word = text
            .split(|&byte| byte == b',')
            .next()
            .map_or(&text[..0], trim);
        let zeros = word
            .iter()
            .take_while(|&&byte| byte == b'0')
            .count()
            .min(word.len() - 1);
        Ok(Keep::Only(span(
            value.at as usize + zeros,
            word.len() - zeros,
        )))
    }

    /// RFC 9112 §6.1, as HAProxy applies it: `chunked` once and, in a request, last.
    fn transfer_encoding(&mut self, text: &[u8]) -> Result<(), ParseError> {
        // In a relaxed response, violations are ignored.
        let hide = |error| {
            if self.relaxed && self.part == Part::Response {
                Ok(())
            } else {
                Err(error)
            }
        };
        self.transfer_encoding = true;
        for word in list(text) {
            self.chunked = false;
            if word.is_empty() {
                hide(ParseError::BadTransferEncoding)?;
            } else if word.eq_ignore_ascii_case(b"chunked") {
                if self.chunked_seen {
                    hide(ParseError::ChunkedTwice)?;
                }
                self.chunked_seen = true;
                self.chunked = true;
            } else if self.chunked_seen && self.part == Part::Request {
                return Err(ParseError::ChunkedNotLast);
            } else {
                self.other_coding = true;
            }
        }
        Ok(())
    }

    fn connection(&mut self, text: &[u8]) {
        self.hop_by_hop = true;
        for option in list(text) {
            let known = match option.len() {
                0 => continue,
                2 if option.eq_ignore_ascii_case(b"te") => continue,
                5 => (b"close".as_slice(), &mut self.close),
                7 => (b"upgrade".as_slice(), &mut self.upgrade_option),
                _ => (b"keep-alive".as_slice(), &mut self.keep_alive),
            };
            if option.eq_ignore_ascii_case(known.0) {
                *known.1 = true
            } else {
                self.names_fields = true
            }
        }
    }

    fn upgrade(&mut self, text: &[u8]) {
        self.hop_by_hop = true;
        for protocol in list(text).filter(|protocol| !protocol.is_empty()) {
            self.websocket |= protocol.eq_ignore_ascii_case(b"websocket");
            if is_http2(protocol) {
                self.upgrade_to_http2 = true
            } else {
                self.upgrade_field = true
            }
        }
    }

    /// As in HAProxy, the text after the colon may be no port, and several `Host` fields are accepted
    /// if they are the same; one is kept.
    fn host(&mut self, buf: &[u8], text: &[u8], value: Span) -> Result<Keep, ParseError> {
        match self.host {
            None if is_bad_host(text, true) => Err(ParseError::BadHost),
            None => {
                self.host = Some(value);
                Ok(Keep::Yes)
            }
            Some(first) => {
                let first = &buf[first.at as usize..(first.at + first.len) as usize];
                if first.eq_ignore_ascii_case(text) {
                    Ok(Keep::No)
                } else {
                    Err(ParseError::DifferentHosts)
                }
            }
        }
    }
}

/// An upgrade to HTTP/2 is never forwarded: the proxy could not parse the messages after it.
pub(super) fn is_http2(protocol: &[u8]) -> bool {
    protocol.eq_ignore_ascii_case(b"h2c") || protocol.eq_ignore_ascii_case(b"h2")
}
