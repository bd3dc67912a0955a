//! A proxy with everything that it has from its `defaults`, as settings and lists.

use super::inheritance::{Lineage, Lineages};
use super::item::Item;
use super::rules;
use super::slots::{self, Negated, Slot};
use crate::keywords::Places;
use crate::tree::{Prefix, Statement};
use std::collections::BTreeMap;

/// The lines of a proxy that have an effect.
#[derive(Default)]
pub(super) struct Proxy<'t> {
    /// The line of each setting, by its name.
    pub settings: BTreeMap<String, Item<'t>>,
    /// The lines of each list in order, those of `defaults` first.
    pub lists: BTreeMap<String, Vec<Item<'t>>>,
    /// The lines of each condition.
    pub acls: BTreeMap<String, Vec<Item<'t>>>,
    /// `bind` lines.
    pub listeners: Vec<Item<'t>>,
    /// `server`, `server-template` and `default-server` lines.
    pub servers: Vec<Item<'t>>,
    capability: Option<Places>,
}

impl<'t> Proxy<'t> {
    /// The lines of a proxy and of its `defaults`.
    pub fn new(lineages: &Lineages<'t>, lineage: &Lineage<'t>) -> Self {
        let mut proxy = Proxy {
            capability: Some(slots::capability(lineage.section.kind())),
            ..Proxy::default()
        };
        for ancestor in lineages.ancestors(lineage) {
            for statement in &ancestor.statements {
                proxy.add(Item {
                    statement,
                    is_inherited: true,
                });
            }
        }
        let inherited_acls = std::mem::take(&mut proxy.acls);
        let used = rules::used_by(proxy.lists.values().flatten());
        proxy.replace_inherited(&lineage.section.statements);
        for statement in &lineage.section.statements {
            proxy.add(Item::own(statement));
        }
        // The conditions of a `defaults` are those of its rules only.
        for (name, lines) in inherited_acls {
            if used.contains_key(name.as_str()) {
                let is_taken = proxy.acls.contains_key(&name);
                let name = if is_taken {
                    format!("{name} (of defaults)")
                } else {
                    name
                };
                proxy.acls.insert(name, lines);
            }
        }
        proxy
    }

    /// Removes inherited lines that own lines replace.
    fn replace_inherited(&mut self, own: &'t [Statement]) {
        for statement in own {
            if let Slot::List(list) = slots::slot(statement)
                && slots::is_replaced(&list)
                && let Some(lines) = self.lists.get_mut(&list)
            {
                lines.retain(|line| !line.is_inherited);
            }
        }
        // The own settings of a statistics page replace all those of `defaults`.
        if own.iter().any(|statement| statement.keyword() == "stats") {
            self.settings.retain(|name, _| !name.starts_with("stats "));
            self.lists.retain(|name, _| !name.starts_with("stats "));
        }
    }

    fn add(&mut self, item: Item<'t>) {
        let capability = self.capability.unwrap_or(Places::NONE);
        if !slots::has_effect(item.statement, capability) {
            return;
        }
        match slots::slot(item.statement) {
            Slot::Acl => {
                let name = item.statement.arg(1).to_owned();
                self.acls.entry(name).or_default().push(item);
            }
            Slot::Listener => self.listeners.push(item),
            Slot::Server => self.servers.push(item),
            Slot::List(list) => self.add_to_list(list, item),
            Slot::Setting(setting) => self.set(setting, item),
        }
    }

    fn add_to_list(&mut self, list: String, item: Item<'t>) {
        let lines = self.lists.entry(list).or_default();
        if item.statement.prefix != Prefix::None {
            // `no log`
            lines.clear();
        } else if !is_log_global(item.statement)
            || !lines.iter().any(|line| is_log_global(line.statement))
        {
            lines.push(item);
        }
    }

    fn set(&mut self, setting: String, item: Item<'t>) {
        let statement = item.statement;
        if setting == "option tcpka" {
            return self.set_both_keepalives(item);
        }
        if statement.keyword() == "enabled" {
            self.settings.remove(&setting);
            return;
        }
        if statement.prefix == Prefix::None {
            self.settings.insert(setting, item);
            return;
        }
        match slots::negated(&setting, statement) {
            Negated::Value => {
                self.settings.insert(setting, item);
            }
            Negated::Reset => {
                self.settings.remove(&setting);
            }
            Negated::ResetIfSame => {
                let is_same = self
                    .settings
                    .get(&setting)
                    .is_some_and(|set| set.statement.arg(1) == statement.arg(1));
                if is_same {
                    self.settings.remove(&setting);
                }
            }
        }
    }

    /// `option tcpka` is `option clitcpka` and `option srvtcpka`.
    fn set_both_keepalives(&mut self, item: Item<'t>) {
        let capability = self.capability.unwrap_or(Places::NONE);
        for (side, option) in [
            (Places::FRONTEND, "option clitcpka"),
            (Places::BACKEND, "option srvtcpka"),
        ] {
            if capability.intersects(side) {
                self.settings.insert(option.to_owned(), item);
            }
        }
    }
}

/// `log global`, of which a second one adds nothing.
fn is_log_global(statement: &Statement) -> bool {
    statement.keyword() == "log" && statement.arg(1) == "global" && statement.words.len() == 2
}
