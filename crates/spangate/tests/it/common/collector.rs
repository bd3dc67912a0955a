//! The collector as a child process.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use super::{Folder, spawn};

/// Most time to wait for a line.
const PATIENCE: Duration = Duration::from_secs(30);

/// A running collector and its output.
pub struct Running {
    pub child: Child,
    pub lines: mpsc::Receiver<String>,
    pub folder: Folder,
}

impl Running {
    /// Starts it with this configuration.
    pub fn start(yaml: &str) -> Running {
        let folder = Folder::new();
        let file = folder.write("collector.yaml", yaml);
        let mut child = Command::new(env!("CARGO_BIN_EXE_spangate"))
            .args(["collect", "--config", &file])
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let said = child.stderr.take().expect("its standard error");
        let (send, lines) = mpsc::channel();
        let _reader = spawn(move || {
            for line in BufReader::new(said).lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    return;
                }
            }
        });
        Running {
            child,
            lines,
            folder,
        }
    }

    /// The next line that contains a text.
    pub fn line(&self, text: &str) -> String {
        loop {
            let line = self.lines.recv_timeout(PATIENCE);
            let line = line.unwrap_or_else(|_| panic!("no line has '{text}'"));
            if line.contains(text) {
                return line;
            }
        }
    }

    /// Sends a signal by its short name.
    pub fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &pid]).status();
        assert!(sent.expect("kill").success());
    }

    /// The listening address of a receiver or a page.
    pub fn address(&self, name: &str) -> String {
        let line = self.line(&format!("{name} listens on "));
        line.rsplit(' ').next().expect("an address").to_owned()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
