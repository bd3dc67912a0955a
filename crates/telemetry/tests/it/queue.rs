//! The queue between workers and an exporter.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use spangate_telemetry::account::{Account, Loss, Signal};
use spangate_telemetry::queue::{Batch, Queue, QueueLimits};

fn queue(wake_at: Option<(usize, usize)>) -> (Queue, Arc<AtomicUsize>) {
    let woken = Arc::new(AtomicUsize::default());
    let count = Arc::clone(&woken);
    let limits = QueueLimits {
        records_max: 10,
        bytes_max: 100,
    };
    let wake = move || {
        count.fetch_add(1, Relaxed);
    };
    let mut queue = Queue::new(Signal::Logs, limits, Arc::<Account>::default(), wake);
    if let Some((records_max, bytes_max)) = wake_at {
        queue = queue.waking_at(QueueLimits {
            records_max,
            bytes_max,
        });
    }
    (queue, woken)
}

fn offer(queue: &Queue, records: u32, bytes: usize) {
    let bytes = vec![0; bytes];
    queue.account.add_started(u64::from(records));
    assert!(queue.offer(Batch { bytes, records }).is_empty());
}

#[test]
fn what_does_not_fit_is_lost_whole() {
    let (queue, woken) = queue(None);
    offer(&queue, 6, 10);
    offer(&queue, 5, 10);
    offer(&queue, 1, 91);
    offer(&queue, 4, 90);
    assert_eq!(queue.depth(), (10, 100));
    assert_eq!(queue.account.lost(Loss::QueueFull), 6);
    assert_eq!(woken.load(Relaxed), 2);
    assert_eq!(queue.limits().records_max, 10);
    queue.close();
    offer(&queue, 1, 1);
    assert_eq!(queue.account.lost(Loss::Shutdown), 1);
}

#[test]
fn records_are_in_flight_until_they_have_ended() {
    let (queue, _) = queue(None);
    offer(&queue, 3, 10);
    offer(&queue, 2, 10);
    let batch = queue.take().unwrap();
    assert_eq!((batch.records, queue.depth()), (3, (2, 10)));
    assert_eq!(queue.account.in_flight(), 3);
    queue.account.add_exported(3);
    queue.account.end_flight(3);
    assert_eq!(
        (queue.account.exported(), queue.account.in_flight()),
        (3, 0)
    );
    // A buffer that comes back is given to whoever offers next.
    queue.reuse(batch.bytes);
    let next = queue.offer(Batch::default());
    assert!(next.is_empty() && next.capacity() >= 10);
}

#[test]
fn an_exporter_is_woken_when_it_is_worth_while() {
    let (queue, woken) = queue(Some((4, 50)));
    let woken = || woken.swap(0, Relaxed);
    offer(&queue, 3, 1);
    assert_eq!(woken(), 0);
    offer(&queue, 1, 1);
    assert_eq!(woken(), 1, "so many records wait");
    offer(&queue, 1, 1);
    assert_eq!(woken(), 0, "it knows");
    offer(&queue, 1, 60);
    assert_eq!(woken(), 1, "so many bytes wait");
    while queue.take().is_some() {}
    offer(&queue, 4, 1);
    assert_eq!(woken(), 1, "again");
}
