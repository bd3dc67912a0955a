//! A store: Redis or Valkey, where one is installed, and things that are no store.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Command;

use crate::common::{DEADLINE, Folder, Running, eventually, listener, skipped};

/// Its programs, the first one that is installed.
const PROGRAMS: [&str; 2] = ["/usr/bin/redis-server", "/usr/bin/valkey-server"];

/// What of its data a store has after it was killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keeps {
    Nothing,
    Everything,
    /// Everything until the last `SAVE`.
    Snapshot,
}

/// A store on a UNIX socket.
pub struct Redis {
    program: &'static str,
    folder: Folder,
    keeps: Keeps,
    /// Further words of its command line.
    arguments: Vec<String>,
    running: Option<Running>,
}

impl Redis {
    /// Starts one; none where none is installed.
    pub fn start(keeps: Keeps) -> Option<Redis> {
        Redis::start_with(keeps, &[])
    }

    /// The same with further words of its command line.
    pub fn start_with(keeps: Keeps, arguments: &[&str]) -> Option<Redis> {
        let mut programs = PROGRAMS.iter();
        let Some(program) = programs.find(|path| PathBuf::from(path).exists()) else {
            skipped("stick tables shared through a store: there is no redis-server");
            return None;
        };
        let mut redis = Redis {
            program,
            folder: Folder::new(),
            keeps,
            arguments: arguments.iter().map(|word| (*word).to_owned()).collect(),
            running: None,
        };
        redis.restart();
        Some(redis)
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.path("redis.sock")
    }

    pub fn url(&self) -> String {
        format!("redis+unix://{}", self.socket().display())
    }

    /// Starts it again with what it keeps.
    pub fn restart(&mut self) {
        let appends = if self.keeps == Keeps::Everything {
            "yes"
        } else {
            "no"
        };
        let mut command = Command::new(self.program);
        command
            .args(["--port", "0", "--unixsocket"])
            .arg(self.socket())
            .arg("--dir")
            .arg(self.folder.root())
            .args(["--save", "", "--appendonly", appends])
            .args(["--appendfsync", "always"])
            .args(&self.arguments);
        self.running = Some(Running::start(command));
        eventually("the store answers", || self.ask("PING"));
    }

    /// Kills it, as a crash.
    pub fn kill(&mut self) {
        self.running = None;
    }

    /// A connection; none if there is no store.
    pub fn connect(&self) -> Option<Connection> {
        let stream = UnixStream::connect(self.socket()).ok()?;
        stream.set_read_timeout(Some(DEADLINE)).ok()?;
        Some(Connection(stream))
    }

    /// The first bytes of the answer to a command; none if there is no store yet.
    pub fn ask(&self, line: &str) -> Option<String> {
        let answer = self.connect()?.ask(line);
        answer.filter(|answer| !answer.starts_with("-LOADING"))
    }
}

/// A connection to a store.
pub struct Connection(UnixStream);

impl Connection {
    /// The first bytes of the answer to a command; none if the connection ends.
    pub fn ask(&mut self, line: &str) -> Option<String> {
        self.0.write_all(format!("{line}\r\n").as_bytes()).ok()?;
        let mut bytes = vec![0; 4096];
        let count = self.0.read(&mut bytes).ok()?;
        bytes.truncate(count);
        let answer = String::from_utf8_lossy(&bytes).into_owned();
        (count > 0).then_some(answer)
    }
}

/// A listener that accepts connections and sends these bytes for each that it receives; without
/// bytes, it never answers.
pub fn no_store(answer: &'static [u8]) -> TcpListener {
    let listener = listener();
    let accepting = listener.try_clone().expect("a descriptor");
    let serve = move || {
        let mut silent = Vec::new();
        while let Ok((mut stream, _)) = accepting.accept() {
            if answer.is_empty() {
                silent.push(stream);
                continue;
            }
            let mut received = [0; 4096];
            while matches!(stream.read(&mut received), Ok(1..)) && stream.write_all(answer).is_ok()
            {
            }
        }
    };
    // It ends with the process of the tests.
    drop(crate::common::spawn(serve));
    listener
}
