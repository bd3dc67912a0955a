use super::value::duration_ns;
use crate::config::diagnostic::At;
use crate::config::source::{Node, Value};

#[test]
fn durations_are_written_as_in_go() {
    let second = 1_000_000_000;
    let cases = [
        ("0", Some(0)),
        ("5s", Some(5 * second)),
        ("+5s", Some(5 * second)),
        ("300ms", Some(300_000_000)),
        ("1h2m3s", Some(3723 * second)),
        ("1.5h", Some(5400 * second)),
        (".5s", Some(second / 2)),
        ("5.s", Some(5 * second)),
        ("10us", Some(10_000)),
        ("10µs", Some(10_000)),
        ("7ns", Some(7)),
        ("2562047h", Some(2_562_047 * 3600 * second)),
        ("2562048h", None),
        ("-1s", None),
        ("", None),
        ("5", None),
        ("s", None),
        (".s", None),
        ("5 s", None),
        ("1d", None),
        ("1.2.3s", None),
        ("99999999999999999999s", None),
    ];
    for (text, nanoseconds) in cases {
        let node = Node::new(At::default(), Value::Text(text.to_owned()));
        assert_eq!(duration_ns(&node).ok(), nanoseconds, "{text}");
    }
    let node = Node::new(At::default(), Value::Int(30));
    assert_eq!(duration_ns(&node), Ok(30));
}
