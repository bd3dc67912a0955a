//! Balance algorithms (manual §4.2 balance): the set of them, and one table of their properties.

use super::{HashMethod, Proxy};
use syntax::octets::Octets;

/// `balance` (manual §4.2).
#[derive(Clone, Debug)]
pub enum Balance {
    /// In turn, by weight.
    RoundRobin,
    /// In turn, by a fixed map.
    StaticRr,
    /// The server with the fewest connections.
    LeastConn,
    /// The server with the lowest expected latency (not in HAProxy): the peak-sensitive average of
    /// latencies (peak EWMA), multiplied by the number of its current requests.
    LeastLatency,
    /// The first server with a free slot.
    First,
    /// The least loaded of several random servers.
    Random {
        /// How many servers are drawn.
        draws: u32,
    },
    /// A hash of the client's address.
    Source,
    /// A hash of the URI.
    Uri {
        /// Including the query.
        whole: bool,
        /// The number of bytes that are hashed.
        len: Option<usize>,
        /// The number of directories that are hashed.
        depth: Option<usize>,
        /// Without scheme and authority.
        path_only: bool,
    },
    /// A hash of a query parameter.
    UrlParam {
        /// Its name.
        name: Octets,
        /// If the query does not have it, use the body of a POST.
        check_post: bool,
    },
    /// A hash of a header.
    Hdr {
        /// Its name.
        name: Octets,
        /// Only the middle part of a host name.
        use_domain_only: bool,
    },
    /// A hash of an expression.
    Hash(sample::Expr),
    /// `mode log`: always the same server, while it is available.
    Sticky,
    /// `mode log`: a hash of the result of converters on a message.
    LogHash(sample::Expr),
}

/// How many servers `random` draws where that is not given.
pub const DRAWS_DEFAULT: u32 = 2;

impl Default for Balance {
    /// `random`, since HAProxy 3.3.
    fn default() -> Self {
        Balance::Random {
            draws: DRAWS_DEFAULT,
        }
    }
}

/// The properties of an algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BalanceFacts {
    /// The name on the `balance` line and in statistics.
    pub name: &'static str,
    /// Whether weights can change at run time.
    pub weights: BalanceWeights,
    /// The hash of a key selects the server. A request waits for that server when it is full.
    pub is_keyed: bool,
    /// The key is a part of an HTTP request.
    pub needs_http: bool,
    /// It works in `mode log`.
    pub works_in_logs: bool,
    /// It compares the numbers of requests in progress.
    pub uses_load: bool,
    /// It compares measured latencies.
    pub uses_latency: bool,
}

/// Whether the weights of an algorithm can change at run time (HAProxy's `BE_LB_PROP_DYN`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BalanceWeights {
    /// They can.
    Dynamic,
    /// The map of servers is computed from the configured weights.
    Static,
    /// `hash-type map-based` is static, and `hash-type consistent` is dynamic.
    ByHashType,
}

/// The table of algorithms: each line is one [`BalanceFacts`].
macro_rules! facts {
    (@ yes) => { true };
    (@ no) => { false };
    ($balance:expr; $($algorithm:pat => $name:literal $weights:ident
        $keyed:ident $http:ident $logs:ident $load:ident $latency:ident;)*) => {
        match $balance {
            $($algorithm => BalanceFacts {
                name: $name,
                weights: BalanceWeights::$weights,
                is_keyed: facts!(@ $keyed),
                needs_http: facts!(@ $http),
                works_in_logs: facts!(@ $logs),
                uses_load: facts!(@ $load),
                uses_latency: facts!(@ $latency),
            },)*
        }
    };
}

impl Balance {
    /// The algorithms without arguments.
    const PLAIN: [Balance; 7] = [
        Balance::RoundRobin,
        Balance::StaticRr,
        Balance::LeastConn,
        Balance::LeastLatency,
        Balance::First,
        Balance::Source,
        Balance::Sticky,
    ];

    /// The algorithm of this name, if it is one without arguments.
    #[must_use]
    pub fn plain(name: &str) -> Option<Balance> {
        Balance::PLAIN
            .into_iter()
            .find(|balance| balance.facts().name == name)
    }

    /// The properties of the algorithm. Everything that depends on the kind of algorithm asks here.
    #[must_use]
    pub const fn facts(&self) -> BalanceFacts {
        facts! { self;
            // algorithm                name            weights    keyed http logs load latency
            Balance::RoundRobin      => "roundrobin"    Dynamic    no    no   yes  no   no;
            Balance::StaticRr        => "static-rr"     Static     no    no   no   no   no;
            Balance::LeastConn       => "leastconn"     Dynamic    no    no   no   yes  no;
            Balance::LeastLatency    => "least-latency" Dynamic    no    no   no   yes  yes;
            Balance::First           => "first"         Dynamic    no    no   no   no   no;
            Balance::Random { .. }   => "random"        Dynamic    no    no   yes  yes  no;
            Balance::Source          => "source"        ByHashType yes   no   no   no   no;
            Balance::Uri { .. }      => "uri"           ByHashType yes   yes  no   no   no;
            Balance::UrlParam { .. } => "url_param"     ByHashType yes   yes  no   no   no;
            Balance::Hdr { .. }      => "hdr"           ByHashType yes   yes  no   no   no;
            Balance::Hash(_)         => "hash"          ByHashType yes   no   no   no   no;
            Balance::Sticky          => "sticky"        Dynamic    no    no   yes  no   no;
            Balance::LogHash(_)      => "log-hash"      ByHashType yes   no   yes  no   no;
        }
    }
}

impl Proxy {
    /// Whether the weights of its servers can change at run time, and whether servers can be added.
    /// Where they cannot, a weight is zero or the configured one, and `slowstart` does not change
    /// it.
    #[must_use]
    pub fn has_dynamic_weights(&self) -> bool {
        match self.balance.facts().weights {
            BalanceWeights::Dynamic => true,
            BalanceWeights::Static => false,
            BalanceWeights::ByHashType => self.hash_type.method == HashMethod::Ring,
        }
    }
}
