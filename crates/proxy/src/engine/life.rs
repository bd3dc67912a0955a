//! The worker's life cycle: serving, draining, stopped.

use net::timers::NEVER_MS;
use net::{Driver, ListenerId};

use super::Turn;
use super::quic::QUIC_CLOSE_MS;
use crate::link::Named;
use crate::shared::Killed;

/// The worker's state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Life {
    #[default]
    Serving,
    /// Listeners close at the first time; connections are cut at the second.
    Draining {
        close_at_ms: u64,
        cut_at_ms: u64,
        closed: bool,
    },
    Stopped,
}

impl Life {
    /// The time of the next action, milliseconds.
    pub fn next_ms(self) -> u64 {
        match self {
            Life::Draining {
                close_at_ms,
                closed: false,
                ..
            } => close_at_ms,
            Life::Draining { cut_at_ms, .. } => cut_at_ms,
            Life::Serving | Life::Stopped => NEVER_MS,
        }
    }

    /// Whether the worker may end. `is_idle`: it has neither streams nor clients, and none to
    /// accept.
    pub fn is_over(self, is_idle: bool) -> bool {
        match self {
            Life::Serving => false,
            Life::Draining { closed, .. } => closed && is_idle,
            Life::Stopped => true,
        }
    }
}

impl<D: Driver> Turn<'_, D> {
    pub(super) fn drain(&mut self, grace_ms: u64, hard_stop_ms: Option<u64>) {
        if self.state.life != Life::Serving {
            return;
        }
        let now_ms = self.cx.now_ms();
        self.cx.core.ambient.stopping = true;
        self.state.life = Life::Draining {
            close_at_ms: now_ms.saturating_add(grace_ms),
            cut_at_ms: hard_stop_ms.map_or(NEVER_MS, |after| now_ms.saturating_add(after)),
            closed: false,
        };
        self.advance_life();
    }

    /// Executes the drain actions that are due.
    pub(super) fn advance_life(&mut self) {
        let Life::Draining {
            close_at_ms,
            cut_at_ms,
            closed,
        } = self.state.life
        else {
            return;
        };
        let now_ms = self.cx.now_ms();
        if !closed && now_ms >= close_at_ms {
            self.state.life = Life::Draining {
                close_at_ms,
                cut_at_ms,
                closed: true,
            };
            for listener in 0..self.cx.runtime_config.listeners.len() {
                self.close_listener(ListenerId(listener as u32), NEVER_MS);
            }
            self.end_idle();
        }
        if now_ms >= cut_at_ms {
            // Each has its line in the log.
            self.kill(&Killed::All);
            self.state.life = Life::Stopped;
        }
    }

    /// A frontend accepts the connections that wait, and none after them.
    pub(super) fn close_frontend(&mut self, frontend: usize) {
        let listeners = self.cx.runtime_config.listeners.iter().enumerate();
        let of_frontend = listeners.filter(|(_, bind)| bind.frontend.place() == frontend);
        let of_frontend: Vec<usize> = of_frontend.map(|(listener, _)| listener).collect();
        for listener in of_frontend {
            let ends_ms = self.cx.now_ms() + QUIC_CLOSE_MS;
            self.close_listener(ListenerId(listener as u32), ends_ms);
        }
    }

    /// Ends clients without a request soon.
    fn end_idle(&mut self) {
        for slot in 0..self.cx.core.links.slots() {
            let links = &self.cx.core.links;
            if let Some(Named::Conn(conn)) = links.at(slot).and_then(|link| links.name(link)) {
                self.cx.hurry_idle_client(conn);
            }
        }
    }
}
