use crate::testing::{Facts, compiler};
use crate::{Compiler, ContextFacts, Kind, Place, Resumed, SlotCounts, Value, VarScope};

#[test]
fn faults_are_told_where_they_are() {
    for (words, place, word, range, message) in [
        (&[""][..], Place::ALL, 0, 0..0, "missing fetch method"),
        (&["(x)"], Place::ALL, 0, 0..3, "missing fetch method"),
        (
            &["nothing_like"],
            Place::ALL,
            0,
            0..12,
            "unknown fetch method 'nothing_like'",
        ),
        (
            &["req.hdrr(x)"],
            Place::ALL,
            0,
            0..8,
            "unknown fetch method 'req.hdrr', did you mean 'req.hdr'?",
        ),
        (
            &["res.cache_hit"],
            Place::ALL,
            0,
            0..13,
            "fetch method 'res.cache_hit' is known but not implemented yet",
        ),
        (
            &["src,nope"],
            Place::ALL,
            0,
            4..8,
            "unknown converter 'nope'",
        ),
        (
            &["str(a),lower,upperr"],
            Place::ALL,
            0,
            13..19,
            "unknown converter 'upperr', did you mean 'upper'?",
        ),
        (
            &["src,bool"],
            Place::ALL,
            0,
            4..8,
            "converter 'bool' cannot be applied",
        ),
        (
            &["str(a)x"],
            Place::ALL,
            0,
            6..7,
            "missing comma after fetch keyword",
        ),
        (
            &["str(a),lowerx(1)"],
            Place::ALL,
            0,
            7..13,
            "unknown converter 'lowerx', did you mean 'lower'?",
        ),
        (
            &["str(a),lower(1)"],
            Place::ALL,
            0,
            12..15,
            "invalid arg 1 in converter 'lower' : expected ')' before '1)'",
        ),
        (
            &["int(x)"],
            Place::ALL,
            0,
            4..5,
            "fetch method 'int' : failed to parse 'x' as type 'integer' at position 1",
        ),
        (
            &["int"],
            Place::ALL,
            0,
            3..3,
            "fetch method 'int' : expected type 'integer' at position 1, but got nothing",
        ),
        (
            &["str(a"],
            Place::ALL,
            0,
            3..5,
            "fetch method 'str' : expected ')'",
        ),
        (
            &["nbsrv(none)"],
            Place::ALL,
            0,
            6..10,
            "fetch method 'nbsrv' : unable to find backend 'none'",
        ),
        (
            &["var(txn.a-b)"],
            Place::ALL,
            0,
            4..11,
            "invalid args in fetch method 'var' : invalid syntax at char '-'",
        ),
        (
            &["status"],
            Place::FE_HTTP_REQUEST,
            0,
            0..6,
            "sample fetch <status> may not be reliably used here because it needs 'HTTP response' which is not available here",
        ),
        (
            &["src", "lower", "ipmask()"],
            Place::ALL,
            2,
            6..8,
            "invalid arg 1 in converter 'ipmask' : expected type 'IPv4 mask' at position 1, but got nothing",
        ),
    ] {
        let error = compiler().expr(words, place).expect_err(words[0]);
        assert_eq!(
            (error.message.as_str(), error.word, error.start..error.end),
            (message, word, range),
            "{words:?}"
        );
    }
}

#[test]
fn converters_may_stand_in_the_next_words() {
    for (words, used, text) in [
        (&["str(AbC),lower", "if"][..], 1, "abc"),
        (&["str(AbC)", "lower", "if", "TRUE"], 2, "abc"),
        (&["str(AbC)", "lower,length", "table"], 2, "3"),
        (&["str(AbC),"], 1, "AbC"),
        (&["str('a,b)')"], 1, "a,b)"),
    ] {
        let (expr, taken) = compiler().expr(words, Place::ALL).expect("an expression");
        let mut out = Vec::new();
        expr.append_text(&Facts::new().scope(), &mut out);
        assert_eq!(
            (taken, String::from_utf8_lossy(&out).as_ref()),
            (used, text),
            "{words:?}"
        );
    }
}

#[test]
fn constants_fold_and_types_are_known() {
    let mut compiler = compiler();
    let mut expr = |text: &str| compiler.expr(&[text], Place::ALL).expect("an expression").0;
    assert_eq!(
        expr("str(ab),upper,length").constant(),
        Some(Some(&Value::Int(2)))
    );
    assert_eq!(expr("str(ab),b64dec").constant(), Some(None));
    assert_eq!(expr("src").constant(), None);
    assert_eq!(expr("int(1),ltime(x)").constant(), None);
    assert_eq!(expr("int(1),add(txn.x)").constant(), None);
    assert_eq!(expr("src,ipmask(24)").kind(), Kind::Addr);
    assert_eq!(expr("var(txn.x)").kind(), Kind::Any);
}

#[test]
fn variables_have_a_slot_for_each_name() {
    let mut compiler = compiler();
    let first = compiler.var("txn.name").expect("a variable");
    let other = compiler.var("txn.other").expect("a variable");
    let session = compiler.var("sess.name").expect("a variable");
    assert_eq!(compiler.var("txn.name"), Ok(first));
    assert_eq!((first.scope, first.slot, other.slot), (VarScope::Txn, 0, 1));
    assert_eq!((session.scope, session.slot), (VarScope::Sess, 0));
    assert_eq!(
        compiler.slots(),
        SlotCounts {
            sess: 1,
            txn: 2,
            ..SlotCounts::default()
        }
    );
    for name in ["", "txn", "txn.", "foo.x", "txn.a b"] {
        assert!(compiler.var(name).is_err(), "{name}");
    }

    let mut facts = Facts::new();
    let mut text = |facts: &Facts, expr: &str| {
        let (expr, _) = compiler.expr(&[expr], Place::ALL).expect("an expression");
        let mut out = Vec::new();
        expr.append_text(&facts.scope(), &mut out);
        String::from_utf8(out).expect("text")
    };
    assert_eq!(text(&facts, "var(txn.name,none)"), "none");
    facts.txn.txn_vars.set(first.slot, Value::text("abc"));
    facts.session.vars.set(session.slot, Value::Int(40));
    assert_eq!(text(&facts, "var(txn.name,none),upper"), "ABC");
    assert_eq!(text(&facts, "int(2),add(sess.name)"), "42");
    assert_eq!(text(&facts, "str(x),concat(<,txn.name,>)"), "x<abc>");
    assert_eq!(text(&facts, "str(abd),strcmp(txn.name)"), "1");
    facts.txn.txn_vars.unset(first.slot);
    assert_eq!(text(&facts, "var(txn.name)"), "");
}

#[test]
fn proxies_servers_and_the_process() {
    let mut facts = Facts::new();
    facts.txn.backend = Some(1);
    facts.txn.server = Some(0);
    for (expr, wanted) in [
        ("fe_name", "www"),
        ("fe_id", "2"),
        ("be_name", "static"),
        ("be_id", "3"),
        ("srv_name", "srv1"),
        ("srv_id", "1"),
        ("so_name", "public"),
        ("so_id", "1"),
        ("fe_conn", "3"),
        ("be_conn(static)", "2"),
        ("nbsrv(static)", "2"),
        ("queue(static)", "4"),
        ("connslots(static)", "28"),
        ("srv_conn(static/srv2)", "1"),
        ("srv_conn_free(static/srv2)", "9"),
        ("srv_weight(static/srv2)", "7"),
        ("srv_iweight(static/srv2)", "8"),
        ("act_conn", "5"),
        ("pid", "4711"),
        ("hostname", "host.test"),
        ("stopping", "0"),
        ("uptime", "99"),
        ("date", "1795179663"),
        ("date(10,ms)", "1795179673123"),
        ("date_us", "123000"),
        ("rand(100)", "53"),
        ("uuid", "01234567-89ab-4def-8123-456789abcdef"),
        ("bool(on)", "1"),
        ("meth(POST)", "POST"),
        ("ipv6(::1)", "::1"),
    ] {
        assert_eq!(facts.text(expr).as_deref(), Some(wanted), "{expr}");
    }
}

#[test]
fn tlvs_of_the_proxy_protocol() {
    let mut facts = Facts::new();
    facts.session.received_proxy = true;
    for (tlvs, authority, nine) in [
        (&b"\x02\x00\x03abc\x09\x00\x01z"[..], Some("abc"), Some("z")),
        (b"\x02\x00\x09abc", None, None),
        (b"\x02", None, None),
        (b"", None, None),
    ] {
        facts.session.tlvs = Some(tlvs.into());
        assert_eq!(facts.text("fc_pp_authority").as_deref(), authority);
        assert_eq!(facts.text("fc_pp_tlv(AUTHORITY)").as_deref(), authority);
        assert_eq!(facts.text("fc_pp_tlv(0x09)").as_deref(), nine);
    }
    assert_eq!(facts.text("fc_rcvd_proxy").as_deref(), Some("1"));
}

#[test]
fn argument_lists_end_where_haproxy_ends_them() {
    for word in [
        "act_conn",
        "act_conn()",
        "src(),ipmask(8)",
        "hdr(a,)",
        "rand()",
        "date()",
    ] {
        assert!(compiler().expr(&[word], Place::ALL).is_ok(), "{word}");
    }
    for (word, message) in [
        ("act_conn(1)", "expected ')' before '1)'"),
        ("date(,)", "expected ')' before ',)'"),
        (
            "payload",
            "expected type 'integer' at position 1, but got nothing",
        ),
        (
            "payload(x)",
            "failed to parse 'x' as type 'integer' at position 1",
        ),
        (
            "payload(1)",
            "missing arguments (got 1/2), type 'integer' expected",
        ),
        ("payload(1,2,3)", "expected ')' before ',3)'"),
        ("nbsrv(nowhere,2)", "expected ')' before ',2)'"),
    ] {
        let error = compiler().expr(&[word], Place::ALL).expect_err(word);
        assert!(error.message.ends_with(message), "{word}: {error}");
    }
}

#[test]
fn words_are_bytes_that_need_not_be_utf8() {
    let facts = Facts::new();
    let mut compiler = compiler();
    let mut text = Vec::new();
    let (expr, _) = compiler
        .expr(&[b"str(caf\xe9\xff),lower"], Place::ALL)
        .expect("an expression");
    expr.append_text(&facts.scope(), &mut text);
    assert_eq!(text, b"caf\xe9\xff");
    for words in [
        &b"{ str(x\xe9) x\xe9 }"[..],
        b"{ str(x\xe9) -m reg x[\xe8-\xea]$ }",
        b"{ str(x\xe9),regsub(\xe9,y) xy }",
        b"{ str(\xc3\xa9) -m sub -u 1 \xc3 }",
    ] {
        let split: Vec<&[u8]> = words.split(|byte| *byte == b' ').collect();
        let condition = compiler.condition(&crate::Acls::default(), &split, false, Place::ALL);
        let condition = condition.expect("a condition");
        assert!(
            condition.matches(&facts.scope()),
            "{}",
            words.escape_ascii()
        );
    }
    let format = compiler.log_format(b"a\xe9 %[str(\xea)]%%", Place::FE_HTTP_REQUEST);
    let mut out = Vec::new();
    let format = format.expect("a format");
    format.render(&facts.scope(), &mut out);
    assert_eq!(out, b"a\xe9 \xea%");
}

#[test]
fn faults_in_words_that_are_no_text_show_escapes() {
    let message = |words: &[&[u8]]| compiler().expr(words, Place::ALL).unwrap_err().message;
    assert_eq!(
        message(&[b"str(a)\xe9"]),
        "missing comma after fetch keyword"
    );
    assert_eq!(
        message(&[b"src,ipmask(\xe9)"]),
        "invalid arg 1 in converter 'ipmask' : failed to parse '\\xe9' as type 'IPv4 mask' at position 1"
    );
    let format = compiler().log_format(b"%[src\xe9]", Place::LOG);
    assert!(format.unwrap_err().message.contains("'\\xe9'"));
}

#[test]
fn variables_and_contexts_keep_their_slots() {
    let mut first = compiler();
    for name in ["sess.a", "txn.a", "sess.b", "proc.c"] {
        first.var(name).expect("a variable");
    }
    for name in ["one", "two"] {
        let expr = format!("otel.context({name})");
        first.expr(&[expr], Place::ALL).expect("an expression");
    }
    let (patterns, _) = first.take_references();
    let mut second = compiler();
    second.resume(Resumed {
        slots: first.slots(),
        var_names: &first.var_names(),
        contexts: &first.contexts(),
        patterns: &patterns,
    });
    for name in ["txn.new", "sess.b", "sess.new", "sess.a"] {
        second.var(name).expect("a variable");
    }
    let slot = |compiler: &mut Compiler, name| compiler.var(name).expect("known").slot;
    assert_eq!(slot(&mut second, "sess.a"), slot(&mut first, "sess.a"));
    assert_eq!(slot(&mut second, "sess.b"), slot(&mut first, "sess.b"));
    assert_eq!(slot(&mut second, "sess.new"), 2);
    assert_eq!(slot(&mut second, "txn.new"), 1);
    let counts = SlotCounts {
        proc: 1,
        sess: 3,
        txn: 2,
        ..SlotCounts::default()
    };
    assert_eq!(second.slots(), counts);
    second
        .expr(&["otel.context(two)"], Place::ALL)
        .expect("an expression");
    assert_eq!(second.contexts(), ["one", "two"]);
    assert!(second.asked_contexts().eq(["two"]));
    // When no slot is left, that of a context that only the first configuration reads is used.
    for number in 0..ContextFacts::MAX - 1 {
        let expr = format!("otel.context(new{number})");
        second.expr(&[expr], Place::ALL).expect("an expression");
    }
    assert_eq!(second.contexts().len(), ContextFacts::MAX);
    assert!(!second.contexts().contains(&"one".to_owned()));
    assert!(second.expr(&["otel.context(one)"], Place::ALL).is_err());
}
