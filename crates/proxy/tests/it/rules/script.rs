//! A test as a list of lines between scripted peers, without chance:
//!
//! ```text
//! c1 > GET / HTTP/1.1|host: a||    client 1 sends (`|` is CRLF, `¦` a bar, `¤e9` the byte e9); it connects when first named
//! s1 ok                            the first connection that the proxy opened stands (`refuse`: it is refused)
//! s1 to 127.0.0.1:81               it was opened to this address
//! s1 from 10.0.0.1:0               it comes from this address, which is not the proxy's (`-`: from none)
//! s1 own 10.0.0.1:1000             the proxy has chosen this address of its own for it
//! s1 fast, s1 slow                 its first bytes may leave with the SYN, may not
//! s1 < GET / HTTP/1.1|host: a||    exactly this has come
//! s1 <~ GET /                      what has come starts so
//! c1 fin, c1 rst                   the peer's end, its reset
//! c1 end, c1 reset, c1 open        the proxy has ended, reset, not ended this connection
//! s1 held, s1 heard                nothing is read of what it sends, it is read
//! s2 none                          the proxy has opened no second connection
//! c1 labels 5 32                   mark and type of service of its packets (`-`: none)
//! drainprocess 0 5000              drain: milliseconds of grace, and until the hard stop
//! full c1, drain c1                the peer's kernel takes nothing, takes all
//! c1 takes 5                       it takes so many bytes more
//! wait 1000                        milliseconds pass
//! log 200 ----                     the next log line
//! accepts, refrains                new connections are accepted, are not
//! quiet                            no stream is left
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use net::{Accepted, Addr, Close, Engine as _, ListenerId};
use spangate_proxy::{Engine, Order, RuntimeConfig, Shared};

use crate::driver::{Pipe, SimDriver, deliver};
use crate::setups::runtime_config;

pub const DEFAULTS: &str = "defaults
    mode http
    timeout client 10s
    timeout server 20s
    timeout connect 3s
    timeout http-request 5s
    timeout http-keep-alive 7s
    timeout queue 4s
    timeout tunnel 30s
    timeout tarpit 6s
    balance roundrobin
    retries 0
    log stdout format raw local0
    log-format \"%ST %tsc\"
listen rules
    bind 127.0.0.1:80
";

/// One worker and its peers.
pub struct Play {
    pub engine: Engine,
    pub driver: SimDriver,
    clients: BTreeMap<String, usize>,
    logs_read: usize,
}

/// Plays a script with these lines of configuration; a server is added where they have none.
pub fn play(name: &str, lines: &str, script: &str) {
    let server = if lines.lines().any(|line| line.starts_with("server ")) {
        ""
    } else {
        "    server one 127.0.0.1:81\n"
    };
    play_running(
        name,
        runtime_config(&format!("{DEFAULTS}{lines}\n{server}")),
        script,
    );
}

/// Plays a script with a configuration; the worker ends then.
pub fn play_running(name: &str, runtime_config: Arc<RuntimeConfig>, script: &str) {
    let mut play = Play::new(&runtime_config);
    for line in script
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        play.driver.say(format_args!("{name}: {line}"));
        if let Err(error) = play.line(line) {
            panic!("{name}: `{line}`: {error}");
        }
        play.settle();
        let checks = play
            .engine
            .audit()
            .err()
            .or_else(|| play.driver.faults.first().cloned());
        assert!(checks.is_none(), "{name}: after `{line}`: {checks:?}");
    }
    play.engine.finish(&mut play.driver);
}

/// What passed in an exchange.
#[derive(Debug)]
pub struct Passed {
    /// To each server connection.
    pub servers: Vec<Vec<u8>>,
    pub client: Vec<u8>,
    /// The proxy has ended the client's connection.
    pub client_ended: bool,
}

/// One client sends a request; each server connection that opens is answered alike once something
/// has come.
pub fn exchange(runtime_config: Arc<RuntimeConfig>, request: &str, response: &str) -> Passed {
    let mut play = Play::new(&runtime_config);
    let failed = |error: String| panic!("{request}: {error}");
    let mut line = |line: &str| play.line(line).unwrap_or_else(failed);
    line(&format!("c1 > {request}"));
    play.settle();
    let mut servers = Vec::new();
    while let Ok(server) = play.place(&format!("s{}", servers.len() + 1)) {
        let name = format!("s{}", servers.len() + 1);
        if play.driver.pipes[server].connecting {
            let _ = play.line(&format!("{name} ok"));
            play.settle();
        }
        servers.push(play.driver.pipes[server].outbox.peek().to_vec());
        let _ = play.line(&format!("{name} > {response}"));
        play.settle();
        // What a client sends behind the head only leaves with the answer of the server.
        if let Some(sent) = servers.last_mut() {
            *sent = play.driver.pipes[server].outbox.peek().to_vec();
        }
    }
    let client = &play.driver.pipes[play.clients["c1"]];
    Passed {
        servers,
        client: client.outbox.peek().to_vec(),
        client_ended: client.ended || client.reset || client.sock.is_none(),
    }
}

/// Bytes as a script writes them.
pub fn bytes(text: &str) -> Vec<u8> {
    let text = text.replace('|', "\r\n").replace('¦', "|");
    let mut parts = text.split('¤');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at(2);
        bytes.push(u8::from_str_radix(digits, 16).expect("two hexadecimal digits"));
        bytes.extend_from_slice(rest.as_bytes());
    }
    bytes
}

fn shown(bytes: &[u8]) -> String {
    let mut shown = String::new();
    for chunk in bytes.utf8_chunks() {
        shown.push_str(chunk.valid());
        for byte in chunk.invalid() {
            shown.push_str(&format!("¤{byte:02x}"));
        }
    }
    shown.replace("\r\n", "|")
}

impl Play {
    /// The only worker of a process.
    pub fn new(runtime_config: &Arc<RuntimeConfig>) -> Play {
        Play::of(runtime_config, &Arc::new(runtime_config.share(1)), 0)
    }

    /// One of several.
    pub fn of(runtime_config: &Arc<RuntimeConfig>, shared: &Arc<Shared>, worker: usize) -> Play {
        let engine = Engine::new(Arc::clone(runtime_config), Arc::clone(shared), worker, 1);
        let mut driver = SimDriver::new(
            runtime_config.listener_count(),
            runtime_config.config.global.tune.bufsize_bytes,
        );
        driver.verbose = std::env::var_os("SPANGATE_SEED").is_some();
        Play {
            engine,
            driver,
            clients: BTreeMap::new(),
            logs_read: 0,
        }
    }

    /// One line of a script.
    pub fn line(&mut self, line: &str) -> Result<(), String> {
        let (first, rest) = line.split_once(' ').unwrap_or((line, ""));
        match first {
            "wait" => self.wait(rest.parse().map_err(|_| "no number")?),
            "log" => self.log(rest),
            "nolog" => match self.driver.logs.get(self.logs_read) {
                Some(line) => Err(shown(line)),
                None => Ok(()),
            },
            "full" | "drain" => {
                let place = self.place(rest)?;
                let pipe = &mut self.driver.pipes[place];
                pipe.room = if first == "full" { 0 } else { usize::MAX };
                Ok(())
            }
            "drainprocess" => {
                let mut times = rest.split(' ').map(|ms| ms.parse::<u64>().ok());
                let order = Order::Drain {
                    grace_ms: times.next().flatten().unwrap_or(0),
                    hard_stop_ms: times.next().flatten(),
                };
                self.engine.on_order(&mut self.driver, order);
                Ok(())
            }
            "unfinished" => {
                if net::Engine::<SimDriver>::is_finished(&self.engine, false) {
                    Err("it has finished".into())
                } else {
                    Ok(())
                }
            }
            "stop" => {
                self.engine.on_order(&mut self.driver, Order::Stop);
                Ok(())
            }
            "accepts" | "refrains" => {
                if self.accepts() == (first == "accepts") {
                    Ok(())
                } else {
                    Err("it is not so".into())
                }
            }
            "listens" => {
                if self.driver.unlistened[0] {
                    Err("the listener is closed".into())
                } else {
                    Ok(())
                }
            }
            "finished" => {
                if net::Engine::<SimDriver>::is_finished(&self.engine, false) {
                    Ok(())
                } else {
                    Err("it goes on".into())
                }
            }
            "quiet" => match self.engine.streams_in_use() {
                0 => Ok(()),
                left => Err(format!("{left} streams")),
            },
            who => self.act(who, rest),
        }
    }

    /// Whether one more connection would be accepted.
    fn accepts(&mut self) -> bool {
        let listener = ListenerId(0);
        let admits = self.driver.accepting[0] && self.engine.admit(&mut self.driver, listener);
        if admits {
            self.engine.retract(&mut self.driver, listener);
        }
        admits
    }

    fn act(&mut self, who: &str, what: &str) -> Result<(), String> {
        if what == "none" {
            let place = self.place(who);
            return place.map_or(Ok(()), |_| Err("there is one".into()));
        }
        let place = self.place(who)?;
        let (verb, text) = what.split_once(' ').unwrap_or((what, ""));
        let sock = self.driver.pipes[place].sock;
        match (verb, sock) {
            ("<", _) => self.expect(place, text, true),
            ("<~", _) => self.expect(place, text, false),
            ("to", _) => {
                let wanted = text.parse().map_err(|_| "no address")?;
                self.state(place, |pipe| pipe.to == Some(Addr::Inet(wanted)))
            }
            ("from", _) => {
                let shown = |addr: &Option<Addr>| addr.as_ref().map(Addr::to_string);
                let wanted = (text != "-").then(|| text.to_owned());
                self.state(place, |pipe| shown(&pipe.foreign) == wanted)
            }
            ("own", _) => {
                let shown = |addr: &Option<Addr>| addr.as_ref().map(Addr::to_string);
                self.state(place, |pipe| shown(&pipe.source).as_deref() == Some(text))
            }
            ("fast", _) => self.state(place, |pipe| pipe.fast_open),
            ("slow", _) => self.state(place, |pipe| !pipe.fast_open),
            ("end", _) => self.state(place, |pipe| pipe.ended),
            ("reset", _) => self.state(place, |pipe| pipe.reset),
            ("open", _) => self.state(place, |pipe| {
                !pipe.ended && !pipe.reset && pipe.sock.is_some()
            }),
            ("labels", _) => {
                let labels = self.driver.pipes[place].labels;
                let shown = |number: Option<u32>| number.map_or("-".into(), |n| n.to_string());
                let found = format!(
                    "{} {}",
                    shown(labels.mark),
                    shown(labels.tos.map(u32::from))
                );
                if found == text {
                    Ok(())
                } else {
                    Err(format!("found {found:?}"))
                }
            }
            ("held", _) => self.state(place, |pipe| pipe.paused),
            ("heard", _) => self.state(place, |pipe| !pipe.paused),
            ("gone", _) => self.state(place, |pipe| pipe.sock.is_none()),
            (_, None) => Err("the proxy has closed it".into()),
            (">", Some(_)) => {
                self.driver.pipes[place].write(&bytes(text));
                Ok(())
            }
            ("fin", Some(_)) => {
                self.driver.pipes[place].peer_ended = true;
                Ok(())
            }
            ("rst" | "refuse", Some(sock)) => {
                self.driver.forget(sock);
                let why = if verb == "rst" {
                    Close::Reset
                } else {
                    Close::Refused
                };
                self.engine.on_close(&mut self.driver, sock, why);
                Ok(())
            }
            ("ok", Some(sock)) => {
                self.driver.pipes[place].connecting = false;
                self.engine.on_connected(&mut self.driver, sock);
                Ok(())
            }
            ("takes", Some(sock)) => {
                let count = text.parse().map_err(|_| "how many?")?;
                let pipe = &mut self.driver.pipes[place];
                pipe.room += count;
                pipe.drain(count);
                let blocked = pipe.blocked;
                self.engine.on_writable(&mut self.driver, sock, blocked);
                Ok(())
            }
            ("connects", _) => Ok(()),
            _ => Err("what is that?".into()),
        }
    }

    /// The pipe of a peer: `c…` connects when first named, `sN` is the N-th connection that the
    /// proxy opened.
    pub fn place(&mut self, who: &str) -> Result<usize, String> {
        if let Some(number) = who.strip_prefix('s') {
            let number: usize = number.parse().map_err(|_| "who?")?;
            let servers = self
                .driver
                .pipes
                .iter()
                .enumerate()
                .filter(|(_, pipe)| pipe.to.is_some());
            let place = servers.map(|(place, _)| place).nth(number - 1);
            return place.ok_or_else(|| "there is no such connection".into());
        }
        if !who.starts_with('c') {
            return Err("who?".into());
        }
        if let Some(place) = self.clients.get(who) {
            return Ok(*place);
        }
        let listener = ListenerId(0);
        if !self.engine.admit(&mut self.driver, listener) {
            return Err("the listener takes nobody".into());
        }
        let (sock, place) = self.driver.open();
        self.clients.insert(who.to_string(), place);
        let address = |text: &str| Addr::Inet(text.parse().expect("an address"));
        let accepted = Accepted {
            listener,
            peer: address("10.0.0.1:5000"),
            local: address("10.1.0.1:80"),
        };
        self.engine.on_accept(&mut self.driver, sock, accepted);
        Ok(place)
    }

    fn expect(&mut self, place: usize, text: &str, whole: bool) -> Result<(), String> {
        let wanted = bytes(text);
        let outbox = &mut self.driver.pipes[place].outbox;
        let found = outbox.peek().to_vec();
        outbox.clear();
        if if whole {
            found == wanted
        } else {
            found.starts_with(&wanted)
        } {
            Ok(())
        } else {
            Err(format!("found {:?}", shown(&found)))
        }
    }

    fn state(
        &mut self,
        place: usize,
        holds: impl Fn(&crate::driver::Pipe) -> bool,
    ) -> Result<(), String> {
        let pipe = &self.driver.pipes[place];
        if holds(pipe) {
            Ok(())
        } else {
            Err(format!(
                "it has {:?}, ended: {}, reset: {}",
                shown(pipe.outbox.peek()),
                pipe.ended,
                pipe.reset
            ))
        }
    }

    fn log(&mut self, wanted: &str) -> Result<(), String> {
        let line = self.driver.logs.get(self.logs_read).ok_or("no line")?;
        self.logs_read += 1;
        let line = shown(line).trim_end().to_string();
        if line == wanted {
            Ok(())
        } else {
            Err(format!("found {line:?}"))
        }
    }

    /// Lets time pass, with every deadline at its moment.
    fn wait(&mut self, ms: u64) -> Result<(), String> {
        let until_ms = self.driver.now.ms() + ms;
        loop {
            let due = net::Engine::<SimDriver>::next_deadline_ms(&mut self.engine);
            let next_ms = due.map_or(until_ms, |at| at.min(until_ms));
            let now_ms = self.driver.now.ms();
            self.driver.advance_ms(next_ms.saturating_sub(now_ms));
            if due.is_none_or(|at| at > until_ms) {
                return Ok(());
            }
            self.engine.on_timer(&mut self.driver);
            self.settle();
        }
    }

    /// Delivers all there is.
    pub fn settle(&mut self) {
        let mut place = 0;
        while place < self.driver.pipes.len() {
            let pipe = &mut self.driver.pipes[place];
            let ready = !pipe.paused && !pipe.connecting;
            place += 1;
            let Some(sock) = pipe.sock else { continue };
            if pipe.blocked && pipe.room > 0 {
                pipe.drain(usize::MAX);
                let blocked = pipe.blocked;
                self.engine.on_writable(&mut self.driver, sock, blocked);
            } else if pipe.broken && !pipe.break_told {
                pipe.break_told = true;
                self.engine.on_broken(&mut self.driver, sock);
            } else if ready && !pipe.inbox.is_empty() {
                deliver(&mut self.engine, &mut self.driver, place - 1, usize::MAX);
            } else if ready && pipe.peer_ended && !pipe.end_told {
                pipe.end_told = true;
                self.engine.on_eof(&mut self.driver, sock);
            } else {
                continue;
            }
            place = 0;
        }
        self.engine.on_round_end(&mut self.driver);
        let is_ready = |pipe: &Pipe| {
            pipe.sock.is_some() && !pipe.paused && !pipe.connecting && !pipe.inbox.is_empty()
        };
        let has_work = net::Engine::<SimDriver>::has_work(&self.engine);
        if has_work || self.driver.pipes.iter().any(is_ready) {
            self.settle();
        }
    }
}
