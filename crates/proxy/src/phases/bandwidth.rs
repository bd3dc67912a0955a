//! Delays payload that exceeds a bandwidth limit (`filter bwlim-in`, `filter bwlim-out`).

use config::model::Direction;
use net::Driver;
use net::timers::NEVER_MS;

use super::Cx;
use crate::link::Hold;
use crate::stream::{Phase, ServerEnd, Stream};

impl<D: Driver> Cx<'_, D> {
    /// How many of these bytes of payload may pass now.
    #[inline]
    pub(super) fn may_pass(
        &mut self,
        stream: &mut Stream,
        direction: Direction,
        len: usize,
    ) -> usize {
        if stream.bandwidth.is_empty() {
            return len;
        }
        let now_us = self.now().mono_ns / 1000;
        stream.bandwidth.most(direction, len, now_us)
    }

    /// Notes that bytes have passed. While `rest` bytes are held back, their sender is not read.
    #[inline]
    pub(super) fn has_passed(
        &mut self,
        stream: &mut Stream,
        direction: Direction,
        bytes: usize,
        rest: usize,
    ) {
        if !stream.bandwidth.is_empty() {
            self.pace(stream, direction, bytes, rest);
        }
    }

    #[cold]
    fn pace(&mut self, stream: &mut Stream, direction: Direction, bytes: usize, rest: usize) {
        let now = self.now();
        let now_us = now.mono_ns / 1000;
        let wait_ms = stream.bandwidth.take(direction, bytes, rest, now_us);
        if rest == 0 {
            return;
        }
        let (sender, channel) = match direction {
            Direction::Up => (stream.client, &mut stream.up),
            Direction::Down => (stream.server.link(), &mut stream.down),
        };
        let until_ms = now.ms() + wait_ms.max(1);
        channel.delayed_until_ms = channel.delayed_until_ms.min(until_ms);
        if let Some(sender) = sender {
            self.core.links.hold(self.io, sender, Hold::Pace);
        }
    }

    /// The delay of a channel is over: that of a bandwidth limit, or the pause of a generated body.
    pub(super) fn pace_over(&mut self, stream: &mut Stream) {
        for channel in [&mut stream.up, &mut stream.down] {
            channel.delayed_until_ms = NEVER_MS;
        }
        if let ServerEnd::Generated(_) = stream.server {
            self.send_made(stream);
        }
        if stream.up.is_open {
            self.send_waiting_up(stream);
        }
        if stream.down.is_open {
            self.send_waiting_down(stream);
        }
        for link in [stream.client, stream.server.link()].into_iter().flatten() {
            self.core.links.release(self.io, link, Hold::Pace);
            self.core.work.links.push_back(link.into());
        }
        match stream.phase {
            Phase::Transfer => self.run(stream),
            Phase::Tunnel(_) => self.tunnel_maybe_over(stream),
            _ => {}
        }
    }
}
