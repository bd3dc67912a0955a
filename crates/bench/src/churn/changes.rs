//! The changes under load, one entry each. They use HAProxy's means: signals, and commands of its
//! runtime interface.

use std::fs;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::Failure;
use crate::clock::Deadline;
use crate::sys;

/// Most time for an answer of the runtime interface; a reload replaces the process that would
/// answer.
const ANSWER_PATIENCE: Duration = Duration::from_secs(10);
/// Most time until the worker of a reload serves.
const RELOAD_PATIENCE: Duration = Duration::from_secs(20);
/// The polling interval for a state without an event.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The proxy, for the functions that change it.
pub struct Subject {
    /// The master's process.
    pub master: u32,
    /// The runtime interface of its worker.
    pub socket: PathBuf,
    /// The file with the certificate that it serves, and another one for the same names.
    pub certificates: [PathBuf; 2],
    /// The address of its first server.
    pub first: SocketAddr,
    /// A server that its configuration does not name.
    pub spare: SocketAddr,
}

/// One kind of change.
pub struct Change {
    /// The name in the table.
    pub name: &'static str,
    /// Makes the change for the `n`th time.
    pub make: fn(&Subject, u32) -> Result<(), Failure>,
}

/// All changes. The first changes nothing and is the baseline.
pub const ALL: &[Change] = &[
    Change {
        name: "nothing",
        make: |_, _| Ok(()),
    },
    Change {
        name: "reload",
        make: |subject, _| subject.reload(),
    },
    Change {
        name: "weight",
        make: |subject, n| subject.toggle("s1 weight", ["1", "100", "0", "50"], n),
    },
    Change {
        name: "maintenance",
        make: |subject, n| subject.toggle("s2 state", ["maint", "ready"], n),
    },
    Change {
        name: "drain",
        make: |subject, n| subject.toggle("s3 state", ["drain", "ready"], n),
    },
    Change {
        name: "health",
        make: |subject, n| subject.toggle("s1 health", ["down", "up"], n),
    },
    Change {
        name: "address",
        make: |subject, n| {
            let addresses = [subject.spare, subject.first];
            let address = addresses[n as usize % 2];
            let (ip, port) = (address.ip(), address.port());
            let command = format!("set server b/s1 addr {ip} port {port}");
            subject.says(&command, "changed from")
        },
    },
    Change {
        name: "certificate",
        make: |subject, n| {
            let file = subject.certificates[0].display();
            let pem = fs::read_to_string(&subject.certificates[(n as usize + 1) % 2])?;
            // An empty line would end the payload.
            let pem: String = pem
                .lines()
                .filter(|line| !line.is_empty())
                .map(|line| format!("{line}\n"))
                .collect();
            subject.says(&format!("set ssl cert {file} <<\n{pem}\n"), "ransaction")?;
            subject.says(&format!("commit ssl cert {file}"), "Success")
        },
    },
    Change {
        name: "add, delete",
        make: |subject, n| {
            if n.is_multiple_of(2) {
                let spare = subject.spare;
                subject.says(
                    &format!("add server b/extra {spare}"),
                    "New server registered",
                )?;
                subject.quietly("set server b/extra state ready")
            } else {
                subject.quietly("set server b/extra state maint")?;
                subject.says("wait 5s srv-removable b/extra", "Done")?;
                subject.says("del server b/extra", "Server deleted")
            }
        },
    },
];

impl Subject {
    fn reload(&self) -> Result<(), Failure> {
        let before = self.worker_other_than(None)?;
        sys::kill(self.master, libc::SIGUSR2)?;
        self.worker_other_than(Some(before)).map(drop)
    }

    /// Waits for another worker than `before`. Returns its process number.
    fn worker_other_than(&self, before: Option<u32>) -> Result<u32, Failure> {
        let deadline = Deadline::after(RELOAD_PATIENCE);
        loop {
            match self.worker() {
                Ok(worker) if Some(worker) != before => return Ok(worker),
                _ if deadline.passed() => return Err("no new worker answers".into()),
                _ => sys::pause(LOOK_EVERY),
            }
        }
    }

    /// The process number of the current worker.
    fn worker(&self) -> Result<u32, Failure> {
        let info = self.ask("show info")?;
        let pid = info.lines().find_map(|line| line.strip_prefix("Pid: "));
        Ok(pid.ok_or("no Pid in show info")?.trim().parse()?)
    }

    fn ask(&self, command: &str) -> Result<String, Failure> {
        let mut stream = UnixStream::connect(&self.socket)?;
        stream.set_read_timeout(Some(ANSWER_PATIENCE))?;
        stream.write_all(format!("{command}\n").as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }

    /// Sets a property of a server to the next of these values.
    fn toggle<const N: usize>(
        &self,
        property: &str,
        values: [&str; N],
        n: u32,
    ) -> Result<(), Failure> {
        let value = values[n as usize % N];
        self.quietly(&format!("set server b/{property} {value}"))
    }

    fn quietly(&self, command: &str) -> Result<(), Failure> {
        match self.ask(command)?.trim() {
            "" => Ok(()),
            answer => Err(format!("{command}: {answer}").into()),
        }
    }

    fn says(&self, command: &str, wanted: &str) -> Result<(), Failure> {
        let answer = self.ask(command)?;
        if answer.contains(wanted) {
            Ok(())
        } else {
            let first = command.lines().next().unwrap_or_default();
            Err(format!("{first}: {}", answer.trim()).into())
        }
    }
}

/// Writes the configuration, in HAProxy's language.
///
/// # Errors
/// The file cannot be written.
pub fn write_config(
    dir: &Path,
    listen: SocketAddr,
    certificate: &Path,
    servers: &[SocketAddr],
) -> Result<PathBuf, Failure> {
    let servers: String = servers
        .iter()
        .enumerate()
        .map(|(n, at)| format!("    server s{} {at} check inter 500ms\n", n + 1))
        .collect();
    let text = crate::peers::fill(
        include_str!("../../templates/churn.cfg"),
        &[
            ("socket", &dir.join("admin.sock").display()),
            ("listen", &listen),
            ("certificate", &certificate.display()),
            ("servers", &servers),
        ],
    );
    let file = dir.join("churn.cfg");
    fs::write(&file, text)?;
    Ok(file)
}
