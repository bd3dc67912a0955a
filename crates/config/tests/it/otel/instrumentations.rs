//! Lines of `otel-instrumentation`.

use super::{Case, Expect, LISTEN, Refused, Taken, Warned, check};

#[test]
fn instrumentations() {
    const TWICE: Expect = Refused("'rate-limit' already defined.", "rate-limit");
    let cases: &[Case] = &[
        ("log global", Taken),
        ("log 127.0.0.1:514 local0 err", Taken),
        (
            "log 127.0.0.1:514 nowhere",
            Refused("unknown log facility 'nowhere'", "nowhere"),
        ),
        ("no log", Taken),
        ("option disabled\n option hard-errors", Taken),
        ("no option disabled", Taken),
        ("default option noflush", Taken),
        ("option dontlog-normal\n option noflush", Taken),
        (
            "option dontlog",
            Refused("unknown option 'dontlog'", "dontlog"),
        ),
        (
            "option disabled now",
            Refused("unexpected argument 'now'", "now"),
        ),
        ("option", Refused("'option' expects one of", "")),
        ("rate-limit 100", Taken),
        (
            "rate-limit 99.9",
            Warned("'rate-limit' below 100.0 draws streams", "99.9"),
        ),
        ("rate-limit 100.5", Refused("got '100.5'", "100.5")),
        ("rate-limit -1", Refused("got '-1'", "-1")),
        ("rate-limit x", Refused("got 'x'", "x")),
        ("rate-limit 100\n rate-limit 100", TWICE),
        (
            "config OTEL_YML",
            Refused("'config' already defined.", "config"),
        ),
        ("debug-level 0x77f", Taken),
        ("acl a path /x", Taken),
        (
            "acl or path /x",
            Refused("acl name 'or' will never match", "or"),
        ),
        (
            "acl OR path /x",
            Refused("acl name 'OR' will never match", "OR"),
        ),
        (
            "acl a!b path /x",
            Refused("is not permitted in acl name", "a!b"),
        ),
        ("acl a", Refused("missing fetch method", "")),
        ("acl a pth /x", Refused("unknown fetch method 'pth'", "pth")),
        ("scopes", Refused("'scopes' expects at least one name.", "")),
        ("scopes x", Refused("otel-scope 'x' is not defined", "x")),
        ("scopes x x", Refused("'x' already defined.", "x")),
        ("scopes if", Refused("'if' is a reserved word.", "if")),
        ("groups g", Refused("otel-group 'g' is not defined.", "g")),
        (
            "option require-context",
            Refused("'require-context' needs an 'extract'", "require-context"),
        ),
        (
            "sampling x sometimes",
            Refused("unknown policy 'sometimes'", "sometimes"),
        ),
        ("scope s", Refused("unknown keyword 'scope'", "scope")),
    ];
    check(cases.iter().map(|(lines, expected)| {
        let otel = format!(
            "[f]\notel-instrumentation i\n config OTEL_YML\n scopes s\n {lines}\notel-scope s\n span a root\n otel-event on-stream-start\n"
        );
        (LISTEN, otel, *expected)
    }));
}
