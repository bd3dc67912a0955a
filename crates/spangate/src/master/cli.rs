//! The master's runtime interface (`-S`; management guide §9.4): its own commands, and access to
//! those of the workers.
//!
//! A connection stays open between commands. `@1`, `@!<pid>` and `@master` before a command name
//! the process that runs it. Alone on a line, they select the process for the following commands.
//! `@@…` connects the client with that process for the rest of the connection.

use std::io::{self, Read as _, Write as _};
use std::net::Shutdown;
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use config::model::Bind;

use super::board::{Asked, Board};
use super::commands;
use crate::cli::{Connection, Input, Level, Limits, Listener, Request, Severity, listen, words};
use crate::sockets::Sockets;

/// Most bytes of one read.
const READ_BYTES: usize = 4 << 10;
/// A session has no idle timeout in practice; a client that accepts no data for this long has
/// disconnected.
const TIMEOUT: Duration = Duration::from_secs(24 * 3_600);
/// Most connections at a time.
const CONNECTIONS_MAX: u32 = 10;

const PROMPT_USAGE: &str = "Usage: prompt [help | i | p | timed]*
Changes whether the session shows a prompt. Available options:
  help    display this help
  i       no prompt
  p       a prompt
  timed   toggle the uptime in the prompt
Without any argument, toggles between i<->p.
";

/// The addresses of `-S`: separated by commas, with options as after `stats socket`.
///
/// # Errors
/// What is wrong with the addresses.
pub(super) fn binds(arguments: &[String]) -> Result<Vec<Bind>, String> {
    let mut binds = Vec::new();
    for argument in arguments {
        let quoted = |word: &str| format!("'{}'", word.replace('\'', "'\\''"));
        let mut all: Vec<&str> = argument
            .split(',')
            .filter(|word| !word.is_empty())
            .collect();
        if !all.contains(&"level") {
            all.extend(["level", "admin"]);
        }
        let line: Vec<String> = all.into_iter().map(quoted).collect();
        let text = format!("global\n stats socket {}\n", line.join(" "));
        binds.extend(crate::load::sockets(text).map_err(|message| {
            format!("Cannot create the listener of the master CLI '{argument}' : {message}")
        })?);
    }
    Ok(binds)
}

/// Starts the threads of the runtime interface.
///
/// # Errors
/// Why a socket cannot be bound.
pub(super) fn start(binds: &[Bind], board: &Arc<Board>, args: Arc<Facts>) -> Result<(), String> {
    for listener in listen(binds, &mut Sockets::default())? {
        board.lock().descriptors.push(listener.as_raw_fd());
        let (board, args) = (Arc::clone(board), Arc::clone(&args));
        let level = listener.level();
        let severity = listener.severity();
        let talk = move |mut connection: Connection| {
            let fd = connection.as_raw_fd();
            board.lock().descriptors.push(fd);
            let mut session = Session::new(&board, &args, level, severity);
            // A client that has gone needs no message.
            let _ = session.talk(&mut connection);
            let _ = connection.end();
            board.lock().descriptors.retain(|known| *known != fd);
        };
        Listener::serve(listener, CONNECTIONS_MAX, talk)
            .map_err(|error| format!("Cannot start the master CLI : {error}."))?;
    }
    Ok(())
}

/// Facts about the master.
#[derive(Debug)]
pub(super) struct Facts {
    /// The time of its start, in nanoseconds of the monotonic clock.
    pub started_ns: u64,
    pub limits: Limits,
    /// The addresses of its runtime interface, as `show cli sockets` shows them.
    pub sockets: String,
}

/// The process that runs a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    Master,
    Worker(i32),
}

pub(super) struct Session<'a> {
    pub board: &'a Board,
    pub facts: &'a Facts,
    pub level: Level,
    severity: Severity,
    prompts: bool,
    timed: bool,
    expert: bool,
    experimental: bool,
    target: Target,
    ended: bool,
}

impl<'a> Session<'a> {
    fn new(board: &'a Board, facts: &'a Facts, level: Level, severity: Severity) -> Self {
        Session {
            board,
            facts,
            level,
            severity,
            prompts: false,
            timed: false,
            expert: false,
            experimental: false,
            target: Target::Master,
            ended: false,
        }
    }

    fn talk(&mut self, client: &mut Connection) -> io::Result<()> {
        let mut input = Input::new(self.facts.limits);
        let mut buffer = [0; READ_BYTES];
        client.set_timeouts(TIMEOUT)?;
        while !self.ended {
            match input.next() {
                Ok(Some(request)) => self.answer_all(client, &request, &mut input)?,
                Ok(None) => match client.read(&mut buffer) {
                    Ok(0) => return Ok(()),
                    Ok(count) => input.push(&buffer[..count]),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                },
                Err(error) => return client.write_all(error.message().as_bytes()),
            }
        }
        Ok(())
    }

    fn answer_all(
        &mut self,
        client: &mut Connection,
        request: &Request,
        input: &mut Input,
    ) -> io::Result<()> {
        let count = request.commands.len();
        for (place, command) in request.commands.iter().enumerate() {
            if command.trim_ascii_start().starts_with(b"@@") {
                return self.hand_over(client, &request.line_from(place), input);
            }
            let payload = (place + 1 == count)
                .then(|| request.payload_lines())
                .flatten();
            let answer = self.answer(client, command, payload.as_deref())?;
            client.write_all(answer.as_bytes())?;
            if self.ended {
                return Ok(());
            }
            client.write_all(self.prompt().as_bytes())?;
        }
        Ok(())
    }

    fn prompt(&self) -> String {
        if !self.prompts {
            return String::new();
        }
        let state = self.board.lock();
        let (name, started_ns) = match self.target {
            Target::Master if state.failed_reloads > 0 => (
                "master[ReloadFailed]".to_owned(),
                Some(self.facts.started_ns),
            ),
            Target::Master => ("master".to_owned(), Some(self.facts.started_ns)),
            Target::Worker(pid) => {
                let worker = state.workers.iter().find(|worker| worker.pid == pid);
                (pid.to_string(), worker.map(|worker| worker.started_ns))
            }
        };
        let up = match (self.timed, started_ns) {
            (false, _) => String::new(),
            (true, None) => "[gone] ".to_owned(),
            (true, Some(started_ns)) => {
                let up = seconds_since(started_ns);
                let (days, hours) = (up / 86_400, up / 3_600 % 24);
                let (minutes, seconds) = (up / 60 % 60, up % 60);
                format!("[{days}:{hours:02}:{minutes:02}:{seconds:02}] ")
            }
        };
        let modes = match (self.experimental, self.expert) {
            (false, false) => "",
            (true, false) => "(x)",
            (false, true) => "(e)",
            (true, true) => "(xe)",
        };
        format!("{up}{name}{modes}> ")
    }

    /// The process that a word beginning with `@` names.
    fn target(&self, prefix: &str) -> Option<Target> {
        let state = self.board.lock();
        match prefix.strip_prefix('@')? {
            "" | "master" | "0" => Some(Target::Master),
            "1" => state.current().map(|worker| Target::Worker(worker.pid)),
            name => {
                let pid: i32 = name.strip_prefix('!')?.parse().ok()?;
                let mut workers = state.workers.iter();
                workers
                    .any(|worker| worker.pid == pid)
                    .then_some(Target::Worker(pid))
            }
        }
    }

    /// Runs a command, or forwards it to a worker and sends the worker's answer to the client.
    fn answer(
        &mut self,
        client: &mut Connection,
        command: &[u8],
        payload: Option<&[u8]>,
    ) -> io::Result<String> {
        let Some(all) = words(command) else {
            return Ok("Too many arguments.\n".to_owned());
        };
        let all: Vec<_> = all
            .iter()
            .map(|word| String::from_utf8_lossy(word))
            .collect();
        let mut words: Vec<&str> = all.iter().map(|word| &**word).collect();
        let mut target = self.target;
        let mut command = command.trim_ascii_start();
        if let Some(prefix) = words.first().filter(|word| word.starts_with('@')) {
            let Some(meant) = self.target(prefix) else {
                return Ok(format!(
                    "Can't find the target PID matching the prefix '{prefix}'\n"
                ));
            };
            if words.len() == 1 {
                self.target = meant;
                return Ok(String::new());
            }
            target = meant;
            command = &command[prefix.len()..];
            words.remove(0);
        }
        if let Some(answer) = self.of_session(&words) {
            return Ok(answer);
        }
        match target {
            Target::Master => Ok(self.of_master(&words)),
            Target::Worker(pid) => {
                let line = [self.preamble().as_bytes(), command.trim_ascii_start()].concat();
                self.forward(client, pid, &line, payload)
            }
        }
    }

    /// The commands that apply the session's settings in a worker, before a forwarded command.
    fn preamble(&self) -> String {
        let mut text = String::new();
        for (is_on, command) in [
            (self.expert, "expert-mode on -;"),
            (self.experimental, "experimental-mode on -;"),
            (
                self.severity == Severity::Number,
                "set severity-output number -;",
            ),
            (
                self.severity == Severity::Text,
                "set severity-output string -;",
            ),
            (self.level == Level::Operator, "operator -;"),
            (self.level == Level::User, "user -;"),
        ] {
            if is_on {
                text.push_str(command);
            }
        }
        text
    }

    /// Opens a new session with a worker.
    fn connect(&self, pid: i32) -> io::Result<UnixStream> {
        let channel = {
            let state = self.board.lock();
            let mut workers = state.workers.iter();
            let worker = workers.find(|worker| worker.pid == pid);
            worker.map(|worker| Arc::clone(&worker.channel))
        };
        channel.ok_or(io::ErrorKind::NotFound)?.open_cli()
    }

    fn forward(
        &self,
        client: &mut Connection,
        pid: i32,
        line: &[u8],
        payload: Option<&[u8]>,
    ) -> io::Result<String> {
        let Ok(mut worker) = self.connect(pid) else {
            return Ok(format!(
                "Can't connect to the target CLI of process {pid}\n"
            ));
        };
        worker.write_all(line)?;
        worker.write_all(payload.unwrap_or(b"\n"))?;
        worker.shutdown(Shutdown::Write)?;
        let mut buffer = [0; READ_BYTES];
        loop {
            match worker.read(&mut buffer) {
                Ok(0) => return Ok(String::new()),
                Ok(count) => client.write_all(&buffer[..count])?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Ok(String::new()),
            }
        }
    }

    /// Connects the client with a worker for the rest of the connection. `line`: the text from `@@`
    /// on.
    fn hand_over(
        &mut self,
        client: &mut Connection,
        line: &[u8],
        input: &mut Input,
    ) -> io::Result<()> {
        let line = line.trim_ascii_start();
        let end = line.iter().position(u8::is_ascii_whitespace);
        let (prefix, rest) = line.split_at(end.unwrap_or(line.len()));
        let prefix = String::from_utf8_lossy(prefix);
        let rest = rest.trim_ascii();
        let Some(Target::Worker(pid)) = self.target(&prefix[1..]) else {
            let text = format!("Can't find the target PID matching the prefix '{prefix}'\n");
            return client.write_all(text.as_bytes());
        };
        let Ok(mut worker) = self.connect(pid) else {
            return client.write_all(b"Can't connect to the target CLI\n");
        };
        worker.write_all(self.preamble().as_bytes())?;
        match rest {
            b"" => {
                let mode = if self.prompts { "p" } else { "i" };
                let timed = if self.timed { " timed" } else { "" };
                worker.write_all(format!("prompt {mode}{timed}\n").as_bytes())?;
            }
            rest => worker.write_all(&[rest, b"\n"].concat())?,
        }
        worker.write_all(&input.rest())?;
        self.ended = true;
        client.relay(&worker)
    }

    /// Runs a command that concerns the session, whichever process is selected.
    fn of_session(&mut self, words: &[&str]) -> Option<String> {
        let denied = || Some("Permission denied!\n".to_owned());
        match words {
            [] => return Some(String::new()),
            ["prompt", rest @ ..] => return Some(self.set_prompt(rest)),
            ["quit", ..] => self.ended = true,
            ["operator", ..] if self.level < Level::Operator => return denied(),
            ["operator", ..] => self.level = Level::Operator,
            ["user", ..] => self.level = Level::User,
            ["expert-mode" | "experimental-mode" | "mcli-debug-mode", ..]
                if self.level < Level::Admin =>
            {
                return denied();
            }
            ["expert-mode", rest @ ..] => self.expert = rest.first() == Some(&"on"),
            ["experimental-mode", rest @ ..] => self.experimental = rest.first() == Some(&"on"),
            ["set", "severity-output", rest @ ..] => {
                match rest.first().and_then(|name| Severity::named(name)) {
                    Some(severity) => self.severity = severity,
                    None => {
                        let text = "one of 'none', 'number', 'string' is a required argument\n";
                        return Some(text.to_owned());
                    }
                }
            }
            _ => return None,
        }
        Some(String::new())
    }

    fn set_prompt(&mut self, words: &[&str]) -> String {
        let (mut wanted, mut timed) = (None, false);
        for word in words {
            match *word {
                "i" => wanted = Some(false),
                "p" => wanted = Some(true),
                "timed" => timed = true,
                _ => return PROMPT_USAGE.to_owned(),
            }
        }
        self.timed ^= timed;
        self.prompts = wanted.unwrap_or(timed || !self.prompts);
        String::new()
    }

    /// Runs a command of the master itself. Returns the answer with the line that ends it.
    fn of_master(&mut self, words: &[&str]) -> String {
        let mut all = commands::COMMANDS.iter();
        let Some(command) = all.find(|command| command.matches(words)) else {
            return commands::unknown(words);
        };
        if self.level < command.level {
            return commands::told("Permission denied\n");
        }
        (command.run)(self, command.rest(words))
    }

    /// Reloads, and waits until the reload is over.
    pub fn reload(&mut self, hard: bool) -> String {
        let (sender, outcome) = mpsc::sync_channel(1);
        self.board.lock().asked.push(Asked {
            hard,
            outcome: sender,
        });
        // The master looks for requests whenever a signal arrives; this one has no other effect.
        crate::sys::signal_self(libc::SIGCHLD);
        self.ended = true;
        // Every start has a time limit, so the answer comes.
        match outcome.recv() {
            Ok(outcome) => {
                let success = u8::from(outcome.success);
                format!("Success={success}\n--\n{}", outcome.messages)
            }
            Err(_) => "Success=0\n--\nThe master does not answer.\n".to_owned(),
        }
    }
}

pub(super) fn seconds_since(ns: u64) -> u64 {
    net::sys::monotonic_ns().saturating_sub(ns) / 1_000_000_000
}
