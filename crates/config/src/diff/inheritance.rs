//! The `defaults` from which each proxy starts.

use crate::build::names::is_proxy;
use crate::tree::{Section, Tree};

/// The sections of a tree that are proxies, with what they inherit.
pub(super) struct Lineages<'t> {
    defaults: Vec<Defaults<'t>>,
    pub proxies: Vec<Lineage<'t>>,
}

struct Defaults<'t> {
    section: &'t Section,
    parent: Option<usize>,
}

/// A proxy.
pub(super) struct Lineage<'t> {
    pub section: &'t Section,
    /// The index of its `defaults`.
    parent: Option<usize>,
}

impl<'t> Lineages<'t> {
    pub fn new(tree: &'t Tree) -> Self {
        let mut all = Lineages {
            defaults: Vec::new(),
            proxies: Vec::new(),
        };
        for section in &tree.sections {
            if section.kind() == "defaults" {
                let parent = origin(section).and_then(|name| all.named(name));
                all.defaults.push(Defaults { section, parent });
            } else if is_proxy(section) {
                let parent = match origin(section) {
                    Some(name) => all.named(name),
                    None => all.defaults.len().checked_sub(1),
                };
                all.proxies.push(Lineage { section, parent });
            }
        }
        all
    }

    /// The `defaults` of a proxy, the most distant one first.
    pub fn ancestors(&self, proxy: &Lineage<'t>) -> Vec<&'t Section> {
        let mut ancestors = Vec::new();
        let mut next = proxy.parent.and_then(|parent| self.defaults.get(parent));
        // A parent is before its child, so that this ends.
        while let Some(defaults) = next {
            ancestors.push(defaults.section);
            next = defaults.parent.and_then(|parent| self.defaults.get(parent));
        }
        ancestors.reverse();
        ancestors
    }

    /// The section `defaults` with this name, of those so far. A valid configuration has one.
    fn named(&self, name: &str) -> Option<usize> {
        let is_it = |defaults: &Defaults<'_>| {
            let word = defaults.section.name();
            word.is_some_and(|word| word.text == *name && word.text != "from")
        };
        self.defaults.iter().rposition(is_it)
    }
}

/// The name after `from` in a header.
fn origin(section: &Section) -> Option<&str> {
    let at = (1..=2).find(|&at| section.header.arg(at) == "from")?;
    let word = section.header.words.get(at + 1)?;
    Some(word.text.as_str())
}
