use super::*;

/// The messages of a stream that comes in parts of this many bytes, and how it ends.
fn read(stream: &str, part: usize, frames: &mut Frames) -> (Vec<String>, Option<Fault>) {
    let mut messages = Vec::new();
    for part in stream.as_bytes().chunks(part) {
        frames.push(part);
        loop {
            match frames.next_message() {
                Ok(Some(message)) => messages.push(String::from_utf8_lossy(message).into_owned()),
                Ok(None) => break,
                Err(fault) => return (messages, Some(fault)),
            }
        }
    }
    (messages, None)
}

#[test]
fn both_framings_in_any_parts() {
    let stream = "<1>a\n5 <2>bc<3>d\r\n11 <4>\ne\nf\ng\nh<5>\n4 <6>";
    let expected = ["<1>a", "<2>bc", "<3>d", "<4>\ne\nf\ng\nh", "<5>"];
    for part in 1..=stream.len() {
        let mut frames = Frames::new(16, false);
        let (messages, fault) = read(stream, part, &mut frames);
        assert_eq!(
            (&*messages, fault),
            (&expected.map(str::to_owned)[..], None)
        );
        assert!(frames.buffer.len() <= part + 16 + LENGTH_DIGITS_MAX);
    }
}

#[test]
fn lines_may_begin_with_anything() {
    let mut frames = Frames::new(16, true);
    let (messages, fault) = read("12 x\n\nabc\r\n<1", 3, &mut frames);
    assert_eq!(
        (&*messages, fault),
        (&["12 x", "", "abc"].map(str::to_owned)[..], None)
    );
}

#[test]
fn faults_end_a_stream() {
    let cases = [
        ("x<1>", Fault::Framing),
        ("\n", Fault::Framing),
        ("0 x", Fault::Framing),
        ("1x", Fault::Framing),
        ("12345678901", Fault::Framing),
        ("17 ", Fault::TooLong),
        ("9999999999 ", Fault::TooLong),
        ("<1>45678901234567", Fault::TooLong),
        ("<1>45678901234567\n", Fault::TooLong),
    ];
    for (stream, fault) in cases {
        for part in [1, stream.len()] {
            let mut frames = Frames::new(16, false);
            assert_eq!(
                read(stream, part, &mut frames),
                (vec![], Some(fault)),
                "{stream}"
            );
            assert_eq!(frames.next_message(), Err(fault), "{stream}");
        }
    }
    let longest = "<1>4567890123456\n";
    assert_eq!(read(longest, 1, &mut Frames::new(16, false)).1, None);
}
