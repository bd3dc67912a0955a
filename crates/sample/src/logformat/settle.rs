//! What can be said of a log format when all of it is read: the flags of its items, and what an encoding puts around them.

use super::Item;
use super::encode::{self, Cbor};
use super::write::Flags;

/// An item with the name that an encoding gives it; empty for none.
pub(super) struct Named {
    pub name: Box<str>,
    pub item: Item,
}

/// Brings the flags of the items in accord with those that hold for all of the format, and puts names before the items
/// of an encoded one.
pub(super) fn settle(items: Vec<Named>, global: Flags) -> Vec<Item> {
    let global = without_encoding_in_http(global);
    let encoded = global.has(Flags::ENCODING);
    let mut frame = Frame::new(global);
    let mut settled = Vec::new();
    for Named { name, mut item } in items {
        if let Item::Alias(_, output) | Item::Expr(_, output) = &mut item {
            output.flags = item_flags(output.flags, global);
        } else if encoded {
            continue;
        }
        if encoded {
            if name.is_empty() {
                continue;
            }
            settled.push(frame.key(&name));
        }
        settled.push(item);
    }
    if encoded {
        settled.push(frame.end());
    }
    settled
}

/// An encoding of all of the format holds for every item; `bin` counts only when it is set for all.
fn item_flags(flags: Flags, global: Flags) -> Flags {
    let flags = match global.has(Flags::ENCODING) {
        true => flags.taking(Flags::ENCODING.with(Flags::BIN, true), global),
        false => flags.taking(Flags::BIN, global),
    };
    let flags = without_encoding_in_http(flags);
    match flags.has(Flags::ENCODING) {
        true => flags.with(Flags::ESCAPE, false),
        false => flags,
    }
}

fn without_encoding_in_http(flags: Flags) -> Flags {
    match flags.has(Flags::HTTP) {
        true => flags.with(Flags::ENCODING, false),
        false => flags,
    }
}

/// What stands around the values of an encoded format.
struct Frame {
    flags: Flags,
    /// Since the last value.
    text: Vec<u8>,
}

impl Frame {
    fn new(flags: Flags) -> Frame {
        let mut frame = Frame {
            flags,
            text: Vec::new(),
        };
        match flags.has(Flags::JSON) {
            true => frame.text.push(b'{'),
            false => frame.cbor().byte(encode::MAP),
        }
        frame
    }

    fn cbor(&mut self) -> Cbor<'_> {
        Cbor {
            binary: self.flags.has(Flags::BIN),
            out: &mut self.text,
        }
    }

    fn key(&mut self, name: &str) -> Item {
        if self.flags.has(Flags::JSON) {
            self.text
                .extend_from_slice(format!("\"{name}\": ").as_bytes());
        } else {
            self.cbor().string(encode::TEXT, name.as_bytes());
        }
        let next = if self.flags.has(Flags::JSON) {
            &b", "[..]
        } else {
            b""
        };
        Item::Text(std::mem::replace(&mut self.text, next.to_vec()).into())
    }

    fn end(mut self) -> Item {
        if self.flags.has(Flags::JSON) {
            // Of the comma after the last value, nothing is left.
            self.text.retain(|byte| *byte == b'{');
            self.text.push(b'}');
        } else {
            self.cbor().byte(encode::BREAK);
        }
        Item::Text(self.text.into())
    }
}
