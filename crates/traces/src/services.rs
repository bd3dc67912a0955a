//! Values for the search fields.

use std::collections::{BTreeMap, BTreeSet};

use crate::answer::{Service, Services};
use crate::intern::part;
use crate::store::Held;

/// Most services in the answer.
const SERVICES_MAX: usize = 1000;
/// Most names, and most routes, of a service in the answer.
const WORDS_MAX: usize = 1000;

/// The services, span names, routes and policies of all traces.
pub(crate) fn services(held: &Held) -> Services {
    let mut services: BTreeMap<&[u8], [BTreeSet<&[u8]>; 2]> = BTreeMap::new();
    for (_, operation) in held.shared.operations.iter() {
        let service = part(operation, 0);
        if services.len() >= SERVICES_MAX && !services.contains_key(service) {
            continue;
        }
        let words = services.entry(service).or_default();
        for (set, at) in words.iter_mut().zip([1, 2]) {
            let word = part(operation, at);
            if !word.is_empty() && set.len() < WORDS_MAX {
                set.insert(word);
            }
        }
    }
    let texts = |set: BTreeSet<&[u8]>| set.into_iter().map(text).collect();
    let services = services.into_iter().map(|(name, [names, routes])| Service {
        name: text(name),
        names: texts(names),
        routes: texts(routes),
    });
    let policies: BTreeSet<_> = held.shared.policies.iter().map(|(_, one)| one).collect();
    Services {
        services: services.collect(),
        policies: texts(policies),
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
