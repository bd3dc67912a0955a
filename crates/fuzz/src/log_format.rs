//! Log formats: read, and written about a request of any bytes.

use net::{Addr, Now};
use sample::facts::Nowhere;
use sample::{Compiler, LogFormat, Place, Scope, Session, Style, Txn};

/// The first line is a format, the rest what a client sent. Whatever a format is, reading it ends
/// in a format or in a fault within it; whatever it is written about, the text is the same each
/// time, and one that is encoded is whole.
pub fn log_format(data: &[u8]) {
    let end = data.iter().position(|byte| *byte == b'\n');
    let (text, request) = data.split_at(end.unwrap_or(data.len()));
    let Ok(text) = std::str::from_utf8(text) else {
        return;
    };
    let session = Session::new(
        Now::default(),
        Addr::Inet(([10, 0, 0, 1], 5000).into()),
        Addr::Unix([].into()),
        0,
        0,
    );
    let txn = Txn {
        is_http: true,
        request_line: request.to_vec(),
        captured_request: [Some(request), None].into_iter().collect(),
        ..Txn::default()
    };
    let scope = Scope {
        now: Now::default(),
        world: &Nowhere,
        session: &session,
        txn: Some(&txn),
        request: None,
        response: None,
        request_data: request,
        response_data: &[],
        from_server: false,
        last_chance: true,
    };
    for style in [Style::Log, Style::Http, Style::UniqueId, Style::Plain] {
        match Compiler::new().log_format_styled(text, Place::ALL, style) {
            Ok(format) => written(&format, text, &scope, style),
            Err(error) => assert!(
                error.start <= error.end && error.end <= text.len(),
                "{error:?}"
            ),
        }
    }
}

fn written(format: &LogFormat, text: &str, scope: &Scope<'_>, style: Style) {
    let (mut out, mut again) = (Vec::new(), b"before".to_vec());
    format.render(scope, &mut out);
    format.render(scope, &mut again);
    // What is random differs, and a blank at the beginning depends on what is before it.
    let moves = ["rand", "uuid", "date"]
        .iter()
        .any(|name| text.contains(name));
    assert!(
        moves || again.ends_with(&out),
        "{text}: {}",
        out.escape_ascii()
    );
    let is_json = text.starts_with("%{+json}o") && text.matches("}o").count() == 1;
    if is_json && matches!(style, Style::Log | Style::Plain) {
        let quoted = !text.contains(":raw");
        assert!(
            out.starts_with(b"{") && out.ends_with(b"}"),
            "{}",
            out.escape_ascii()
        );
        assert!(
            !quoted || strings_end(&out),
            "{text}: {}",
            out.escape_ascii()
        );
    }
}

/// Whether no string is open at the end.
fn strings_end(json: &[u8]) -> bool {
    let (mut inside, mut escaped) = (false, false);
    for byte in json {
        match byte {
            _ if std::mem::take(&mut escaped) => {}
            b'\\' => escaped = inside,
            b'"' => inside = !inside,
            _ => {}
        }
    }
    !inside
}
