//! Kept inputs are configurations, or the target would look at faults alone.

#[test]
fn whole_files_are_configurations() {
    for name in ["whole", "references", "sources", "lacking"] {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("corpus/collector_yaml")
            .join(name);
        let text = std::fs::read(path).expect("a kept input");
        if let Err(faults) = spangate_fuzz::collector_yaml_config(&text, &["a.yaml"]) {
            panic!("{name}: {faults:#?}");
        }
    }
}
