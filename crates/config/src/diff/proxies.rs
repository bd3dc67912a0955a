//! The effects on proxies.

use super::align;
use super::inheritance::{Lineage, Lineages};
use super::item::Item;
use super::proxy::Proxy;
use super::rules::{self, Acl, ListOf};
use super::{Applies, Change, Effect, SectionName, Subject};
use super::{applies, lines, listeners, names, servers, slots};
use crate::tree::{Section, Tree};

/// The effects on all proxies: those that go, then the others in their new order.
pub(super) fn compare(old: &Tree, new: &Tree) -> Vec<Effect> {
    let (old, new) = (Lineages::new(old), Lineages::new(new));
    let names = |lineages: &Lineages<'_>| {
        let names = lineages.proxies.iter().map(|proxy| name_of(proxy.section));
        names.collect::<Vec<_>>()
    };
    let partners = align::partners(&names(&old), &names(&new));
    let mut of_new = vec![None; new.proxies.len()];
    let mut effects = Vec::new();
    for (proxy, partner) in old.proxies.iter().zip(&partners) {
        match partner.and_then(|partner| of_new.get_mut(partner)) {
            Some(slot) => *slot = Some(proxy),
            None => effects.extend(whole(&old, proxy, Whole::Removed)),
        }
    }
    for (proxy, before) in new.proxies.iter().zip(of_new) {
        match before {
            None => effects.extend(whole(&new, proxy, Whole::Added)),
            Some(before) => {
                let name = name_of(proxy.section);
                let pair = Pair {
                    old: Proxy::new(&old, before),
                    new: Proxy::new(&new, proxy),
                };
                effects.extend(pair.compare(&name));
            }
        }
    }
    effects
}

/// The kind and the name of a section.
pub(super) fn name_of(section: &Section) -> SectionName {
    SectionName {
        kind: section.kind().to_owned(),
        name: section
            .name()
            .map_or_else(String::new, |word| word.text.to_string()),
    }
}

/// What happens to a proxy that only one side has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whole {
    Added,
    Removed,
}

/// The effects of a proxy that comes or goes, and of its addresses.
fn whole(lineages: &Lineages<'_>, lineage: &Lineage<'_>, whole: Whole) -> Vec<Effect> {
    let section = name_of(lineage.section);
    let proxy = Proxy::new(lineages, lineage);
    let lines = proxy.settings.iter().filter(|(name, _)| *name != "mode");
    let lines = lines
        .map(|(_, item)| item)
        .chain(proxy.lists.values().flatten());
    let applies = lines
        .map(|line| applies::proxy_line(line.statement))
        .fold(Applies::InPlace, Applies::and);
    let header = Item::own(&lineage.section.header).written();
    let own = listeners::of_lines(&proxy.listeners);
    let (change, of_listeners) = match whole {
        Whole::Added => (
            Change::Added(header),
            listeners::compare(&section, &[], &own),
        ),
        Whole::Removed => (
            Change::Removed(header),
            listeners::compare(&section, &own, &[]),
        ),
    };
    let mut effects = vec![Effect::new(&section, Subject::Section, change, applies)];
    effects.extend(of_listeners);
    effects
}

/// A proxy on both sides.
struct Pair<'o, 'n> {
    old: Proxy<'o>,
    new: Proxy<'n>,
}

impl Pair<'_, '_> {
    fn compare(&self, section: &SectionName) -> Vec<Effect> {
        let (old, new) = (&self.old, &self.new);
        let mut effects = Vec::new();
        effects.extend(self.setting(section, "mode"));
        let of_old = listeners::of_lines(&old.listeners);
        let of_new = listeners::of_lines(&new.listeners);
        effects.extend(listeners::compare(section, &of_old, &of_new));
        let of_old = servers::of_lines(&old.servers);
        let of_new = servers::of_lines(&new.servers);
        effects.extend(servers::compare(section, &of_old, &of_new));
        for name in names(&old.settings, &new.settings) {
            if name != "mode" {
                effects.extend(self.setting(section, name));
            }
        }
        effects.extend(self.acls(section));
        for list in names(&old.lists, &new.lists) {
            let list = ListOf {
                section,
                list,
                old: lines(&old.lists, list),
                new: lines(&new.lists, list),
            };
            effects.extend(list.compare(|item| applies::proxy_line(item.statement)));
        }
        effects
    }

    fn setting(&self, section: &SectionName, name: &str) -> Option<Effect> {
        let of = |item: Option<&Item<'_>>| item.and_then(|item| slots::value(name, item.statement));
        let (old, new) = (self.old.settings.get(name), self.new.settings.get(name));
        if of(old) == of(new) {
            return None;
        }
        let change = Change::between(old.map(Item::written), new.map(Item::written))?;
        let items = old
            .into_iter()
            .map(|item| applies::proxy_line(item.statement));
        let items = items.chain(new.map(|item| applies::proxy_line(item.statement)));
        let subject = if name == "mode" {
            Subject::Mode
        } else {
            Subject::Setting {
                setting: name.to_owned(),
            }
        };
        let applies = items.fold(Applies::InPlace, Applies::and);
        Some(Effect::new(section, subject, change, applies))
    }

    fn acls(&self, section: &SectionName) -> Vec<Effect> {
        let (old, new) = (&self.old, &self.new);
        let changed = names(&old.acls, &new.acls);
        let old_users = rules::used_by(all_rules(old));
        let new_users = rules::used_by(all_rules(new));
        let mut effects = Vec::new();
        for name in changed {
            let written = name.strip_suffix(" (of defaults)").unwrap_or(name);
            let users = match new_users.get(written) {
                Some(users) => users.as_slice(),
                None => old_users.get(written).map_or(&[][..], Vec::as_slice),
            };
            let acl = Acl {
                name,
                old: lines(&old.acls, name),
                new: lines(&new.acls, name),
                users,
            };
            effects.extend(acl.compare(section));
        }
        effects
    }
}

/// All lines of a proxy that may name a condition.
fn all_rules<'a, 't>(proxy: &'a Proxy<'t>) -> impl Iterator<Item = &'a Item<'t>> {
    proxy.lists.values().chain(proxy.acls.values()).flatten()
}
