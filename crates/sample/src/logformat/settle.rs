//! The last step of parsing a log format: the final flags of its items, and the text that an
//! encoding puts around them.

use super::Item;
use super::encode::{self, Cbor};
use super::write::Flags;

/// An item with its name in an encoding; empty for no name.
pub(super) struct Named {
    pub name: Box<str>,
    pub item: Item,
}

/// Combines the flags of the items with those of the whole format. In an encoded format, inserts
/// names before the items.
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

/// The flags of an item. An encoding that is set for the whole format applies to every item. `bin`
/// has no effect on a single item.
fn item_flags(flags: Flags, global: Flags) -> Flags {
    let flags = if global.has(Flags::ENCODING) {
        flags.taking(Flags::ENCODING.with(Flags::BIN, true), global)
    } else {
        flags.taking(Flags::BIN, global)
    };
    let flags = without_encoding_in_http(flags);
    if flags.has(Flags::ENCODING) {
        flags.with(Flags::ESCAPE, false)
    } else {
        flags
    }
}

fn without_encoding_in_http(flags: Flags) -> Flags {
    if flags.has(Flags::HTTP) {
        flags.with(Flags::ENCODING, false)
    } else {
        flags
    }
}

/// The text around the values of an encoded format.
struct Frame {
    flags: Flags,
    /// The text since the last value.
    text: Vec<u8>,
}

impl Frame {
    fn new(flags: Flags) -> Frame {
        let mut frame = Frame {
            flags,
            text: Vec::new(),
        };
        if flags.has(Flags::JSON) {
            frame.text.push(b'{')
        } else {
            frame.cbor().byte(encode::MAP)
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
            // Removes the comma after the last value.
            self.text.retain(|byte| *byte == b'{');
            self.text.push(b'}');
        } else {
            self.cbor().byte(encode::BREAK);
        }
        Item::Text(self.text.into())
    }
}
