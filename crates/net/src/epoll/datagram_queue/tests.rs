use super::*;

fn peer(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

fn push(queue: &mut Queue, port: u16, segment: Option<usize>, bytes: &[u8]) {
    let datagrams = Outgoing {
        peer: peer(port),
        source: None,
        ecn: 0,
        segment,
        bytes,
    };
    assert_eq!(queue.push(&datagrams), Ok(()));
}

/// A message as the kernel would get it: port, segment, bytes.
type Told = (u16, Option<u16>, Vec<u8>);

fn told(message: Sending<'_>) -> Told {
    (message.peer.port(), message.segment, message.bytes.to_vec())
}

/// A kernel that answers with what is prepared, and notes what it took.
fn flush(queue: &mut Queue, answers: &mut Vec<Io>, taken: &mut Vec<Told>) -> Flushed {
    queue.flush(|messages| {
        let answer = answers.pop().unwrap_or(Io::Done(1));
        if let Io::Done(count) = answer {
            taken.extend(messages.take(count).map(told));
        }
        answer
    })
}

#[test]
fn datagrams_of_one_length_to_one_peer_are_one_message() {
    let mut queue = Queue::new(true);
    push(&mut queue, 1, Some(2), b"aabb");
    push(&mut queue, 1, None, b"cc");
    push(&mut queue, 1, None, b"d");
    push(&mut queue, 1, None, b"e");
    push(&mut queue, 2, None, b"f");
    push(&mut queue, 1, Some(7), b"gg");
    let mut taken = Vec::new();
    let flushed = flush(&mut queue, &mut vec![Io::Done(4)], &mut taken);
    assert_eq!(flushed, Flushed::default());
    let expected = [
        (1, Some(2), b"aabbccd".to_vec()),
        (1, None, b"e".to_vec()),
        (2, None, b"f".to_vec()),
        (1, None, b"gg".to_vec()),
    ];
    assert_eq!(taken, expected);
    assert!(queue.is_empty());
}

#[test]
fn a_probe_is_not_joined_with_shorter_datagrams() {
    let mut queue = Queue::new(true);
    push(&mut queue, 1, None, b"probe");
    push(&mut queue, 1, None, b"abc");
    let mut taken = Vec::new();
    let too_long = Io::Failed(libc::EMSGSIZE);
    let flushed = flush(&mut queue, &mut vec![too_long], &mut taken);
    assert_eq!((flushed.refused, flushed.blocked), (1, false));
    assert_eq!(taken, [(1, None, b"abc".to_vec())]);
}

#[test]
fn a_message_has_as_many_datagrams_as_the_kernel_takes() {
    let mut queue = Queue::new(true);
    let bytes = vec![7; 1200 * 80 + 5];
    push(&mut queue, 1, Some(1200), &bytes[..RUN_BYTES_MAX]);
    push(&mut queue, 2, Some(1), &bytes[..100]);
    // More than a datagram can have: the kernel refuses it.
    push(&mut queue, 3, None, &bytes);
    let mut taken = Vec::new();
    flush(&mut queue, &mut Vec::new(), &mut taken);
    let shape: Vec<_> = taken.iter().map(|m| (m.0, m.1, m.2.len())).collect();
    let expected = [
        (1, Some(1200), 64_800),
        (1, None, RUN_BYTES_MAX - 64_800),
        (2, Some(1), 64),
        (2, Some(1), 36),
        (3, None, 96_005),
    ];
    assert_eq!(shape, expected);
}

#[test]
fn what_the_kernel_cannot_take_stays_in_order() {
    let mut queue = Queue::new(true);
    for at in 0..20_u8 {
        push(&mut queue, u16::from(at) + 1, None, &[at; 9]);
    }
    let mut taken = Vec::new();
    let mut answers = vec![Io::WouldBlock, Io::Done(2), Io::Done(11)];
    let flushed = flush(&mut queue, &mut answers, &mut taken);
    assert!(flushed.blocked && !queue.is_empty());
    push(&mut queue, 21, None, &[20; 9]);
    let flushed = flush(&mut queue, &mut Vec::new(), &mut taken);
    assert_eq!(flushed, Flushed::default());
    let expected = (0..21_u8).map(|at| (u16::from(at) + 1, None, vec![at; 9]));
    assert_eq!(taken, expected.collect::<Vec<_>>());
}

#[test]
fn a_device_that_does_not_cut_gets_the_datagrams_one_by_one() {
    let mut queue = Queue::new(true);
    push(&mut queue, 1, Some(2), b"aabbc");
    let mut taken = Vec::new();
    let mut answers = vec![Io::Done(3), Io::Failed(libc::EIO)];
    let flushed = flush(&mut queue, &mut answers, &mut taken);
    assert_eq!(flushed, Flushed::default());
    push(&mut queue, 1, Some(2), b"ddee");
    // Of a single datagram, the error is as any other.
    let mut answers = vec![Io::Failed(libc::EIO)];
    let flushed = flush(&mut queue, &mut answers, &mut taken);
    assert_eq!(flushed.refused, 1);
    let bytes: Vec<_> = taken.iter().map(|m| (m.1, &*m.2)).collect();
    let expected: [(_, &[u8]); 4] = [(None, b"aa"), (None, b"bb"), (None, b"c"), (None, b"ee")];
    assert_eq!(bytes, expected);
}

#[test]
fn an_error_drops_its_message_and_no_other() {
    for error in [
        libc::EMSGSIZE,
        libc::EPERM,
        libc::ENETUNREACH,
        libc::ECONNREFUSED,
        libc::EINVAL,
        libc::ENOBUFS,
    ] {
        let mut queue = Queue::new(true);
        push(&mut queue, 1, Some(2), b"aabb");
        push(&mut queue, 2, Some(2), b"ccddee");
        push(&mut queue, 3, None, b"f");
        let mut taken = Vec::new();
        let mut answers = vec![Io::Failed(error), Io::Done(1)];
        let flushed = flush(&mut queue, &mut answers, &mut taken);
        assert_eq!((flushed.refused, flushed.blocked), (3, false));
        let ports: Vec<_> = taken.iter().map(|m| m.0).collect();
        assert_eq!(ports, [1, 3], "{error}");
    }
}

#[test]
fn the_queue_is_bounded() {
    let mut queue = Queue::new(true);
    let bytes = vec![0; RUN_BYTES_MAX];
    let mut runs = 0;
    while queue.has_room() {
        push(&mut queue, 1, Some(1000), &bytes);
        runs += 1;
    }
    assert_eq!(runs, DATAGRAM_QUEUE_BYTES_MAX / RUN_BYTES_MAX);
    let more = Outgoing {
        peer: peer(1),
        source: None,
        ecn: 0,
        segment: Some(1000),
        bytes: &bytes[..2500],
    };
    assert_eq!(queue.push(&more), Err(3));
    let mut queue = Queue::new(true);
    let mut count = 0;
    while queue.has_room() {
        push(&mut queue, 1 + count % 2, None, b"");
        count += 1;
    }
    assert_eq!(usize::from(count), QUEUE_RUNS_MAX, "empty ones as well");
    assert_eq!(queue.clear(), QUEUE_RUNS_MAX);
}
