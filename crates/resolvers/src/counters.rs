//! Counters of a nameserver.

/// The counters of a nameserver, in the order of `show resolvers` (management guide).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Queries sent.
    pub sent: u64,
    /// Queries that could not be sent.
    pub snd_error: u64,
    /// Valid answers, the first of each query.
    pub valid: u64,
    /// Valid answers that changed the address of a server.
    pub update: u64,
    /// Valid answers whose name is an alias.
    pub cname: u64,
    /// Answers with an alias and no record of what it stands for.
    pub cname_error: u64,
    /// Answers without records.
    pub any_err: u64,
    /// Answers that the name does not exist.
    pub nx: u64,
    /// Queries without an answer in time.
    pub timeout: u64,
    /// Answers that refuse.
    pub refused: u64,
    /// Other errors.
    pub other: u64,
    /// Messages that are no answer to a query.
    pub invalid: u64,
    /// Messages beyond the accepted size.
    pub too_big: u64,
    /// Truncated answers.
    pub truncated: u64,
    /// Answers that came too late.
    pub outdated: u64,
}

impl Counters {
    /// The counters with the names that `show resolvers` gives them, in its order.
    #[must_use]
    pub fn columns(&self) -> [(&'static str, u64); 15] {
        [
            ("sent", self.sent),
            ("snd_error", self.snd_error),
            ("valid", self.valid),
            ("update", self.update),
            ("cname", self.cname),
            ("cname_error", self.cname_error),
            ("any_err", self.any_err),
            ("nx", self.nx),
            ("timeout", self.timeout),
            ("refused", self.refused),
            ("other", self.other),
            ("invalid", self.invalid),
            ("too_big", self.too_big),
            ("truncated", self.truncated),
            ("outdated", self.outdated),
        ]
    }
}
