//! `docs/collector.md` is what the tables say. `UPDATE_DOCS=1` writes it.

use std::path::Path;

#[test]
fn the_reference_is_fresh() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/collector.md");
    let wanted = spangate_collector::config::docs::collector_markdown();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &wanted).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == wanted,
        "docs/collector.md is stale: run `UPDATE_DOCS=1 cargo test -p spangate-collector --test it`"
    );
}
