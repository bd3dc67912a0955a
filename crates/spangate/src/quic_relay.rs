//! A process goes on with its QUIC connections after another process has its sockets: that one
//! sends it their datagrams.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use net::relay::{self, Receiver, Relayed, Sender};
use proxy::{Current, Order};

use crate::handover::Exposed;
use crate::serve::Inboxes;
use crate::sys;

/// A thread that waits for them needs little.
const STACK_BYTES: usize = 128 << 10;

/// The processes before this one that still run.
pub(crate) struct Earlier {
    relays: Vec<Arc<Sender>>,
    /// The addresses whose datagrams this process reads instead of the last of them.
    addresses: Vec<SocketAddr>,
}

impl Earlier {
    /// `relays`: where datagrams of their connections go, the last process first.
    pub fn new(mut relays: Vec<Sender>, addresses: Vec<SocketAddr>) -> Earlier {
        relays.retain(Sender::is_heard);
        Earlier {
            relays: relays.into_iter().map(Arc::new).collect(),
            addresses,
        }
    }

    /// See [`proxy::Process`].
    pub fn relays(&self) -> Vec<Arc<Sender>> {
        self.relays.clone()
    }

    /// A number that none of them has.
    pub fn next_number(&self) -> u8 {
        let numbers = || self.relays.iter().map(|relay| relay.number());
        let first = numbers().next().unwrap_or_else(|| sys::random_seed() as u8);
        let mut next = (1..=u8::MAX).map(|more| first.wrapping_add(more));
        next.find(|next| numbers().all(|number| number != *next))
            .unwrap_or(first)
    }

    /// The next process can send to them too.
    pub fn expose(&self, exposed: &Exposed) {
        for relay in self.relays.iter().rev() {
            // Without descriptors, the next process ends their connections.
            if let Ok(fd) = relay.descriptor() {
                exposed.add_relay(fd, relay.number());
            }
        }
    }

    /// Tells the last of them that this process reads its datagrams from now on.
    pub fn tell_reads(&self) {
        if let Some(last) = self.relays.first() {
            let addresses = self.addresses.iter();
            addresses.for_each(|address| last.tell_reads(*address));
        }
    }
}

/// Starts a thread that receives the messages of later processes, unless it runs already or no socket
/// has datagrams. `number`: that of this process.
///
/// # Errors
/// There is no socket or no thread.
pub(crate) fn start(
    exposed: &Exposed,
    number: u8,
    current: &Arc<Current>,
    workers: &Inboxes,
) -> io::Result<()> {
    if !exposed.has_datagrams() || exposed.has_relay(number) {
        return Ok(());
    }
    let (sender, receiver) = relay::pair()?;
    let (current, workers) = (Arc::clone(current), workers.clone());
    let builder = std::thread::Builder::new()
        .name("quic-relay".to_owned())
        .stack_size(STACK_BYTES);
    builder.spawn(move || hand_on(receiver, &current, &workers))?;
    exposed.add_relay(sender, number);
    Ok(())
}

fn hand_on(mut receiver: Receiver, current: &Current, workers: &Inboxes) {
    while let Ok(message) = receiver.receive() {
        let current = current.get();
        match message {
            Some(Relayed::Datagrams(run)) => {
                current.hand_on(&run, |worker| workers.wake(&[worker]));
            }
            Some(Relayed::Reads(address)) => {
                for listener in current.quic_listeners(address) {
                    workers.tell(&Order::StopReceiving(listener));
                }
            }
            None => {}
        }
    }
}
