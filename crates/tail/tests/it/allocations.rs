//! In a steady state no span makes an allocation: not to scan it, to keep it, or to decide on it.

use otlp::write;
use spangate_tail::settings::{Policy, PolicyKind, SECOND_NS, StatusCodes, TailSampling};
use spangate_tail::shard::{Options, Shard};
use spangate_tail::store::Budget;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator, counting the allocations of each thread.
struct Counting;

// SAFETY: every call is passed on to the system's allocator unchanged; the counter does not
// allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// 500 spans of 250 traces; one in fifty spans failed.
fn request(step: u64) -> Vec<u8> {
    let mut out = Vec::new();
    write::message(&mut out, 1, |out| {
        write::message(out, 1, |out| {
            write::message(out, 1, |out| write::bytes(out, 1, b"service.name"));
        });
        write::message(out, 2, |out| {
            for span in 0..500 {
                write::message(out, 2, |out| {
                    let trace = u128::from(step * 250 + span / 2)
                        .wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
                    write::bytes(out, 1, &trace.to_be_bytes());
                    write::bytes(out, 2, &[1; 8]);
                    for key in ["http.method", "tier", "url.path"] {
                        write::message(out, 9, |out| {
                            write::bytes(out, 1, key.as_bytes());
                            write::message(out, 2, |out| write::bytes(out, 1, b"some value"));
                        });
                    }
                    if span % 50 == 0 {
                        write::message(out, 15, |out| write::uint(out, 3, 2));
                    }
                });
            }
        });
    });
    out
}

#[test]
fn no_span_allocates() {
    let named = |name: &str, kind| Policy {
        name: name.to_owned(),
        kind,
    };
    let error = StatusCodes {
        error: true,
        ..StatusCodes::default()
    };
    let regex = PolicyKind::StringAttribute {
        key: "tier".to_owned(),
        values: vec!["^gold".to_owned()],
        regex: true,
        invert: false,
    };
    let settings = TailSampling {
        policies: vec![
            named("errors", PolicyKind::StatusCode(error)),
            named("gold", regex),
        ],
        decision_wait_ns: SECOND_NS,
        ..TailSampling::default()
    };
    let options = Options {
        segment_bytes: 256 << 10,
        ..Options::default()
    };
    let mut shard =
        Shard::tail_sampling(&settings, options, Arc::new(Budget::new(1 << 30))).unwrap();
    let (mut before, mut kept) = (0, 0);
    let (warm, steps) = (1500, 2000);
    for step in 0..steps {
        let bytes = request(step);
        if step == warm {
            before = shard.account().accepted;
        }
        let start = ALLOCATIONS.with(Cell::get);
        shard.accept(&bytes, step * SECOND_NS / 100).unwrap();
        shard.tick(step * SECOND_NS / 100, 10_000);
        let made = ALLOCATIONS.with(Cell::get) - start;
        while let Some(batch) = shard.pop() {
            kept += batch.spans;
            shard.acked(batch.spans, batch.bytes.len() as u64);
        }
        if step >= warm {
            // A batch of kept spans: its bytes, its order, and the buffer of its scope.
            assert!(made <= 16, "{made} allocations at {step}");
        }
    }
    assert!(shard.account().accepted - before == (steps - warm) * 500 && kept > 1000);
}
