//! What a connection counts for statistics.

use super::*;

#[test]
fn a_server_counts_frames_streams_and_errors() {
    let mut out = Vec::new();
    let mut connection = Connection::server(limits(), &mut out);
    let wire = Wire::client()
        .get(1)
        .post(3)
        .data(3, 0, b"a")
        .data(3, flag::END_STREAM, b"b")
        .post(5)
        .reset(5, Code::CANCEL)
        // Two errors: a stream that the peer has ended, and a request without a path.
        .data(1, 0, b"late")
        .headers(7, flag::END_STREAM, &GET[..3])
        .frame(kind::GOAWAY, 0, 0, &[0; 8]);
    let told = feed(&mut connection, &[&wire.0]);
    assert_eq!(told.error, None, "{told:?}");
    let counts = connection.take_counts();
    assert_eq!(
        counts,
        Counts {
            headers: 4,
            data: 3,
            settings: 1,
            resets: 1,
            goaways: 1,
            connection_errors: 0,
            stream_errors: 2,
            sent_resets: counts.sent_resets,
            sent_goaways: 0,
            streams: 3,
            ..Counts::default()
        }
    );
    let resets = told
        .answers
        .iter()
        .filter(|text| text.starts_with("reset "));
    assert_eq!(resets.count() as u32, counts.sent_resets, "{told:?}");
    assert_eq!(connection.take_counts(), Counts::default(), "taken once");
    // The connection ends with an error.
    let told = feed(&mut connection, &[&Wire::default().data(0, 0, b"x").0]);
    assert_eq!(told.error, Some(Code::PROTOCOL_ERROR));
    let counts = connection.take_counts();
    assert_eq!((counts.connection_errors, counts.sent_goaways), (1, 1));
}

#[test]
fn a_client_counts_its_streams_and_resets() {
    let mut out = Vec::new();
    let mut connection = Connection::client(limits(), &mut out);
    feed(&mut connection, &[&Wire::server().0]);
    let mut head = Head::default();
    assert!(head.set_method(b"GET"));
    head.set_target(b"/");
    let opened = connection.send_request(&head, Scheme::Http, 0, true, &mut out);
    let stream = opened.expect("a stream");
    assert!(connection.send_reset(stream, Code::CANCEL, &mut out));
    assert!(!connection.send_reset(stream, Code::CANCEL, &mut out));
    connection.goaway(Code::NO_ERROR, &mut out);
    let counts = connection.take_counts();
    let counted = (counts.streams, counts.sent_resets, counts.sent_goaways);
    assert_eq!(counted, (1, 1, 1));
}
