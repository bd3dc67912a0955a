use net::Addr;

use super::{CONNECT, HTTP, HTTP_CLF, HTTPS, TCP, TCP_CLF};
use crate::testing::{Facts, addr, at_ms, compiler};
use crate::{Place, Style};

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

/// The manual's example (§8.2.3), as far as the world of the tests allows.
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
    txn.captured_request = vec![Some(b"1wt.eu".as_slice().into())];
    txn.captured_response = vec![None];
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

/// What HAProxy writes for a clear connection.
#[test]
fn the_https_format_without_tls() {
    let line = log(&served(), HTTPS);
    assert!(
        line.ends_with("\"GET /index.html?a=1 HTTP/1.1\" 0/-/-/-/0 -/-/-"),
        "{line}"
    );
}

/// As HAProxy shows a TCP session: without a request to count from, `%Tw` is one larger.
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
    facts.world.utc_offset_seconds = 3_600;
    facts.session.tls = true;
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
    facts.txn.captured_request = vec![
        Some(b"a|{\"\xe9".as_slice().into()),
        None,
        Some(b"b".as_slice().into()),
    ];
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
        ("%{+Q", 1..4, "truncated line after '{+Q'"),
        (
            "%{+Q} x",
            0..5,
            "parse argument modifier without alias name near '%{+Q}'",
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
            "%{+json}o",
            1..8,
            "log format flag 'json' is known but not implemented yet",
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
