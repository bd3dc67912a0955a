//! `probabilistic`: a share of all traces is kept.

use super::{Block, Kind, PolicyKind, Section, Type, opt, text};

#[rustfmt::skip]
pub(super) const TYPE: Type = Type {
    options: opt("probabilistic", Kind::Section(&[&[
        opt("sampling_percentage", Kind::Number(0.0, f64::MAX), "0", "per cent that are kept; 100 and more: all"),
        opt("hash_salt", Kind::Text, "", "makes the choice differ from others'; empty: the Collector's own"),
    ]]), "", "options of type probabilistic"),
    read,
    write,
};

fn read(options: &Section<'_>) -> Option<PolicyKind> {
    let percentage = options.number("sampling_percentage");
    if percentage == 0.0 {
        options.warn("sampling_percentage", "is 0: no trace is kept");
    }
    Some(PolicyKind::Probabilistic {
        percentage: percentage.min(100.0),
        hash_salt: options.text("hash_salt"),
    })
}

fn write(kind: &PolicyKind, block: &mut Block<'_>) {
    if let PolicyKind::Probabilistic {
        percentage,
        hash_salt,
    } = kind
    {
        block.put("sampling_percentage", percentage);
        if !hash_salt.is_empty() {
            block.put("hash_salt", text(hash_salt));
        }
    }
}
