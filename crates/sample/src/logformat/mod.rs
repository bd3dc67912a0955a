//! Log formats: text, aliases and expressions, rendered into a line (manual §8.2).
//!
//! `compile` parses them, `alias` has one entry per alias, `write` implements quoting and escaping,
//! `encode` JSON and CBOR, `settle` the steps after a whole format is parsed.

pub(crate) mod alias;
pub(crate) mod compile;
mod encode;
mod settle;
mod write;

use std::fmt;
use std::sync::Arc;

use crate::cast::{cast, until_nul};
use crate::{Expr, Kind, Scope, Value};
use alias::Alias;
use write::{Flags, HTTP_UNSAFE, Output, Typed, Writer};

/// The default format without any option: one line at the accept (manual §8.2.1). `CONNECT_HTTP` in
/// mode HTTP.
pub const CONNECT: &str = "Connect from %ci:%cp to %fi:%fp (%f/TCP)";
/// Like [`CONNECT`], in mode HTTP.
pub const CONNECT_HTTP: &str = "Connect from %ci:%cp to %fi:%fp (%f/HTTP)";
/// `option tcplog` (manual §8.2.2).
pub const TCP: &str = "%ci:%cp [%t] %ft %b/%s %Tw/%Tc/%Tt %B %ts %ac/%fc/%bc/%sc/%rc %sq/%bq";
/// `option tcplog clf` (manual §8.2.2).
pub const TCP_CLF: &str = "%{+Q}o %{-Q}ci - - [%T] \"TCP \" 000 %B \"\" \"\" %cp %ms %ft %b %s %Th %Tw %Tc %Tt %U %ts-- %ac %fc %bc %sc %rc %sq %bq \"\" \"\" ";
/// `option httplog` (manual §8.2.3).
pub const HTTP: &str = "%ci:%cp [%tr] %ft %b/%s %TR/%Tw/%Tc/%Tr/%Ta %ST %B %CC %CS %tsc %ac/%fc/%bc/%sc/%rc %sq/%bq %hr %hs %{+Q}r";
/// `option httplog clf` (manual §8.2.3).
pub const HTTP_CLF: &str = "%{+Q}o %{-Q}ci - - [%trg] %r %ST %B \"\" \"\" %cp %ms %ft %b %s %TR %Tw %Tc %Tr %Ta %tsc %ac %fc %bc %sc %rc %sq %bq %CC %CS %hrl %hsl";
/// `option httpslog` (manual §8.2.4).
pub const HTTPS: &str = "%ci:%cp [%tr] %ft %b/%s %TR/%Tw/%Tc/%Tr/%Ta %ST %B %CC %CS %tsc %ac/%fc/%bc/%sc/%rc %sq/%bq %hr %hs %{+Q}r %[fc_err]/%[ssl_fc_err,hex]/%[ssl_c_err]/%[ssl_c_ca_err]/%[ssl_fc_is_resumed] %[ssl_fc_sni]/%sslv/%sslc";

/// A compiled log format. Cheap to clone.
#[derive(Clone)]
pub struct LogFormat {
    pieces: Arc<[Piece]>,
    /// The whole text, if nothing depends on the scope.
    constant: Option<Arc<[u8]>>,
}

/// A piece of a log format.
enum Item {
    /// Literal text.
    Text(Box<[u8]>),
    /// A blank. Consecutive blanks, also with empty items between them, are merged into one.
    Space,
    Alias(&'static Alias, Output),
    Expr(Expr, Output),
}

/// An item and the separator after it: nearly every alias has one.
struct Piece {
    item: Item,
    then: Separator,
}

/// What follows an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Separator {
    Nothing,
    Byte(u8),
    /// [`Item::Space`]
    Space,
}

impl Separator {
    /// An item as the separator after another one; none if it is more than that.
    fn of(item: &Item) -> Option<Separator> {
        match item {
            Item::Space => Some(Separator::Space),
            Item::Text(text) => match **text {
                [byte] => Some(Separator::Byte(byte)),
                _ => None,
            },
            Item::Alias(..) | Item::Expr(..) => None,
        }
    }
}

/// Joins each separator with the item before it.
fn pieces(items: Vec<Item>) -> Arc<[Piece]> {
    let mut pieces: Vec<Piece> = Vec::new();
    for item in items {
        match (pieces.last_mut(), Separator::of(&item)) {
            (Some(last), Some(separator)) if last.then == Separator::Nothing => {
                last.then = separator;
            }
            _ => pieces.push(Piece {
                item,
                then: Separator::Nothing,
            }),
        }
    }
    pieces.into()
}

impl LogFormat {
    fn new(items: Vec<Item>) -> LogFormat {
        let constant = items
            .iter()
            .all(Item::is_constant)
            .then(|| Arc::from(constant_text(&items)));
        LogFormat {
            pieces: pieces(items),
            constant,
        }
    }

    /// Appends the text. The only allocation is the growth of `out`.
    pub fn render(&self, scope: &Scope<'_>, out: &mut Vec<u8>) {
        if let Some(text) = &self.constant {
            out.extend_from_slice(text);
            return;
        }
        let mut writer = Writer::new(out, Output::default());
        let mut after_space = true;
        for Piece { item, then } in &*self.pieces {
            match item {
                Item::Text(text) => {
                    writer.out.extend_from_slice(text);
                    after_space = false;
                }
                Item::Space => {
                    if !after_space {
                        writer.out.push(b' ');
                    }
                    after_space = true;
                }
                Item::Alias(alias, output) => {
                    writer.next_value(*output);
                    (alias.write)(scope, &mut writer);
                    if output.flags.has(Flags::ENCODING) {
                        writer.finish();
                    }
                    after_space &= writer.is_empty();
                }
                Item::Expr(expr, output) => {
                    writer.next_value(*output);
                    write_sample(expr.eval(scope), &mut writer);
                    after_space = false;
                }
            }
            match then {
                Separator::Nothing => {}
                Separator::Byte(byte) => {
                    writer.out.push(*byte);
                    after_space = false;
                }
                Separator::Space => {
                    if !after_space {
                        writer.out.push(b' ');
                    }
                    after_space = true;
                }
            }
        }
    }

    /// Whether an item is final only at the end of a stream. Otherwise the line can be written when
    /// the response begins.
    #[must_use]
    pub fn needs_end(&self) -> bool {
        self.pieces.iter().any(|piece| match &piece.item {
            Item::Text(_) | Item::Space => false,
            Item::Alias(alias, _) => alias.is_final,
            Item::Expr(expr, _) => expr.needs_end(),
        })
    }

    /// Whether the format is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// The whole text, if it is constant: nothing depends on the scope.
    #[must_use]
    pub fn constant(&self) -> Option<&[u8]> {
        self.constant.as_deref()
    }
}

impl Item {
    fn is_constant(&self) -> bool {
        match self {
            Item::Text(_) | Item::Space => true,
            Item::Alias(..) => false,
            Item::Expr(expr, _) => expr.constant().is_some(),
        }
    }
}

fn constant_text(items: &[Item]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut after_space = true;
    for item in items {
        match item {
            Item::Text(text) => out.extend_from_slice(text),
            Item::Space if after_space => {}
            Item::Space => out.push(b' '),
            Item::Alias(..) => {}
            Item::Expr(expr, output) => {
                let value = expr.constant().flatten().map(Value::borrow);
                write_sample(value, &mut Writer::new(&mut out, *output));
            }
        }
        after_space = matches!(item, Item::Space);
    }
    out
}

/// Writes a sample: as text, quoted and escaped by its flags, or in its own type in an encoding.
/// For HTTP, bytes that are invalid in a header become `%XX`.
fn write_sample(value: Option<Value<'_>>, writer: &mut Writer<'_>) {
    let flags = writer.flags;
    // Most samples are text already. Numbers and addresses are written directly into the line.
    if let (Some(Value::Int(value)), true) = (&value, flags.is_plain()) {
        return writer.int(*value);
    }
    let raw = writer.typed == Typed::Raw && flags.has(Flags::ENCODING);
    if raw {
        writer.flags = Flags::default();
    }
    let value = value.and_then(|value| {
        let kind = kind_in(writer.typed, flags, &value);
        cast(value, kind)
    });
    match value {
        None if flags.has(Flags::HTTP) => {}
        None => writer.text(b""),
        Some(Value::Bool(value)) => writer.bool(value),
        Some(Value::Int(value)) => writer.int(value),
        Some(Value::Str(text) | Value::Bin(text)) if flags.has(Flags::HTTP) => {
            writer.encoded(&text, b'%', &HTTP_UNSAFE);
        }
        Some(Value::Bin(bytes)) => writer.bytes(&bytes),
        Some(Value::Str(text)) if raw => writer.bytes(&text),
        Some(Value::Str(text)) => writer.text(until_nul(&text)),
        Some(_) => {}
    }
    writer.finish();
}

/// The type that a sample is written in.
fn kind_in(typed: Typed, flags: Flags, value: &Value<'_>) -> Kind {
    if flags.has(Flags::ENCODING) {
        match (typed, value) {
            (Typed::Raw, _) => return Kind::Bin,
            (Typed::Str, _) => return Kind::Str,
            (Typed::Int, _) | (Typed::Same, Value::Int(_)) => return Kind::Int,
            (Typed::Bool, _) | (Typed::Same, Value::Bool(_)) => return Kind::Bool,
            (Typed::Same, Value::Bin(_)) if flags.has(Flags::CBOR) => return Kind::Bin,
            (Typed::Same, _) => {}
        }
    }
    match value {
        Value::Bin(_) if flags.has(Flags::BIN) && typed != Typed::Str => Kind::Bin,
        _ => Kind::Str,
    }
}

impl fmt::Debug for LogFormat {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("LogFormat(")?;
        for Piece { item, then } in &*self.pieces {
            match item {
                Item::Text(text) => write!(out, "{}", text.escape_ascii())?,
                Item::Space => out.write_str(" ")?,
                Item::Alias(alias, _) => write!(out, "%{}", alias.name)?,
                Item::Expr(expr, _) => write!(out, "%[{expr:?}]")?,
            }
            match then {
                Separator::Nothing => {}
                Separator::Byte(byte) => write!(out, "{}", byte.escape_ascii())?,
                Separator::Space => out.write_str(" ")?,
            }
        }
        out.write_str(")")
    }
}

#[cfg(test)]
mod tests;
