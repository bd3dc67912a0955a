//! The expected words are the output of HAProxy 3.5-dev5 for `.notice` lines with `-c`.
use super::*;

fn environment() -> Environment {
    let mut environment = Environment::new();
    environment.set("X", "a b");
    environment.set("E", "");
    environment.set("SP", "  one\ttwo ");
    environment.set("L", b"caf\xe9");
    environment
}

fn lex(line: &[u8]) -> Result<Line, LexError> {
    let environment = environment();
    split(
        line,
        &Context {
            environment: &environment,
            file: "f.cfg",
            line: 7,
            section: Some(b"www"),
            comments: true,
        },
    )
}

fn words(line: &str) -> Vec<String> {
    lex(line.as_bytes())
        .unwrap()
        .words
        .into_iter()
        .map(|word| word.text.to_string())
        .collect()
}

#[test]
fn words_are_cut_as_haproxy_cuts_them() {
    let cases: &[(&str, &[&str])] = &[
        ("", &[]),
        ("  \t ", &[]),
        ("a  b\tc", &["a", "b", "c"]),
        ("a\x0bb\x0cc", &["a", "b", "c"]),
        ("global#comment", &["global"]),
        ("\ra \r b\r", &["a", "b"]),
        ("a # b", &["a"]),
        (r"a\#b", &["a#b"]),
        (r#""a # b" 'c # d'"#, &["a # b", "c # d"]),
        (r#"a"b c"d"#, &["ab cd"]),
        (r#""it's" 'say "x"'"#, &["it's", "say \"x\""]),
        (r"a\ b", &["a b"]),
        (r#"a\"b\'c"#, &["a\"b'c"]),
        (r"'a\ b\n'", &[r"a\ b\n"]),
        (r#""\n\r\t\\""#, &["\n\r\t\\"]),
        (r"\n\r\t\\", &["\n\r\t\\"]),
        (r"\x41\x2b", &["A+"]),
        (r"\q\1", &[r"\q\1"]),
        ("a\\\tb", &["a\\", "b"]),
        (r"end\", &[r"end\"]),
        (r#""\$X $X \q \# 'q'""#, &["$X a b \\q # 'q'"]),
        (r"\$X$X\ \#", &[r"\$X$X #"]),
        ("\"\" x ''", &["", "x", ""]),
        ("a'' ''b", &["a", "b"]),
    ];
    for (line, expected) in cases {
        assert_eq!(words(line), *expected, "{line:?}");
    }
}

#[test]
fn variables_are_read_inside_double_quotes_only() {
    let cases: &[(&str, &[&str])] = &[
        (r#""$X""#, &["a b"]),
        (r#"$X '$X'"#, &["$X", "$X"]),
        (r#""${X}s""#, &["a bs"]),
        (r#""$X-d""#, &["a b-d"]),
        (r#""${X-d}" "${NO-d}" "${E-d}z""#, &["a b", "d", "z"]),
        (r#""${NO-a}b}""#, &["ab}"]),
        (r#""${NO-"q"}""#, &["\"q\""]),
        (r#""${NO-\x41 '}""#, &["\\x41 '"]),
        (r#""${NO-}x""#, &["x"]),
        (r#""$NO""#, &[""]),
        (r#""$E" y"#, &["", "y"]),
        (r#""a$NO""#, &["a"]),
        (r#""$X[0]""#, &["a b[0]"]),
        (
            r#""${.FILE}:${.LINE}:${.SECTION}" "$.LINE""#,
            &["f.cfg:7:www", "7"],
        ),
    ];
    for (line, expected) in cases {
        assert_eq!(words(line), *expected, "{line:?}");
    }
}

#[test]
fn an_array_expands_into_words() {
    let cases: &[(&str, &[&str])] = &[
        (r#""${X[*]}""#, &["a", "b"]),
        (r#""x${X[*]}y""#, &["xa", "by"]),
        (r#"p"${SP[*]}"s"#, &["p", "one", "two", "s"]),
        (r#""${NO[*]}""#, &[]),
        (r#""${E[*]}" z"#, &["z"]),
        (r#""${NO[*]-1 2}""#, &["1", "2"]),
        (r#"a "${NO[*]}" b"#, &["a", "b"]),
    ];
    for (line, expected) in cases {
        assert_eq!(words(line), *expected, "{line:?}");
    }
}

#[test]
fn errors_name_the_place_haproxy_names() {
    let cases = [
        (r#" server a "b"#, LexErrorKind::Quote, 10),
        ("a 'b", LexErrorKind::Quote, 2),
        (r#" .notice "$1""#, LexErrorKind::VariableName, 11),
        (r#" .notice "${NO""#, LexErrorKind::Brace, 11),
        (r#" .notice "${NO-""#, LexErrorKind::Brace, 11),
        (r#" .notice "\x4""#, LexErrorKind::Hex, 10),
        (r#" .notice "${X[}""#, LexErrorKind::Expansion, 13),
        (r#" .notice "${.FOO}""#, LexErrorKind::VariableName, 12),
        ("\"a\rb\"", LexErrorKind::Quote, 0),
    ];
    for (line, kind, offset) in cases {
        assert_eq!(
            lex(line.as_bytes()),
            Err(LexError { kind, offset }),
            "{line:?}"
        );
    }
}

#[test]
fn the_65th_word_is_refused() {
    let line = |count: usize| "w ".repeat(count);
    assert_eq!(words(&line(MAX_LINE_ARGS)).len(), MAX_LINE_ARGS);
    assert_eq!(
        lex(line(MAX_LINE_ARGS + 1).as_bytes()),
        Err(LexError {
            kind: LexErrorKind::TooManyWords,
            offset: 128
        })
    );
    let many = format!("{}\"${{X[*]}}\"", line(MAX_LINE_ARGS - 1));
    assert_eq!(
        lex(many.as_bytes()).unwrap_err().kind,
        LexErrorKind::TooManyWords
    );
}

#[test]
fn a_line_and_its_expansion_are_bounded() {
    assert_eq!(lex(&vec![b'a'; MAX_LINE_BYTES]).unwrap().words.len(), 1);
    assert_eq!(
        lex(&vec![b'a'; MAX_LINE_BYTES + 1]).unwrap_err().kind,
        LexErrorKind::TooLong
    );
    let mut environment = Environment::new();
    environment.set("BIG", vec![b'x'; 100_000]);
    let context = Context {
        environment: &environment,
        file: "f",
        line: 1,
        section: None,
        comments: true,
    };
    let error = split(
        format!("\"{}\"", "$BIG".repeat(100_000)).as_bytes(),
        &context,
    )
    .unwrap_err();
    assert_eq!(error.kind, LexErrorKind::TooLong);
}

#[test]
fn ranges_cover_what_was_written() {
    let line = r#"  ab "c d"e \x41 "${X[*]}""#;
    let written: Vec<&str> = lex(line.as_bytes())
        .unwrap()
        .words
        .into_iter()
        .map(|word| &line[word.range])
        .collect();
    assert_eq!(written[..3], ["ab", r#""c d"e"#, r"\x41"]);
    assert!(written[3].contains("${X[*]}"));
    let word = lex(br#"maxconn "$NO""#).unwrap().words.remove(1);
    assert_eq!(word.unset, Some(10..12));
}

#[test]
fn what_is_dropped_is_told() {
    assert_eq!(lex(b"mode http\r").unwrap().ignored, None);
    let line = lex(b"nbthread 1\rfoo").unwrap();
    assert_eq!(
        (line.words.len(), line.ignored),
        (2, Some(Ignored::AfterCarriageReturn(10)))
    );
    let line = lex(br#"x "a\x00b" c"#).unwrap();
    assert_eq!(
        line.words
            .iter()
            .map(|word| word.text.as_str())
            .collect::<Vec<_>>(),
        ["x", "a", "c"]
    );
    assert_eq!(line.ignored, Some(Ignored::AfterNul(4)));
}

#[test]
fn bytes_that_are_no_utf8_are_kept() {
    let line = lex(b"a 'caf\xe9' \"\\xff$L\" \\xc3\\xa9").unwrap();
    let bytes: Vec<&[u8]> = line.words.iter().map(|word| word.text.bytes()).collect();
    assert_eq!(
        bytes,
        [&b"a"[..], b"caf\xe9", b"\xffcaf\xe9", "\u{e9}".as_bytes()]
    );
    assert_eq!(line.words[3].text, "\u{e9}");
}

#[test]
fn a_comment_sign_is_text_on_the_command_line() {
    let environment = Environment::new();
    let context = Context {
        environment: &environment,
        file: "",
        line: 0,
        section: None,
        comments: false,
    };
    let words = split(br"a#b \#", &context).unwrap().words;
    assert_eq!(
        words
            .iter()
            .map(|word| word.text.as_str())
            .collect::<Vec<_>>(),
        ["a#b", "\\#"]
    );
}
