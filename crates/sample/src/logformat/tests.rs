use net::Addr;

use super::{CONNECT, HTTP, HTTP_CLF, HTTPS, TCP, TCP_CLF};
use crate::testing::{Facts, addr, at_ms, compiler};
use crate::{Place, Style, Zone};

fn render(facts: &Facts, format: &str, style: Style) -> String {
    let format = compiler()
        .log_format_styled(format, Place::ALL, style)
        .unwrap_or_else(|error| panic!("{format}: {error}"));
    let mut out = Vec::new();
    format.render(&facts.scope(), &mut out);
    String::from_utf8(out).expect("text")
}

fn log(facts: &Facts, format: &str) -> String {
    render(facts, format, Style::Log)
}

/// The manual's example (§8.2.3), as far as the test world allows.
fn served() -> Facts {
    let mut facts = Facts::with_request("GET /index.html?a=1 HTTP/1.1\nHost: 1wt.eu\n\n");
    let txn = &mut facts.txn;
    txn.timing.request_start = Some(at_ms(10));
    txn.timing.request_complete_ms = Some(at_ms(20).ms());
    txn.timing.queued_ms = Some(at_ms(20).ms());
    txn.timing.connected_ms = Some(at_ms(50).ms());
    txn.timing.response_start_ms = Some(at_ms(119).ms());
    txn.timing.data_end_ms = Some(at_ms(129).ms());
    txn.backend = Some(1);
    txn.server = Some(0);
    txn.status = 200;
    txn.bytes_out = 2750;
    txn.bytes_in = 90;
    txn.server_src = Some(addr("10.0.9.1:40000"));
    txn.server_dst = Some(addr("10.0.9.2:80"));
    txn.captured_request = [Some(&b"1wt.eu"[..])].into_iter().collect();
    txn.captured_response = [None].into_iter().collect();
    facts
}

#[test]
fn the_default_formats() {
    let facts = served();
    assert_eq!(
        log(&facts, HTTP),
        "10.0.1.2:33317 [20/Nov/2026:13:01:02.133] www static/srv1 10/0/30/69/119 200 2750 - - ---- 5/3/2/1/0 0/0 \
         {1wt.eu} {} \"GET /index.html?a=1 HTTP/1.1\""
    );
    assert_eq!(
        log(&facts, TCP),
        "10.0.1.2:33317 [20/Nov/2026:13:01:02.123] www static/srv1 0/30/129 2750 -- 5/3/2/1/0 0/0"
    );
    assert_eq!(
        log(&facts, HTTP_CLF),
        "10.0.1.2 - - [20/Nov/2026:13:01:02 +0000] \"GET /index.html?a=1 HTTP/1.1\" 200 2750 \"\" \"\" 33317 123 \"www\" \
         \"static\" \"srv1\" 10 0 30 69 119 ---- 5 3 2 1 0 0 0 \"\" \"\" \"1wt.eu\" \"\""
    );
    assert_eq!(
        log(&facts, TCP_CLF),
        "10.0.1.2 - - [20/Nov/2026:13:01:02 +0000] \"TCP \" 000 2750 \"\" \"\" 33317 123 \"www\" \"static\" \"srv1\" 0 0 30 \
         129 90 ---- 5 3 2 1 0 0 0 \"\" \"\" "
    );
    assert_eq!(
        log(&facts, CONNECT),
        "Connect from 10.0.1.2:33317 to 10.0.3.31:8080 (www/TCP)"
    );
}

#[test]
fn a_request_that_was_not_understood() {
    let mut facts = Facts::new();
    facts.txn.termination = *b"PR--";
    facts.txn.status = 400;
    facts.txn.bytes_out = 187;
    assert_eq!(
        log(&facts, HTTP),
        "10.0.1.2:33317 [20/Nov/2026:13:01:02.123] www www/<NOSRV> -1/-1/-1/-1/1000 400 187 - - PR-- 5/3/0/0/0 0/0 \
         \"<BADREQ>\""
    );
    assert_eq!(
        log(&facts, "%HM %HU %HP %HPO %HQ %HV"),
        ["<BADREQ>"; 6].join(" ")
    );
}

/// HAProxy's output for a connection without TLS.
#[test]
fn the_https_format_without_tls() {
    let line = log(&served(), HTTPS);
    assert!(
        line.ends_with("\"GET /index.html?a=1 HTTP/1.1\" 0/-/-/-/0 -/-/-"),
        "{line}"
    );
}

/// HAProxy's output for a TCP session: there is no request to count from, so `%Tw` is one larger.
#[test]
fn timers_of_a_tcp_session() {
    let mut facts = Facts::new();
    facts.txn.is_http = false;
    facts.txn.timing.queued_ms = Some(at_ms(0).ms());
    facts.txn.timing.connected_ms = Some(at_ms(0).ms());
    facts.txn.timing.data_end_ms = Some(at_ms(0).ms());
    let timers = log(&facts, "%Th|%Ti|%TR|%Tq|%Tw|%Tc|%Tr|%Ta|%Tt|%Tu|%ts|%tsc");
    assert_eq!(timers, "0|-1|-1|-1|1|0|-1|0|0|0|--|----");
}

#[test]
fn early_lines_and_redispatches_have_a_plus() {
    let mut facts = served();
    facts.txn.log_early = true;
    facts.txn.redispatched = true;
    facts.txn.retries = 3;
    assert_eq!(
        log(&facts, "%B %Ta %Tt %Tu %rc %ST"),
        "+2750 +119 +129 +119 +3 200"
    );
}

#[test]
fn every_alias() {
    let mut facts = served();
    facts.world.local_time = Zone::posix("CET-1CEST,M3.5.0,M10.5.0/3").expect("a zone");
    facts.session.tls = Some(std::sync::Arc::default());
    facts.txn.id = 47;
    facts
        .txn
        .unique_id
        .get_or_make(|out| out.extend_from_slice(b"abc"));
    for (format, wanted) in [
        (
            "%T|%Tl|%Ts|%ms",
            "20/Nov/2026:13:01:02 +0000|20/Nov/2026:14:01:02 +0100|1795179662|123",
        ),
        (
            "%t|%tr|%trg|%trl",
            "20/Nov/2026:14:01:02.123|20/Nov/2026:14:01:02.133|20/Nov/2026:13:01:02 +0000|20/Nov/2026:14:01:02 +0100",
        ),
        (
            "%Th %Ti %TR %Tq %Tw %Tc %Tr %Td %Ta %Tt %Tu",
            "0 10 10 20 0 30 69 10 119 129 119",
        ),
        (
            "%bi:%bp %si:%sp %fi:%fp",
            "10.0.9.1:40000 10.0.9.2:80 10.0.3.31:8080",
        ),
        (
            "%{+X}ci:%{+X}cp %{+X}Ts %{+X}pid %{+X}rt %{+X}ms",
            "0A000102:8225 6B00448E 1267 002F 7B",
        ),
        (
            "%ft %f %H %pid %rt %lc %ID %OG",
            "www~ www host.test 4711 47 0 abc unspec",
        ),
        (
            "%HM %HU %HP %HPO %HQ %HV",
            "GET /index.html?a=1 /index.html /index.html ?a=1 HTTP/1.1",
        ),
        ("%hr %hs %hrl %hsl", "{1wt.eu} {} 1wt.eu -"),
        (
            "%{+Q}hr %{+Q}s %{+Q}B %{+Q}ft",
            "\"{1wt.eu}\" \"srv1\" 2750 \"www~\"",
        ),
        (
            "%U %B %sq %bq %ts %tsc %sslc %sslv",
            "90 2750 0 0 -- ---- - -",
        ),
    ] {
        assert_eq!(log(&facts, format), wanted, "{format}");
    }
}

#[test]
fn unsafe_bytes_are_written_in_hexadecimal() {
    let mut facts = served();
    facts.txn.request_line = b"GET /\"#\x01\xff{} HTTP/1.1".to_vec();
    facts.txn.captured_request = [Some(&b"a|{\"\xe9"[..]), None, Some(b"b")]
        .into_iter()
        .collect();
    assert_eq!(log(&facts, "%r"), "GET /#22#23#01#FF{} HTTP/1.1");
    assert_eq!(log(&facts, "%hr"), "{a#7C#7B#22#E9||b}");
    assert_eq!(log(&facts, "%{+E}[str('a\"b]\\')]"), r#"a\"b\]\\"#);
    assert_eq!(log(&facts, "%{+Q,+E}[str(])]"), r#""\]""#);
}

#[test]
fn blanks_and_empty_values() {
    let facts = Facts::new();
    for (format, log_text, http_text) in [
        ("a  b", "a b", "a  b"),
        (" a ", "a ", " a "),
        ("%hr x", "x", " x"),
        ("a %hr %hs b", "a b", "a   b"),
        ("[%[str()]]", "[-]", "[]"),
        ("[%[var(txn.none)]]", "[-]", "[]"),
        ("%{-M}[str()]", "", ""),
        ("%{+Q}[str()]", "\"\"", ""),
        ("100%%", "100%", "100%"),
        ("%[int(-5)]%[bool(1)]%[src]", "-5110.0.1.2", "-5110.0.1.2"),
        ("%[str(a\\nb\tc)]", "a\nb\tc", "a%0Ab\tc"),
        ("%[bin(610062)]", "a", "a"),
        ("%{+Q}o %[str(x)] %{-Q}[str(y)]", "\"x\" y", " x y"),
        ("%(name:str)[str(x)]", "x", "x"),
    ] {
        assert_eq!(log(&facts, format), log_text, "{format}");
        assert_eq!(render(&facts, format, Style::Http), http_text, "{format}");
    }
}

/// The output of HAProxy 3.5 for the same formats and values.
#[test]
fn encodings() {
    let mut facts = served();
    facts.txn.request_line = b"GET /a\"\\ HTTP/1.1".to_vec();
    facts.txn.log_early = true;
    for (item, json, cbor) in [
        ("HM", r#""GET""#, "7F63474554FF"),
        // Unsafe bytes become separate chunks.
        ("HP", r#""/a#22\\""#, "7F622F6163233232615CFF"),
        (
            "r",
            r#""GET /a#22\\ HTTP/1.1""#,
            "7F66474554202F61632332326A5C20485454502F312E31FF",
        ),
        ("ci", r#""10.0.1.2""#, "6831302E302E312E32"),
        ("{+X}ci", r#""0A000102""#, "683041303030313032"),
        ("{+X}cp", r#""8225""#, "6438323235"),
        ("cp", "33317", "198225"),
        ("ST", "200", "18C8"),
        ("ms", "123", "187B"),
        // A value that may still grow has no sign before it.
        ("B", "2750", "190ABE"),
        ("Tr", "69", "1845"),
        ("ft", r#""www""#, "7F63777777FF"),
        ("s", r#""srv1""#, "6473727631"),
        ("CC", r#""""#, "F6"),
        ("ts", r#""--""#, "622D2D"),
        ("hr", r#""{1wt.eu}""#, "7F617B663177742E6575617DFF"),
        ("hrl", r#"["1wt.eu"]"#, "9F7F663177742E6575FFFF"),
        ("hsl", r#"["-"]"#, "9F7F612DFFFF"),
        (
            "trg",
            r#""20/Nov/2026:13:01:02 +0000""#,
            "781A32302F4E6F762F323032363A31333A30313A3032202B30303030",
        ),
        (r#"[str('a"b\c]d')]"#, r#""a\"b\\c]d""#, "676122625C635D64"),
        ("{+E}[str(])]", r#""]""#, "615D"),
        ("[str()]", r#""""#, "F6"),
        ("[var(txn.none)]", r#""""#, "F6"),
        ("[int(-5)]", "-5", "24"),
        ("[int(70000)]", "70000", "1A00011170"),
        ("[int(5000000000)]", "5000000000", "1B000000012A05F200"),
        ("[bool(1)]", "true", "F5"),
        ("[bin(610062)]", r#""a""#, "5F43610062FF"),
        ("[src]", r#""10.0.1.2""#, "6831302E302E312E32"),
        ("(:bool)ST", "true", "F5"),
        ("(:str)ST", r#""200""#, "18C8"),
        ("(:str)[int(7)]", r#""7""#, "6137"),
        ("(:sint)[str(12)]", "12", "0C"),
        ("(:bool)[str(0)]", "false", "F4"),
        ("(:sint)[str(x)]", "0", "00"),
        ("(:raw)[str('a\"')]", "a\"", "a\""),
    ] {
        // The encoding of one item: its flags follow its name.
        let with = |flag: &str| {
            let (name, rest) = match item.strip_prefix('(').and_then(|text| text.split_once(')')) {
                Some((name, rest)) => (format!("({name})"), rest),
                None => (String::new(), item),
            };
            match rest.strip_prefix('{') {
                Some(rest) => format!("%{name}{{{flag},{rest}"),
                None => format!("%{name}{{{flag}}}{rest}"),
            }
        };
        assert_eq!(log(&facts, &with("+json")), json, "{item}");
        assert_eq!(log(&facts, &with("+cbor")), cbor, "{item}");
    }
}

/// Like [`encodings`], for whole formats.
#[test]
fn encoded_formats() {
    let facts = served();
    for (format, wanted) in [
        (
            "%{+json}o text %(method)HM more %HU %(one)[int(1)] tail",
            r#"{"method": "GET", "one": 1}"#,
        ),
        (
            "%(a)HM x %{+json}o %(b){-json}ST %(c)[bool(1)]",
            r#"{"a": "GET", "b": 200, "c": true}"#,
        ),
        ("%{+json}o", "{}"),
        ("%{+json}o %HM", "{}"),
        // The first encoding wins, also for items that request another one.
        ("%{+json,+cbor}o %(a){+cbor}[str(x)]", r#"{"a": "x"}"#),
        (
            "%{+cbor}o %(a)HM %(bb)[int(300)]",
            "BF61617F63474554FF62626219012CFF",
        ),
        // Only flags that every `%o` sets apply to the whole format.
        ("%{+json}o%{-json}o<%(a)HM>", "<GET>"),
        ("%{+Q,+json}o %(a)s", r#"{"a": "srv1"}"#),
        ("<%(a)HM>", "<GET>"),
        ("<%(:str){+json}HM>", r#"<"GET">"#),
        ("%{Q}s %{+Q+E}s %{x+Q}s", "srv1 srv1 \"srv1\""),
    ] {
        assert_eq!(log(&facts, format), wanted, "{format}");
    }
    // For HTTP, encodings are ignored.
    assert_eq!(render(&facts, "%{+json}o %(a)HM", Style::Http), " GET");
    let binary = |format: &str| {
        let mut out = Vec::new();
        let format = compiler().log_format_styled(format, Place::ALL, Style::Log);
        format.expect("a format").render(&facts.scope(), &mut out);
        out
    };
    assert_eq!(
        binary("%{+cbor,+bin}o %(a)[bin(00ff)]"),
        b"\xbfaa_B\x00\xff\xff\xff"
    );
    assert_eq!(binary("%{+bin}o%[bin(00ff22)]"), b"\x00\xff\"");
    assert_eq!(binary("%{+bin}[bin(410042)]"), b"A");
}

/// As in HAProxy, the line of a format without final values is written when the response begins.
#[test]
fn what_waits_for_the_end() {
    for (format, waits) in [
        (HTTP, true),
        (TCP, true),
        ("%ci:%cp %r %ST %[src] %[var(txn.x)] %hr %t", false),
        ("%ST %B", true),
        ("%[res.bytes_in]", true),
        ("%ts", true),
        ("%ID", true),
        ("", false),
    ] {
        let format = compiler().log_format(format, Place::LOG).expect(format);
        assert_eq!(format.needs_end(), waits, "{format:?}");
    }
}

#[test]
fn constant_formats_are_known_as_such() {
    let mut compiler = compiler();
    let mut constant = |text: &str| {
        let format = compiler
            .log_format(text, Place::FE_HTTP_REQUEST)
            .expect("a format");
        format
            .constant()
            .map(|text| String::from_utf8_lossy(text).into_owned())
    };
    assert_eq!(
        constant("max-age=%[int(3600)],  %%").as_deref(),
        Some("max-age=3600,  %")
    );
    assert_eq!(constant("").as_deref(), Some(""));
    assert_eq!(constant("%[src]"), None);
    assert_eq!(constant("%ci"), None);
}

#[test]
fn addresses_of_unix_sockets() {
    let mut facts = Facts::new();
    facts.session.src = Addr::Unix(b"".as_slice().into());
    assert_eq!(log(&facts, "%ci:%cp"), "unix:1");
}

#[test]
fn faults_are_told_where_they_are() {
    for (format, range, message) in [
        (
            "a %zz",
            2..5,
            "no such format alias 'zz'. If you wanted to emit the '%' character verbatim, you need to use '%%'",
        ),
        ("%", 0..1, "truncated line after '%'"),
        ("%{+Q", 1..4, "truncated line after '+Q'"),
        (
            "%{+Q} x",
            0..5,
            "parse argument modifier without alias name near '%{+Q}'",
        ),
        ("%(a", 1..3, "truncated line after '%'"),
        (
            "%(a.b)HM",
            1..6,
            "invalid character in custom name near '.' at position 3 line : '%(a.b)HM'",
        ),
        (
            "%(a:ip)HM",
            1..7,
            "unexpected output type 'ip' at position 4 line : '%(a:ip)HM'. Supported types are: str, sint, bool, raw",
        ),
        ("%[src", 0..5, "missing ']' after 'src'"),
        (
            "%[str(x)y]",
            0..8,
            "expected ']' after 'str(x)', but found 'y'",
        ),
        (
            "x%[nope_x]",
            3..9,
            "failed to parse sample expression <nope_x> : unknown fetch method 'nope_x'",
        ),
        (
            "%[status]",
            2..8,
            "sample fetch <status> may not be reliably used here because it needs 'HTTP response' which is not available here",
        ),
    ] {
        let error = compiler()
            .log_format(format, Place::FE_HTTP_REQUEST)
            .expect_err(format);
        assert_eq!(
            (error.message.as_str(), error.start..error.end),
            (message, range),
            "{format}"
        );
    }
}
