use std::time::Duration;

use tokio::io::{DuplexStream, duplex};

use super::*;

/// A connection whose other end is the test.
fn wire() -> (Wire, DuplexStream) {
    let (stream, other) = duplex(64 << 10);
    let wire = Wire {
        stream: Box::new(stream),
        received: BytesMut::new(),
        codec: ValueCodec::default(),
        sha: String::new(),
    };
    (wire, other)
}

/// The result of a command to a store that sends these bytes, over and over.
fn asked(answer: &[u8], times: usize) -> Result<Value, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let (mut wire, mut other) = wire();
        let mut ping = redis::cmd("PING");
        ping.arg("x");
        let send = async {
            for _ in 0..times {
                if other.write_all(answer).await.is_err() {
                    break;
                }
            }
            drop(other);
        };
        let ask = async {
            let asked = wire.ask(&ping);
            let answer = tokio::time::timeout(Duration::from_secs(40), asked).await;
            // The store sees the end.
            drop(wire);
            answer.expect("within the time")
        };
        let (answer, ()) = tokio::join!(ask, send);
        answer
    })
}

#[test]
fn an_answer_is_read() {
    let answer = asked(b"*2\r\n$2\r\nok\r\n:5\r\n", 1).expect("an answer");
    let ok = Value::BulkString(b"ok".to_vec());
    assert_eq!(answer, Value::Array(vec![ok, Value::Int(5)]));
    let refused = asked(b"-OOM no\x01memory\r\n", 1).expect_err("an error");
    assert!(
        refused.contains("OOM") && refused.contains("no memory"),
        "{refused}"
    );
}

#[test]
fn wrong_answers_end_the_connection() {
    for answer in [
        &b"HTTP/1.1 400 Bad Request\r\n\r\n"[..],
        b"\0\0\0\0\r\n",
        b"$x\r\n",
        b"*1\r\n?\r\n",
        b":999999999999999999999\r\n",
        b"",
        b"$5\r\nab",
    ] {
        let failed = asked(answer, 1);
        assert!(failed.is_err(), "{answer:?}: {failed:?}");
    }
}

#[test]
fn an_answer_is_bounded() {
    for endless in [
        &b"$99999999999\r\n"[..],
        b"*1000000000\r\n:1\r\n",
        b"%4611686018427387904\r\n",
        b"+aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        b"|1\r\n",
    ] {
        let failed = asked(endless, 1 << 20).expect_err("too much");
        assert!(
            [
                "the answer is too large",
                "the answer is not that of a store"
            ]
            .contains(&&*failed),
            "{failed}"
        );
    }
}

#[test]
fn a_nested_answer_fits_the_stack() {
    let thread = std::thread::Builder::new().stack_size(super::super::STACK_BYTES);
    let thread = thread.spawn(|| {
        for opening in ["*1\r\n", "~1\r\n", "%1\r\n", "|1\r\n", ">1\r\n"] {
            assert!(asked(opening.as_bytes(), 100_000).is_err());
            let _ = asked(format!("{}:1\r\n", opening.repeat(99)).as_bytes(), 1);
        }
    });
    thread.expect("a thread").join().expect("no panic");
}
