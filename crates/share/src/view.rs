//! A look at a shared table (`show share`).

/// The state of a shared table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableView {
    /// The table.
    pub table: String,
    /// The address of the store.
    pub store: String,
    /// The connection is open.
    pub is_connected: bool,
    /// The last failure of the connection; empty before the first one.
    pub last_error: String,
    /// Why the store refused an entry last; empty before the first one.
    pub last_refusal: String,
    /// The time between two exchanges, milliseconds.
    pub every_ms: u32,
    /// Milliseconds since the last answer; none before the first one.
    pub answered_ago_ms: Option<u64>,
    /// The time that the last answer took, milliseconds.
    pub answer_ms: u64,
    /// Entries whose changes wait to be sent.
    pub waiting: u64,
    /// Keys that are read again.
    pub watched: u64,
    /// The numbers since the start.
    pub counters: Counters,
}

/// Numbers since the start of the process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Answers.
    pub answers: u64,
    /// Entries whose changes were sent.
    pub sent: u64,
    /// Entries that the store could not change or read. Their changes are lost.
    pub refused: u64,
    /// Totals that were merged into entries.
    pub merged: u64,
    /// Connections that were opened.
    pub connections: u64,
    /// Connections that could not be opened, that failed, or that ended with a wrong answer.
    pub failures: u64,
    /// How often the store was found empty, so that everything was sent again.
    pub resends: u64,
    /// Entries that were removed before their changes were sent. These changes are lost.
    pub removed_unsent: u64,
    /// Batches that the store has lost and that this process cannot send again, because it no longer
    /// keeps them. Their changes are lost.
    pub lost_batches: u64,
}
