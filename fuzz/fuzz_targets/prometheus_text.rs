#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| spangate_fuzz::prometheus_text(data));
