//! Statistics: the one table of fields ([`column`]), rows of their values ([`row`]), and how rows are written.
//!
//! No I/O and no counters: whoever has counters fills rows, whoever has a connection sends what is written. Facts about names,
//! order and types of the fields: HAProxy's management guide §9.1 and §9.2.

pub mod column;
pub mod csv;
pub mod file;
pub mod json;
pub mod latency;
pub mod metric;
pub mod page;
pub mod process;
pub mod prometheus;
pub mod row;
pub mod tags;
pub mod typed;

pub use column::Column;
pub use row::{Kind, Row, Value};
