use super::*;

fn matches(pattern: &str, text: &[u8]) -> bool {
    let regex = compile(pattern, false).unwrap_or_else(|error| panic!("{error}"));
    regex.is_match(text)
}

#[test]
fn what_pcre_accepts_means_the_same_here() {
    for (pattern, yes, no) in [
        (r"^\d+$", &b"123"[..], &b"12a"[..]),
        (r"(?i)^ABC$", b"aBc", b"abd"),
        (r"\/a\-b\_c\:d\%e", b"/a-b_c:d%e", b"/a-b_c:d"),
        (r#"\"x\""#, b"\"x\"", b"x"),
        (r"\<a\>", b"<a>", b"a"),
        (r"a\ b\#", b"a b#", b"ab"),
        (r"[^]]+$", b"ab", b"ab]"),
        (r"^[]a]+$", b"]a", b"b"),
        (r"^[[:alpha:]]+$", b"abc", b"ab1"),
        (r"^[[:^digit:]_]+$", b"ab_", b"1"),
        (r"^[a[b]+$", b"a[b", b"]"),
        (r"^[a&&b]+$", b"a&b", b"c"),
        (r"^[a-c~~-]+$", b"b~-", b"d"),
        (r"^[\w.-]+$", b"a.b-c", b"a/b"),
        (r"^[+--]$", b",", b"."),
        (r"^[\d-z]+$", b"1-z", b"y"),
        (r"^[\]\\]+$", b"]\\", b"["),
        (r"^a{2,3}$", b"aaa", b"a"),
        (r"^a{,2}$", b"aa", b"aaa"),
        (r"^a{$", b"a{", b"a"),
        (r"^a{x}$", b"a{x}", b"ax"),
        (r"^\{a\}$", b"{a}", b"a"),
        (r"^}]$", b"}]", b"}"),
        (r"^a\Z", b"a", b"ab"),
        (r"\Aa\z", b"a", b"ba"),
        (r"^\h\H$", b"\tx", b"x\t"),
        (r"^a\Rb$", b"a\r\nb", b"ab"),
        (r"^\x41\x{42}\103\e\cA\0$", b"ABC\x1b\x01\0", b"ABC"),
        (r"^[\x41-\x43\b]+$", b"ABC\x08", b"D"),
        (r"^\Qa.b\E+$", b"a.bb", b"axb"),
        (r"^a(?#comment)b$", b"ab", b"a"),
        ("(?x)^ a b # comment (\n c$", b"abc", b"a b c"),
        ("(?x)^(?-x:a b) [ ]$", b"a b ", b"ab"),
        (r"^(?i:a)b$", b"Ab", b"AB"),
        (r"^(?<n>a)(?P<m>b)(?'o'c)$", b"abc", b"ab"),
        (r"^(?U)a+", b"a", b"b"),
        (r"^.$", b"\xe9", b"\n"),
        (r"^\W$", b"\xe9", b"e"),
        (r"^é$", "é".as_bytes(), b"e"),
        (r"[[:<:]]ab[[:>:]]", b"x ab y", b"xab"),
        (r"^a+?b*?$", b"aab", b"c"),
        (r"^\11$", b"\t", b"1"),
        (r"", b"", b"never"),
    ] {
        assert!(matches(pattern, yes), "{pattern}");
        assert!(no == b"never" || !matches(pattern, no), "{pattern}");
    }
}

#[test]
fn bytes_of_any_value_stand_for_themselves() {
    for byte in 0..=255_u8 {
        if b"\\^$.[|()*+?{".contains(&byte) {
            continue;
        }
        for pattern in [&[byte][..], &[b'[', b'a', byte, b'b', b']']] {
            let Ok(regex) = compile_bytes(pattern, false) else {
                assert_eq!((byte, pattern.len()), (b'-', 5));
                continue;
            };
            assert!(
                regex.is_match(&[byte]) || byte == b']' || byte == b'-',
                "{byte}"
            );
        }
    }
}

#[test]
fn what_is_wrong_is_said_as_pcre_says_it() {
    for (pattern, error) in [
        ("a(b", "missing closing parenthesis, erroffset=3"),
        ("a)b", "unmatched closing parenthesis, erroffset=1"),
        (
            "a[b",
            "missing terminating ] for character class, erroffset=3",
        ),
        (
            "*a",
            "quantifier does not follow a repeatable item, erroffset=0",
        ),
        (
            "^*",
            "quantifier does not follow a repeatable item, erroffset=1",
        ),
        (
            "a{2}{3}",
            "quantifier does not follow a repeatable item, erroffset=6",
        ),
        ("a\\", "\\ at end of pattern, erroffset=2"),
        (
            "[b-a]",
            "range out of order in character class, erroffset=3",
        ),
        ("[[:no:]]", "unknown POSIX class name, erroffset=3"),
        (r"\y", "unrecognized character follows \\, erroffset=1"),
        (
            "(?y)",
            "unrecognized character after (? or (?-, erroffset=2",
        ),
        (
            r"\x{100}",
            "character code point value in \\x{} or \\o{} is too large, erroffset=0",
        ),
    ] {
        let wanted = format!("regex '{pattern}' is invalid (error={error})");
        assert_eq!(compile(pattern, false).err(), Some(wanted));
    }
}

#[cfg(not(feature = "pcre2"))]
#[test]
fn what_needs_pcre2_is_named() {
    for (pattern, what) in [
        ("a(?=b)", "look-ahead"),
        ("a(?!b)", "look-ahead"),
        ("(?<=a)b", "look-behind"),
        ("(?<!a)b", "look-behind"),
        (r"(a)\1", "back-reference"),
        (r"(?<n>a)\k<n>", "back-reference"),
        ("(?>a)", "atomic group"),
        ("a++", "possessive quantifier"),
        ("a{2}+", "possessive quantifier"),
        ("(?R)", "recursion"),
        ("(*UTF)a", "a verb in parentheses"),
        (r"\p{L}", "Unicode property"),
    ] {
        let error = compile(pattern, false).expect_err(pattern);
        let wanted = format!("(error={what}: this needs PCRE2, which was not built in");
        assert!(error.contains(&wanted), "{error}");
    }
}

#[cfg(feature = "pcre2")]
#[test]
fn pcre2_takes_what_automata_cannot() {
    assert!(matches(r"^(a+)b\1$", b"aabaa"));
    assert!(!matches(r"a(?!b)", b"ab"));
    assert!(matches(r"^(?i:A)++b", b"aab"));
    let groups = compile(r"(?<=x)(.)(.)", false).expect("a pattern");
    let groups = groups.captures(b"axbc").expect("a match");
    assert_eq!(groups.get(2).map(|group| group.as_bytes()), Some(&b"c"[..]));
    // Hundreds of thousands of steps are within the limit.
    let slow = compile(r"^(?!x)(?:(?:a+)+b|a+!)$", false).expect("a pattern");
    assert!(slow.is_match(b"aaaaaaaaaaaaaaaaaa!"));
    assert!(!super::take_undecided());
    // A match that takes too much work is no match, and this is reported once.
    let text = [&[b'a'; 200][..], b"!"].concat();
    assert!(!slow.is_match(&text));
    assert!(super::take_undecided() && !super::take_undecided());
    assert!(slow.captures(&text).is_none());
    assert!(super::take_undecided());
    assert!(compile("(?=a", false).is_err());
}

#[test]
fn groups_and_all_matches() {
    let pattern = compile("(a)|(b)(c)?", true).expect("a pattern");
    let all: Vec<_> = pattern
        .captures_iter(b"xAbcb")
        .map(|captures| {
            let group = |at| captures.get(at).map(|group| (group.start(), group.end()));
            [group(0), group(1), group(2), group(3)]
        })
        .collect();
    assert_eq!(
        all,
        [
            [Some((1, 2)), Some((1, 2)), None, None],
            [Some((2, 4)), None, Some((2, 3)), Some((3, 4))],
            [Some((4, 5)), None, Some((4, 5)), None],
        ]
    );
    let starts = |pattern: &str, text: &[u8]| -> Vec<usize> {
        let regex = compile(pattern, false).expect("a pattern");
        let all = regex.captures_iter(text);
        all.filter_map(|captures| captures.get(0).map(|found| found.start()))
            .collect()
    };
    assert_eq!(starts("x*", b"axxb"), [0, 1, 4]);
    assert_eq!(starts("^a", b"aaa"), [0]);
    assert_eq!(starts("", b"ab"), [0, 1, 2]);
}

#[test]
fn references_and_escapes_of_templates() {
    let cases = [
        ("(a)(b)", r"\2\1\0", "xab", Some("baab")),
        ("(a)|(b)", r"[\1\2]", "b", Some("[b]")),
        ("a", r"\7", "a", Some("")),
        ("a", r"\x41\\\.", "a", Some(r"A\.")),
        ("a", r"x\", "a", None),
        ("a", r"\x4", "a", None),
        ("a", r"\xzz", "a", None),
        ("a*", r"\0\0\0", "aaaaaaaa", None),
        ("a", "plain", "a", Some("plain")),
    ];
    for (pattern, template, subject, wanted) in cases {
        let regex = compile(pattern, false).expect("a pattern");
        let found = regex.captures(subject.as_bytes()).expect("a match");
        let mut out = Vec::new();
        let whole = expand(template.as_bytes(), &found, &mut out, 20);
        let text = whole.then(|| String::from_utf8(out).expect("text"));
        assert_eq!(text.as_deref(), wanted, "{pattern} {template}");
    }
}
