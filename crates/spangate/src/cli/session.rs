//! One connection: its modes, its prompt, and its commands one after another.

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::time::Duration;

use config::anonymise::Anonymiser;
use proxy::Taint;

use super::command::{
    Asked, Client, Command, Level, Meaning, Mode, Reply, Run, Severity, denied, find,
};
use super::events::Messages;
use super::request::{Input, Limits, Request, WORDS_MAX, words};
use super::{CurrentSubjects, Subjects, help};

/// Most bytes of one read.
const READ_BYTES: usize = 4 << 10;
/// How often a command that waits for messages looks for them.
const FOLLOW_PAUSE: Duration = Duration::from_millis(50);
/// Bytes of a reply that are collected before they are sent.
const PART_BYTES: usize = 16 << 10;

/// The rights and settings of a connection.
#[derive(Debug)]
pub(super) struct Session {
    pub level: Level,
    pub severity: Severity,
    pub prompting: Prompting,
    /// The prompt shows the uptime.
    pub timed: bool,
    /// The connection closes after this much silence.
    pub timeout: Duration,
    /// The next answer has no empty line at its end.
    pub no_line_feed: bool,
    /// Replaces names by hashes in the output.
    pub anonymiser: Anonymiser,
    /// No further command is read.
    ended: bool,
    expert: bool,
    experimental: bool,
}

/// What happens after the first line of a connection (management guide §9.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Prompting {
    /// The connection closes.
    Single,
    /// Further lines are read.
    Interactive,
    /// Further lines are read, each after a prompt.
    Prompt,
}

impl Session {
    pub fn new(level: Level, severity: Severity, timeout: Duration) -> Self {
        Session {
            level,
            severity,
            prompting: Prompting::Single,
            timed: false,
            timeout,
            no_line_feed: false,
            anonymiser: Anonymiser::default(),
            ended: false,
            expert: false,
            experimental: false,
        }
    }

    /// Whether commands of a mode may be used.
    pub fn is_in(&self, mode: Mode) -> bool {
        match mode {
            Mode::Always => true,
            Mode::Expert => self.expert,
            Mode::Experimental => self.experimental,
        }
    }

    pub fn set_mode(&mut self, mode: Mode, on: bool) {
        match mode {
            Mode::Always => {}
            Mode::Expert => self.expert = on,
            Mode::Experimental => self.experimental = on,
        }
    }

    /// Serves a client until one of the two sides ends the connection.
    ///
    /// # Errors
    /// The client has disconnected, or was silent for too long.
    pub fn talk(
        &mut self,
        stream: &mut (impl Talk + Client),
        limits: Limits,
        subjects: &CurrentSubjects,
    ) -> io::Result<()> {
        let mut input = Input::new(limits);
        let mut buffer = [0; READ_BYTES];
        while !self.ended {
            let request = match input.next() {
                Ok(Some(request)) => request,
                Ok(None) => {
                    if input.awaits_payload() && self.prompting == Prompting::Prompt {
                        stream.write_all(b"+ ")?;
                    }
                    stream.set_timeout(self.timeout)?;
                    match read(stream, &mut buffer)? {
                        // A line without its line feed may be incomplete, so it is not run as a
                        // command.
                        0 => return Ok(()),
                        count => input.push(&buffer[..count]),
                    }
                    continue;
                }
                Err(error) => {
                    let reply = Reply::Refused(error.message().to_owned());
                    return self.send(stream, reply, b"\n");
                }
            };
            self.answer_all(stream, &request, &subjects.get())?;
            if self.prompting == Prompting::Single {
                return Ok(());
            }
        }
        Ok(())
    }

    fn answer_all(
        &mut self,
        stream: &mut (impl Write + Client),
        request: &Request,
        subjects: &Arc<Subjects>,
    ) -> io::Result<()> {
        for (place, command) in request.commands.iter().enumerate() {
            let is_last = place + 1 == request.commands.len();
            let payload = request.payload.as_deref().filter(|_| is_last);
            let reply = self.answer(command, payload, stream, subjects);
            if matches!(reply, Reply::End) {
                self.ended = true;
                return Ok(());
            }
            let end = self.end(is_last, subjects);
            self.send(stream, reply, end.as_bytes())?;
            self.no_line_feed = false;
        }
        Ok(())
    }

    /// The text that ends an answer.
    fn end(&self, is_last: bool, subjects: &Subjects) -> String {
        match (self.prompting, is_last, self.timed) {
            (Prompting::Prompt, true, true) => {
                let started_ns = subjects.runtime_config.process.started.mono_ns;
                let up = (net::sys::monotonic_ns() - started_ns) / 1_000_000_000;
                let (days, hours) = (up / 86_400, up / 3_600 % 24);
                let (minutes, seconds) = (up / 60 % 60, up % 60);
                format!("\n[{days}:{hours:02}:{minutes:02}:{seconds:02}]> ")
            }
            (Prompting::Prompt, true, false) => "\n> ".to_owned(),
            (Prompting::Prompt, false, _) => "\n".to_owned(),
            _ if self.no_line_feed => String::new(),
            _ => "\n".to_owned(),
        }
    }

    /// Runs one command.
    pub fn answer(
        &mut self,
        command: &[u8],
        payload: Option<&[u8]>,
        client: &dyn Client,
        subjects: &Arc<Subjects>,
    ) -> Reply {
        let Some(words) = words(command) else {
            return Reply::Refused(format!(
                "Too many arguments. Commands must have at most {WORDS_MAX} arguments.\n"
            ));
        };
        let bytes: Vec<&[u8]> = words.iter().map(|word| &**word).collect();
        let words: Vec<_> = bytes
            .iter()
            .map(|word| String::from_utf8_lossy(word))
            .collect();
        let words: Vec<&str> = words.iter().map(|word| &**word).collect();
        if words.is_empty() {
            return Reply::Done;
        }
        let (command, own) = match find(&words) {
            Meaning::Command(command, own) => (command, own),
            Meaning::NotYet(command) => {
                return Reply::Refused(format!(
                    "Command '{command}' is known but not implemented yet by this version.\n"
                ));
            }
            Meaning::Unknown => return help::unknown(self, &words),
        };
        let restricted = |mode: &str| {
            Reply::Refused(format!("This command is restricted to {mode} mode only.\n"))
        };
        match command.mode {
            Mode::Expert if !self.expert => return restricted("expert"),
            Mode::Experimental if !self.experimental => return restricted("experimental"),
            _ if self.level < command.level => return denied(),
            _ => {}
        }
        note_mode(command, subjects);
        match command.run {
            Run::Session(run) => run(self, &words[own..]),
            Run::SubjectSession(run) => run(self, subjects, &words[own..]),
            Run::Process(run) => run(&Asked {
                subjects,
                level: self.level,
                anonymiser: self.anonymiser,
                rest: &words[own..],
                bytes: &bytes[own..],
                payload,
                client,
            }),
        }
    }

    fn send(&self, stream: &mut (impl Write + Client), reply: Reply, end: &[u8]) -> io::Result<()> {
        let mut bytes = match reply {
            Reply::Follow(messages) => {
                follow(stream, messages)?;
                Vec::new()
            }
            Reply::Done | Reply::End => Vec::new(),
            Reply::Dump(text) => text.into_bytes(),
            Reply::Said(text) => self.severity.apply('6', "info", &text).into_bytes(),
            Reply::Noted(text) => self.severity.apply('5', "notice", &text).into_bytes(),
            Reply::Warned(text) => self.severity.apply('4', "warning", &text).into_bytes(),
            Reply::Refused(text) => self.severity.apply('3', "err", &text).into_bytes(),
            Reply::Parts(parts) => {
                let mut bytes = Vec::new();
                for part in parts {
                    bytes.extend_from_slice(&part);
                    if bytes.len() >= PART_BYTES {
                        stream.write_all(&bytes)?;
                        bytes.clear();
                    }
                }
                bytes
            }
        };
        bytes.extend_from_slice(end);
        stream.write_all(&bytes)?;
        stream.flush()
    }
}

/// Records commands after which the process may behave unlike its documentation.
fn note_mode(command: &Command, subjects: &Subjects) {
    match command.mode {
        Mode::Always => {}
        Mode::Experimental => subjects.shared.taint(Taint::ExperimentalCommand),
        Mode::Expert => {
            subjects.shared.taint(Taint::ExpertCommand);
            if command.words.starts_with("debug dev ") {
                subjects.shared.count_debug_command();
            }
        }
    }
}

/// Sends the messages of a ring as they come, until the client sends anything or leaves.
fn follow(stream: &mut (impl Write + Client), mut messages: Messages) -> io::Result<()> {
    loop {
        while let Some(part) = messages.take() {
            stream.write_all(&part)?;
        }
        stream.flush()?;
        if stream.interrupts_within(FOLLOW_PAUSE) {
            return Ok(());
        }
    }
}

/// A connection.
pub(super) trait Talk: Read + Write {
    /// Sets how long the client may be silent, and how long it may take no data.
    ///
    /// # Errors
    /// The kernel refuses the time.
    fn set_timeout(&self, timeout: Duration) -> io::Result<()>;
}

/// Reads some bytes; repeats after a signal.
fn read(stream: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match stream.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

#[cfg(test)]
mod tests;
