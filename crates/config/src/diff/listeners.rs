//! Compares the `bind` lines of a frontend: the addresses that are opened or closed, and the options
//! that change.

use super::align;
use super::item::{self, Item};
use super::options::{self, Kind, Options};
use super::{Applies, Change, Effect, SectionName, Subject, Written, applies};
use crate::tree::Statement;

/// An address of a `bind` line.
pub(super) struct Listener<'t> {
    /// In one form for all ways to write it.
    address: String,
    statement: &'t Statement,
    options: Options<'t>,
}

/// The addresses of a `bind` line.
pub(super) fn of_line(statement: &Statement) -> Vec<Listener<'_>> {
    let mut options = Options::new();
    Kind::Listener.read(statement, 2, &mut options);
    let addresses = statement.arg(1).split(',');
    addresses
        .map(|address| Listener {
            address: plain(address.trim()),
            statement,
            options: options.clone(),
        })
        .collect()
}

/// One form of an address: `:80`, `0.0.0.0:80` and `ipv4@*:80` are `*:80`.
fn plain(address: &str) -> String {
    let address = address.strip_prefix("stream+").unwrap_or(address);
    let of_v4 = ["ipv4@", "tcp4@", "tcp@"];
    let rest = of_v4.iter().find_map(|prefix| address.strip_prefix(prefix));
    let rest = rest.unwrap_or(address);
    match rest.rsplit_once(':') {
        Some(("" | "*" | "0.0.0.0", ports)) => format!("*:{ports}"),
        Some(("::" | "[::]", ports)) => format!("[::]:{ports}"),
        _ if rest.starts_with('/') => format!("unix@{rest}"),
        _ => rest.to_owned(),
    }
}

impl Listener<'_> {
    /// The address with the options of its line.
    fn written(&self) -> Written {
        let options = item::part(self.statement, 2..self.statement.words.len());
        Written {
            text: format!("bind {} {options}", self.address)
                .trim_end()
                .to_owned(),
            place: item::place(self.statement.span()),
        }
    }

    fn opened(&self) -> Change {
        Change::Added(self.written())
    }

    fn closed(&self) -> Change {
        Change::Removed(self.written())
    }
}

/// The effects on the addresses of a section.
pub(super) fn compare(
    section: &SectionName,
    old: &[Listener<'_>],
    new: &[Listener<'_>],
) -> Vec<Effect> {
    let addresses = |listeners: &[Listener<'_>]| {
        let addresses = listeners.iter().map(|listener| listener.address.clone());
        addresses.collect::<Vec<_>>()
    };
    let partners = align::partners(&addresses(old), &addresses(new));
    let mut of_new = vec![None; new.len()];
    let mut effects = Vec::new();
    for (listener, partner) in old.iter().zip(&partners) {
        match partner.and_then(|partner| of_new.get_mut(partner)) {
            Some(slot) => *slot = Some(listener),
            None => effects.push(effect(section, listener, listener.closed())),
        }
    }
    for (listener, before) in new.iter().zip(of_new) {
        let Some(before) = before else {
            effects.push(effect(section, listener, listener.opened()));
            continue;
        };
        for difference in options::compare(&before.options, &listener.options) {
            let applies = applies::listener_option(&difference.option);
            let subject = Subject::ListenerOption {
                address: listener.address.clone(),
                option: difference.option,
            };
            effects.push(Effect::new(section, subject, difference.change, applies));
        }
    }
    effects
}

fn effect(section: &SectionName, listener: &Listener<'_>, change: Change) -> Effect {
    let subject = Subject::Listener {
        address: listener.address.clone(),
    };
    Effect::new(section, subject, change, Applies::InPlace)
}

/// The addresses of several lines.
pub(super) fn of_lines<'t>(lines: &[Item<'t>]) -> Vec<Listener<'t>> {
    lines
        .iter()
        .flat_map(|line| of_line(line.statement))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn addresses_have_one_form() {
        for (written, form) in [
            (":80", "*:80"),
            ("*:80", "*:80"),
            ("0.0.0.0:80", "*:80"),
            ("ipv4@:80", "*:80"),
            ("stream+ipv4@*:80", "*:80"),
            ("[::]:80", "[::]:80"),
            (":::80", "[::]:80"),
            ("ipv6@:80", "ipv6@:80"),
            ("/run/a.sock", "unix@/run/a.sock"),
            ("unix@/run/a.sock", "unix@/run/a.sock"),
            ("10.0.0.1:80-90", "10.0.0.1:80-90"),
        ] {
            assert_eq!(plain(written), form, "{written}");
        }
    }
}
