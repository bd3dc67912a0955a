//! The `Forwarded` header (RFC 7239): its fields, and the nodes in them. As in HAProxy, names must
//! be in lower case, each name must occur only once, there must be only one element, and the only
//! protocols are `http` and `https`.

use super::{Convert, bytes_of, convert, written};
use crate::args::ArgKind::Str;
use crate::args::{NONE, spec, str_at};
use crate::cast::cast;
use crate::text::{push_ip, push_uint};
use crate::{Bytes, Kind, Value};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub(crate) const CONVERTERS: &[Convert] = &[
    convert(
        "rfc7239_is_valid",
        NONE,
        Kind::Str,
        Kind::Bool,
        "whether it is the value of a Forwarded header",
        |_, value, _| {
            let text = bytes_of(value)?;
            let fields = Fields::read(&text);
            Some(Value::Bool(
                fields.is_some_and(|fields| fields.0.iter().any(Option::is_some)),
            ))
        },
    ),
    convert(
        "rfc7239_field",
        spec(1, &[Str]),
        Kind::Str,
        Kind::Str,
        "a field of a Forwarded header: proto, host, for, by",
        |args, value, _| {
            let text = bytes_of(value)?;
            let name = str_at(args, 0);
            let wanted = Field::ALL
                .iter()
                .find(|(known, _)| known.as_bytes() == name)?;
            let (start, end) = Fields::read(&text)?.0[wanted.1 as usize]?;
            Some(Value::Str(text.slice(start, end)))
        },
    ),
    convert(
        "rfc7239_n2nn",
        NONE,
        Kind::Str,
        Kind::Any,
        "the name in a node: an address, unknown, or an obfuscated one",
        |_, value, _| {
            let text = bytes_of(value)?;
            let mut reader = Reader::new(&text, true);
            Some(match reader.node()?.0 {
                Name::Ip(ip) => ip.into(),
                Name::Unknown => Value::text("unknown"),
                Name::Obfuscated(start, end) => Value::Str(text.slice(start, end)),
            })
        },
    ),
    convert(
        "rfc7239_n2np",
        NONE,
        Kind::Str,
        Kind::Any,
        "the port in a node: a number, or an obfuscated one",
        |_, value, _| {
            let text = bytes_of(value)?;
            let mut reader = Reader::new(&text, true);
            Some(match reader.node()?.1? {
                Port::Number(port) => Value::Int(port.into()),
                Port::Obfuscated(start, end) => Value::Str(text.slice(start, end)),
            })
        },
    ),
    convert(
        "rfc7239_nn",
        NONE,
        Kind::Any,
        Kind::Str,
        "a node's name of an address or a text",
        |_, value, _| match value {
            Value::Ipv4(ip) => text(|out| push_ip(out, ip.into())),
            Value::Ipv6(ip) => text(|out| {
                out.push(b'[');
                push_ip(out, ip.into());
                out.push(b']');
            }),
            value => match bytes_of(cast(value, Kind::Str)?)? {
                name if name.is_empty() => Some(Value::text("unknown")),
                name => obfuscated(&name),
            },
        },
    ),
    convert(
        "rfc7239_np",
        NONE,
        Kind::Any,
        Kind::Str,
        "a node's port of a number or a text",
        |_, value, _| match value {
            Value::Int(port) => text(|out| push_uint(out, (port as u32).into())),
            value => obfuscated(&bytes_of(cast(value, Kind::Str)?)?),
        },
    ),
];

fn text<'a>(write: impl FnOnce(&mut Vec<u8>)) -> Option<Value<'a>> {
    written(|out| {
        write(out);
        Some(())
    })
    .map(Value::Str)
}

/// The name after the underscore; None if it is empty or has invalid bytes.
fn obfuscated<'a>(name: &Bytes<'_>) -> Option<Value<'a>> {
    if name.is_empty() || !name.iter().all(|byte| is_obfuscated(*byte)) {
        return None;
    }
    text(|out| {
        out.push(b'_');
        out.extend_from_slice(name);
    })
}

/// RFC 7239 §6.3.
fn is_obfuscated(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"._-".contains(&byte)
}

#[derive(Clone, Copy)]
enum Field {
    For,
    By,
    Host,
    Proto,
}

impl Field {
    const ALL: [(&str, Field); 4] = [
        ("for", Field::For),
        ("by", Field::By),
        ("host", Field::Host),
        ("proto", Field::Proto),
    ];
}

/// The ranges of the values without quotes, in the order of [`Field`].
struct Fields([Option<(usize, usize)>; 4]);

impl Fields {
    /// Parses a header; None if it is invalid. As in HAProxy, text after all four fields is not
    /// checked.
    fn read(header: &[u8]) -> Option<Fields> {
        let mut fields = Fields([None; 4]);
        let mut reader = Reader::new(header, false);
        while !reader.rest().is_empty() && fields.0.iter().any(Option::is_none) {
            if reader.at > 0 {
                reader.expect(b';')?;
            }
            let (field, name) = Field::ALL.iter().find_map(|(name, field)| {
                let value = reader
                    .rest()
                    .strip_prefix(name.as_bytes())?
                    .strip_prefix(b"=")?;
                let free = fields.0[*field as usize].is_none() && !value.is_empty();
                free.then_some((*field, name))
            })?;
            reader.at += name.len() + 1;
            reader.quoted = !matches!(field, Field::Proto) && reader.next_is(b'"');
            reader.at += usize::from(reader.quoted);
            let start = reader.at;
            match field {
                Field::For | Field::By => reader.node().map(|_| ())?,
                Field::Host => reader.host()?,
                Field::Proto => reader.protocol()?,
            }
            fields.0[field as usize] = Some((start, reader.at));
            if reader.quoted {
                reader.expect(b'"')?;
            }
        }
        Some(fields)
    }
}

/// A node's name.
enum Name {
    Ip(IpAddr),
    Unknown,
    /// The range of the name, including its underscore.
    Obfuscated(usize, usize),
}

/// A node's port.
enum Port {
    Number(u16),
    Obfuscated(usize, usize),
}

/// The longest text of an IPv4 address.
const IPV4_BYTES_MAX: usize = 15;
const IPV6_BYTES_MAX: usize = 45;

/// Parses the header's value from left to right.
struct Reader<'h> {
    text: &'h [u8],
    at: usize,
    /// Ports and IPv6 addresses are valid only in quotes.
    quoted: bool,
}

impl<'h> Reader<'h> {
    fn new(text: &'h [u8], quoted: bool) -> Reader<'h> {
        Reader {
            text,
            at: 0,
            quoted,
        }
    }

    fn rest(&self) -> &'h [u8] {
        &self.text[self.at..]
    }

    fn next_is(&self, byte: u8) -> bool {
        self.rest().first() == Some(&byte)
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        let found = self.next_is(byte);
        self.at += usize::from(found);
        found.then_some(())
    }

    /// Consumes the longest run of bytes for which `is` holds, up to `count_max`.
    fn take(&mut self, count_max: usize, is: impl Fn(u8) -> bool) -> &'h [u8] {
        let rest = self.rest();
        let count = rest
            .iter()
            .take(count_max)
            .take_while(|byte| is(**byte))
            .count();
        self.at += count;
        &rest[..count]
    }

    fn node(&mut self) -> Option<(Name, Option<Port>)> {
        let name = self.name()?;
        let port = if self.next_is(b':') {
            self.expect(b':').filter(|()| self.quoted)?;
            Some(self.port()?)
        } else {
            None
        };
        Some((name, port))
    }

    fn name(&mut self) -> Option<Name> {
        match *self.rest().first()? {
            b'_' => self
                .obfuscated()
                .map(|(start, end)| Name::Obfuscated(start, end)),
            b'u' => {
                self.rest().strip_prefix(b"unknown")?;
                self.at += b"unknown".len();
                Some(Name::Unknown)
            }
            b'[' if self.quoted => self.ipv6().map(|ip| Name::Ip(ip.into())),
            _ => {
                let digits =
                    self.take(IPV4_BYTES_MAX, |byte| byte.is_ascii_digit() || byte == b'.');
                let ip: Ipv4Addr = std::str::from_utf8(digits).ok()?.parse().ok()?;
                Some(Name::Ip(ip.into()))
            }
        }
    }

    fn port(&mut self) -> Option<Port> {
        if self.next_is(b'_') {
            return self
                .obfuscated()
                .map(|(start, end)| Port::Obfuscated(start, end));
        }
        self.port_number().map(Port::Number)
    }

    /// A number from 1 to 65535.
    fn port_number(&mut self) -> Option<u16> {
        let digits = self.take(usize::MAX, |byte| byte.is_ascii_digit());
        let number = digits.iter().try_fold(0_u16, |sum, digit| {
            sum.checked_mul(10)?.checked_add((digit - b'0').into())
        })?;
        (number != 0).then_some(number)
    }

    fn obfuscated(&mut self) -> Option<(usize, usize)> {
        let start = self.at;
        self.expect(b'_')?;
        let name = self.take(usize::MAX, is_obfuscated);
        (!name.is_empty()).then_some((start, self.at))
    }

    fn ipv6(&mut self) -> Option<Ipv6Addr> {
        self.expect(b'[')?;
        let digits = self.take(IPV6_BYTES_MAX, |byte| {
            byte.is_ascii_alphanumeric() || byte == b':'
        });
        self.expect(b']')?;
        std::str::from_utf8(digits).ok()?.parse().ok()
    }

    fn host(&mut self) -> Option<()> {
        if self.rest().is_empty() {
            return None;
        }
        if self.quoted && self.next_is(b'[') {
            self.ipv6()?;
        } else {
            self.take(usize::MAX, |byte| {
                byte.is_ascii_alphanumeric() || byte == b'.'
            });
        }
        if self.next_is(b':') {
            self.expect(b':').filter(|()| self.quoted)?;
            self.port_number()?;
        }
        Some(())
    }

    fn protocol(&mut self) -> Option<()> {
        let rest = self.rest().strip_prefix(b"http")?;
        self.at += 4 + usize::from(rest.first() == Some(&b's'));
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{convert_text, none};

    #[test]
    fn headers_are_valid_or_not() {
        for (header, wanted) in [
            ("for=127.0.0.1;proto=http", "1"),
            ("proto=https", "1"),
            ("by=_hidden;for=unknown", "1"),
            ("host=example.org", "1"),
            (
                r#"for=\"[2001:db8::1]:80\";by=\"10.0.0.1:_p\";host=\"example.org:80\""#,
                "1",
            ),
            ("proto=custom", "0"),
            ("for=[::1]", "0"),
            ("for=127.0.0.1:80", "0"),
            ("for=127.0.0.1;for=127.0.0.1", "0"),
            ("for=127.0.0.1,for=127.0.0.1", "0"),
            ("for=127.0.0.1; proto=http", "0"),
            ("For=127.0.0.1", "0"),
            (r#"for=\"127.0.0.1"#, "0"),
            (r#"for=\"127.0.0.1:0\""#, "0"),
            (r#"for=\"127.0.0.1:65536\""#, "0"),
            ("for=", "0"),
            ("host=my-host", "0"),
            ("", "0"),
        ] {
            let header = header.replace('\\', "");
            assert_eq!(
                convert_text(&format!("str('{header}'),rfc7239_is_valid")),
                wanted,
                "{header}"
            );
        }
    }

    /// The manual's examples (§7.3.1).
    #[test]
    fn fields_and_nodes() {
        for (expr, wanted) in [
            (
                r#"str('proto=https;host="haproxy.org:80"'),rfc7239_field(host)"#,
                "haproxy.org:80",
            ),
            (
                r#"str('proto=https;for="127.0.0.1:9999"'),rfc7239_field(for)"#,
                "127.0.0.1:9999",
            ),
            ("str('proto=https;by=_x'),rfc7239_field(proto)", "https"),
            ("str(127.0.0.1:9999),rfc7239_n2nn", "127.0.0.1"),
            (
                "str([ab:cd:ff:ff:ff:ff:ff:ff]:9998),rfc7239_n2nn",
                "ab:cd:ff:ff:ff:ff:ff:ff",
            ),
            ("str(_name:_port),rfc7239_n2nn", "_name"),
            ("str(unknown),rfc7239_n2nn", "unknown"),
            ("str(127.0.0.1:9999),rfc7239_n2np", "9999"),
            ("str(_name:_port),rfc7239_n2np", "_port"),
            (
                "ipv6(ab:cd:ff:ff:ff:ff:ff:ff),rfc7239_nn",
                "[ab:cd:ff:ff:ff:ff:ff:ff]",
            ),
            ("ipv4(1.2.3.4),rfc7239_nn", "1.2.3.4"),
            ("str(test),rfc7239_nn", "_test"),
            ("str(),rfc7239_nn", "unknown"),
            ("int(12),rfc7239_np", "12"),
            ("str(test),rfc7239_np", "_test"),
        ] {
            assert_eq!(convert_text(expr), wanted, "{expr}");
        }
        for expr in [
            "str('for=127.0.0.1'),rfc7239_field(by)",
            "str('for=127.0.0.1'),rfc7239_field(other)",
            "str(127.0.0.1),rfc7239_n2np",
            "str(name),rfc7239_n2nn",
            "str('a b'),rfc7239_nn",
            "str(),rfc7239_np",
        ] {
            none(expr);
        }
    }
}
