//! Which timeouts of a stream run, and when each is due.
//!
//! A stream keeps facts only: its phase, with the end of the phase's wait; its channels, with what
//! they wait for; and when each side was last active. [`Stream::deadlines`] computes the deadlines
//! from these facts. [`Stream::stopped`] is called once each time a stream stops running, and the
//! timer is set to the earliest deadline that it returns.
//!
//! As in HAProxy, a side has two inactivity timeouts of the same length: for its next bytes, while
//! it is read, and for the bytes that it has to accept, while it does not accept them. Nobody waits
//! for a side that is not read because the other side is slow, a rule pauses, or a bandwidth limit
//! delays its bytes.

use net::timers::NEVER_MS;

use super::{Channel, Phase, Stream, Tunnel};
use crate::runtime_config::RuntimeConfig;

/// When the sides of a stream were last active.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Activity {
    pub client: Side,
    pub server: Side,
}

/// When one side was last active, monotonic milliseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Side {
    /// The stream took bytes from it, or began to wait for them; [`NEVER_MS`] while the stream does
    /// not wait for them, and until it stops running.
    pub sent_ms: u64,
    /// It accepted bytes, or stopped accepting them.
    pub took_ms: u64,
}

impl Default for Side {
    fn default() -> Self {
        Side {
            sent_ms: NEVER_MS,
            took_ms: 0,
        }
    }
}

/// When the wait of a phase ends, monotonic milliseconds; [`NEVER_MS`] if it has no end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Until(pub u64);

impl Default for Until {
    fn default() -> Self {
        Until(NEVER_MS)
    }
}

/// The deadlines of a stream, monotonic milliseconds; [`NEVER_MS`] for one that does not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Deadlines {
    /// The client's inactivity timeout.
    pub client_ms: u64,
    /// The server's inactivity timeout.
    pub server_ms: u64,
    /// The end of the phase's wait.
    pub wait_ms: u64,
    /// When a delayed channel may send again.
    pub pace_ms: u64,
}

/// A deadline that has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    Pace,
    Wait,
    Client,
    Server,
}

impl Deadlines {
    /// The earliest deadline.
    #[inline]
    pub fn first_ms(&self) -> u64 {
        let silence_ms = self.client_ms.min(self.server_ms);
        silence_ms.min(self.wait_ms).min(self.pace_ms)
    }

    /// The deadline that has passed. Of several: a delay ends before a timeout, and the phase's
    /// timeout precedes those of the sides.
    pub fn due(&self, now_ms: u64) -> Option<Due> {
        if self.pace_ms <= now_ms {
            Some(Due::Pace)
        } else if self.wait_ms <= now_ms {
            Some(Due::Wait)
        } else if self.client_ms.min(self.server_ms) > now_ms {
            None
        } else if self.client_ms <= self.server_ms {
            Some(Due::Client)
        } else {
            Some(Due::Server)
        }
    }
}

/// What a stream waits for from one side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Awaited {
    /// Its next bytes.
    bytes: bool,
    /// It accepts bytes.
    room: bool,
}

/// What a stream waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Awaits {
    client: Awaited,
    server: Awaited,
}

impl Activity {
    /// A tunnel begins, or one side of it has ended: the inactivity timeouts of both sides start
    /// anew when the stream stops running.
    pub fn restart(&mut self) {
        self.client.restart();
        self.server.restart();
    }
}

impl Side {
    /// The stream has taken bytes from it, or waits for it for another reason than before: its
    /// inactivity timeout starts anew when the stream stops running.
    #[inline]
    pub fn restart(&mut self) {
        self.sent_ms = NEVER_MS;
    }

    /// It has accepted bytes of its channel, or begins not to accept them. `is_blocked`: some are
    /// still to be accepted.
    #[inline]
    pub fn took(&mut self, channel: &mut Channel, is_blocked: bool, now_ms: u64) {
        self.took_ms = now_ms;
        channel.is_blocked = is_blocked;
    }

    /// Notes whether the stream waits for its bytes.
    #[inline]
    fn note(&mut self, awaited: Awaited, now_ms: u64) {
        if !awaited.bytes {
            self.sent_ms = NEVER_MS;
        } else if self.sent_ms == NEVER_MS {
            self.sent_ms = now_ms;
        }
    }

    /// When its inactivity timeout is due. `independent`: accepting bytes is no sign that it will
    /// send some (manual §4.2 option independent-streams).
    #[inline]
    fn due_ms(self, awaited: Awaited, timeout_ms: u64, independent: bool) -> u64 {
        let mut since_ms = NEVER_MS;
        if awaited.bytes {
            since_ms = if independent {
                self.sent_ms
            } else {
                self.sent_ms.max(self.took_ms)
            };
        }
        if awaited.room {
            since_ms = since_ms.min(self.took_ms);
        }
        since_ms.saturating_add(timeout_ms)
    }
}

impl Stream {
    /// The stream stops running: notes for what it waits from now on. Returns the time at which its
    /// first deadline is due.
    #[inline]
    pub fn stopped(&mut self, runtime_config: &RuntimeConfig, now_ms: u64) -> u64 {
        let Activity { client, server } = &mut self.activity;
        // Most streams wait for nothing but more of a response. [`Stream::deadlines`] finds the same
        // with more branches.
        let awaits_response = matches!(self.phase, Phase::ResponseHead | Phase::Transfer)
            && self.server.link().is_some()
            && (self.up.came && !self.up.is_held())
            && (!self.down.came && !self.down.is_held());
        if awaits_response && server.took_ms <= server.sent_ms {
            client.sent_ms = NEVER_MS;
            if server.sent_ms == NEVER_MS {
                server.sent_ms = now_ms;
            }
            let sent_ms = server.sent_ms;
            return sent_ms.saturating_add(self.server_ms(runtime_config));
        }
        self.stopped_otherwise(runtime_config, now_ms)
    }

    #[inline(never)]
    fn stopped_otherwise(&mut self, runtime_config: &RuntimeConfig, now_ms: u64) -> u64 {
        let awaits = self.awaits(runtime_config);
        self.activity.client.note(awaits.client, now_ms);
        self.activity.server.note(awaits.server, now_ms);
        self.deadlines_of(awaits, runtime_config).first_ms()
    }

    /// The deadlines of a stream that does not run.
    pub fn deadlines(&self, runtime_config: &RuntimeConfig) -> Deadlines {
        self.deadlines_of(self.awaits(runtime_config), runtime_config)
    }

    #[inline]
    fn deadlines_of(&self, awaits: Awaits, runtime_config: &RuntimeConfig) -> Deadlines {
        let Activity { client, server } = self.activity;
        let mut deadlines = Deadlines {
            client_ms: NEVER_MS,
            server_ms: NEVER_MS,
            wait_ms: self.phase.ends_ms(),
            pace_ms: self.up.delayed_until_ms.min(self.down.delayed_until_ms),
        };
        if awaits.client != Awaited::default() {
            let options = &runtime_config.proxy(self.frontend).options;
            let timeout_ms = self.client_inactivity_ms(runtime_config);
            deadlines.client_ms =
                client.due_ms(awaits.client, timeout_ms, options.independent_streams);
        }
        if awaits.server != Awaited::default() {
            let options = &runtime_config.proxy(self.backend).options;
            let timeout_ms = self.server_inactivity_ms(runtime_config);
            deadlines.server_ms =
                server.due_ms(awaits.server, timeout_ms, options.independent_streams);
        }
        deadlines
    }

    /// What a stream waits for from each side. Until a request is sent, its phase has a timeout of
    /// its own, and only the client of a TCP session has another.
    #[inline]
    fn awaits(&self, runtime_config: &RuntimeConfig) -> Awaits {
        match self.phase {
            Phase::ResponseHead | Phase::SendResponse | Phase::Transfer => self.awaits_messages(),
            Phase::BackendResponse(rules) => {
                let mut awaits = self.awaits_messages();
                awaits.server.bytes &= !rules.is_paused();
                awaits
            }
            // Both sides may send at any time until they end.
            Phase::Tunnel(tunnel) => Awaits {
                client: Awaited {
                    bytes: !tunnel.client_ended && !self.up.is_held(),
                    room: self.down.is_blocked,
                },
                server: Awaited {
                    bytes: !tunnel.server_ended && !self.down.is_held(),
                    room: self.up.is_blocked,
                },
            },
            Phase::FrontendContent(_)
            | Phase::SwitchBackend
            | Phase::BackendContent(_)
            | Phase::AssignServer
            | Phase::SelectServer
            | Phase::Queue(_)
            | Phase::TurnAround(_)
            | Phase::Connect(_)
            | Phase::OpenTunnel => {
                let has_room = self.up.waiting.len() < runtime_config.bufsize();
                Awaits {
                    client: Awaited {
                        bytes: !self.txn.is_http && !self.up.came && has_room,
                        room: false,
                    },
                    server: Awaited::default(),
                }
            }
            Phase::RequestHead(_)
            | Phase::FrontendBody(_)
            | Phase::FrontendRequest(_)
            | Phase::BackendBody(_)
            | Phase::BackendRequest(_)
            | Phase::PrepareRequest
            | Phase::TakeOver(_)
            | Phase::SendRequest
            | Phase::Tarpit(_)
            | Phase::Done => Awaits::default(),
        }
    }

    /// The request was sent: what the stream waits for to forward the rest of it and the response.
    /// A server need not send anything before it has the whole request.
    #[inline]
    fn awaits_messages(&self) -> Awaits {
        let has_server = self.server.link().is_some();
        let (up, down) = (&self.up, &self.down);
        let uploads = up.is_open && !up.came;
        Awaits {
            client: Awaited {
                bytes: has_server && uploads && !up.is_held(),
                room: down.is_blocked,
            },
            server: Awaited {
                bytes: has_server && !uploads && !down.came && !down.is_held(),
                room: has_server && up.is_blocked,
            },
        }
    }

    #[inline]
    fn client_inactivity_ms(&self, runtime_config: &RuntimeConfig) -> u64 {
        let client_ms = self.client_ms(runtime_config);
        match self.phase {
            Phase::Tunnel(tunnel) => {
                let fin_ms = runtime_config.timeouts(self.frontend).client_fin;
                let fin_ms = tunnel.server_ended.then_some(fin_ms);
                self.tunnel_inactivity_ms(runtime_config, tunnel, client_ms, fin_ms)
            }
            _ => client_ms,
        }
    }

    #[inline]
    fn server_inactivity_ms(&self, runtime_config: &RuntimeConfig) -> u64 {
        let server_ms = self.server_ms(runtime_config);
        match self.phase {
            Phase::Tunnel(tunnel) => {
                let fin_ms = runtime_config.timeouts(self.backend).server_fin;
                let fin_ms = tunnel.client_ended.then_some(fin_ms);
                self.tunnel_inactivity_ms(runtime_config, tunnel, server_ms, fin_ms)
            }
            _ => server_ms,
        }
    }

    /// The timeout of one side of a tunnel: `timeout tunnel` where it is set, once rules let all
    /// bytes pass. `fin_ms`: `*-fin`, where the other side has ended; it is for TCP alone.
    fn tunnel_inactivity_ms(
        &self,
        runtime_config: &RuntimeConfig,
        tunnel: Tunnel,
        plain_ms: u64,
        fin_ms: Option<u64>,
    ) -> u64 {
        let fin_ms = fin_ms.filter(|fin_ms| *fin_ms != NEVER_MS && !self.txn.is_http);
        let tunnel_ms = self.tunnel_ms(runtime_config);
        match fin_ms {
            Some(fin_ms) => fin_ms,
            None if tunnel.inspection.is_none() && tunnel_ms != NEVER_MS => tunnel_ms,
            None => plain_ms,
        }
    }
}

#[cfg(test)]
mod tests;
