use super::*;

fn parse(text: &str) -> Message<'_> {
    Message::parse(text.as_bytes())
}

fn priority_of(facility: u8, severity: u8) -> Option<Priority> {
    Some(Priority { facility, severity })
}

#[test]
fn headers_of_rfc_5424() {
    let full =
        parse("<165>1 2003-10-11T22:14:15-07:00 h a 8710 ID47 [x@1 a=\"1\\] b\"][y@2] text of it");
    assert_eq!(
        full,
        Message {
            priority: priority_of(20, 5),
            time: Time::Iso(b"2003-10-11T22:14:15-07:00"),
            host: b"h",
            tag: b"a",
            pid: b"8710",
            id: b"ID47",
            sd: b"[x@1 a=\"1\\] b\"][y@2]",
            text: b"text of it",
        }
    );
    let none = parse("<34>1 - - - - - - x");
    let expected = Message {
        priority: priority_of(4, 2),
        time: Time::Nil,
        ..Message::plain(b"x")
    };
    assert_eq!(none, expected);
}

#[test]
fn headers_of_rfc_3164() {
    let time = Time::Bsd(b"Oct  1 22:14:15");
    let message = |host, tag, pid, text| Message {
        priority: priority_of(4, 2),
        time,
        host,
        tag,
        pid,
        ..Message::plain(text)
    };
    let cases: [(&str, Message<'_>); 5] = [
        (
            "<34>Oct  1 22:14:15 h su[12]: 'x'",
            message(b"h", b"su", b"12", b"'x'"),
        ),
        (
            "<34>Oct  1 22:14:15 h su: x",
            message(b"h", b"su", b"", b"x"),
        ),
        (
            "<34>Oct  1 22:14:15 h su x: y",
            message(b"h", b"", b"", b"su x: y"),
        ),
        ("<34>Oct  1 22:14:15 h x", message(b"h", b"", b"", b"x")),
        ("<34>Oct  1 22:14:15 h ", message(b"h", b"", b"", b"")),
    ];
    for (text, expected) in cases {
        assert_eq!(parse(text), expected, "{text}");
    }
}

#[test]
fn faulty_headers_are_text() {
    let faulty = [
        "1 2003-10-11T22:14:15Z h a - - -",
        "1 2003-10-11T22:14:15Z h a - - x y",
        "1 2003-10-11T22:14:15Z h a - - [a",
        // A bracket within a value must be escaped.
        "1 2003-10-11T22:14:15.003Z h a 1 x [x@1 a=\"1]b\"] y",
        "1 2003-10-11T22:14:15 h a - - - y",
        "1 2003-10-11 22:14:15Z h a - - - y",
        "1 2003-10-11T22:14:15+1 h a - - - y",
        "1 -  a - - - y",
        "1 ",
        "Okt  1 22:14:15 h su: x",
        "Oct  1 22:14:15h su: x",
        "Oct  1 22:14:15  su: x",
        "Oct  1 22:14:15 h",
        "Oct",
        "",
    ];
    for text in faulty {
        let whole = format!("<13>{text}");
        let expected = Message {
            priority: priority_of(1, 5),
            ..Message::plain(text.as_bytes())
        };
        assert_eq!(parse(&whole), expected, "{whole}");
    }
    for text in ["", "<", "<1", "<1234>x", "<a>x", "x<1>", "< 1>"] {
        assert_eq!(parse(text), Message::plain(text.as_bytes()), "{text}");
    }
    assert_eq!(parse("<>x").priority, priority_of(0, 0));
}
