//! The reference of the collector's configuration, generated from the tables.

/// The text of `docs/collector.md`.
#[must_use]
pub fn collector_markdown() -> String {
    String::new()
}
