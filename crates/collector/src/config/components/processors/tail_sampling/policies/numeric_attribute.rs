//! `numeric_attribute`: an attribute has a number of a range.

use super::{Block, Kind, PolicyKind, Section, Type, key, opt, text};

#[rustfmt::skip]
pub(super) const TYPE: Type = Type {
    options: opt("numeric_attribute", Kind::Section(&[&[
        opt("key", Kind::Text, "", "attribute of a resource or a span"),
        opt("min_value", Kind::Int(i64::MIN, i64::MAX), "0", "its least value; 0: not set"),
        opt("max_value", Kind::Int(i64::MIN, i64::MAX), "0", "its largest value; 0: not set"),
        opt("invert_match", Kind::Flag, "false", "traces without such a value are kept"),
    ]]), "", "options of type numeric_attribute"),
    read,
    write,
};

fn read(options: &Section<'_>) -> Option<PolicyKind> {
    let (min, max) = (
        options.int_unless_zero("min_value"),
        options.int_unless_zero("max_value"),
    );
    if min.is_none() && max.is_none() {
        options.error("min_value", "or 'max_value' must be there, and not 0");
    }
    if let (Some(min), Some(max)) = (min, max)
        && min > max
    {
        options.warn("min_value", "is above 'max_value': nothing matches");
    }
    Some(PolicyKind::NumericAttribute {
        key: key(options),
        min,
        max,
        invert: options.flag("invert_match"),
    })
}

fn write(kind: &PolicyKind, block: &mut Block<'_>) {
    if let PolicyKind::NumericAttribute {
        key,
        min,
        max,
        invert,
    } = kind
    {
        block.put("key", text(key));
        for (name, value) in [("min_value", min), ("max_value", max)] {
            if let Some(value) = value {
                block.put(name, value);
            }
        }
        block.put_if("invert_match", *invert);
    }
}
