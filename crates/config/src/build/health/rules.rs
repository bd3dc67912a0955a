//! The rules of a check: `connect`, `send` and related ones, `expect`, variables (manual §4.2
//! `http-check`, `tcp-check`).

use super::super::Shared;
use super::super::address;
use super::super::line::{Cursor, Parse};
use super::{Rules, matching};
use crate::model::{
    CheckAction, CheckConnect, CheckExpect, CheckPort, CheckProto, CheckRequest, CheckSend,
    CheckText, Expectation,
};
use net::Addr;
use sample::Place;
use syntax::hex;
use syntax::octets::{Octets, readable};

/// Parses the rule whose first word was taken, and its comment.
pub fn parse(
    shared: &mut Shared<'_>,
    cursor: &mut Cursor<'_>,
    rules: Rules,
) -> Parse<(CheckAction, Option<Octets>)> {
    let title = format!("'{} {}'", cursor.line.keyword(), cursor.last());
    let rule = Rule { title, rules };
    match (cursor.last(), rules) {
        ("connect", _) => rule.connect(shared, cursor),
        ("expect", _) => {
            let (expect, comment) = matching::parse(&rule, shared, cursor)?;
            Ok((CheckAction::Expect(Box::new(expect)), comment))
        }
        ("send", Rules::Http) => rule.send_http(shared, cursor),
        ("send" | "send-lf" | "send-binary" | "send-binary-lf", Rules::Tcp) => {
            rule.send(shared, cursor)
        }
        (word, _) => {
            let assignment = match word.split('(').next() {
                Some("set-var") => shared.set_var(cursor, Place::CHECK)?,
                Some("set-var-fmt") => shared.set_var_fmt(cursor, Place::CHECK)?,
                Some("unset-var") => shared.unset_var(cursor)?,
                _ => return Err(cursor.fault(unknown(rules, word))),
            };
            cursor.line.at_most(cursor.at - 1)?;
            Ok((CheckAction::Assign(Box::new(assignment)), None))
        }
    }
}

fn unknown(rules: Rules, word: &str) -> String {
    match rules {
        Rules::Http => format!(
            "'http-check' only supports 'disable-on-404', 'send-state', 'comment', 'connect', 'send', 'expect', 'set-var', \
             'set-var-fmt', 'unset-var'. but got '{word}'."
        ),
        Rules::Tcp => format!(
            "'tcp-check' only supports 'comment', 'connect', 'send', 'send-binary', 'expect', 'set-var', 'set-var-fmt', \
             'unset-var'. but got '{word}'."
        ),
    }
}

/// A rule that expects this, without further options.
pub fn expect(what: Expectation) -> CheckExpect {
    CheckExpect {
        what,
        inverse: false,
        min_recv: None,
        ok_status: None,
        error_status: None,
        timeout_status: None,
        on_success: None,
        on_error: None,
        status_code: None,
    }
}

/// The name of a rule in messages, while it is parsed.
pub(super) struct Rule {
    title: String,
    pub rules: Rules,
}

impl Rule {
    pub fn fault(&self, cursor: &Cursor<'_>, message: &str) -> Box<super::super::line::Fault> {
        let dot = if message.ends_with('.') { "" } else { "." };
        cursor.fault(format!("{} : {message}{dot}", self.title))
    }

    /// The argument of the word taken last.
    pub fn value<'a>(&self, cursor: &mut Cursor<'a>, what: &str) -> Parse<&'a str> {
        let name = cursor.last();
        let missing = || format!("{} : '{name}' expects {what}.", self.title);
        let value = cursor.line.need(cursor.at, missing)?;
        cursor.at += 1;
        Ok(value)
    }

    pub fn octets(&self, cursor: &mut Cursor<'_>) -> Parse<Octets> {
        self.value(cursor, "a string as argument")?;
        Ok(cursor.line.octets(cursor.at - 1))
    }

    /// The argument of the word taken last, as a log format.
    pub fn format(
        &self,
        shared: &mut Shared<'_>,
        cursor: &mut Cursor<'_>,
    ) -> Parse<sample::LogFormat> {
        self.value(cursor, "a string as argument")?;
        shared.plain_format(&cursor.line, cursor.at - 1, Place::CHECK)
    }

    fn connect(
        &self,
        shared: &mut Shared<'_>,
        cursor: &mut Cursor<'_>,
    ) -> Parse<(CheckAction, Option<Octets>)> {
        let mut connect = CheckConnect::default();
        let mut comment = None;
        while !cursor.peek().is_empty() {
            match cursor.take() {
                "default" => connect.is_default = true,
                "addr" => {
                    self.value(cursor, "<ipv4|ipv6> as argument")?;
                    let addr = check_address(cursor, shared)
                        .map_err(|message| self.fault(cursor, &format!("'addr' : {message}")))?;
                    connect.addr = Some(addr);
                }
                "port" => {
                    let text =
                        self.value(cursor, "a port number or a sample expression as argument")?;
                    connect.port = Some(self.port(shared, cursor, text)?);
                }
                "proto" => {
                    let word = self.value(cursor, "a MUX protocol as argument")?;
                    connect.proto = Some(self.proto(cursor, word)?);
                }
                "comment" => comment = Some(self.octets(cursor)?),
                "send-proxy" => connect.send_proxy = true,
                "via-socks4" => connect.via_socks4 = true,
                "linger" => connect.linger = true,
                "ssl" => connect.ssl = true,
                "sni" => connect.sni = Some(self.value(cursor, "a string as argument")?.to_owned()),
                "alpn" => connect.alpn = Some(super::super::tls::options::protocols(cursor)?),
                word => {
                    return Err(self.fault(cursor, &format!("expects 'comment', 'port', 'addr', 'send-proxy', 'ssl', 'sni', 'alpn' or 'via-socks4', 'linger', 'default' but got '{word}' as argument.")));
                }
            }
        }
        Ok((CheckAction::Connect(connect), comment))
    }

    fn port(&self, shared: &mut Shared<'_>, cursor: &Cursor<'_>, text: &str) -> Parse<CheckPort> {
        if text.starts_with(|first: char| first.is_ascii_alphabetic()) {
            let words = [cursor.line.bytes(cursor.at - 1)];
            let result = shared.compiler.expr(&words, Place::CHECK);
            shared.warnings(&cursor.line, cursor.at - 1);
            return match result {
                Ok((expr, _)) => Ok(CheckPort::Expr(expr)),
                Err(error) => Err(cursor.line.expr_fault(
                    cursor.at - 1,
                    &error,
                    &format!(
                        "{} : error detected while parsing port expression",
                        self.title
                    ),
                )),
            };
        }
        match text.parse::<u16>() {
            Ok(port @ 1..) => Ok(CheckPort::Fixed(port)),
            _ => Err(self.fault(cursor, &format!("expects a valid TCP port (from range 1 to 65535) or a sample expression, got {text}."))),
        }
    }

    fn proto(&self, cursor: &Cursor<'_>, word: &str) -> Parse<CheckProto> {
        let proto = check_proto(word);
        let Some(proto) = proto else {
            return Err(match word {
                "fcgi" => cursor.fault(super::super::not_yet("proto fcgi")),
                _ => self.fault(cursor, &format!("'proto' : unknown MUX protocol '{word}'.")),
            });
        };
        let is_http = proto != CheckProto::None;
        match (self.rules, is_http) {
            (Rules::Http, false) | (Rules::Tcp, true) => {
                let keyword = cursor.line.keyword();
                Err(self.fault(
                    cursor,
                    &format!("'proto' : invalid MUX protocol '{word}' for {keyword}"),
                ))
            }
            _ => Ok(proto),
        }
    }

    /// `send`, `send-lf`, `send-binary`, `send-binary-lf`
    fn send(
        &self,
        shared: &mut Shared<'_>,
        cursor: &mut Cursor<'_>,
    ) -> Parse<(CheckAction, Option<Octets>)> {
        let kind = cursor.last();
        let what = match kind {
            "send-binary" => "a binary string as argument",
            _ => "a string as argument",
        };
        let text = self.value(cursor, what)?;
        let send = match kind {
            "send" => CheckSend::Bytes(cursor.line.octets(cursor.at - 1)),
            "send-binary" => match hex::decode(cursor.line.bytes(cursor.at - 1)) {
                Some(bytes) => CheckSend::Bytes(bytes.into()),
                None => {
                    return Err(self.fault(cursor, &format!("'{text}' invalid binary string (an even number of hex digits is expected).")));
                }
            },
            "send-lf" => {
                CheckSend::Format(shared.plain_format(&cursor.line, cursor.at - 1, Place::CHECK)?)
            }
            _ => CheckSend::HexFormat(shared.plain_format(
                &cursor.line,
                cursor.at - 1,
                Place::CHECK,
            )?),
        };
        let mut comment = None;
        while !cursor.peek().is_empty() {
            match cursor.take() {
                "comment" => comment = Some(self.octets(cursor)?),
                word => {
                    let message = format!("expects 'comment' but got '{word}' as argument.");
                    return Err(self.fault(cursor, &message));
                }
            }
        }
        Ok((CheckAction::Send(send), comment))
    }

    /// `http-check send`
    fn send_http(
        &self,
        shared: &mut Shared<'_>,
        cursor: &mut Cursor<'_>,
    ) -> Parse<(CheckAction, Option<Octets>)> {
        let mut request = CheckRequest::default();
        let mut comment = None;
        while !cursor.peek().is_empty() {
            match cursor.take() {
                "meth" => request.method = Some(self.octets(cursor)?),
                "uri" => request.uri = Some(CheckText::Fixed(self.octets(cursor)?)),
                "uri-lf" => request.uri = Some(CheckText::Format(self.format(shared, cursor)?)),
                "ver" => request.version = Some(self.octets(cursor)?),
                "body" => request.body = Some(CheckText::Fixed(self.octets(cursor)?)),
                "body-lf" => request.body = Some(CheckText::Format(self.format(shared, cursor)?)),
                "comment" => comment = Some(self.octets(cursor)?),
                "hdr" => self.header(shared, cursor, &mut request)?,
                word => {
                    return Err(self.fault(cursor, &format!("expects 'comment', 'meth', 'uri', 'uri-lf', 'ver', 'hdr', 'body' or 'body-lf' but got '{word}' as argument.")));
                }
            }
        }
        Ok((
            CheckAction::Send(CheckSend::Http(Box::new(request))),
            comment,
        ))
    }

    fn header(
        &self,
        shared: &mut Shared<'_>,
        cursor: &mut Cursor<'_>,
        request: &mut CheckRequest,
    ) -> Parse {
        let missing = "<name> and <value> as arguments";
        let name = self.value(cursor, missing)?.to_ascii_lowercase();
        let octets = cursor.line.octets(cursor.at - 1);
        if cursor.peek().is_empty() {
            return Err(self.fault(cursor, &format!("'hdr' expects {missing}")));
        }
        cursor.take();
        let is_host = |header: &(Octets, sample::LogFormat)| header.0.eq_ignore_ascii_case(b"host");
        match name.as_str() {
            "host" if request.headers.iter().any(is_host) => {
                return Err(self.fault(cursor, "'hdr' header already defined"));
            }
            // The body determines the length.
            "content-length" | "transfer-encoding" => return Ok(()),
            _ => {}
        }
        let format = shared.plain_format(&cursor.line, cursor.at - 1, Place::CHECK)?;
        request.headers.push((octets, format));
        Ok(())
    }
}

/// The protocol of that name.
pub fn check_proto(word: &str) -> Option<CheckProto> {
    match word {
        "none" => Some(CheckProto::None),
        "h1" => Some(CheckProto::H1),
        "h2" => Some(CheckProto::H2),
        _ => None,
    }
}

/// The address in the word taken last; the port is 0 if there is none.
///
/// # Errors
/// Why it is not a valid address.
pub fn check_address(cursor: &Cursor<'_>, shared: &Shared<'_>) -> Result<Addr, String> {
    let written = shared.environment.expand(cursor.line.bytes(cursor.at - 1));
    let (addr, range) = address::single(&written)?;
    match range {
        None => Ok(addr),
        Some(_) => Err(format!(
            "port range not allowed here in '{}'",
            readable(&written)
        )),
    }
}
