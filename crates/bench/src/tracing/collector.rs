//! The receiver in a separate process, so that its CPU time is not counted for the proxy, and its
//! counts.

use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::Failure;
use crate::client;
use crate::clock::Deadline;
use crate::peers::{self, Running};
use crate::sys;

/// Nothing is in flight if nothing arrived for this time: a multiple of [`super::chain::DELAY_MS`].
const QUIET: Duration = Duration::from_millis(800);
/// Most time to wait for the last records.
const PATIENCE: Duration = Duration::from_secs(15);
/// The polling interval.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A running receiver.
pub struct Collector {
    /// Its listening address.
    pub address: SocketAddr,
    _running: Running,
    stream: TcpStream,
}

/// Its counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Spans.
    pub spans: u64,
    /// Log records.
    pub logs: u64,
    /// Messages that it could not parse.
    pub refused: u64,
}

impl Collector {
    /// Starts one.
    ///
    /// # Errors
    /// It does not start.
    pub fn start(dir: &Path) -> Result<Self, Failure> {
        let address = peers::free_address()?;
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["receiver", "--listen", &address.to_string()]);
        let (running, stream) = peers::start("receiver", &mut command, address, dir)?;
        Ok(Self {
            address,
            _running: running,
            stream,
        })
    }

    /// Makes it refuse everything from now on, or accept again.
    ///
    /// # Errors
    /// It does not answer.
    pub fn turn(&mut self, down: bool) -> Result<(), Failure> {
        let path = if down { "/down" } else { "/up" };
        client::get(&mut self.stream, path).map_err(|error| format!("receiver: {error}"))?;
        Ok(())
    }

    /// The current counts.
    ///
    /// # Errors
    /// It does not answer.
    pub fn counts(&mut self) -> Result<Counts, Failure> {
        let answer = client::get(&mut self.stream, "/counts")
            .map_err(|error| format!("receiver: {error}"))?;
        let answer: Value = serde_json::from_slice(&answer)?;
        let number = |name: &str| {
            let missing = || format!("receiver: no number '{name}'");
            answer[name].as_u64().ok_or_else(missing)
        };
        Ok(Counts {
            spans: number("spans")?,
            logs: number("logs")?,
            refused: number("refused")?,
        })
    }

    /// The counts after nothing more arrives.
    ///
    /// # Errors
    /// It does not answer, or this program is interrupted.
    pub fn settled(&mut self) -> Result<Counts, Failure> {
        let patience = Deadline::after(PATIENCE);
        let mut quiet = Deadline::after(QUIET);
        let mut last = self.counts()?;
        while !quiet.passed() && !patience.passed() {
            if sys::interrupted() {
                return Err("interrupted".into());
            }
            sys::pause(LOOK_EVERY);
            let now = self.counts()?;
            if now != last {
                (last, quiet) = (now, Deadline::after(QUIET));
            }
        }
        Ok(last)
    }
}

impl Counts {
    /// The difference since `earlier`.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            spans: self.spans - earlier.spans,
            logs: self.logs - earlier.logs,
            refused: self.refused - earlier.refused,
        }
    }
}
