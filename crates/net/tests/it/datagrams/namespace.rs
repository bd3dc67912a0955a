//! A kernel that takes no more: a network whose neighbour does not answer, so that packets wait
//! before the device and fill the send buffer of their socket.

use std::net::SocketAddr;
use std::process::Command;
use std::sync::mpsc;

use spangate_net::Driver;
use spangate_net::listen::DatagramOptions;

use super::{DEADLINE, Serving, UDP, open, outgoing, skipped};

/// Tells the test that it runs in a network namespace of its own.
const INSIDE: &str = "SPANGATE_TEST_INSIDE_NAMESPACE";
/// One datagram, its answerless peer, and how many are sent in all.
const BYTES: usize = 1000;
const PEER: &str = "10.99.0.2:4433";
const DATAGRAMS: usize = 300;
/// Rounds of a worker that has one order; one that polls has some thousands.
const FEW_ROUNDS: u64 = 8;

fn ip(arguments: &str) -> bool {
    let mut command = Command::new("ip");
    let output = command.args(arguments.split(' ')).output();
    output.is_ok_and(|output| output.status.success())
}

/// Runs a test of this program again, in a user and a network namespace of its own. None if this
/// user may not have one.
fn again(test: &str) -> Option<bool> {
    let probe = Command::new("unshare")
        .args([
            "-rn", "ip", "link", "add", "one", "type", "veth", "peer", "two",
        ])
        .output();
    if !probe.is_ok_and(|output| output.status.success()) {
        return None;
    }
    let own = std::env::current_exe().expect("a path");
    let status = Command::new("unshare")
        .arg("-rn")
        .arg(own)
        .args(["--exact", test, "--nocapture"])
        .env(INSIDE, "1")
        .status()
        .expect("it runs");
    Some(status.success())
}

/// How many bytes an interface has sent.
fn sent_bytes(interface: &str) -> usize {
    let output = Command::new("ip")
        .args(["-s", "-j", "link", "show", interface])
        .output()
        .expect("an answer");
    let text = String::from_utf8(output.stdout).expect("text");
    let tx = text.split("\"tx\":").nth(1).expect("what it sent");
    let number = tx.split("\"bytes\":").nth(1).expect("its bytes");
    let digits: String = number.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().expect("a number")
}

#[test]
fn what_the_kernel_does_not_take_waits_for_it() {
    let name = "datagrams::namespace::what_the_kernel_does_not_take_waits_for_it";
    if std::env::var_os(INSIDE).is_none() {
        match again(name) {
            Some(passed) => assert!(passed, "inside the namespace"),
            None => skipped("datagrams: no network namespace for a full send buffer"),
        }
        return;
    }
    for step in [
        "link add own type veth peer name other",
        "addr add 10.99.0.1/24 dev own",
        "link set own up",
        "link set other up",
        // The kernel asks 60 times for a neighbour that does not answer before it gives up. The test
        // ends before that.
        "ntable change name arp_cache dev own mcast_probes 60",
    ] {
        assert!(ip(step), "{step}");
    }
    let options = DatagramOptions {
        send_buffer: Some(16 << 10),
        ..DatagramOptions::default()
    };
    let at = SocketAddr::from(([10, 99, 0, 1], 0));
    let serving = Serving::of(open(at, &options).0);
    let peer: SocketAddr = PEER.parse().expect("an address");
    let one = move |driver: &mut spangate_net::epoll::EpollDriver| {
        let has_room = driver.datagram_room(UDP.into());
        if has_room {
            driver.send_datagrams(UDP.into(), outgoing(peer, None, &[7; BYTES]));
        }
        has_room
    };
    let mut sent = 0;
    while serving.order(one) {
        sent += 1;
        assert!(sent < DATAGRAMS, "the kernel holds no more than its buffer");
    }
    assert_eq!(serving.room.try_recv(), Err(mpsc::TryRecvError::Empty));
    // It waits without polling, while another program runs.
    let rounds = serving.activity.rounds();
    assert!(ip("link show own"));
    assert!(!serving.order(one));
    assert!(serving.activity.rounds() <= rounds + FEW_ROUNDS);
    // Others may still be queued.
    serving.send(peer, None, &[8; BYTES]);
    sent += 1;

    // The neighbour is there after all.
    assert!(ip(
        "neigh replace 10.99.0.2 lladdr 02:00:00:00:00:02 dev own"
    ));
    assert_eq!(serving.room.recv_timeout(DEADLINE), Ok(UDP.into()));
    while sent < DATAGRAMS {
        if serving.order(one) {
            sent += 1;
        } else {
            assert_eq!(serving.room.recv_timeout(DEADLINE), Ok(UDP.into()));
        }
    }
    let counts = serving.activity.datagrams();
    assert_eq!((counts.send_errors(), counts.no_room()), (0, 0));
    // The kernel counts a message of several datagrams as one packet, and its bytes.
    let left = sent_bytes("own");
    assert!(left >= DATAGRAMS * BYTES, "{left}");

    // A socket that closes gives its queue up after a while, and the worker ends with it.
    assert!(ip("neigh del 10.99.0.2 dev own"));
    while serving.order(one) {}
    serving.send(peer, None, &[9; BYTES]);
    serving.order(|driver| driver.unlisten(UDP));
    let activity = std::sync::Arc::clone(&serving.activity);
    drop(serving);
    assert!(activity.datagrams().no_room() > 0);
}
