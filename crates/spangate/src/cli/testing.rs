//! Sessions without sockets, for the tests of commands.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use config::model::Config;
use proxy::Process;

use super::command::{Client, Level, Severity};
use super::request::Limits;
use super::session::{Session, Talk};
use super::{CurrentSubjects, Subjects};
use crate::event_reporter::EventReporter;
use crate::serve::Inboxes;

/// Subjects of a configuration that does not run.
pub(super) fn subjects(config: Config) -> Arc<Subjects> {
    let process = Process {
        started: net::sys::now(),
        ..Process::default()
    };
    let runtime_config = Arc::new(proxy::prepare(config, proxy::Tls::default(), process));
    let crier = EventReporter {
        runtime_config: Arc::clone(&runtime_config),
        sinks: Mutex::default(),
        dropped: Arc::default(),
        workers: Inboxes::default(),
        bells: Arc::default(),
        names: OnceLock::new(),
    };
    Arc::new(Subjects {
        crier: Arc::new(crier),
        shared: Arc::new(runtime_config.share(1)),
        ocsp: Arc::new(health::OcspUpdates::new(&runtime_config)),
        runtime_config,
        exports: None,
        collectors: Vec::new(),
        peers: None,
        share: None,
        workers: Inboxes::default(),
        exposed: Arc::default(),
        frontends: Arc::default(),
        anon_key: Default::default(),
        dynamic_cookies: Default::default(),
        rings: Vec::new(),
        reloads: Arc::default(),
    })
}

/// The output for a client that sends this and then closes its direction. Messages begin with their
/// severity as a word.
pub(super) fn ask(subjects: &Arc<Subjects>, level: Level, sent: &str) -> String {
    let mut session = Session::new(level, Severity::Text, Duration::from_secs(1));
    let mut stream = Scripted {
        sent: sent.as_bytes(),
        got: Vec::new(),
    };
    let limits = Limits {
        line_bytes: 1024,
        payload_bytes: 1024,
    };
    let current = CurrentSubjects::from(Arc::clone(subjects));
    let talked = session.talk(&mut stream, limits, &current);
    talked.expect("the script does not fail");
    String::from_utf8(stream.got).expect("text")
}

struct Scripted<'a> {
    sent: &'a [u8],
    got: Vec<u8>,
}

impl Read for Scripted<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.sent.read(into)
    }
}

impl Write for Scripted<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.got.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Talk for Scripted<'_> {
    fn set_timeout(&self, _: Duration) -> io::Result<()> {
        Ok(())
    }
}

impl Client for Scripted<'_> {
    fn leaves_within(&self, _: Duration) -> bool {
        false
    }

    fn interrupts_within(&self, _: Duration) -> bool {
        true
    }

    fn takes_listeners(&self) -> Option<&UnixStream> {
        None
    }
}
