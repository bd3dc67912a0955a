//! A client's connection between its streams and after the last one.

use net::Driver;

use super::{ConnWait, Cx};
use crate::ids::{ConnId, QuicUser};
use crate::link::{After, Hold, Linger, Role, Stage};
use crate::runtime_config::deadline;
use crate::shared::QuicCount;

impl<D: Driver> Cx<'_, D> {
    /// A stream has released its client's connection.
    pub(super) fn after_stream(&mut self, link: ConnId, after: After) {
        let now = self.now();
        if let Some(client) = self.core.links.client_mut(link) {
            client.idle_since = now;
        }
        match after {
            After::Next => self.next_request(link),
            After::Drain => {
                self.wait_for_client(link);
                self.core.links.release_all(self.io, link);
                self.core.work.links.push_back(link.into());
            }
            After::End(linger) => self.finish_client(link, linger),
        }
    }

    /// The client's connection waits for its next request, once the client has taken all that was
    /// sent.
    pub fn next_request(&mut self, link: ConnId) {
        let Some(entry) = self.core.links.get(link) else {
            return;
        };
        if entry.blocked {
            // Stops reading a client that does not read its responses, so that they do not
            // accumulate.
            self.core.links.release_all(self.io, link);
            self.wait_for_client(link);
            self.update_reading(link);
        } else {
            self.await_request(link);
        }
    }

    /// Sets the deadline for the client's next bytes.
    pub fn wait_for_client(&mut self, link: ConnId) {
        if let Some(client) = self.core.links.client(link) {
            self.wait_idle_on(link, ConnWait::Activity(client.frontend()));
        }
    }

    /// A client without a stream reads its next request or waits for one.
    pub fn await_request(&mut self, link: ConnId) {
        let Some(entry) = self.core.links.get(link) else {
            return;
        };
        // The next bytes may be in the kernel even where none are kept here; the end is handled
        // after them.
        let more = !entry.input.is_empty() || entry.eof;
        let timer = entry.timer;
        let Role::Client(client) = &entry.role else {
            return;
        };
        let ends_ms = self.wait_ends_ms(ConnWait::NextRequest(client.frontend()));
        self.core.timers.set(timer, ends_ms);
        self.core.links.release_all(self.io, link);
        if more {
            self.core.work.links.push_back(link.into());
        }
    }

    /// Stops reading a client that has sent more bytes than can be used now.
    pub fn update_reading(&mut self, link: ConnId) {
        let Some(entry) = self.core.links.get(link) else {
            return;
        };
        let full = entry.is_full(self.runtime_config.bufsize());
        let unread = entry.blocked && !entry.input.is_empty() && entry.is_free();
        if full || unread {
            self.core.links.hold(self.io, link, Hold::Full)
        } else {
            self.core.links.release(self.io, link, Hold::Full)
        }
    }

    /// While draining: closes a client's connection without a request after a short idle time.
    pub fn hurry_idle_client(&mut self, link: ConnId) {
        if self.take_no_more_exchanges(link) {
            return;
        }
        let now = self.now();
        let Some(client) = self.core.links.client(link) else {
            return;
        };
        let options = &self.runtime_config.proxy(client.frontend()).options;
        // A client that has not sent a request yet keeps its full timeout.
        if self.core.links.is_between_requests(link) && !options.idle_close_on_response {
            let wait_ms = self.wait_ms(ConnWait::NextRequest(client.frontend()));
            let idle_end_ms = deadline(client.idle_since, wait_ms);
            if idle_end_ms <= now.ms() {
                self.close_client(link);
            } else {
                self.set_link_deadline(link, idle_end_ms);
            }
        }
    }

    /// Closes a client's connection once its last bytes have been sent, and once its input was
    /// discarded for as long as `linger` says or until it acknowledges our FIN.
    pub fn finish_client(&mut self, link: ConnId, linger: Linger) {
        self.core.links.set_stream(link.only_exchange(), None);
        let Some(entry) = self.core.links.get_mut(link) else {
            return;
        };
        if !entry.blocked && (linger == Linger::No || entry.eof) {
            return self.close_client(link);
        }
        entry.input.clear();
        let blocked = entry.blocked;
        let Some(client) = self.core.links.client_mut(link) else {
            return;
        };
        client.linger = linger;
        client.stage = Stage::Closing;
        let active = ConnWait::Activity(client.frontend());
        let wait = match linger {
            _ if blocked => active,
            Linger::No | Linger::Briefly => ConnWait::End,
            Linger::WhileItSends => active,
        };
        self.wait_on(link, wait);
        self.core.links.send_fin(self.io, link);
        self.core.links.release_all(self.io, link);
    }

    /// Input of a client was discarded whose connection is ending.
    pub fn discarded(&mut self, link: ConnId) {
        let client = self.core.links.client(link);
        if client.is_some_and(|client| client.linger == Linger::WhileItSends) {
            self.wait_for_client(link);
        }
    }

    /// The kernel took bytes for a client's connection that has no stream.
    pub fn client_moved_on_alone(&mut self, link: ConnId, blocked: bool) {
        let Some(entry) = self.core.links.get(link) else {
            return;
        };
        let eof = entry.eof;
        let waits = entry.discards_rest() || self.core.links.multiplexes(link);
        let Some(client) = self.core.links.client(link) else {
            return;
        };
        if blocked {
            return self.wait_for_client(link);
        }
        if client.stage != Stage::Closing {
            return if waits {
                self.wait_for_client(link)
            } else {
                self.await_request(link)
            };
        }
        match client.linger {
            Linger::Briefly if !eof => self.wait_on(link, ConnWait::End),
            Linger::WhileItSends if !eof => self.wait_for_client(link),
            _ => self.close_client(link),
        }
    }

    /// Closes a client's connection; bytes that were taken for sending still leave.
    pub fn close_client(&mut self, link: ConnId) {
        let Some(client) = self.core.links.client(link) else {
            return;
        };
        let abort = self
            .runtime_config
            .proxy(client.frontend())
            .options
            .nolinger;
        self.core.links.close(self.io, link, abort);
        self.forget_client(link);
    }

    /// A client's connection is closed: forgets it.
    pub fn forget_client(&mut self, link: ConnId) {
        let core = &mut *self.core;
        let Some(mut entry) = core.links.remove(link, &mut core.timers) else {
            return;
        };
        let told = entry.tell_end();
        let Role::Client(mut client) = entry.role else {
            return;
        };
        if let Some(told) = told {
            let ambient = &core.ambient;
            let (shared, worker, frontend) = (&ambient.shared, ambient.worker, client.frontend());
            if !told.is_h3 {
                let row = shared.front_row(worker, frontend);
                row.add_h2(&told.counts, 0);
                row.end_h2();
            } else if let Some(row) = shared.quic_row(worker, QuicUser::Frontend(frontend)) {
                row.tell_frames(&told.counts);
                row.take(QuicCount::OpenConnections);
            }
        }
        client.session.tracked.end(self.io.now_ms());
        let shared = &core.ambient.shared;
        if self.runtime_config.config.global.var_limits.process > 0 {
            shared.var_bytes_change(client.session.vars.bytes(), 0);
        }
        core.uncount(crate::shared::Count::Frontend(client.frontend()));
        core.uncount(crate::shared::Count::Bind(client.bind));
        core.clients -= 1;
        shared.dismiss(client.bind);
        core.work.dismissed = true;
        for kept in client.kept {
            self.close_server(kept);
        }
    }
}
