//! The filters that payload passes in its direction: bandwidth limits (`filter bwlim-in`, `filter
//! bwlim-out`), compression, and the bandwidth limits after it.

use config::model::Direction;
use net::Driver;
use net::timers::NEVER_MS;

use super::Cx;
use crate::link::{Hold, Wrote};
use crate::stream::{Phase, ServerEnd, Stream};

impl<D: Driver> Cx<'_, D> {
    /// Sends payload on through the filters of a direction. Returns how many bytes were used.
    #[cold]
    #[inline(never)]
    pub(super) fn filter(
        &mut self,
        stream: &mut Stream,
        direction: Direction,
        bytes: &[u8],
    ) -> usize {
        let now_us = self.now().mono_ns / 1000;
        let Some(filters) = &mut stream.channel_mut(direction).filters else {
            return 0;
        };
        let most = filters.most(bytes.len(), now_us);
        let (passes, rest) = bytes.split_at(most);
        let used = if filters.compressor.is_some() {
            self.compress(stream, direction, passes)
        } else {
            self.pass(stream, direction, passes)
        };
        self.pace(stream, direction, used, rest.len());
        used
    }

    /// The payload of a direction is completely received: sends what its filters still hold.
    /// Whether all of it was taken.
    #[cold]
    pub(super) fn finish_filters(&mut self, stream: &mut Stream, direction: Direction) -> bool {
        if let Some(compressor) = stream.channel_mut(direction).compressor_mut() {
            compressor.finish();
        }
        self.send_filtered(stream, direction)
    }

    /// Sends what the filters of a direction hold. Whether all of it was taken.
    #[cold]
    pub(super) fn send_filtered(&mut self, stream: &mut Stream, direction: Direction) -> bool {
        let now_us = self.now().mono_ns / 1000;
        let Some(to) = stream.receiver(direction) else {
            return true;
        };
        let Some(filters) = &mut stream.channel_mut(direction).filters else {
            return true;
        };
        let limits = &mut filters.output_limits;
        let Some(compressor) = &mut filters.compressor else {
            return true;
        };
        let waiting = compressor.waiting();
        if waiting.is_empty() {
            return true;
        }
        let (passes, rest) = waiting.split_at(limits.most(waiting.len(), now_us));
        let wrote = if passes.is_empty() {
            Wrote::default()
        } else {
            self.core.links.send_data(self.io, to, passes)
        };
        let (is_all, rest) = (wrote.taken == waiting.len(), rest.len());
        compressor.has_left(wrote.taken);
        let wait_ms = limits.take(wrote.taken, rest, now_us);
        self.after_sending(stream, direction, wrote);
        if rest > 0 {
            self.delay(stream, direction, wait_ms);
        }
        is_all
    }

    /// A stream has ended: releases its filters.
    #[cold]
    pub(super) fn end_filters(&mut self, stream: &mut Stream) {
        if let Some(compressor) = stream.up.filters.take().and_then(|it| it.compressor) {
            self.core.compressors.put(*compressor);
        }
        if let Some(compressor) = stream.down.filters.take().and_then(|it| it.compressor) {
            self.accounts()
                .tell_compression(stream, compressor.totals());
            self.core.compressors.put(*compressor);
        }
    }

    /// Compresses payload and sends it. Returns how many bytes were used.
    fn compress(&mut self, stream: &mut Stream, direction: Direction, bytes: &[u8]) -> usize {
        // Sends earlier compressed bytes first, so that at most one delivery waits.
        if !self.send_filtered(stream, direction) {
            return 0;
        }
        if let Some(compressor) = stream.channel_mut(direction).compressor_mut() {
            compressor.write(bytes);
        }
        self.send_filtered(stream, direction);
        bytes.len()
    }

    /// Notes that bytes have passed the limits. While `rest` bytes are held back, their sender is
    /// not read.
    fn pace(&mut self, stream: &mut Stream, direction: Direction, bytes: usize, rest: usize) {
        let now_us = self.now().mono_ns / 1000;
        let Some(filters) = &mut stream.channel_mut(direction).filters else {
            return;
        };
        let wait_ms = filters.take(bytes, rest, now_us);
        if rest > 0 {
            self.delay(stream, direction, wait_ms);
        }
    }

    /// Limits hold payload back: it waits, and its sender is not read meanwhile.
    fn delay(&mut self, stream: &mut Stream, direction: Direction, wait_ms: u64) {
        let until_ms = self.now_ms() + wait_ms.max(1);
        let sender = stream.sender(direction);
        let channel = stream.channel_mut(direction);
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
