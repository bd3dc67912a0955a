//! The expression language: sample fetches, converters, ACL conditions, log formats, compiled when
//! the configuration is loaded.
//!
//! The stages of an expression: words → [`Compiler`], which checks names, arguments, types and
//! places once → [`Expr`], [`LogFormat`] or [`Condition`] → evaluated against a [`Scope`] of plain
//! facts for each request. The names are defined in static tables, one entry per name: `fetch/*`,
//! `convert/*`, `acl/*`, `logformat/*`. The facts are in [`facts`]; the patterns of ACLs and maps
//! in [`pattern`]; variables, which are slots, in [`vars`]; the parsers of a connection's first
//! bytes in [`sniff`]; passwords in [`auth`].
//!
//! Invariants: an evaluation never panics, its work is bounded by the bytes that it reads, and a
//! value that it makes has at most [`SAMPLE_BYTES_MAX`] bytes. In the steady state it allocates
//! nothing: the bytes that a converter makes are in recycled buffers ([`bytes`]).
#![forbid(unsafe_code)]

pub mod acl;
pub mod auth;
pub mod bytes;
pub mod captured;
pub mod compile;
mod conn_error;
pub mod error;
pub mod expr;
pub mod facts;
pub mod logformat;
pub mod pattern;
pub mod place;
pub mod reference;
pub mod sniff;
pub mod table_key;
pub mod value;
pub mod vars;
mod x509;

mod args;
mod cast;
mod convert;
mod fetch;
mod known;
mod log_origin;
mod names;
mod operator;
#[cfg(test)]
mod robustness;
#[cfg(test)]
mod testing;
pub mod text;
mod timers;
mod unique_id;
mod zone;

/// How fetches and rules split header values.
pub mod values {
    pub use crate::fetch::http::values::{trim, value_end};
}

/// The hash functions of converters, for other code that needs equal hashes.
pub mod hashes {
    pub use crate::convert::hash::{crc32_ieee, djb2, full_avalanche, sdbm, wt6};
    pub use xxhash_rust::xxh64::xxh64;
}

pub use acl::{Acls, Condition, Verdict};
pub use bytes::{Bytes, SAMPLE_BYTES_MAX};
pub use compile::{Compiler, Needs, Resumed, Style};
pub use conn_error::ConnError;
pub use convert::jwe::TokenAlgorithms;
pub use convert::secret_from;
pub use convert::token_key::{set_token_certificate, wanted_token_certificates};
pub use convert::x509::verification_code;
pub use error::ExprError;
pub use expr::Expr;
pub use facts::{
    BodyFacts, ContextFacts, HelloFacts, MuxFacts, RulePlace, Scope, Session, Timing, TlsFacts,
    TlsSecrets, Txn, Waits, World,
};
pub use log_origin::LogOrigin;
pub use logformat::LogFormat;
pub use pattern::{EntryId, Listing, Reference, References, regex};
pub use place::Place;
pub use unique_id::UniqueId;
pub use value::{Kind, Value};
pub use vars::{Assignment, SlotCounts, VarRef, VarScope, Vars};
pub use x509::{
    ShownCertificate, ShownRevocations, certificate_key, certificate_signature, common_name,
    ocsp_uri, shown_certificate, shown_name, shown_revocations, shown_time,
};
pub use zone::{Zone, zoned_log_date};
