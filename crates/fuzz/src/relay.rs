//! Messages of the process that reads the sockets of QUIC.

use net::relay::{Relayed, Sender, pair, read};

/// A message: what is read from it is sent again as the same bytes.
pub fn relayed(data: &[u8]) {
    let Some(message) = read(data) else {
        return;
    };
    let (fd, mut receiver) = pair().expect("sockets");
    let sender = Sender::new(fd, 0).expect("a socket");
    match &message {
        Relayed::Datagrams(run) => {
            assert!(run.segment > 0 && !run.bytes.is_empty());
            sender.send(run);
        }
        Relayed::Reads(listener) => sender.tell_reads(*listener),
    }
    let again = receiver.receive().expect("a message");
    assert_eq!(again.as_ref(), Some(&message));
}
