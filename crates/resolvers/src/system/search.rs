//! The search list (resolv.conf(5), `search` and `options ndots`).

use crate::files::ResolvConf;
use crate::name::Name;

/// The domains in which names are looked up.
#[derive(Debug)]
pub(super) struct Search {
    domains: Vec<Name>,
    ndots: usize,
}

impl Search {
    /// The search list of a `resolv.conf`; if it has none, the domain of the host's own name.
    pub fn new(conf: ResolvConf, hostname: &str) -> Search {
        let own = || {
            let domain = hostname.split_once('.').map(|(_, domain)| domain);
            let domain = domain.and_then(|domain| Name::parse(domain).ok());
            domain.into_iter().collect()
        };
        Search {
            domains: conf.search.unwrap_or_else(own),
            ndots: conf.ndots as usize,
        }
    }

    /// The names to ask for, in order. With at least `ndots` dots, the name as it is comes first,
    /// otherwise last. A name with a final dot stands for itself. Names that become too long are
    /// left out.
    pub fn candidates(&self, name: &Name, is_absolute: bool) -> Vec<Name> {
        if is_absolute {
            return vec![name.clone()];
        }
        let below = |domain: &Name| Name::parse(&format!("{name}.{domain}")).ok();
        let mut candidates: Vec<Name> = self.domains.iter().filter_map(below).collect();
        let dots = name.as_str().bytes().filter(|&byte| byte == b'.').count();
        let place = if dots >= self.ndots {
            0
        } else {
            candidates.len()
        };
        candidates.insert(place, name.clone());
        candidates
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::parse_resolv_conf;

    fn candidates(conf: &str, hostname: &str, host: &str) -> Vec<String> {
        let search = Search::new(parse_resolv_conf(conf), hostname);
        let name = Name::parse(host).unwrap();
        let names = search.candidates(&name, host.ends_with('.'));
        names.iter().map(Name::to_string).collect()
    }

    #[test]
    fn dots_decide_on_the_order() {
        let kubernetes = "search ns.svc.test svc.test test\noptions ndots:5\n";
        let own = "host.own.test";
        assert_eq!(
            candidates(kubernetes, own, "otel.ns"),
            [
                "otel.ns.ns.svc.test",
                "otel.ns.svc.test",
                "otel.ns.test",
                "otel.ns"
            ]
        );
        assert_eq!(candidates(kubernetes, own, "otel.ns."), ["otel.ns"]);
        let many_dots = "a.b.c.d.e.f";
        assert_eq!(candidates(kubernetes, own, many_dots)[0], many_dots);
        assert_eq!(candidates(kubernetes, own, many_dots).len(), 4);
        // The default is one dot, and the domain of the host.
        assert_eq!(candidates("", own, "otel"), ["otel.own.test", "otel"]);
        assert_eq!(candidates("", own, "otel.x"), ["otel.x", "otel.x.own.test"]);
        assert_eq!(candidates("", "host", "otel"), ["otel"]);
        assert_eq!(candidates("search .", own, "otel"), ["otel"]);
        let none = "search a.test\noptions ndots:0";
        assert_eq!(candidates(none, own, "otel"), ["otel", "otel.a.test"]);
    }

    #[test]
    fn names_that_become_too_long_are_left_out() {
        let long = ["abcdefghi."; 25].concat();
        let conf = format!("search b.test {}.test", &long[..long.len() - 1]);
        assert_eq!(candidates(&conf, "", "otel"), ["otel.b.test", "otel"]);
    }
}
