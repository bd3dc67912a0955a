use super::{HIDDEN, hide};

/// Each line, and the line that is shown.
const LINES: &[(&str, &str)] = &[
    ("  stats auth ann:hunter2", "  stats auth ann:***"),
    ("\tauth ann:se:hunter2 # x", "\tauth ann:*** # x"),
    (
        "user ann insecure-password hunter2 groups g",
        "user ann insecure-password *** groups g",
    ),
    ("user ann password $5$hunter2", "user ann password ***"),
    ("auth \"ann:a hunter2\"", "auth \"ann:***"),
    ("  setenv DB_URL hunter2", "  setenv DB_URL ***"),
    ("  presetenv X \"hunter2\" # why", "  presetenv X *** # why"),
    ("  cluster-secret hunter2", "  cluster-secret ***"),
    ("  anonkey 112233hunter2", "  anonkey ***"),
    ("  dynamic-cookie-key hunter2", "  dynamic-cookie-key ***"),
    (
        "  server a 127.0.0.1:80 tcp-md5sig hunter2 check",
        "  server a 127.0.0.1:80 tcp-md5sig *** check",
    ),
    (
        "  bind :443 ssl ca-sign-file f ca-sign-pass hunter2",
        "  bind :443 ssl ca-sign-file f ca-sign-pass ***",
    ),
    (
        "  http-request set-header Authorization \"Basic hunter2\" if { path /x }",
        "  http-request set-header Authorization *** if { path /x }",
    ),
    (
        "  http-request add-header X-Auth-Key hunter2",
        "  http-request add-header X-Auth-Key ***",
    ),
    (
        "  http-request replace-header Authorization (.*) hunter2 if a",
        "  http-request replace-header Authorization *** *** if a",
    ),
    (
        "  http-request deny unless { req.hdr(X-Api-Key) -m str hunter2 } or { path /x }",
        "  http-request deny unless { req.hdr(X-Api-Key) -m str *** } or { path /x }",
    ),
    (
        "  acl ok hdr(authorization) -i \"Bearer hunter2\" hunter2",
        "  acl ok hdr(authorization) -i *** ***",
    ),
    (
        "  acl ok url_param(key) -f /etc/keys",
        "  acl ok url_param(key) -f /etc/keys",
    ),
    (
        "  acl ok http_auth_pass hunter2",
        "  acl ok http_auth_pass ***",
    ),
    (
        "  http-request set-var(txn.api_key) str(hunter2) if a",
        "  http-request set-var(txn.api_key) *** if a",
    ),
    ("  set-var proc.key str(hunter2)", "  set-var proc.key ***"),
    (
        "  set-var-fmt proc.pass hunter2",
        "  set-var-fmt proc.pass ***",
    ),
    (
        "  http-request deny unless { req.hdr(a),jwt_verify(txn.alg,\"hunter2\") 1 }",
        "  http-request deny unless { req.hdr(a),jwt_verify(txn.alg,*** 1 }",
    ),
    (
        "  http-request set-var(txn.h) path,hmac(sha256,aHVudGVyMg)",
        "  http-request set-var(txn.h) path,hmac(sha256,***",
    ),
    (
        "  acl given str(hunter2),secure_memcmp(txn.t)",
        "  acl given str(***",
    ),
    (
        "  http-check send meth GET uri / hdr Authorization hunter2 body x",
        "  http-check send meth GET uri / hdr Authorization *** body x",
    ),
    (
        "  option httpchk GET /x \"HTTP/1.1\\r\\nAuthorization: Basic hunter2\"",
        "  option httpchk GET /x \"HTTP/1.1\\r\\nAuthorization:***",
    ),
    (
        "  tcp-check send AUTH\\ hunter2\\r\\n",
        "  tcp-check send AUTH***",
    ),
    (
        "  tcp-check send \"*2\\r\\n$4\\r\\nAUTH\\r\\n$7\\r\\nhunter2\\r\\n\"",
        "  tcp-check send \"*2\\r\\n$4\\r\\nAUTH***",
    ),
    (
        "  tcp-check send-binary 68756e74657232",
        "  tcp-check send-binary ***",
    ),
    (
        "  http-request set-uri http://ann:hunter2@host/",
        "  http-request set-uri http://ann:***",
    ),
    (
        "  http-request return status 200 string '{\"token\":\"hunter2\"}'",
        "  http-request return status 200 string '{\"token\":***",
    ),
    (
        "  http-request set-path /x?api_key=hunter2",
        "  http-request set-path /x?api_key=***",
    ),
    (
        "  http-request set-header X \"${TOKEN-hunter2}\"",
        "  http-request set-header X \"${TOKEN-***",
    ),
    (
        "  #http-request set-header Authorization hunter2",
        "  #http-request set-header Authorization ***",
    ),
    ("# stats auth ann:\"my hunter2", "# stats auth ann:***"),
    (
        "# the admin's password: hunter2",
        "# the admin's password:***",
    ),
    (
        "  http-request set-header Authorization 'Basic hunter2",
        "  http-request set-header Authorization ***",
    ),
    ("  setenv A\rB hunter2", "  setenv A\r***"),
];

/// Lines that have no secret, although they have a word of one.
const PLAIN: &[&str] = &[
    "stats auth",
    "",
    "   # don't show the password to users",
    "http-request auth realm x if !{ http_auth(users) }",
    "server token 127.0.0.1:80 check",
    "use_backend secret_area if { path_beg /token }",
    "backend tokens",
    "acl has_token req.hdr(authorization) -m found",
    "http-request deny if !token_ok !{ src 127.0.0.1 }",
    "http-request del-header Authorization if a",
    "cookie TOKEN insert indirect",
    "http-request set-var(txn.key) path,lower",
    "log-format \"%ci token=%[var(txn.t)] key=%[req.hdr(x)]\"",
    "http-request set-header X-User %[req.hdr(authorization),word(2)] if { path /x }",
    "bind :443 ssl crt /etc/keys/site.pem tls-ticket-keys /etc/keys/tickets",
    "http-request set-header Host \"${API_HOST}\"",
    "capture request header Authorization len 20",
    "option httpchk GET /auth/login",
];

#[test]
fn secrets_are_hidden() {
    let shown: Vec<(&str, String)> = LINES
        .iter()
        .map(|(line, _)| (*line, hide(line).text))
        .filter(|(line, text)| !LINES.contains(&(line, text)))
        .collect();
    assert!(shown.is_empty(), "{shown:#?}");
    assert!(LINES.iter().all(|(_, shown)| !shown.contains("hunter2")));
}

#[test]
fn other_lines_are_shown_as_they_are() {
    let changed: Vec<String> = PLAIN
        .iter()
        .map(|line| hide(line).text)
        .filter(|text| !PLAIN.contains(&text.as_str()))
        .collect();
    assert!(changed.is_empty(), "{changed:#?}");
}

#[test]
fn what_is_hidden_is_known() {
    let shown = hide("http-check send hdr Authorization \"a b\"");
    assert_eq!(shown.hidden, ["a b"]);
    assert!(shown.text.ends_with(HIDDEN));
}

/// The words of the last line of a text as [`super::hide_words`] shows them.
fn words_shown(text: &str) -> Vec<String> {
    let input = crate::reader::Input {
        name: "t.cfg".to_owned(),
        text: text.as_bytes().to_vec(),
    };
    let mut environment = crate::environment::Environment::new();
    environment.set("TOKEN", "hunter2");
    environment.set("SEVERAL", "one hunter2");
    let build = crate::condition::BuildInfo::default();
    let (tree, _) = crate::load::tree(&[input], &build, &mut environment);
    let statements = tree.sections.last().map(|section| &section.statements);
    let last = statements.and_then(|statements| statements.last());
    last.map_or_else(Vec::new, |statement| super::hide_words(&statement.words))
}

#[test]
fn words_of_statements_have_no_secrets() {
    let cases: &[(&str, &str)] = &[
        ("stats auth admin:hunter2", "stats auth admin:***"),
        ("stats auth 'admin:hunter2'", "stats auth admin:***"),
        ("http-request  deny  # c", "http-request deny"),
        (
            "http-request set-header X-Y \"$TOKEN\"",
            "http-request set-header X-Y \"$TOKEN\"",
        ),
        (
            "http-request set-header X-Y '$TOKEN'",
            "http-request set-header X-Y '$TOKEN'",
        ),
        (
            "http-request set-header X-Y \"${TOKEN-hunter2}\"",
            "http-request set-header X-Y \"${TOKEN-***",
        ),
        (
            "http-request set-header Authorization \"$TOKEN\"",
            "http-request set-header Authorization ***",
        ),
        (
            "http-request set-header Authorization 'Bearer hunter2'",
            "http-request set-header Authorization ***",
        ),
        ("log-format \"a $TOKEN\"", "log-format \"a $TOKEN\""),
        (
            "option x \"${SEVERAL[*]}\" end",
            "option x \"${SEVERAL[*]}\" end",
        ),
        ("description a\\ b \"c d\"", "description 'a b' 'c d'"),
    ];
    for (line, shown) in cases {
        let words = words_shown(&format!("listen l\n    {line}\n"));
        let words: Vec<&str> = words
            .iter()
            .map(String::as_str)
            .filter(|word| !word.is_empty())
            .collect();
        assert_eq!(words.join(" "), *shown, "{line}");
    }
    assert_eq!(
        words_shown("listen l\n option x \"${SEVERAL[*]}\" end\n").len(),
        5
    );
}
