//! `docs/configuration.md` is generated from the keyword table. `UPDATE_DOCS=1` writes it.

use std::path::Path;

#[test]
fn the_reference_is_fresh() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
    let wanted = spangate_config::docs::configuration_markdown();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &wanted).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == wanted,
        "docs/configuration.md is stale: run `UPDATE_DOCS=1 cargo test -p spangate-config --test it docs`"
    );
}
