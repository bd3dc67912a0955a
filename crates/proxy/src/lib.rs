//! The engine: connections, streams and their phases, rules, backends, balancing and logs.
//!
//! Pure state: no system call, no clock, no thread and no randomness. The engine is behind the
//! boundary of crate `net`; a driver calls it with events. The layers, from the bottom; nothing
//! imports from a layer above its own:
//!
//! | layer | owns |
//! |---|---|
//! | `ids`, `random`, `websocket` | typed names; random numbers; the keys of WebSocket |
//! | `shared` | what workers share: counts, the state of servers, queues |
//! | `runtime_config` | the configuration as it runs |
//! | `statistics` | rows that are filled from counters, and the forms in which they are sent |
//! | `link` | connections: their bytes, and the muxes that make exchanges of them |
//! | `stream` | streams: their state, and the table of them |
//! | `evaluation` | what expressions see and change |
//! | `backend` | balancing, idle connections |
//! | `logging`, `tracing`, `persistence` | who is told; what filters record; what binds a request to a server |
//! | `rules` | what actions do |
//! | `phases` | the way of a request, top to bottom |
//! | `explain`, `engine` | the same rules for a request that nobody sent, told one by one; the entry points, accepting, budgets, draining |
#![forbid(unsafe_code)]

mod backend;
mod engine;
mod evaluation;
pub mod explain;
mod ids;
mod link;
mod logging;
mod persistence;
mod phases;
mod random;
mod rules;
mod runtime_config;
mod shared;
pub mod statistics;
mod stream;
mod tracing;
mod websocket;

pub use engine::{
    Current, Engine, Generation, HeldBytes, Order, QuicView, QuicsAsked, QuicsPart, Renewal,
    StreamView, StreamsAsked, StreamsPart,
};
pub use evaluation::{AssignError, Onlooker, prepare, prepare_after};
pub use logging::{LogRelay, event, event_of_process};
pub use quic::{
    Parameters as QuicParameters, Report as QuicReport, Stage as QuicStage,
    StreamReport as QuicStreamReport,
};
pub use runtime_config::{
    AddError, Added, BoundLine, CertificateView, Counters, Draft, EditError, Filter, FilterExport,
    ListView, LogTargetId, Logging, NameView, OcspSubject, Process, RuntimeConfig, SectionBind,
    SectionServer, Switches, Tls, TlsFileNames, TlsFinding, TlsStatus, TlsSwitchError, TrustView,
    certificate_name,
};
pub use shared::{
    Activity, Admin, BackendView, Boot, Cause, CheckOutcome, CheckPlan, CheckView, Checker,
    DeleteError, FrontendState, HealthLevel, Killed, Level, NameChange, NameResolver, NameTicket,
    NoAddress, OpState, RateLimit, Refused, RenameError, Resolved, ServerChange, ServerEvent,
    ServerEventSink, ServerLoad, ServerRecord, ServerTables, ServerView, ServiceHost, Shared,
    Snapshot, Taint, TlsPlace,
};
