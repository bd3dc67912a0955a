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
    /// The counters in the order of `show resolvers`, which is that of the fields.
    #[must_use]
    pub fn values(&self) -> [u64; 15] {
        [
            self.sent,
            self.snd_error,
            self.valid,
            self.update,
            self.cname,
            self.cname_error,
            self.any_err,
            self.nx,
            self.timeout,
            self.refused,
            self.other,
            self.invalid,
            self.too_big,
            self.truncated,
            self.outdated,
        ]
    }
}
