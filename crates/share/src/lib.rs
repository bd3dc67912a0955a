//! Counters of stick tables that several proxies share through Redis or Valkey (`stick-table …
//! share`).
//!
//! Requests count in the table of their process and never wait. A thread beside the workers sends
//! the changes of the entries that were touched, in batches every `every`, and takes back what all
//! proxies counted for these entries:
//!
//! ```text
//!  table ──notes──► Exchange ──Batch──► script in the store, which adds it once
//!    ▲                  │                        │
//!    └──────totals──────┴────────Answer──────────┘
//! ```
//!
//! [`Exchange`] is the state of one table, without I/O, clock and random source. [`run`] owns the
//! thread and the connections. `script.lua` runs in the store.
//!
//! **Every change counts once.** The batches of a process have numbers. The script keeps the last
//! number that it added per process, in the same step as the counters, and adds no number twice. So
//! a batch without an answer is sent again. The answer tells what the store has:
//!
//! - the batch before: all is well;
//! - an older one: the store went back to an older state (a restored file, a replica that took
//!   over). The batches since then are sent again, as far as they are kept;
//! - none: the store is empty. The process sends all that it ever counted for the entries that it
//!   has.
//!
//! What a store sends is bounded by [`answer::ANSWER_BYTES_MAX`]. What waits for it are marks in the
//! entries of the table, at most [`exchange::KEPT_ITEMS_MAX`] sent items, and at most
//! [`watch::WATCHED_MAX`] keys.
#![forbid(unsafe_code)]

pub mod answer;
pub mod batch;
pub mod exchange;
pub mod run;
pub mod view;
pub mod watch;

pub use answer::{Answer, Nonsense};
pub use batch::{Batch, Item, Names};
pub use exchange::{Exchange, Refused, Request};
pub use view::TableView;
