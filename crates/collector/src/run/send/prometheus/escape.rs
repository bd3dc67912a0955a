//! Names with characters that older versions of Prometheus do not read (Prometheus, "UTF-8
//! support", escaping schemes).

use std::borrow::Cow;
use std::fmt::Write;

/// How such names are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Escaping {
    /// As they are, in quotes.
    AllowUtf8,
    /// With an underscore for each such character.
    Underscores,
    /// With `_dot_` for a dot and two underscores for the others.
    Dots,
    /// With `U__` before the name, and the number of each such character between underscores.
    Values,
}

impl Escaping {
    pub(super) const ALL: [Escaping; 4] = [
        Escaping::AllowUtf8,
        Escaping::Underscores,
        Escaping::Dots,
        Escaping::Values,
    ];

    /// As `escaping` in a media type names it.
    pub(super) fn word(self) -> &'static str {
        match self {
            Escaping::AllowUtf8 => "allow-utf-8",
            Escaping::Underscores => "underscores",
            Escaping::Dots => "dots",
            Escaping::Values => "values",
        }
    }

    /// A name as it is written.
    pub(super) fn name(self, name: &str) -> Cow<'_, str> {
        let is_plain = is_plain(name);
        let escaped = match self {
            Escaping::AllowUtf8 => return name.into(),
            Escaping::Underscores | Escaping::Values if is_plain => return name.into(),
            Escaping::Underscores => each(name, |_, out| out.push('_')),
            Escaping::Dots => {
                let name = name.replace('_', "__");
                each(&name, |c, out| {
                    out.push_str(if c == '.' { "_dot_" } else { "__" });
                })
            }
            Escaping::Values => {
                let name = name.replace('_', "__");
                let escaped = each(&name, |c, out| {
                    // Writing to a text cannot fail.
                    let _ = write!(out, "_{:x}_", u32::from(c));
                });
                format!("U__{escaped}")
            }
        };
        escaped.into()
    }
}

/// Whether every version of Prometheus reads the name without quotes.
pub(super) fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.chars().enumerate().all(|(place, c)| fits(place, c))
}

fn fits(place: usize, c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_' || c == ':' || place > 0 && c.is_ascii_digit()
}

/// The name with other texts for the characters that do not fit.
fn each(name: &str, escape: impl Fn(char, &mut String)) -> String {
    let mut out = String::with_capacity(name.len());
    for (place, c) in name.chars().enumerate() {
        if fits(place, c) {
            out.push(c);
        } else {
            escape(c, &mut out);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_by_each_scheme() {
        for (name, utf8, underscores, dots, values) in [
            ("a_b", "a_b", "a_b", "a__b", "a_b"),
            ("a.b", "a.b", "a_b", "a_dot_b", "U__a_2e_b"),
            ("1é_", "1é_", "___", "______", "U___31__e9___"),
        ] {
            let wanted = [utf8, underscores, dots, values];
            let escaped = Escaping::ALL.map(|scheme| scheme.name(name).into_owned());
            assert_eq!(escaped, wanted, "{name}");
        }
    }
}
