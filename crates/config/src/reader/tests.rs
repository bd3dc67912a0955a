//! The results of HAProxy 3.5-dev5 for each text were checked with `-c`; differences are noted.
use super::*;
use crate::diagnostic::Rendering;
use testing::Random;

const SECTIONS: &[&str] = &["global", "defaults", "frontend", "backend", "listen"];

fn build() -> BuildInfo {
    BuildInfo {
        version: "3.5-dev5".into(),
        features: "+OPENSSL -LUA".into(),
        ..BuildInfo::default()
    }
}

fn environment() -> Environment {
    let mut environment = Environment::new();
    environment.set("X", "a b");
    environment.set("BACKEND_PORT", "80");
    environment
}

fn read_one(text: impl AsRef<[u8]>) -> (Tree, Diagnostics) {
    let build = build();
    read_text(
        "t.cfg",
        text.as_ref(),
        &Options {
            sections: SECTIONS,
            build: &build,
        },
        &mut environment(),
    )
}

/// Each message as `line[:severity] message`; alerts without their severity.
fn messages(text: impl AsRef<[u8]>) -> Vec<String> {
    let show = |item: &crate::diagnostic::Diagnostic| {
        let line = item.span.as_ref().map_or(0, |span| span.line);
        match item.severity {
            Severity::Alert => format!("{line} {}", item.message),
            severity => format!("{line}:{severity:?} {}", item.message),
        }
    };
    read_one(text).1.iter().map(show).collect()
}

/// The sections with their statements, one line each.
fn outline(text: &str) -> Vec<String> {
    let (tree, diagnostics) = read_one(text);
    assert_eq!(
        diagnostics.alerts(),
        0,
        "{}",
        diagnostics.render(&Rendering::default())
    );
    let line = |statement: &Statement| {
        let words: Vec<&str> = statement
            .words
            .iter()
            .map(|word| word.text.as_str())
            .collect();
        let prefix = match statement.prefix {
            Prefix::None => "",
            Prefix::No => "(no) ",
            Prefix::Default => "(default) ",
        };
        format!("{prefix}{}", words.join("|"))
    };
    let section = |section: &Section| {
        std::iter::once(line(&section.header))
            .chain(section.statements.iter().map(line))
            .collect::<Vec<_>>()
    };
    tree.sections
        .iter()
        .map(|each| section(each).join("; "))
        .collect()
}

#[test]
fn sections_and_their_statements() {
    let text = "global#x\n  daemon#y\n\n  frontend   foo # z\n\tmode http\n no option x\n default  option y\n no log\nbackend b\n";
    let expected = [
        "global; daemon",
        "frontend|foo; mode|http; (no) option|x; (default) option|y; (no) log",
        "backend|b",
    ];
    assert_eq!(outline(text), expected);
    assert_eq!(outline("global\r\n  maxconn 5\r\n"), ["global; maxconn|5"]);
    assert!(outline("").is_empty());
}

#[test]
fn environment_changes_act_on_the_lines_below() {
    let text = "defaults\n a \"${A-none}\"\nglobal\n setenv A 1\n a \"$A\"\n presetenv A 2\n presetenv B 3\n a \"$A$B\"\n \
                unsetenv A\n a \"${A-gone}\"\n resetenv B\n a \"${X-gone}$B\"\nfrontend f\n setenv C 1\n a \"${C-unset}\"\n";
    let shown: Vec<String> = outline(text)
        .join("; ")
        .split("; ")
        .filter(|line| line.starts_with("a|"))
        .map(str::to_owned)
        .collect();
    assert_eq!(
        shown,
        ["a|none", "a|1", "a|13", "a|gone", "a|gone3", "a|unset"]
    );
}

#[test]
fn environment_statements_are_checked() {
    let text = "global\n setenv A\n setenv\n setenv A B C\n setenv A=B C\n unsetenv\n unsetenv A=B\n resetenv\n";
    assert_eq!(
        messages(text),
        [
            "2 'setenv' expects environment variable value for 'A'.",
            "3 'setenv' expects environment variable name.",
            "4 'setenv' cannot handle unexpected argument 'C'.",
            "5 'setenv' failed on variable 'A=B' : Invalid argument.",
            "6 'unsetenv' expects at least one variable name.",
            "7 'unsetenv' failed on variable 'A=B' : Invalid argument.",
        ]
    );
}

#[test]
fn lexical_errors_name_line_and_position() {
    let text = "global\n .notice \"$1\"\n .notice \"${NO\"\n .notice \"\\x4\"\n .notice \"${X[}\"\n a \"b\n";
    assert_eq!(
        messages(text),
        [
            "2 forbidden first char in environment variable name at position 12.",
            "3 unmatched brace in environment variable name at position 12.",
            "4 truncated or invalid hexadecimal sequence at position 11.",
            "5 truncated or invalid word expansion sequence at position 14.",
            "6 unmatched quote at position 4.",
        ]
    );
}

#[test]
fn empty_words_are_refused_and_empty_lines_are_not() {
    let text = "global\n maxconn \"$NO\"\n maxconn \"\" 5\n maxconn \"${NO[*]}\"\n \"\" foo\n \"$BACKEND_PROT\" foo\n m \"$BACKEND_PROT\"\n";
    assert_eq!(
        messages(text),
        [
            "2 argument number 1 at position 12 is empty and marks the end of the argument list.",
            "3 argument number 1 at position 10 is empty and marks the end of the argument list.",
            "5:Diag the first word is empty, so the line is ignored.",
            "6:Diag the first word is empty, so the line is ignored.",
            "7 argument number 1 at position 6 is empty and marks the end of the argument list.",
        ]
    );
    let diagnostics = read_one(text).1;
    let helps: Vec<&String> = diagnostics.iter().flat_map(|item| &item.help).collect();
    assert_eq!(
        helps,
        [
            "The environment variable 'NO' is not set.",
            "The environment variable 'BACKEND_PROT' is not set. Did you mean 'BACKEND_PORT'?"
        ]
    );
}

#[test]
fn blocks_choose_lines() {
    let cases = [
        (".if 1\n a\n.else\n b\n.endif\n", "a"),
        (".if 0\n a\n.else\n b\n.endif\n", "b"),
        (
            ".if 0\n a\n.elif 1\n b\n.elif 1\n c\n.else\n d\n.endif\n",
            "b",
        ),
        (".if 0\n a\n.elif 0\n b\n.else\n d\n.endif\n e\n", "d; e"),
        (".if\n a\n.endif\n b\n", "b"),
        (".if \"$NO\"\n a\n.endif\n b\n", "b"),
        (".if 1\n.if 0\n a\n.else\n b\n.endif\n c\n.endif\n", "b; c"),
        (
            ".if 0\n.if 1\n a\n.elif (\n b\n.else\n c\n.endif\n.unknown\n.endif\n d\n",
            "d",
        ),
        (".if 1\n a\n.elif (((\n b\n.endif\n", "a"),
        (
            ".if streq(\"$X\",\"a b\") && feature(OPENSSL) # comment\n a\n.endif\n",
            "a",
        ),
        (".if defined( X )\n a\n.endif\n b\n", "b"),
        (".if version_atleast(3.5-dev4)\n a\n.endif\n", "a"),
    ];
    for (text, expected) in cases {
        assert_eq!(
            outline(&format!("global\n{text}")),
            [format!("global; {expected}")],
            "{text}"
        );
    }
}

/// HAProxy stops at the first of these.
#[test]
fn every_slip_in_blocks_is_reported() {
    let text = "global\n.endif\n.else\n.elif 1\n.if 0\n.else x\n.else\n.elif 1\n.endif y\n.if (1\n a\n.else\n b\n.endif\n.if 1\n";
    assert_eq!(
        messages(text),
        [
            "2 lone '.endif' with no matching '.if'.",
            "3 lone '.else' with no matching '.if'.",
            "4 lone '.elif' with no matching '.if'.",
            "6 Unexpected argument 'x' for '.else'.",
            "7 '.else' after '.else' is not permitted.",
            "8 '.elif' after '.else' is not permitted.",
            "9 Unexpected argument 'y' for '.endif'.",
            "10 expected ')' after conditional expression '(1' in '.if' at position 1.",
            "15 non-terminated '.if' block.",
        ]
    );
    assert!(read_one(text).0.sections[0].statements.is_empty());
}

#[test]
fn nesting_has_a_limit_and_recovers() {
    let nested = |depth: usize| {
        format!(
            "global\n{}a\n{}b\n",
            ".if 1\n".repeat(depth),
            ".endif\n".repeat(depth)
        )
    };
    assert_eq!(outline(&nested(MAX_NESTED_BLOCKS)), ["global; a; b"]);
    assert_eq!(
        messages(nested(MAX_NESTED_BLOCKS + 1)),
        ["101 too many nested '.if', max is 99."]
    );
    assert_eq!(
        messages(nested(50_000)).len(),
        crate::diagnostic::MAX_DIAGNOSTICS
    );
}

#[test]
fn message_directives() {
    let text = ".notice \"in ${.SECTION}\"\nglobal\n.notice one\n.warning 'two words'\n.diag \"${.FILE}:${.LINE}\"\n.alert \"no\"\n\
                .notice a b\n.define X 1\n.warnin x\n.notice\nfrontend www\n.notice \"${.SECTION}\"\n";
    assert_eq!(
        messages(text),
        [
            "1:Notice 'in '.",
            "3:Notice 'one'.",
            "4:Warning 'two words'.",
            "5:Diag 't.cfg:5'.",
            "6 'no'.",
            "7 Unexpected argument 'b' for '.notice'.",
            "8 unknown directive '.define'.",
            "9 unknown directive '.warnin'.",
            "10:Notice ''.",
            "12:Notice 'www'.",
        ]
    );
}

#[test]
fn prefixes_belong_to_few_keywords() {
    let (tree, diagnostics) = read_one("global\nno nbthread 5\nno\ndefault frontend x\n");
    assert_eq!(
        diagnostics
            .iter()
            .map(|item| item.span.as_ref().unwrap().line)
            .collect::<Vec<_>>(),
        [2, 3, 4]
    );
    assert_eq!(
        (tree.sections[0].statements.len(), tree.sections.len()),
        (1, 2)
    );
    assert_eq!(tree.sections[0].statements[0].prefix, Prefix::None);
}

#[test]
fn a_file_must_start_with_a_section() {
    assert_eq!(
        messages("foo\nmaxconn 3\n"),
        [
            "1 unknown keyword 'foo' out of section.",
            "2 unknown keyword 'maxconn' out of section."
        ]
    );
    // HAProxy reports each line of a section with a misspelt name.
    let text = "globl\n maxconn 3\n foo\nfrontend f\n";
    assert_eq!(
        messages(text),
        ["1 unknown keyword 'globl' out of section."]
    );
    assert_eq!(read_one(text).0.sections.len(), 1);
}

#[test]
fn a_header_that_cannot_be_read_takes_its_lines_with_it() {
    let text = "global\n a\nfrontend \"x\n b\nbackend y\n c\n";
    let (tree, diagnostics) = read_one(text);
    assert_eq!(diagnostics.alerts(), 1);
    assert_eq!(
        tree.sections
            .iter()
            .map(|section| section.statements.len())
            .collect::<Vec<_>>(),
        [1, 1]
    );
}

#[test]
fn files_are_read_one_after_the_other_and_all_errors_told() {
    let input = |name: &str, text: &str| Input {
        name: name.into(),
        text: text.into(),
    };
    let inputs = [
        input("a.cfg", "global\n setenv A 1\n x \"\n"),
        input("b.cfg", " y\nfrontend \"$A\"\n"),
        input("c.cfg", "global"),
    ];
    let build = build();
    let mut environment = Environment::new();
    let (tree, diagnostics) = read(
        &inputs,
        &Options {
            sections: SECTIONS,
            build: &build,
        },
        &mut environment,
    );
    let places: Vec<String> = diagnostics
        .iter()
        .map(|item| item.span.as_ref().unwrap().place())
        .collect();
    assert_eq!(places, ["a.cfg:3", "b.cfg:1", "c.cfg:1"]);
    assert_eq!(
        tree.sections.iter().map(Section::kind).collect::<Vec<_>>(),
        ["global", "frontend", "global"]
    );
    assert_eq!(tree.sections[1].name().unwrap().text, "1");
    let closing = diagnostics.render_closing(&Rendering::default(), false);
    assert_eq!(closing.lines().count(), 4, "{closing}");
}

#[test]
fn odd_bytes() {
    assert_eq!(
        messages("global\n a\0b\n x \"\n"),
        [
            "2 Stray NUL character at position 3.",
            "3 unmatched quote at position 4."
        ]
    );
    assert_eq!(
        messages("global\n a"),
        ["2 Missing LF on last line, file might have been truncated at position 3."]
    );
    assert_eq!(
        messages("global\n a\rb\n"),
        ["2:Warning a carriage return ends the line, what follows it is ignored."]
    );
    assert_eq!(
        messages("global\n a \"b\\x00c\"\n"),
        ["2:Warning a NUL character ends the word, what follows it is ignored."]
    );
    let (tree, diagnostics) = read_one(b"global\n caf\xe9 \"\xe8 x\" y\n");
    assert_eq!(diagnostics.alerts(), 0);
    let words = &tree.sections[0].statements[0].words;
    assert_eq!(words[1].bytes(), b"\xe8 x");
    let last = &words[2].span;
    assert_eq!(
        &last.excerpt()[last.start as usize..last.end as usize],
        b"y"
    );
}

#[test]
fn scopes_stand_at_the_sections_after_them() {
    let (tree, diagnostics) = read_one("global\n[my-filter] # x\nfrontend f\n");
    assert_eq!(diagnostics.alerts(), 0);
    assert_eq!(
        tree.sections
            .iter()
            .map(|section| section.scope.as_deref())
            .collect::<Vec<_>>(),
        [None, Some("my-filter")]
    );
    assert_eq!(messages("[]\n[a b]\n[a] b\n[\n").len(), 4);
}

#[test]
fn the_whole_report_reads_like_haproxys() {
    let (_, diagnostics) = read_one("global\n  server a \"b\n .if 1 && (\n");
    let how = Rendering {
        pid: 42,
        ..Rendering::default()
    };
    assert_eq!(
        diagnostics.render(&how) + &diagnostics.render_closing(&how, false),
        "[ALERT]    (42) : config : parsing [t.cfg:2] : unmatched quote at position 12.\n\
         \x20 server a \"b\n\
         \x20          ^\n\
         [ALERT]    (42) : config : parsing [t.cfg:3] : unparsable conditional expression '' in '.if' at position 7.\n\
         \x20 .if 1 && (\n\
         \x20           ^\n\
         [ALERT]    (42) : config : parsing [t.cfg:3] : non-terminated '.if' block.\n\
         \x20 .if 1 && (\n\
         \x20 ^^^\n\
         [ALERT]    (42) : config : Error(s) found in configuration file : t.cfg\n\
         [ALERT]    (42) : config : Fatal errors found in configuration.\n"
    );
}

#[test]
fn no_text_breaks_the_reader() {
    let base: &[u8] = b"global\n setenv A \"${X[*]-d}\"\n.if streq(\"$A\",'b') && !(defined(X) || 0x1)\n a \\x41 'q' \"w\"#c\n\
        .elif version_atleast(3.5-dev1)\n[sc]\n.else\n.endif\nfrontend f\xe9\n no option x\n .notice \"${.LINE}\"\n";
    let pieces: [&[u8]; 22] = [
        b"\"",
        b"'",
        b"\\",
        b"\\x",
        b"$",
        b"${",
        b"}",
        b"[*]",
        b"-",
        b"(",
        b")",
        b"!",
        b"&&",
        b"||",
        b".if ",
        b".endif\n",
        b"\n",
        b"\r",
        b"\0",
        b"\xff",
        b" ",
        b"\xf4\x8f\xbf\xbf",
    ];
    let build = build();
    for seed in 0..4000 {
        let mut random = Random::new(seed);
        let mut text = base.to_vec();
        for _ in 0..1 + random.below(12) {
            let at = random.below(text.len() + 1);
            match random.below(3) {
                0 => drop(text.splice(at..at, pieces[random.below(pieces.len())].iter().copied())),
                1 => drop(text.drain(at..(at + random.below(9)).min(text.len()))),
                _ => text.insert(at, random.below(256) as u8),
            }
        }
        let options = Options {
            sections: SECTIONS,
            build: &build,
        };
        let (tree, diagnostics) = read_text("fuzz", &text, &options, &mut environment());
        diagnostics.render(&Rendering {
            pid: 1,
            diag: true,
            quiet: false,
        });
        let statements = tree.sections.iter().flat_map(|section| &section.statements);
        for word in statements.flat_map(|statement| &statement.words) {
            assert!(!word.text.is_empty() && word.span.start <= word.span.end);
            assert!(
                word.span
                    .excerpt()
                    .get(word.span.start as usize..word.span.end as usize)
                    .is_some(),
                "{:?}",
                word.span
            );
        }
    }
}
