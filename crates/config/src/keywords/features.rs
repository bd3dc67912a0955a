//! Features that this version lacks but keywords configure. When a feature is implemented, it is
//! removed from this list, and the rows that name it get parsers.

/// A feature of HAProxy that does not exist here yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub enum Feature {
    Acme,
    Cache,
    HttpClient,
    Lua,
    Niceness,
    SharedStats,
}

impl Feature {
    /// A clause that says that the feature is absent.
    #[must_use]
    pub const fn is_absent(self) -> &'static str {
        match self {
            Feature::Acme => "certificates are not renewed yet",
            Feature::Cache => "the cache is not implemented yet",
            Feature::HttpClient => "the internal HTTP client is not implemented yet",
            Feature::Lua => "Lua is not implemented yet",
            Feature::Niceness => "the priority of the process is left as it is",
            Feature::SharedStats => "counters are not shared with other processes yet",
        }
    }
}
