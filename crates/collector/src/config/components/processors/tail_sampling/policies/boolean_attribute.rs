//! `boolean_attribute`: an attribute is true, or false.

use super::{Block, Kind, PolicyKind, Section, Type, key, opt, text};

#[rustfmt::skip]
pub(super) const TYPE: Type = Type {
    options: opt("boolean_attribute", Kind::Section(&[&[
        opt("key", Kind::Text, "", "attribute of a resource or a span"),
        opt("value", Kind::Flag, "false", "its value"),
        opt("invert_match", Kind::Flag, "false", "traces without such a value are kept"),
    ]]), "", "options of type boolean_attribute"),
    read,
    write,
};

fn read(options: &Section<'_>) -> Option<PolicyKind> {
    Some(PolicyKind::BooleanAttribute {
        key: key(options),
        value: options.flag("value"),
        invert: options.flag("invert_match"),
    })
}

fn write(kind: &PolicyKind, block: &mut Block<'_>) {
    if let PolicyKind::BooleanAttribute { key, value, invert } = kind {
        block.put("key", text(key));
        block.put("value", value);
        block.put_if("invert_match", *invert);
    }
}
