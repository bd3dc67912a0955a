//! All shared tables on one thread of their own, with their connections.
//!
//! [`Runner`] has the thread, [`Handle`] is how others talk to it. Each table has a task with a
//! connection.

mod table;
mod wire;

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use tables::Table;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::view::TableView;

/// The stack size of the thread, in bytes. Answers may be nested as deep as the parser permits.
const STACK_BYTES: usize = 4 << 20;
/// How long a caller waits for a look at the tables.
const VIEW_WAIT: Duration = Duration::from_secs(1);
/// How long the end of the process waits for the last changes to be sent.
pub const LAST_CHANGES_WAIT: Duration = Duration::from_secs(1);
/// How much longer it waits for the thread.
const THREAD_WAIT: Duration = Duration::from_millis(500);

/// What a runner needs.
pub struct Setup {
    /// The tables; those that are not shared are ignored.
    pub tables: Vec<Arc<Table>>,
    /// The current time, milliseconds: the clock of the tables.
    pub clock: fn() -> u64,
    /// Random numbers.
    pub random: fn() -> u64,
    /// Gets a line when a store is lost, and when it answers again.
    pub tell: Box<dyn Fn(&str) + Send>,
}

/// The thread. Dropped, it stops the thread without waiting for it.
pub struct Runner {
    thread: Option<JoinHandle<()>>,
    ended: mpsc::Receiver<()>,
    handle: Handle,
}

/// Talks to the thread.
#[derive(Clone)]
pub struct Handle {
    commands: UnboundedSender<Command>,
}

enum Command {
    View(mpsc::Sender<Vec<TableView>>),
    /// Goes on with these tables.
    Tables(Vec<Arc<Table>>),
    /// Sends the last changes and ends.
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
    pub fn start(setup: Setup) -> io::Result<Runner> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (commands, received) = unbounded_channel();
        let (sender, ended) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("share".to_owned())
            .stack_size(STACK_BYTES);
        let thread = thread.spawn(move || {
            let local = tokio::task::LocalSet::new();
            local.block_on(&runtime, table::run(setup, received));
            // The owner may have given up.
            let _ = sender.send(());
        })?;
        Ok(Runner {
            thread: Some(thread),
            ended,
            handle: Handle { commands },
        })
    }

    /// A handle.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Goes on with these tables; those that are not shared are ignored.
    pub fn follow(&self, tables: Vec<Arc<Table>>) {
        self.handle.send(Command::Tables(tables));
    }

    /// Sends the last changes, within [`LAST_CHANGES_WAIT`], and ends the thread.
    pub fn stop(mut self) {
        self.handle.send(Command::Stop);
        let ended = self.ended.recv_timeout(LAST_CHANGES_WAIT + THREAD_WAIT);
        if let Some(thread) = self.thread.take()
            && ended != Err(mpsc::RecvTimeoutError::Timeout)
        {
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
    /// All tables (`show share`); none after the end of the thread.
    #[must_use]
    pub fn snapshot(&self) -> Vec<TableView> {
        let (sender, view) = mpsc::channel();
        self.send(Command::View(sender));
        view.recv_timeout(VIEW_WAIT).unwrap_or_default()
    }

    /// After the end of the thread, the command is dropped.
    fn send(&self, command: Command) {
        let _ = self.commands.send(command);
    }
}
