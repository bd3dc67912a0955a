//! The times of streams: a worker's values for a server, and the sums over all workers.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::rows::{BACK_CELLS, BackCount, BackExtra, BackRow, Sums, bump};

/// The number of requests over which an average is taken (HAProxy's `TIME_STATS_SAMPLES`).
const SAMPLES: u64 = 1024;

/// The parts of a stream's time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times<T> {
    /// The time in queues.
    pub queue: T,
    /// The time until the connection to the server was established.
    pub connect: T,
    /// The time from then to the head of the response.
    pub response: T,
    /// The time of the whole stream.
    pub total: T,
}

impl<T> Times<T> {
    pub(super) fn all(&self) -> [&T; 4] {
        [&self.queue, &self.connect, &self.response, &self.total]
    }
}

/// One worker's counters of a server, with the times of its streams.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct ServerRow {
    pub counts: BackRow,
    /// The number of measured streams, and the sums of their times, milliseconds.
    timed: AtomicU64,
    sums: Times<AtomicU64>,
    pub(super) longest: Times<AtomicU64>,
    /// The sums at the start of the averages' window.
    began: Window,
    /// The sums at the middle of that window, where the next one begins.
    middle: Window,
}

/// Sums at a point in time.
#[derive(Debug, Default)]
struct Window {
    timed: AtomicU64,
    sums: Times<AtomicU64>,
}

impl ServerRow {
    /// Adds the times of a stream, milliseconds. Most streams do not wait and use an established
    /// connection.
    #[inline(always)]
    pub fn time(&self, times: Times<u64>) {
        let timed = self.timed.load(Relaxed).wrapping_add(1);
        self.timed.store(timed, Relaxed);
        let (sums, longest) = (&self.sums, &self.longest);
        if times.queue | times.connect != 0 {
            bump(&sums.queue, times.queue);
            bump(&sums.connect, times.connect);
            raise(&longest.queue, times.queue);
            raise(&longest.connect, times.connect);
        }
        bump(&sums.response, times.response);
        bump(&sums.total, times.total);
        raise(&longest.response, times.response);
        raise(&longest.total, times.total);
        if timed.is_multiple_of(SAMPLES) {
            self.next_window(timed);
        }
    }

    /// Copies another row. No thread may count in either at the same time.
    pub(super) fn copy(&self, from: &ServerRow) {
        let copy = |to: &AtomicU64, from: &AtomicU64| to.store(from.load(Relaxed), Relaxed);
        let copy_times = |to: &Times<AtomicU64>, from: &Times<AtomicU64>| {
            let cells = to.all().into_iter().zip(from.all());
            cells.for_each(|(to, from)| copy(to, from));
        };
        self.counts.copy(&from.counts);
        copy(&self.timed, &from.timed);
        copy_times(&self.sums, &from.sums);
        copy_times(&self.longest, &from.longest);
        for (to, from) in [(&self.began, &from.began), (&self.middle, &from.middle)] {
            copy(&to.timed, &from.timed);
            copy_times(&to.sums, &from.sums);
        }
    }

    /// The second half of the window becomes the first half of the next one.
    #[cold]
    fn next_window(&self, timed: u64) {
        let moves = |from: &AtomicU64, to: &AtomicU64| to.store(from.load(Relaxed), Relaxed);
        let (began, middle) = (&self.began, &self.middle);
        moves(&middle.timed, &began.timed);
        middle.timed.store(timed, Relaxed);
        let cells = began.sums.all().into_iter().zip(middle.sums.all());
        for ((began, middle), sum) in cells.zip(self.sums.all()) {
            moves(middle, began);
            moves(sum, middle);
        }
    }
}

#[inline(always)]
fn raise(cell: &AtomicU64, to: u64) {
    if to > cell.load(Relaxed) {
        cell.store(to, Relaxed);
    }
}

impl ServerRow {
    /// Restarts the averages on behalf of a reader. If the worker begins a window at the same time,
    /// that window counts.
    pub(super) fn restart_averages(&self) {
        let timed = self.timed.load(Relaxed);
        for window in [&self.began, &self.middle] {
            window.timed.store(timed, Relaxed);
            for (to, from) in window.sums.all().into_iter().zip(self.sums.all()) {
                to.store(from.load(Relaxed), Relaxed);
            }
        }
    }
}

/// The times of streams, of all workers together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeSums {
    streams: u64,
    sums: [u64; 4],
    longest: [u64; 4],
}

impl TimeSums {
    /// Averages over the last 1024 to 2047 streams of each worker and server, milliseconds.
    #[must_use]
    pub fn averages(&self) -> Times<u64> {
        times(self.sums.map(|sum| sum.div_ceil(self.streams.max(1))))
    }

    /// The longest times, milliseconds.
    #[must_use]
    pub fn longest(&self) -> Times<u64> {
        times(self.longest)
    }

    pub(super) fn add(&mut self, other: &TimeSums) {
        self.streams += other.streams;
        for place in 0..self.sums.len() {
            self.sums[place] += other.sums[place];
            self.longest[place] = self.longest[place].max(other.longest[place]);
        }
    }

    pub(super) fn of(row: &ServerRow) -> TimeSums {
        let read = |times: &Times<AtomicU64>| times.all().map(|cell| cell.load(Relaxed));
        let (sums, began) = (read(&row.sums), read(&row.began.sums));
        let timed = row.timed.load(Relaxed);
        TimeSums {
            streams: timed.saturating_sub(row.began.timed.load(Relaxed)),
            sums: std::array::from_fn(|place| sums[place].saturating_sub(began[place])),
            longest: read(&row.longest),
        }
    }
}

/// The sums of a backend or server.
#[derive(Clone, Copy, Debug)]
pub struct BackSums {
    /// The counts by [`BackCount`].
    pub counts: Sums<BackCount, BACK_CELLS>,
    /// The times, milliseconds.
    pub times: TimeSums,
    /// The most streams that waited at once.
    pub queue_max: u32,
}

impl BackSums {
    pub(super) fn of<'a>(
        extra: &BackExtra,
        rows: impl Iterator<Item = &'a BackRow>,
        times: TimeSums,
    ) -> BackSums {
        BackSums {
            counts: extra.sums(rows),
            times,
            queue_max: extra.queue_max.load(Relaxed),
        }
    }
}

fn times([queue, connect, response, total]: [u64; 4]) -> Times<u64> {
    Times {
        queue,
        connect,
        response,
        total,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row_with(times: &[u64]) -> ServerRow {
        let row = ServerRow::default();
        for ms in times {
            row.time(Times {
                total: *ms,
                ..Times::default()
            });
        }
        row
    }

    fn average(rows: &[ServerRow]) -> (u64, u64) {
        let mut sums = TimeSums::default();
        rows.iter().for_each(|row| sums.add(&TimeSums::of(row)));
        (sums.averages().total, sums.longest().total)
    }

    #[test]
    fn averages_go_back_over_at_least_1024_streams() {
        assert_eq!(average(&[row_with(&[])]), (0, 0));
        assert_eq!(average(&[row_with(&[10, 20])]), (15, 20));
        // Workers count by how many streams they had.
        assert_eq!(
            average(&[row_with(&[10, 10, 10]), row_with(&[50])]),
            (20, 50)
        );
        let mut many = vec![1000; 1024];
        assert_eq!(average(&[row_with(&many)]), (1000, 1000));
        many.extend(vec![0; 1023]);
        assert_eq!(average(&[row_with(&many)]).0, 501);
        many.extend(vec![0; 1025]);
        assert_eq!(average(&[row_with(&many)]), (0, 1000));
    }

    #[test]
    fn averages_begin_anew() {
        let row = row_with(&[1000; 10]);
        row.restart_averages();
        assert_eq!(average(&[row]).0, 0);
        let row = row_with(&[1000; 10]);
        row.restart_averages();
        row.time(Times {
            total: 4,
            ..Times::default()
        });
        assert_eq!(average(&[row]).0, 4);
    }
}
