//! TLS over streams of tokio.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use spangate_tls::stream::{GetConnector, TlsStream};
use spangate_tls::{AcceptorOptions, Buffer, Connector, ConnectorOptions, Session, Verification};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex, split};

use crate::pairs::{Authority, Kind, acceptor, plain};

const DEADLINE: Duration = Duration::from_secs(60);
/// The wire's room in each direction, less than a record.
const WIRE_BYTES: usize = 1000;
const BYTES: usize = 300_000;

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build();
    let runtime = runtime.expect("a runtime");
    let done = runtime.block_on(async { tokio::time::timeout(DEADLINE, test).await });
    done.expect("it ends in time");
}

/// Both ends of a connection, if the client trusts the server's authority.
async fn pair(
    is_trusted: bool,
) -> (
    io::Result<TlsStream<DuplexStream>>,
    io::Result<TlsStream<DuplexStream>>,
) {
    let authority = Authority::new("root");
    let certificate = plain(authority.identity(&["a.test"], Kind::Ecdsa));
    let acceptor = acceptor(&AcceptorOptions::default(), &[certificate]);
    let other = Authority::new("other");
    let trusted = if is_trusted {
        authority.trusted()
    } else {
        other.trusted()
    };
    let options = ConnectorOptions {
        verification: Verification::Required {
            trusted,
            name: None,
        },
        ..ConnectorOptions::default()
    };
    let connector = Arc::new(Connector::new(&options).expect("a connector"));
    let connector: GetConnector = Box::new(move || Some(Arc::clone(&connector)));
    let accept = |session: &mut Session, plain: &mut Buffer, out: &mut Buffer| {
        session.accept(&acceptor, None, plain, out)
    };
    let (one, two) = duplex(WIRE_BYTES);
    tokio::join!(
        TlsStream::connect(one, &connector),
        TlsStream::accept(two, &accept)
    )
}

/// Sends bytes and receives as many at the same time, in one task.
async fn exchange(stream: TlsStream<DuplexStream>, own: u8, other: u8) {
    let (mut reader, mut writer) = split(stream);
    let sending = async {
        writer.write_all(&vec![own; BYTES]).await.expect("sent");
        writer.shutdown().await.expect("the end");
    };
    let mut received = Vec::new();
    let receiving = reader.read_to_end(&mut received);
    let ((), count) = tokio::join!(sending, receiving);
    assert_eq!(count.expect("received"), BYTES);
    assert!(received.iter().all(|byte| *byte == other));
}

#[test]
fn both_directions_at_once_do_not_wait_for_each_other() {
    run(async {
        let (client, server) = pair(true).await;
        let (client, server) = (client.expect("a client"), server.expect("a server"));
        tokio::join!(exchange(client, 1, 2), exchange(server, 2, 1));
    });
}

#[test]
fn a_flush_sends_what_a_write_took() {
    run(async {
        let (client, server) = pair(true).await;
        let (mut client, mut server) = (client.expect("a client"), server.expect("a server"));
        // More than the wire has room for.
        let bytes = vec![7; 5 * WIRE_BYTES];
        let sending = async {
            client.write_all(&bytes).await.expect("taken");
            client.flush().await.expect("sent");
            client
        };
        let mut received = vec![0; bytes.len()];
        let (client, count) = tokio::join!(sending, server.read_exact(&mut received));
        assert_eq!((count.expect("received"), &received), (bytes.len(), &bytes));
        drop(client);
        assert_eq!(server.read(&mut received).await.expect("the end"), 0);
    });
}

#[test]
fn a_refused_certificate_fails_both_handshakes() {
    run(async {
        let (client, server) = pair(false).await;
        let why = client.err().expect("a refusal").to_string();
        assert!(why.contains("certificate"), "{why}");
        // In TLS 1.3, the server may complete its handshake before it receives the client's alert.
        if let Ok(mut server) = server {
            server.read(&mut [0; 1]).await.expect_err("an alert");
        }
    });
}
