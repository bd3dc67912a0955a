//! `string_attribute`: an attribute is one of some texts, or an expression is found in it.

use super::{Block, Kind, PolicyKind, Section, Type, key, opt, text, texts};
use crate::config::pattern;
use crate::config::source::shortened;

#[rustfmt::skip]
pub(super) const TYPE: Type = Type {
    options: opt("string_attribute", Kind::Section(&[&[
        opt("key", Kind::Text, "", "attribute of a resource or a span"),
        opt("values", Kind::Texts, "", "whole texts, or regular expressions"),
        opt("enabled_regex_matching", Kind::Flag, "false", "they are regular expressions"),
        opt("cache_max_size", Kind::Int(i64::MIN, i64::MAX), "0", "answers of expressions that are remembered").no_effect("no answers are remembered: expressions take linear time"),
        opt("invert_match", Kind::Flag, "false", "traces without such a value are kept"),
    ]]), "", "options of type string_attribute"),
    read,
    write,
};

fn read(options: &Section<'_>) -> Option<PolicyKind> {
    let regex = options.flag("enabled_regex_matching");
    let values = options.texts_at("values");
    if values.is_empty() {
        options.warn("values", "there are none: nothing matches");
    }
    for (text, at) in &values {
        let path = format!("{}::values", options.path);
        if regex {
            if let Err(reason) = pattern::check(text) {
                options.notes.error(*at, format!("{path}: {reason}"));
            }
        } else if pattern::looks_like_pattern(text) {
            let shown = shortened(text);
            let message = format!(
                "{path}: '{shown}' looks like a pattern, but is compared as a whole: set 'enabled_regex_matching: true'"
            );
            options.notes.warn(*at, message);
        }
    }
    Some(PolicyKind::StringAttribute {
        key: key(options),
        values: values.into_iter().map(|(text, _)| text).collect(),
        regex,
        invert: options.flag("invert_match"),
    })
}

fn write(kind: &PolicyKind, block: &mut Block<'_>) {
    if let PolicyKind::StringAttribute {
        key,
        values,
        regex,
        invert,
    } = kind
    {
        block.put("key", text(key));
        block.put("values", texts(values));
        block.put_if("enabled_regex_matching", *regex);
        block.put_if("invert_match", *invert);
    }
}
