//! Sections of a filter's file, and the lines of proxies that name filters and groups.

use telemetry::Event;

use super::{DEFAULTS, Expect, LISTEN, Refused, Taken, TempFile, Warned, YML, check, printed};
use crate::common::accepted;

#[test]
fn files() {
    const BODY: &str = "otel-instrumentation i\n config OTEL_YML\n scopes s\notel-scope s\n span a root\n otel-event on-stream-start\n";
    let under = |more: &str| format!("[f]\n{BODY}{more}");
    let cases: &[(String, Expect)] = &[
        (under(""), Taken),
        (
            under("").trim_end().to_owned(),
            Refused("Missing LF on last line", ""),
        ),
        (BODY.to_owned(), Warned("sections before any [section] belong to every filter", "otel-instrumentation")),
        (under("[g]\nanything goes\n"), Refused("unknown keyword 'anything'", "anything")),
        (under("[g]\notel-scope s\n nonsense\n"), Taken),
        (under("[g]\notel-scope s\n[f]\notel-scope t\n"), Warned("[f] already stands above.", "otel-scope")),
        ("[g]\n".to_owned() + BODY, Refused("no otel-instrumentation for filter 'f' in section [f]", "f")),
        (String::new(), Refused("no otel-instrumentation for filter 'f'", "f")),
        ("[f]\notel-instrumentation i\n".to_owned(), Refused("otel-instrumentation 'i' has no 'config'.", "otel-instrumentation")),
        (under("otel-instrumentation j\n"), Refused("otel-instrumentation is already defined", "otel-instrumentation")),
        (under("otel-scope s\n"), Refused("otel-scope 's' is already defined.", "s")),
        (under("otel-scope t\n"), Warned("otel-scope 't' is not used.", "t")),
        (under("otel-scope\n"), Refused("'otel-scope' expects a name as argument.", "")),
        (under("otel-group g\n scopes s\n"), Warned("otel-group 'g' is not used.", "g")),
        (under("otel-group g\n"), Refused("otel-group 'g' has no 'scopes'.", "otel-group")),
        (under("otel-group g\n scopes x\n"), Refused("otel-scope 'x' is not defined.", "x")),
        (under("otel-group g\n scope s\n"), Refused("unknown keyword 'scope'", "scope")),
        (
            format!("[f]\n{}otel-group g\n scopes s\notel-group g\n scopes s\n", BODY.replace(" scopes s", " scopes s\n groups g")),
            Refused("otel-group 'g' is already defined.", "g"),
        ),
        // A scope of a group needs no event, and the order of sections does not matter.
        (
            "[f]\notel-group g\n scopes s\notel-scope s\n span a root\notel-instrumentation i\n config OTEL_YML\n groups g\n".to_owned(),
            Taken,
        ),
        (under("").replace(" root", ""), Warned("no span of the scopes that are used is 'root'.", "otel-instrumentation")),
        (
            under("").replace(" scopes s", " option require-context\n scopes s"),
            Refused("'require-context' needs an 'extract'", "require-context"),
        ),
        (
            under("").replace(" scopes s", " option require-context\n scopes s").replace(" span a root", " extract -\n span a root parent -"),
            Taken,
        ),
    ];
    let cases = cases.iter();
    check(cases.map(|(otel, expected)| (LISTEN, otel.clone(), *expected)));
}

#[test]
fn filters() {
    const OTEL: &str = "[f]\notel-instrumentation i\n config OTEL_YML\n scopes s\n groups g\notel-scope s\n span a root\n otel-event on-stream-start\notel-scope t\n finish *\notel-group g\n scopes t\n";
    let line = |line: &str| format!("{LISTEN}    {line}\n");
    let two = |second: &str| format!("{LISTEN}listen other\n    bind :81\n    {second}\n");
    // The lines before any section belong to `defaults`.
    let inherited = "    filter opentelemetry id f config OTEL_CFG\nlisten a\n    bind :80\n    server s 127.0.0.1:81\nlisten b\n    bind :82\n    server s 127.0.0.1:81\n";
    let cases: &[(String, Expect)] = &[
        (inherited.to_owned(), Taken),
        (line("http-request otel-group f g"), Taken),
        (
            line("http-response otel-group f g if { status 200 }"),
            Taken,
        ),
        (line("tcp-request content otel-group f g"), Taken),
        (
            line("http-request otel-group x g"),
            Refused("no filter 'opentelemetry' with id 'x'", "x"),
        ),
        (
            line("http-request otel-group f x"),
            Refused("filter 'f' has no otel-group 'x'", "x"),
        ),
        (
            LISTEN.replace("id f ", ""),
            Refused(
                "no otel-instrumentation for filter 'otel-filter'",
                "opentelemetry",
            ),
        ),
        (
            LISTEN
                .replace("id f", "id g")
                .replace("OTEL_CFG", "OTEL_CFG f"),
            Taken,
        ),
        (
            LISTEN.replace("config OTEL_CFG", "config OTEL_CFG g"),
            Refused("in section [g]", "f"),
        ),
        (
            LISTEN.replace("id f config OTEL_CFG", "config OTEL_CFG id f"),
            Taken,
        ),
        (
            LISTEN.replace("id f", "id f id f"),
            Refused("'id' already defined.", "id"),
        ),
        (
            LISTEN.replace("id f", "id if"),
            Refused("'if' is a reserved word.", "if"),
        ),
        (
            LISTEN.replace("OTEL_CFG", "OTEL_CFG unless"),
            Refused("'unless' is a reserved word.", "unless"),
        ),
        (
            LISTEN.replace("OTEL_CFG", "OTEL_CFG f more"),
            Refused("unknown argument 'more'", "more"),
        ),
        (
            LISTEN.replace(" config OTEL_CFG", ""),
            Refused("expects 'config <file>'.", ""),
        ),
        (
            LISTEN.replace("OTEL_CFG", "/nowhere/otel.cfg"),
            Refused(
                "Cannot read filter file '/nowhere/otel.cfg'",
                "/nowhere/otel.cfg",
            ),
        ),
        (
            two("filter opentelemetry id f config OTEL_CFG"),
            Refused("id 'f' is already used at t.cfg:", "f"),
        ),
        (two("filter opentelemetry id g config OTEL_CFG f"), Taken),
        (line("filter opentelemetry id g config OTEL_CFG f"), Taken),
    ];
    let all = cases.iter();
    check(all.map(|(config, expected)| (&config[..], OTEL.to_owned(), *expected)));
    let injects = OTEL.replace("on-stream-start", "on-frontend-http-request\n inject x");
    let shared = line("filter opentelemetry id g config OTEL_CFG f");
    let apart = two("filter opentelemetry id g config OTEL_CFG f");
    let fault = Refused("another filter of this proxy uses [f]", "g");
    let cases = [(&shared[..], fault), (&apart, Taken)];
    check(
        cases
            .into_iter()
            .map(|(config, expected)| (config, injects.clone(), expected)),
    );
    let others = format!(
        "{injects}[g]\n{}",
        injects[4..].replace("inject x", "inject X")
    );
    let both = line("filter opentelemetry id g config OTEL_CFG");
    let fault = Refused("'X' is already injected by filter 'f' of this proxy.", "X");
    check([(&both[..], others, fault)].into_iter());
    let asks = line("http-request set-header x %[otel.context(c)]");
    assert!(printed(&asks, OTEL).contains("[WARNING]  (1) : config : otel.context(c) : no filter"));
}

/// A filter that a sequence leaves out has no events of that direction.
#[test]
fn sequences_leave_filters_out() {
    const BOTH: &str = "[f]
otel-instrumentation i
 config OTEL_YML
 scopes one two
otel-scope one
 otel-event on-http-headers-request
 span a root
otel-scope two
 otel-event on-http-response
 span b root
";
    let yml = TempFile::new(YML);
    let file = TempFile::new(&BOTH.replace("OTEL_YML", &yml.0));
    let [request, response] = [Event::HttpHeadersRequest.bit(), Event::HttpResponse.bit()];
    let filter = format!(" filter opentelemetry id f config {}\n", file.0);
    let comp = " filter comp-res\n";
    for (defaults, lines, expected) in [
        ("", format!("{filter}{comp}"), request | response),
        (
            "",
            format!("{filter}{comp} filter-sequence request comp-res\n"),
            response,
        ),
        (
            "",
            format!("{filter}{comp} filter-sequence response comp-res\n"),
            request,
        ),
        (
            &*filter,
            format!("{comp} filter-sequence response comp-res\n"),
            request,
        ),
        (
            &*filter,
            format!("{comp} filter-sequence response comp-res,opentelemetry\n"),
            request | response,
        ),
    ] {
        let config = accepted(&format!(
            "{DEFAULTS}{defaults}listen l\n bind :80\n server s 127.0.0.1:81\n{lines}"
        ));
        let events: Vec<u32> = config.otel.iter().map(|otel| otel.program.events).collect();
        assert_eq!(events, [expected], "{defaults}{lines}");
    }
}
