//! The kept input of the language's whole is a program, or the target would look at faults alone.

#[test]
fn whole_files_are_programs() {
    for name in ["whole", "small"] {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("corpus/otel_cfg")
            .join(name);
        let text = std::fs::read(path).expect("a kept input");
        if let Err(faults) = spangate_fuzz::otel_cfg_program(&text) {
            panic!("{name}: {faults:#?}");
        }
    }
}
