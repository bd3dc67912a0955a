//! Sections `peers` (manual §11.2): stick tables that processes share. HAProxy's peers protocol 2.1,
//! and 2.0 with peers that know no newer one.
//!
//! [`Section`] is the state of one section, without I/O, clock and random source: bytes and the time
//! go in, bytes and connections to open come out. [`run`] owns all sections on one thread, with
//! their sockets. The formats of messages are in [`message`], [`layout`], [`update`],
//! [`dictionary`] and [`handshake`].
//!
//! A process first learns what others know. Then each tells the others of its own updates.
//!
//! ```text
//!  start ──► from the old process ──────────────► from a remote peer ─────────────► finished
//!              │ 5 s, or there is none       ▲      │ 5 s without one, or none is left  ▲
//!              │                             │      │                                   │
//!              └──── it was not up to date ──┘      ├──── the peer was up to date ──────┤
//!              └──── the old process was up to date ┴───────────────────────────────────┘
//! ```
//!
//! What peers send is bounded: lines of a hello by [`handshake::LINE_BYTES_MAX`], messages by
//! [`message::BODY_BYTES_MAX`], names by [`dictionary::ENTRIES_MAX`], connections by three per peer;
//! definitions of tables are kept only for tables that this process has, and for the last one.
#![forbid(unsafe_code)]

pub mod dictionary;
pub mod handshake;
pub mod layout;
pub mod message;
mod reader;
pub mod run;
mod section;
mod shard;
pub mod update;
pub mod varint;
mod view;

pub use section::{ConnId, PeerSetup, Section, Setup, SharedTable};
pub use shard::shard;
pub use view::{PeerCounters, PeerView, SectionView, TableView};

/// Bytes do not have the format that they should have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;
