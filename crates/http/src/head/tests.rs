#![allow(clippy::type_complexity, reason = "tables of cases")]

use super::*;
use crate::h1::write_request;

fn sample() -> Head {
    let mut head = Head::default();
    assert!(head.set_method(b"GET"));
    head.set_target(b"/a/b?c=d");
    head.append(b"Host", b"example.org");
    head.append(b"X-Odd", b"1");
    head.append(b"x-odd", b"2");
    head
}

fn wire(head: &Head) -> String {
    let mut out = Vec::new();
    write_request(head, None, &mut out);
    assert_eq!(out.len(), head.wire_bytes(), "wire_bytes tells the length");
    String::from_utf8(out).unwrap()
}

#[test]
fn a_head_is_built_and_read() {
    let head = sample();
    assert_eq!(
        wire(&head),
        "GET /a/b?c=d HTTP/1.1\r\nhost: example.org\r\nx-odd: 1\r\nx-odd: 2\r\n\r\n"
    );
    assert_eq!(
        (head.path(), head.query()),
        (&b"/a/b"[..], Some(&b"c=d"[..]))
    );
    assert_eq!(head.get(Name::Host), Some(&b"example.org"[..]));
    assert_eq!(head.get(Name::Cookie), None);
    assert_eq!(
        head.find(b"X-ODD")
            .map(|(_, value)| value)
            .collect::<Vec<_>>(),
        [b"1", b"2"]
    );
    assert_eq!(head.find(b"X-Other").count(), 0);
    assert_eq!(head.field_count(), 3);
}

#[test]
fn fields_are_edited_and_removed() {
    let mut head = sample();
    let (first, _) = head.find(b"x-odd").next().unwrap();
    head.set_value(first, b"a longer value");
    assert_eq!(
        wire(&head),
        "GET /a/b?c=d HTTP/1.1\r\nhost: example.org\r\nx-odd: a longer value\r\nx-odd: 2\r\n\r\n"
    );
    head.set_value(first, b"short");
    head.set_value(FieldId(0), b"other.host1");
    assert_eq!(
        wire(&head),
        "GET /a/b?c=d HTTP/1.1\r\nhost: other.host1\r\nx-odd: short\r\nx-odd: 2\r\n\r\n"
    );
    head.remove(first);
    head.remove(first);
    head.set_value(first, b"nothing happens");
    assert_eq!(head.field(first), None);
    assert_eq!(
        wire(&head),
        "GET /a/b?c=d HTTP/1.1\r\nhost: other.host1\r\nx-odd: 2\r\n\r\n"
    );
    assert_eq!(head.remove_all(b"Host"), 1);
    assert_eq!(head.remove_all(b"Host"), 0);
    assert_eq!(head.remove_all(b"X-odd"), 1);
    assert!(!head.has(Name::Host));
    assert_eq!(head.field_count(), 0);
    assert_eq!(wire(&head), "GET /a/b?c=d HTTP/1.1\r\n\r\n");
}

#[test]
fn interned_names_are_found_in_order() {
    let mut head = sample();
    head.append(b"Cookie", b"a=1");
    head.append(b"cookie", b"b=2");
    let found: Vec<_> = head.get_all(Name::Cookie).collect();
    assert_eq!(found, [(FieldId(3), &b"a=1"[..]), (FieldId(4), b"b=2")]);
    assert_eq!(head.get_all(Name::Via).count(), 0);
}

#[test]
fn every_form_of_target_has_its_parts() {
    #[rustfmt::skip]
    let table: &[(&str, Option<&str>, &str, &str, Option<&str>)] = &[
        ("/a?b?c",               None,          "/a?b?c", "/a", Some("b?c")),
        ("http://u@h:81/a?",     Some("h:81"),  "/a?",    "/a", Some("")),
        ("http://h",             Some("h"),     "",       "",   None),
        ("h:443",                Some("h:443"), "",       "",   None),
        ("*",                    None,          "",       "",   None),
    ];
    let mut head = sample();
    for (target, authority, path_and_query, path, query) in table {
        head.set_target(target.as_bytes());
        assert_eq!(head.target(), target.as_bytes());
        assert_eq!(head.authority(), authority.map(str::as_bytes), "{target}");
        assert_eq!(head.path_and_query(), path_and_query.as_bytes(), "{target}");
        assert_eq!(head.path(), path.as_bytes(), "{target}");
        assert_eq!(head.query(), query.map(str::as_bytes), "{target}");
    }
}

#[test]
fn other_methods_keep_their_bytes() {
    let mut head = sample();
    assert!(head.set_method(b"PURGE"));
    assert_eq!(
        (head.method(), head.method_bytes()),
        (Method::Other, &b"PURGE"[..])
    );
    assert!(head.set_method(b"POST"));
    assert!(!head.set_method(b"A B") && !head.set_method(b""));
    assert_eq!(
        (head.method(), head.method_bytes()),
        (Method::Post, &b"POST"[..])
    );
}

#[test]
fn clear_forgets_everything() {
    let mut head = sample();
    head.set_status(200, b"OK");
    head.clear();
    assert_eq!(head.field_count(), 0);
    assert_eq!(
        (head.status(), head.target(), head.reason()),
        (0, &b""[..], &b""[..])
    );
    assert_eq!(head.get(Name::Host), None);
}

#[test]
fn another_authority_in_the_target() {
    let mut head = Head::default();
    head.set_target(b"http://me@old:80/path?q");
    head.set_authority(b"new.example");
    assert_eq!(head.target(), b"http://me@new.example/path?q");
    assert_eq!(head.authority(), Some(&b"new.example"[..]));
    assert_eq!(head.path(), b"/path");
    head.set_target(b"/path");
    head.set_authority(b"new.example");
    assert_eq!(head.target(), b"/path");
}

#[test]
fn fields_one_after_the_other() {
    let mut head = Head::default();
    for (name, value) in [("A", "1"), ("X-B", "2"), ("x-b", "3"), ("x-c", "4")] {
        head.append(name.as_bytes(), value.as_bytes());
    }
    let (first, _) = head.find_from(b"x-b", FieldId(0)).expect("the first");
    head.set_value(first, b"changed");
    let second = head.find_from(b"X-B", FieldId(first.0 + 1));
    assert_eq!(second, Some((FieldId(2), &b"3"[..])));
    assert_eq!(head.find_from(b"x-b", FieldId(3)), None);
    assert_eq!(head.find_from(b"x-b", FieldId(9)), None);
    head.remove_where(|name| name.starts_with(b"x-"));
    assert_eq!(head.field_count(), 1);
}

/// A field that frames the body is written by the codec alone, whatever edits there are.
#[test]
fn no_edit_reaches_the_fields_that_frame_a_body() {
    use crate::h1::Framing;

    let name = |text: &str| FieldName::new(text.as_bytes());
    for (framing, field) in [
        (Framing::Length(5), Some("content-length: 5")),
        (
            Framing::Length(u64::MAX),
            Some("content-length: 18446744073709551615"),
        ),
        (Framing::Chunked, Some("transfer-encoding: chunked")),
        (Framing::None, None),
        (Framing::UntilClose, None),
    ] {
        let mut head = sample();
        head.set_framing(Framing::Length(7));
        head.set_framing(framing);
        let before = wire(&head);
        assert_eq!(
            before
                .lines()
                .find(|line| line.contains("-length") || line.contains("-encoding")),
            field
        );
        for text in ["Content-Length", "transfer-encoding"] {
            head.append(text.as_bytes(), b"2");
            head.append_named(&name(text), b"2");
            assert_eq!(head.remove_all(text.as_bytes()), 0);
            head.remove_named(&name(text));
        }
        head.remove_where(|name| name.starts_with(b"content-") || name.starts_with(b"transfer-"));
        let ids: Vec<FieldId> = head
            .fields()
            .filter(|(_, name, ..)| name.is_framing())
            .map(|(field, ..)| field)
            .collect();
        for field in ids {
            head.set_value(field, b"2");
            head.remove(field);
        }
        assert_eq!(wire(&head), before, "{framing:?}");
    }
}

#[test]
fn what_is_put_in_ends_neither_its_line_nor_the_head() {
    let mut head = sample();
    head.append(b"X-A", b"1\r\nX-B: 2\0");
    head.append(b"X C", b"3");
    head.append(b"", b"4");
    let (field, _) = head.find(b"x-a").next().expect("a field");
    assert_eq!(head.find(b"x-a").next(), Some((field, &b"1  X-B: 2 "[..])));
    for value in [&b"\n"[..], b"longer than it was\r\n\r\nGET / HTTP/1.1"] {
        head.set_value(field, value);
        assert!(!head.field(field).expect("a field").1.contains(&b'\n'));
    }
    assert_eq!(head.find(b"x c").count() + head.find(b"").count(), 0);

    head.set_target(b"/a b\r\nc\x7f");
    assert_eq!(head.target(), b"/a%20b%0D%0Ac%7F");
    head.set_target(b"");
    assert_eq!(head.target(), b"/");
    head.set_target(b"http://h/x");
    head.set_authority(b"a\r\nb");
    assert_eq!(head.target(), b"http://h/x");

    head.set_status(200, b"O\nK");
    assert_eq!(head.reason(), b"O K");
}
