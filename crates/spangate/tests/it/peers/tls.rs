//! Peers that fail the TLS handshake.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;

use super::{Identity, Mesh, Node, follows, spangate};
use crate::common::DEADLINE;
use crate::common::cli::until_any_holds;
use crate::common::tls::{Authority, client_config};

/// Whether a client with this certificate, or none, completes a handshake with a peer and gets its
/// answer to a hello.
fn is_let_in(at: (&str, u16), authority: &Authority, own: Option<&str>) -> bool {
    let stream = TcpStream::connect(at).expect("the peers' port");
    stream.set_read_timeout(Some(DEADLINE)).expect("a timeout");
    let config = client_config(authority, own, rustls::ALL_VERSIONS);
    let name = "peer.test".try_into().expect("a name");
    let session = rustls::ClientConnection::new(Arc::new(config), name).expect("a session");
    let mut stream = rustls::StreamOwned::new(session, stream);
    // A refusal is an error of any of these.
    let sent = stream.write_all(b"HAProxyS 2.1\nA\nnobody 1 1\n");
    let mut answer = Vec::new();
    let read = stream.read_to_end(&mut answer);
    match (sent, read) {
        (Ok(()), Ok(_)) => {
            assert_eq!(answer, b"504\n");
            true
        }
        _ => {
            assert!(answer.is_empty(), "{answer:?}");
            false
        }
    }
}

#[test]
fn peers_that_fail_the_tls_handshake_disturb_nobody() {
    let mut mesh = Mesh {
        identity: Some(Identity::new()),
        ..Mesh::of(&["A", "B", "C"])
    };
    let a = Node::start(&spangate(), &mesh, "A", &[]);
    let at = mesh.address("A");
    let identity = mesh.identity.as_ref().expect("certificates");
    let stranger = Identity::new();
    assert!(is_let_in(at, &identity.authority, Some(&identity.own)));
    assert!(!is_let_in(at, &identity.authority, None));
    assert!(!is_let_in(at, &identity.authority, Some(&stranger.own)));
    for bytes in [&b"HAProxyS 2.1\nA\nB 1 1\n"[..], &[0xff; 4096]] {
        let mut stream = TcpStream::connect(at).expect("the peers' port");
        stream.set_read_timeout(Some(DEADLINE)).expect("a timeout");
        // It is closed.
        let _ = stream.write_all(bytes);
        let _ = stream.read_to_end(&mut Vec::new());
    }
    // Silent ones, and one in the middle of its hello.
    let silent: Vec<TcpStream> = (0..20)
        .map(|number: usize| {
            let mut stream = TcpStream::connect(at).expect("the peers' port");
            let hello: &[u8] = if number == 0 {
                &[22, 3, 1, 2, 0, 1]
            } else {
                b""
            };
            stream.write_all(hello).expect("sent");
            stream
        })
        .collect();
    assert_eq!(a.get("/"), 200);
    let b = Node::start(&spangate(), &mesh, "B", &[]);
    // A process whose certificate the others refuse, and that refuses theirs.
    mesh.identity = Some(stranger);
    let c = Node::start(&spangate(), &mesh, "C", &[]);
    follows(&a, &b, "x");
    follows(&b, &a, "y");
    // It has tried to connect more than once.
    let peers = until_any_holds(&c.socket, "show peers", |answer| {
        let others = answer.matches(" new_conn=").count() - answer.matches(" new_conn=0 ").count();
        others == 2 && !answer.contains(" new_conn=1 ")
    });
    assert!(!peers.contains("last_status=ESTA"), "{peers}");
    assert!(c.ask("show table t").contains("used:0"));
    drop(silent);
    a.stop();
    b.stop();
    c.stop();
}
