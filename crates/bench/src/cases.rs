//! The cases of the load benchmark: body size × connections × keep-alive or close × workers × logs
//! × checks and statistics.

use crate::report::Shape;

/// A body that the origin serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Body {
    /// The name in a case.
    pub name: &'static str,
    /// The path at the origin.
    pub path: &'static str,
    /// Its length.
    pub bytes: u64,
}

/// 50 bytes: shows a proxy's own cost.
pub const SMALL: Body = Body {
    name: "50B",
    path: "/50",
    bytes: 50,
};
/// 16 KiB: a page.
const MEDIUM: Body = Body {
    name: "16KiB",
    path: "/16k",
    bytes: 16 << 10,
};
/// 1 MiB: a download.
pub const LARGE: Body = Body {
    name: "1MiB",
    path: "/1m",
    bytes: 1 << 20,
};

const CONNECTIONS: &[u32] = &[1, 64, 512];

/// A case: one line of the report for each proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// The body.
    pub body: Body,
    /// Connections at a time.
    pub connections: u32,
    /// A new connection for each request.
    pub close: bool,
    /// Threads or processes of the proxy.
    pub workers: u32,
    /// Access logs go to a UDP socket.
    pub log: bool,
    /// The server is checked, and all statistics are counted and exported.
    pub watched: bool,
}

impl Case {
    /// Its name, for example `50B-c64-keep-w1-log`.
    pub fn name(&self) -> String {
        let life = if self.close { "close" } else { "keep" };
        let log = if self.log { "-log" } else { "" };
        let watched = if self.watched { "-watched" } else { "" };
        format!(
            "{}-c{}-{life}-w{}{log}{watched}",
            self.body.name, self.connections, self.workers
        )
    }

    /// Its description in the report.
    pub fn shape(&self) -> Shape {
        Shape {
            name: self.name(),
            body_bytes: self.body.bytes,
            connections: self.connections,
            keep_alive: !self.close,
            workers: self.workers,
            log: self.log,
            fresh_servers: false,
        }
    }

    /// Whether it runs by default: the cases of the README's claims.
    fn by_default(&self) -> bool {
        match (self.body, self.close, self.log || self.watched) {
            (SMALL, false, false) => true,
            _ => self.connections == 64,
        }
    }
}

/// A case with clients over TLS or QUIC, whose behaviour is `load`.
#[cfg(feature = "tls")]
#[derive(Clone, Copy, Debug)]
pub struct Secured<L> {
    /// The response.
    pub body: Body,
    /// Connections at a time.
    pub connections: u32,
    /// What the clients do.
    pub load: L,
    /// Worker threads of the proxy.
    pub workers: u32,
}

#[cfg(feature = "tls")]
impl<L: Copy> Secured<L> {
    /// All of these cases with so many workers.
    pub fn every(of: &'static [(Body, u32, L)], workers: u32) -> impl Iterator<Item = Secured<L>> {
        of.iter().map(move |&(body, connections, load)| Secured {
            body,
            connections,
            load,
            workers,
        })
    }
}

/// The cases for each of `workers` whose name contains one of `filters`. Without filters, the
/// default set, or all.
pub fn select(workers: &[u32], filters: &[String], all: bool) -> Vec<Case> {
    let wanted = |case: &Case| match filters {
        [] => all || case.by_default(),
        _ => filters
            .iter()
            .any(|filter| case.name().contains(filter.as_str())),
    };
    let mut cases: Vec<Case> = workers
        .iter()
        .flat_map(|&workers| every(workers))
        .filter(wanted)
        .collect();
    // Proxies are started once for each group with the same workers and logs.
    cases.sort_by_key(|case| (case.workers, case.log, case.watched));
    cases
}

fn every(workers: u32) -> Vec<Case> {
    let kinds = [
        (SMALL, false, false, false),
        (SMALL, true, false, false),
        (MEDIUM, false, false, false),
        (LARGE, false, false, false),
        (SMALL, false, true, false),
        (SMALL, false, false, true),
    ];
    let one = |(body, close, log, watched)| {
        CONNECTIONS.iter().map(move |&connections| Case {
            body,
            connections,
            close,
            workers,
            log,
            watched,
        })
    };
    kinds.into_iter().flat_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_filter() {
        let all = select(&[1, 2], &[], true);
        let mut names: Vec<String> = all.iter().map(Case::name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all.len());
        let one = select(&[1, 2], &["50B-c64-keep-w1".into()], false);
        assert_eq!(
            one.iter().map(Case::name).collect::<Vec<_>>(),
            [
                "50B-c64-keep-w1",
                "50B-c64-keep-w1-watched",
                "50B-c64-keep-w1-log"
            ]
        );
        assert!(select(&[1], &["none".into()], true).is_empty());
    }

    #[test]
    fn the_default_set_is_a_part() {
        let default = select(&[1], &[], false);
        assert!(default.len() < select(&[1], &[], true).len());
        assert!(
            default.iter().any(|case| case.body == LARGE) && default.iter().any(|case| case.close)
        );
    }
}
