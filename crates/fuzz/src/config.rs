//! Configuration texts: lines cut into words, sections and conditions read.

use config::condition::BuildInfo;
use config::diagnostic::Rendering;
use config::environment::Environment;
use config::keywords::other::SECTIONS;
use config::lexer::{Context, MAX_LINE_ARGS, split};
use config::reader::{Options, read_text};
use config::tree::Span;

/// A text of any bytes is read to its end: what is wrong has a place in it, every word stands where
/// its span says, and the words of a line, written again byte for byte, are read again as the same.
pub fn config_text(data: &[u8]) {
    let build = BuildInfo {
        version: "3.5".into(),
        features: "+EPOLL -OPENSSL".into(),
        openssl_version: None,
        ssllib_name: None,
        awslc_api: None,
        enabled: vec!["EPOLL".into()],
        fips_mode: false,
    };
    let sections: Vec<&str> = SECTIONS.iter().map(|section| section.name).collect();
    let options = Options {
        sections: &sections,
        build: &build,
    };
    let (tree, diagnostics) = read_text("text", data, &options, &mut environment());
    for section in &tree.sections {
        let statements = [&section.header].into_iter().chain(&section.statements);
        for word in statements.flat_map(|statement| &statement.words) {
            assert!(within(&word.span), "{:?}", word.span);
        }
    }
    for item in diagnostics.iter() {
        assert!(item.span.as_ref().is_none_or(within), "{item:?}");
    }
    let how = Rendering {
        pid: 1,
        diag: true,
        quiet: false,
    };
    diagnostics.render(&how);
    diagnostics.render_closing(&how, true);
    for line in data.split(|byte| *byte == b'\n') {
        words_again(line);
    }
}

fn environment() -> Environment {
    let mut environment = Environment::new();
    environment.set("SET", "one two");
    environment.set("EMPTY", "");
    environment
}

fn within(span: &Span) -> bool {
    let (start, end) = (span.start as usize, span.end as usize);
    start <= end && span.excerpt().get(start..end).is_some()
}

fn words_again(line: &[u8]) {
    let environment = environment();
    let context = Context {
        environment: &environment,
        file: "text",
        line: 1,
        section: Some(b"global"),
        comments: true,
    };
    let Ok(read) = split(line, &context) else {
        return;
    };
    assert!(read.words.len() <= MAX_LINE_ARGS);
    let texts: Vec<&[u8]> = read.words.iter().map(|word| word.text.bytes()).collect();
    let mut written = String::new();
    for text in &texts {
        written.push('"');
        for byte in *text {
            written.push_str(&format!("\\x{byte:02x}"));
        }
        written.push_str("\" ");
    }
    let again = split(written.as_bytes(), &context).expect("what was written is read");
    let again: Vec<&[u8]> = again.words.iter().map(|word| word.text.bytes()).collect();
    assert_eq!(again, texts);
}
