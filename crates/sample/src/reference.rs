//! What the tables hold, for the generated reference and for completeness counts.

use crate::args::Spec;
use crate::{Kind, convert, fetch, known, logformat};

/// A fetch or a converter of the tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name in the configuration.
    pub name: &'static str,
    /// Types of the arguments, as `integer[,string]`; empty for none.
    pub args: String,
    /// The type a converter takes; none for a fetch.
    pub from: Option<Kind>,
    /// The type it gives.
    pub to: Kind,
    /// One line that says what it is.
    pub doc: &'static str,
}

/// Every sample fetch that is served.
pub fn fetches() -> impl Iterator<Item = Entry> {
    fetch::all().map(|fetch| Entry {
        name: fetch.name,
        args: signature(fetch.args),
        from: None,
        to: fetch.out,
        doc: fetch.doc,
    })
}

/// Every converter that is served.
pub fn converters() -> impl Iterator<Item = Entry> {
    convert::all().map(|convert| Entry {
        name: convert.name,
        args: signature(convert.args),
        from: Some(convert.from),
        to: convert.to,
        doc: convert.doc,
    })
}

/// Every log-format alias but `%o`: its name and what it writes.
pub fn aliases() -> impl Iterator<Item = (&'static str, &'static str)> {
    logformat::alias::ALIASES
        .iter()
        .map(|alias| (alias.name, alias.doc))
}

/// The fetches and converters that HAProxy 3.5 has and that are not served yet.
pub fn missing() -> impl Iterator<Item = &'static str> {
    let fetches = known::FETCHES
        .iter()
        .filter(|name| fetch::find(name).is_none());
    let converters = known::CONVERTERS
        .iter()
        .filter(|name| convert::find(name).is_none());
    fetches.chain(converters).copied()
}

fn signature(spec: Spec) -> String {
    let mut text = String::new();
    for (index, kind) in spec.kinds.iter().enumerate() {
        if index == spec.required {
            text.push('[');
        }
        if index > 0 {
            text.push(',');
        }
        text.push_str(kind.name());
    }
    if spec.required < spec.kinds.len() {
        text.push(']');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_entry_is_one_of_haproxys_and_stands_once() {
        for (entries, known) in [
            (fetches().collect::<Vec<_>>(), known::FETCHES),
            (converters().collect::<Vec<_>>(), known::CONVERTERS),
        ] {
            let names: HashSet<_> = entries.iter().map(|entry| entry.name).collect();
            assert_eq!(names.len(), entries.len());
            for entry in &entries {
                assert!(known.contains(&entry.name), "{}", entry.name);
                assert!(!entry.doc.is_empty(), "{}", entry.name);
            }
        }
        let served = fetches().count() + converters().count();
        assert_eq!(
            missing().count() + served,
            known::FETCHES.len() + known::CONVERTERS.len()
        );
    }

    #[test]
    fn signatures() {
        let of = |name| {
            fetches()
                .find(|entry| entry.name == name)
                .expect("an entry")
                .args
        };
        assert_eq!(
            (of("req.hdr"), of("src"), of("nbsrv")),
            ("[string,integer]".into(), String::new(), "backend".into())
        );
        assert_eq!(aliases().count(), 64);
    }
}
