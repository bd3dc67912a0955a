//! Statistics: the table of fields ([`mod@column`]), rows of their values ([`row`]), and writers of
//! rows.
//!
//! There is no I/O and there are no counters: the owner of counters fills rows, and the owner of a
//! connection sends the text. Names, order and types of the fields are documented in HAProxy's
//! management guide §9.1 and §9.2.

pub mod column;
pub mod csv;
pub mod file;
pub mod json;
pub mod latency;
pub mod metric;
pub mod nameserver;
pub mod page;
pub mod process;
pub mod prometheus;
pub mod row;
pub mod tags;
pub mod typed;

pub use column::Column;
pub use row::{Kind, Row, Value};
