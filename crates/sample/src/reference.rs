//! The content of the tables, for the generated reference and for counts of completeness.

use crate::acl::keywords::KEYWORDS;
use crate::args::Spec;
use crate::pattern::method::Method;
use crate::{Kind, Place, convert, fetch, known, logformat};

/// A fetch or a converter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name in the configuration.
    pub name: &'static str,
    /// Types of the arguments, such as `integer[,string]`; empty for none.
    pub args: String,
    /// The input type of a converter; None for a fetch.
    pub from: Option<Kind>,
    /// The output type.
    pub to: Kind,
    /// The places where it is valid.
    pub places: Place,
    /// One line of description.
    pub doc: &'static str,
}

/// Every sample fetch that is implemented.
pub fn fetches() -> impl Iterator<Item = Entry> {
    fetch::all().map(|fetch| Entry {
        name: fetch.name,
        args: signature(fetch.args),
        from: None,
        to: fetch.out,
        places: fetch.source.places,
        doc: fetch.doc,
    })
}

/// Every converter that is implemented.
pub fn converters() -> impl Iterator<Item = Entry> {
    convert::all().map(|convert| Entry {
        name: convert.name,
        args: signature(convert.args),
        from: Some(convert.from),
        to: convert.to,
        places: Place::ALL,
        doc: convert.doc,
    })
}

/// Every log-format alias except `%o`: its name and its description.
pub fn aliases() -> impl Iterator<Item = (&'static str, &'static str)> {
    logformat::alias::ALIASES
        .iter()
        .map(|alias| (alias.name, alias.doc))
}

/// An ACL keyword other than the plain name of a fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AclKeyword {
    /// The name in the configuration.
    pub name: &'static str,
    /// The fetch it stands for.
    pub fetch: &'static str,
    /// Its matching method, in the syntax of `-m`.
    pub method: &'static str,
    /// Whether its fetch is implemented.
    pub is_served: bool,
}

/// Every ACL keyword of HAProxy's table (manual §7.1).
pub fn acl_keywords() -> impl Iterator<Item = AclKeyword> {
    KEYWORDS.iter().map(|keyword| AclKeyword {
        name: keyword.name,
        fetch: keyword.fetch,
        method: method_name(keyword.method),
        is_served: fetch::find(keyword.fetch).is_some(),
    })
}

/// The fetches of HAProxy 3.5 that are not implemented yet.
pub fn missing_fetches() -> impl Iterator<Item = &'static str> {
    let names = known::FETCHES.iter().copied();
    names.filter(|name| fetch::find(name).is_none())
}

/// The converters of HAProxy 3.5 that are not implemented yet.
pub fn missing_converters() -> impl Iterator<Item = &'static str> {
    let names = known::CONVERTERS.iter().copied();
    names.filter(|name| convert::find(name).is_none())
}

/// A type's name in HAProxy's listings.
#[must_use]
pub fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Any => "any",
        Kind::Bool => "bool",
        Kind::Int => "sint",
        Kind::Addr => "addr",
        Kind::Ipv4 => "ipv4",
        Kind::Ipv6 => "ipv6",
        Kind::Str => "str",
        Kind::Bin => "bin",
        Kind::Method => "meth",
    }
}

fn method_name(method: Method) -> &'static str {
    match method {
        Method::Found => "found",
        Method::Bool => "bool",
        Method::Int | Method::Version => "int",
        Method::Ip => "ip",
        Method::Bin => "bin",
        Method::Len => "len",
        Method::Str | Method::Verb => "str",
        Method::Beg => "beg",
        Method::Sub => "sub",
        Method::Dir => "dir",
        Method::Dom => "dom",
        Method::End => "end",
        Method::Reg => "reg",
    }
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

    /// Fetches of the filter `opentelemetry`, which are not HAProxy's own.
    const OF_FILTER: [&str; 3] = ["otel.bytes_in", "otel.bytes_out", "otel.context"];

    #[test]
    fn every_entry_is_one_of_haproxys_and_stands_once() {
        for (entries, known) in [
            (fetches().collect::<Vec<_>>(), known::FETCHES),
            (converters().collect::<Vec<_>>(), known::CONVERTERS),
        ] {
            let names: HashSet<_> = entries.iter().map(|entry| entry.name).collect();
            assert_eq!(names.len(), entries.len());
            for entry in &entries {
                let is_known = known.contains(&entry.name) || OF_FILTER.contains(&entry.name);
                assert!(is_known, "{}", entry.name);
                assert!(!entry.doc.is_empty(), "{}", entry.name);
            }
        }
        let served = fetches().count() + converters().count();
        assert_eq!(
            missing_fetches().count() + missing_converters().count() + served,
            known::FETCHES.len() + known::CONVERTERS.len() + OF_FILTER.len()
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
