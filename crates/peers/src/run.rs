//! All sections on one thread of their own, with their sockets.
//!
//! [`Runner`] has the thread, [`Handle`] is how others talk to it. Each section has a task that does
//! what is due and accepts connections, and one task per connection.

mod connections;
mod section;

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use tables::Table;
use tls::stream::GetConnector;
use tls::{Buffer, Failure, Progress, Session};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::section::PeerSetup;
use crate::view::SectionView;

/// The stack size of the thread, in bytes.
const STACK_BYTES: usize = 1 << 20;
/// How long a caller waits for a look at the sections.
const VIEW_WAIT: Duration = Duration::from_secs(1);

/// What a runner needs.
pub struct RunnerSetup {
    /// The sections.
    pub sections: Vec<SectionSetup>,
    /// The current time, milliseconds: the clock of the tables.
    pub clock: fn() -> u64,
    /// Random numbers.
    pub random: fn() -> u64,
    /// Is called once, on the thread, when a soft stop is over in all sections.
    pub on_over: Box<dyn FnOnce() + Send>,
}

/// A section with its sockets.
pub struct SectionSetup {
    /// Its name.
    pub name: String,
    /// The name of this process among its peers.
    pub local: String,
    /// The peers, with this process.
    pub peers: Vec<PeerAddress>,
    /// The sockets that accept connections of peers.
    pub listeners: Vec<Listener>,
    /// TLS of the accepted connections; none for plain connections.
    pub accept: Option<Accept>,
    /// The tables.
    pub tables: Vec<TableSetup>,
    /// `shards`; 0 for none.
    pub shards: u32,
    /// An older process may bring its entries.
    pub follows_another: bool,
}

/// Chooses how a session that has a peer's hello continues ([`tls::Session::accept`]).
pub type Accept =
    Box<dyn Fn(&mut Session, &mut Buffer, &mut Buffer) -> Result<Progress, Failure> + Send>;

/// A peer and its address.
pub struct PeerAddress {
    /// The peer.
    pub setup: PeerSetup,
    /// Its address.
    pub address: Address,
    /// TLS of connections to it; none for plain connections.
    pub connector: Option<GetConnector>,
}

/// Where a peer listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// TCP.
    Inet(SocketAddr),
    /// A UNIX socket.
    Unix(PathBuf),
}

/// A socket that accepts connections.
#[derive(Debug)]
pub enum Listener {
    /// TCP.
    Inet(std::net::TcpListener),
    /// A UNIX socket.
    Unix(std::os::unix::net::UnixListener),
}

/// A table that a section shares.
#[derive(Clone, Debug)]
pub struct TableSetup {
    /// The table.
    pub table: Arc<Table>,
    /// `write-to`: the table to which updates from peers are copied.
    pub write_to: Option<Arc<Table>>,
}

/// The thread. Dropped, it stops the thread without waiting for it.
pub struct Runner {
    thread: Option<JoinHandle<()>>,
    handle: Handle,
}

/// Talks to the thread.
#[derive(Clone)]
pub struct Handle {
    commands: UnboundedSender<Command>,
}

enum Command {
    View(mpsc::Sender<Vec<SectionView>>),
    /// Within this many milliseconds.
    StopSoftly(Option<u64>),
    Stop,
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").finish_non_exhaustive()
    }
}

impl Runner {
    /// Starts the thread.
    ///
    /// # Errors
    /// The thread or its runtime cannot be created.
    pub fn start(setup: RunnerSetup) -> io::Result<Runner> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (commands, received) = unbounded_channel();
        let thread = std::thread::Builder::new()
            .name("peers".to_owned())
            .stack_size(STACK_BYTES);
        let thread = thread.spawn(move || {
            let local = tokio::task::LocalSet::new();
            local.block_on(&runtime, section::run(setup, received));
        })?;
        Ok(Runner {
            thread: Some(thread),
            handle: Handle { commands },
        })
    }

    /// A handle.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Begins a soft stop: the process that follows gets all entries, then `on_over` is called.
    /// It is given up after `within`, and when nothing more is received there.
    pub fn stop_softly(&self, within: Option<Duration>) {
        let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        self.handle.send(Command::StopSoftly(within.map(ms)));
    }

    /// Closes all sockets and ends the thread.
    pub fn stop(mut self) {
        self.handle.send(Command::Stop);
        if let Some(thread) = self.thread.take() {
            // The panic hook has already reported a panic of the thread.
            let _ = thread.join();
        }
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        self.handle.send(Command::Stop);
    }
}

impl Handle {
    /// All sections (`show peers`); none after the end of the thread.
    #[must_use]
    pub fn snapshot(&self) -> Vec<SectionView> {
        let (sender, view) = mpsc::channel();
        self.send(Command::View(sender));
        view.recv_timeout(VIEW_WAIT).unwrap_or_default()
    }

    /// After the end of the thread, the command is dropped.
    fn send(&self, command: Command) {
        let _ = self.commands.send(command);
    }
}

#[cfg(test)]
mod tests;
