//! `keepalive` of exporters over gRPC, as a backend sees it.

use std::ops::ControlFlow;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::exporter::{of_traces, over_grpc};
use super::*;

/// Pings have ten seconds between them at least, as in gRPC.
const PINGS_MAX: Duration = Duration::from_secs(30);

/// Frames of HTTP/2 (RFC 9113 section 6).
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const MY_SETTINGS: &[u8] = b"\0\0\0\x04\0\0\0\0\0\0\0\0\x04\x01\0\0\0\0";
/// `RST_STREAM` of the first call: it is over.
const CANCEL: &[u8] = b"\0\0\x04\x03\0\0\0\0\x01\0\0\0\x08";

/// Whether a backend ends the first call.
#[derive(Clone, Copy, PartialEq)]
enum Call {
    Lasts,
    Ends,
}

/// Reads frames until one is what is looked for, or the connection ends. A ping is not answered.
async fn frames(
    stream: &mut TcpStream,
    call: Call,
    mut look: impl FnMut(u8) -> ControlFlow<()>,
) -> std::io::Result<()> {
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).await?;
        let len = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
        stream.read_exact(&mut vec![0; len]).await?;
        if head[3] == SETTINGS && head[4] == 0 {
            stream.write_all(MY_SETTINGS).await?;
        }
        if head[3] == HEADERS && call == Call::Ends {
            stream.write_all(CANCEL).await?;
        }
        if look(head[3]).is_break() {
            return Ok(());
        }
    }
}

/// How long it takes from a call to a ping, and from there to the end of the connection.
async fn pinged(place: usize, call: Call, keepalive: &str) -> [Duration; 2] {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a listener");
    let at = listener.local_addr().expect("an address").to_string();
    let options = format!(
        "timeout: 1h, retry_on_failure: {{ enabled: false }}, keepalive: {{ {keepalive} }}"
    );
    let front = of_traces(&over_grpc(&at, &options)[place]);
    taken(&grpc(&front), request(0, 1)).await;
    let (mut stream, _) = listener.accept().await.expect("a connection");
    let mut preface = [0; 24];
    stream.read_exact(&mut preface).await.expect("a preface");
    let begin = Instant::now();
    let is_ping = |kind| match kind {
        PING => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    };
    let ping = tokio::time::timeout(PINGS_MAX, frames(&mut stream, call, is_ping)).await;
    ping.expect("in time").expect("a ping");
    let pinged = Instant::now();
    let any = |_| ControlFlow::Continue(());
    let end = tokio::time::timeout(PINGS_MAX, frames(&mut stream, call, any)).await;
    assert!(end.expect("in time").is_err(), "it is given up");
    [pinged - begin, pinged.elapsed()]
}

#[tokio::test]
async fn a_silent_back_end_is_pinged_and_given_up() {
    let mut all = tokio::task::JoinSet::new();
    for place in 0..2 {
        all.spawn(async move {
            let [ping, end] = pinged(place, Call::Lasts, "time: 11s, timeout: 200ms").await;
            // The default is ten seconds for either.
            assert!(ping > Duration::from_millis(10_800), "{ping:?}");
            assert!(end < Duration::from_secs(9), "{end:?}");
        });
        all.spawn(async move {
            pinged(
                place,
                Call::Ends,
                "timeout: 200ms, permit_without_stream: true",
            )
            .await;
        });
    }
    while let Some(ended) = all.join_next().await {
        ended.expect("no panic");
    }
}
