use crate::testing::{Facts, compiler};
use crate::{Acls, Place, Verdict};

fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

fn test(facts: &Facts, condition: &str) -> Verdict {
    let compiled = compiler().condition(&Acls::default(), &words(condition), false, Place::ALL);
    compiled
        .unwrap_or_else(|error| panic!("{condition}: {error}"))
        .test(&facts.scope())
}

fn get() -> Facts {
    let mut facts = Facts::with_request(
        "GET /img/Logo.PNG?v=2 HTTP/1.1\nHost: www.Example.com\nX-A: one, two\nX-N: 5, 50\nContent-Length: 3\n\n",
    );
    facts.session.src = crate::testing::addr("192.168.7.9:1234");
    facts
}

#[test]
fn matching_methods() {
    let facts = get();
    for (condition, wanted) in [
        ("{ path /img/Logo.PNG }", true),
        ("{ path /img/logo.png }", false),
        ("{ path -i /img/logo.png }", true),
        ("{ path_beg /css /img }", true),
        ("{ path_end .png }", false),
        ("{ path_end -i .png .gif }", true),
        ("{ path_sub ogo }", true),
        ("{ path_sub a1 b2 c3 d4 e5 f6 g7 h8 i9 Logo }", true),
        ("{ path_sub -i a1 b2 c3 d4 e5 f6 g7 h8 i9 LOGO }", true),
        ("{ path_sub a1 b2 c3 d4 e5 f6 g7 h8 i9 j0 }", false),
        ("{ path_reg a1 b2 c3 d4 ^/img$ }", false),
        ("{ path_reg -i a1 b2 c3 d4 ^/IMG/ }", true),
        ("{ path_dir img }", true),
        ("{ path_dir im }", false),
        ("{ path_dir /img/ }", true),
        ("{ str(xa/a/a) -m dir a/a }", true),
        // The word of the converter is a pattern, too.
        ("{ str(AB), lower ab }", true),
        ("{ str(AB), lower AB }", false),
        ("{ str(LOWER), lower x }", true),
        ("{ bin(0a0b), hex, lower 0a0b }", true),
        ("{ bin(0a0b), hex -m found 0A0B }", true),
        ("{ str(a/b/) -m dir b }", true),
        ("{ hdr_dom(host) -i example.com }", true),
        ("{ hdr_dom(host) -i ample.com }", false),
        ("{ hdr(host) -i www.example.com }", true),
        ("{ path_reg ^/img/.*\\.PNG$ }", true),
        ("{ path -m reg -i ^/IMG/ }", true),
        ("{ path_len 13 }", true),
        ("{ path_len 1:12 }", false),
        ("{ path_len lt 14 }", true),
        ("{ hdr(x-a) two }", true),
        ("{ hdr(x-a) one }", true),
        ("{ hdr(x-a) three }", false),
        ("{ req.hdr(x-a,1) two }", false),
        ("{ hdr_val(x-n) 50 }", true),
        ("{ hdr_val(x-n) gt 50 }", false),
        ("{ hdr_val(x-n) ge 5 lt 6 }", true),
        ("{ hdr_cnt(x-a) eq 2 }", true),
        ("{ hdr_cnt(x-b) 0 }", true),
        ("{ hdr(x-b) -m found }", false),
        ("{ hdr(x-a) -m found }", true),
        ("{ src 192.168.0.0/16 }", true),
        ("{ src 192.168 }", false),
        ("{ src 10.0.0.0/8 192.168.7.9 }", true),
        ("{ src 192.0.0.9/255.0.0.255 }", true),
        ("{ src ::ffff:192.168.0.0/112 }", true),
        ("{ src 2001:db8::/32 }", false),
        ("{ src_port 1024: }", true),
        ("{ dst_port 80 8080 }", true),
        ("{ method GET }", true),
        ("{ method POST }", false),
        ("{ method POST GET }", true),
        ("{ method -m beg G }", true),
        ("{ always_true }", true),
        ("{ always_false }", false),
        ("{ int(5) 1:4 6: }", false),
        ("{ int(5) -m bool }", true),
        ("{ str(a) -m bin 61 }", true),
        ("{ path,lower -m end .png }", true),
        ("{ path,length gt 3 }", true),
        ("{ http_first_req }", true),
        ("{ nbsrv(static) ge 2 }", true),
        ("{ srv_is_up(static/srv2) }", true),
    ] {
        assert_eq!(
            test(&facts, condition),
            if wanted {
                Verdict::True
            } else {
                Verdict::False
            },
            "{condition}"
        );
    }
}

#[test]
fn terms_and_suites() {
    let facts = get();
    for (condition, wanted) in [
        ("TRUE", true),
        ("!TRUE", false),
        ("! TRUE", false),
        ("!!TRUE", true),
        ("TRUE FALSE", false),
        ("FALSE or TRUE", true),
        ("FALSE || FALSE || TRUE TRUE", true),
        ("TRUE !FALSE", true),
        ("METH_GET HTTP_1.1", true),
        ("METH_POST", false),
        ("HTTP_CONTENT HTTP_URL_SLASH !HTTP_URL_ABS", true),
        ("LOCALHOST", false),
        ("{ path_beg /img } !{ method POST }", true),
    ] {
        assert_eq!(
            test(&facts, condition),
            if wanted {
                Verdict::True
            } else {
                Verdict::False
            },
            "{condition}"
        );
    }
}

#[test]
fn unless_turns_the_answer_around_but_not_the_waiting() {
    let mut facts = Facts::new();
    facts.txn.is_http = false;
    facts.last_chance = false;
    let mut compiler = compiler();
    let mut condition = |text: &str, unless: bool| {
        compiler
            .condition(&Acls::default(), &words(text), unless, Place::ALL)
            .expect("a condition")
    };
    let (large, not_large) = (
        condition("{ req.len gt 2 }", false),
        condition("{ req.len gt 2 }", true),
    );
    assert_eq!(large.test(&facts.scope()), Verdict::Wait);
    assert_eq!(not_large.test(&facts.scope()), Verdict::Wait);
    assert!(!large.matches(&facts.scope()));
    assert!(not_large.matches(&facts.scope()));
    facts.request_data = b"abc".to_vec();
    assert_eq!(large.test(&facts.scope()), Verdict::True);
    assert_eq!(not_large.test(&facts.scope()), Verdict::False);
    facts.request_data.clear();
    facts.last_chance = true;
    assert_eq!(large.test(&facts.scope()), Verdict::False);
}

#[test]
fn waiting_for_data() {
    let mut facts = Facts::new();
    facts.txn.is_http = false;
    facts.last_chance = false;
    assert_eq!(test(&facts, "WAIT_END"), Verdict::Wait);
    assert_eq!(test(&facts, "WAIT_END FALSE"), Verdict::False);
    assert_eq!(test(&facts, "WAIT_END or TRUE"), Verdict::True);
    assert_eq!(
        test(&facts, "{ req.payload(0,2) -m bin 4142 }"),
        Verdict::Wait
    );
    assert_eq!(test(&facts, "{ req.hdr(host) -m found }"), Verdict::Wait);
    facts.request_data = b"ABC".to_vec();
    assert_eq!(
        test(&facts, "{ req.payload(0,2) -m bin 4142 }"),
        Verdict::True
    );
    assert_eq!(
        test(&facts, "{ req.payload(0,2) -m bin 4143 }"),
        Verdict::False
    );
    facts.last_chance = true;
    assert_eq!(test(&facts, "WAIT_END"), Verdict::True);
    assert_eq!(test(&facts, "{ req.hdr(host) -m found }"), Verdict::False);
}

#[test]
fn named_acls_unite_their_lines() {
    let mut compiler = compiler();
    let mut acls = Acls::default();
    for line in ["path_beg /css", "path_beg /img"] {
        compiler
            .acl(&mut acls, "static", &words(line), Place::ALL)
            .expect("an acl");
    }
    assert!(acls.contains("static"));
    let facts = get();
    let condition = compiler
        .condition(&acls, &["static"], false, Place::ALL)
        .expect("a condition");
    assert!(condition.matches(&facts.scope()));
    let (expr, _) = compiler
        .expr(&["acl(static,!METH_POST),iif(yes,no)"], Place::ALL)
        .expect("an expression");
    assert_eq!(expr.eval(&facts.scope()), Some(crate::Value::text("yes")));
}

#[test]
fn pattern_files() {
    let path = std::env::temp_dir().join(format!("spangate-patterns-{}", std::process::id()));
    std::fs::write(&path, "# comment\n\n  /img/Logo.PNG\r\n/other\n").expect("a file");
    let file = path.to_str().expect("a path");
    assert_eq!(
        test(&get(), &format!("{{ path -f {file} }}")),
        Verdict::True
    );
    assert_eq!(
        test(&get(), &format!("{{ path -i -f {file} /x }}")),
        Verdict::True
    );
    std::fs::remove_file(&path).expect("removed");
    let missing = compiler().condition(
        &Acls::default(),
        &["{", "path", "-f", file, "}"],
        false,
        Place::ALL,
    );
    let error = missing.expect_err("no file");
    assert_eq!(
        error.message,
        format!("failed to open pattern file <{file}>")
    );
    assert_eq!(error.word, 3);
}

#[test]
fn faults_are_told_where_they_are() {
    for (condition, word, message) in [
        ("nowhere", 0, "no such ACL : 'nowhere'"),
        ("TRUE { path /", 1, "missing closing '}' in condition"),
        (
            "{ patth / }",
            1,
            "unknown fetch method 'patth', did you mean 'path'? in ACL expression 'patth'",
        ),
        (
            "{ hdr_begin(host) a }",
            1,
            "unknown fetch method 'hdr_begin', did you mean 'hdr_beg'? in ACL expression \
             'hdr_begin(host)'",
        ),
        ("{ }", 1, "missing fetch method in ACL expression ''"),
        (
            "{ src 1.2.3.256 }",
            2,
            "'1.2.3.256' is not a valid IPv4 or IPv6 address",
        ),
        ("{ src_port 5 x }", 3, "'x' is not a number"),
        (
            "{ src_port gt x }",
            3,
            "'x' is neither a number nor a supported operator",
        ),
        (
            "{ path -m no / }",
            2,
            "unknown matching method 'no' when parsing ACL expression",
        ),
        (
            "{ src -m int 1 }",
            2,
            "matching method 'int' cannot be used with fetch keyword 'src'",
        ),
        (
            "{ path -z / }",
            2,
            "'-z' is not a valid ACL option. Please use '--' before any pattern beginning with a '-'",
        ),
        ("{ str(x) length }", 2, "'length' is not a number"),
        (
            "{ var(txn.x) 1 }",
            1,
            "matching method must be specified first (using '-m') when using a sample fetch of this type ('var')",
        ),
        (
            "{ http_auth_group x }",
            1,
            "ACL keyword 'http_auth_group' : fetch method 'http_auth_group' : expected type 'userlist' at position 1, but got nothing",
        ),
    ] {
        let error = compiler()
            .condition(&Acls::default(), &words(condition), false, Place::ALL)
            .expect_err(condition);
        assert_eq!(
            (error.word, error.message.as_str()),
            (word, message),
            "{condition}"
        );
    }
    let error = compiler()
        .condition(
            &Acls::default(),
            &words("{ path_reg [ }"),
            false,
            Place::ALL,
        )
        .expect_err("regex");
    assert!(error.message.starts_with("regex '[' is invalid"), "{error}");
}

#[test]
fn what_can_never_match_is_warned_of() {
    let mut compiler = compiler();
    compiler
        .condition(
            &Acls::default(),
            &words("{ status 200 }"),
            false,
            Place::FE_HTTP_REQUEST,
        )
        .expect("accepted");
    compiler
        .condition(
            &Acls::default(),
            &words("{ path }"),
            false,
            Place::FE_HTTP_REQUEST,
        )
        .expect("accepted");
    let warnings: Vec<String> = compiler
        .take_warnings()
        .into_iter()
        .map(|warning| warning.message)
        .collect();
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(warnings[0].contains("will never match"), "{warnings:?}");
    assert!(
        warnings[1].contains("no pattern to match against"),
        "{warnings:?}"
    );
}

#[test]
fn many_patterns_match_as_few_do() {
    let facts = get();
    let others: Vec<String> = (0..50).map(|number| format!("/{number}")).collect();
    let others = others.join(" ");
    assert_eq!(
        test(&facts, &format!("{{ path {others} }}")),
        Verdict::False
    );
    assert_eq!(
        test(&facts, &format!("{{ path {others} /img/Logo.PNG }}")),
        Verdict::True
    );
    assert_eq!(
        test(&facts, &format!("{{ path -i {others} /IMG/Logo.PNG }}")),
        Verdict::True
    );
    let networks: Vec<String> = (0..50)
        .map(|number| format!("10.{number}.0.0/16"))
        .collect();
    let networks = networks.join(" ");
    assert_eq!(
        test(&facts, &format!("{{ src {networks} }}")),
        Verdict::False
    );
    assert_eq!(
        test(
            &facts,
            &format!("{{ src {networks} 192.168.7.0/24 192.168.0.0/16 }}")
        ),
        Verdict::True
    );
}

#[test]
fn conditions_tell_the_route_of_a_path() {
    let mut compiler = compiler();
    let mut acls = Acls::default();
    for line in ["path_beg /cart /shop", "path /"] {
        compiler
            .acl(&mut acls, "shop", &words(line), Place::ALL)
            .expect("an acl");
    }
    let mut route = |condition: &str, path: &str| {
        let (unless, terms) = match condition.strip_prefix("unless ") {
            Some(terms) => (true, terms),
            None => (false, condition),
        };
        let compiled = compiler
            .condition(&acls, &words(terms), unless, Place::ALL)
            .expect("a condition");
        let mut out = Vec::new();
        let found = compiled.append_route(path.as_bytes(), &mut out);
        assert_eq!(found, !out.is_empty());
        String::from_utf8(out).expect("a text")
    };
    for (condition, path, expected) in [
        ("shop", "/shop/7", "/shop*"),
        ("shop", "/", "/"),
        ("shop", "/other", ""),
        ("{ method GET } shop", "/cart", "/cart*"),
        ("!shop { path_end .js }", "/cart/a.js", "*.js"),
        ("{ path_reg ^/v[0-9] }", "/v1", "^/v[0-9]"),
        ("{ path_reg ^/v[0-9] ^/w }", "/v1", ""),
        ("{ path_dir a } or { path_sub b }", "/x", ""),
        ("{ path_dir a }", "/x/a/y", "*a*"),
        // The line compares a text other than the path, or more than the path.
        ("{ path,lower -m str /a }", "/a", ""),
        ("{ path_len 3 }", "/ab", ""),
        ("{ url_beg /a }", "/a", ""),
        ("unless { path /a }", "/b", ""),
        ("{ path -i /A }", "/a", "/A"),
    ] {
        assert_eq!(route(condition, path), expected, "{condition} {path}");
    }
}
