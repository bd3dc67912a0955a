//! How many spans a second one core takes, and how many bytes a waiting span needs.
//!
//! `cargo run --release -p spangate-tail --example engine -- [seconds of load] [spans/s, virtual] [wait s] [templates 0/1]`
//!
//! The load: 24 services with 2 instances each, 8 spans a trace over 4 services, 10 attributes, about 457 bytes a span,
//! batches of 512 spans of one resource; about a tenth of the traces is kept. Time is virtual: the engine is driven as fast
//! as it goes, while its clock follows the load's rate.
#![allow(clippy::print_stdout, reason = "it is what it is for")]

use spangate_tail::settings::{Policy, PolicyKind, SECOND_NS, StatusCodes, TailSampling};
use spangate_tail::shard::{Options, Shard};
use spangate_tail::store::Budget;
use std::sync::Arc;
use std::time::Instant;
use telemetry::proto;

const SERVICES: usize = 24;
const INSTANCES: usize = 2;
const BATCH_SPANS: usize = 512;
const SPANS_OF_TRACE: u64 = 8;
/// Different requests, sent again and again with other trace identifiers.
const REQUESTS: usize = 192;

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, bound: u64) -> u64 {
        (self.next() >> 20) % bound
    }
}

fn text(out: &mut Vec<u8>, field: u32, key: &str, value: &str) {
    proto::message(out, field, |out| {
        proto::bytes(out, 1, key.as_bytes());
        proto::message(out, 2, |out| proto::bytes(out, 1, value.as_bytes()));
    });
}

fn number(out: &mut Vec<u8>, key: &str, value: u64) {
    proto::message(out, 9, |out| {
        proto::bytes(out, 1, key.as_bytes());
        proto::message(out, 2, |out| proto::uint(out, 3, value));
    });
}

/// One of eight spans of a trace; its identifier is at the beginning.
fn span(out: &mut Vec<u8>, random: &mut Random, service: usize) {
    let route = random.below(20);
    let failed = random.below(400) == 0;
    let start = 1_700_000_000_000_000_000 + random.below(1 << 30);
    let slow = if random.below(400) == 0 {
        3_000_000_000
    } else {
        0
    };
    proto::bytes(out, 1, &[0; 16]);
    proto::bytes(out, 2, &random.next().to_be_bytes());
    proto::bytes(out, 4, &random.next().to_be_bytes());
    proto::bytes(out, 5, format!("GET /api/v1/resource-{route}").as_bytes());
    proto::uint(out, 6, 2);
    proto::fixed64(out, 7, start);
    proto::fixed64(out, 8, start + slow + random.below(200_000_000));
    text(out, 9, "http.request.method", "GET");
    text(
        out,
        9,
        "url.path",
        &format!("/api/v1/resource-{route}/{}", random.below(90) + 10),
    );
    text(
        out,
        9,
        "http.route",
        &format!("/api/v1/resource-{route}/:id"),
    );
    number(
        out,
        "http.response.status_code",
        if failed { 500 } else { 200 },
    );
    text(
        out,
        9,
        "server.address",
        &format!("service-{service}.cluster"),
    );
    number(out, "server.port", 8080);
    text(
        out,
        9,
        "user_agent.original",
        "Mozilla/5.0 (X11; Linux x86_64) Bench/1.0",
    );
    text(out, 9, "network.protocol.version", "1.1");
    text(
        out,
        9,
        "customer.tier",
        if random.below(300) == 0 {
            "gold"
        } else {
            "bronze"
        },
    );
    number(out, "thread.id", random.below(64));
    if failed {
        proto::message(out, 15, |out| proto::uint(out, 3, 2));
    }
}

fn request(random: &mut Random, resource: usize) -> Vec<u8> {
    let service = resource / INSTANCES;
    let mut out = Vec::new();
    proto::message(&mut out, 1, |out| {
        proto::message(out, 1, |out| {
            text(out, 1, "service.name", &format!("service-{service}"));
            text(
                out,
                1,
                "service.instance.id",
                &format!("instance-{resource}-0123456789abcdef"),
            );
            text(out, 1, "telemetry.sdk.name", "opentelemetry");
            text(
                out,
                1,
                "k8s.pod.name",
                &format!("service-{service}-6f7d8c9b5-x{resource}"),
            );
        });
        proto::message(out, 2, |out| {
            proto::message(out, 1, |out| {
                proto::bytes(out, 1, b"io.opentelemetry.http-server")
            });
            for _ in 0..BATCH_SPANS {
                proto::message(out, 2, |out| span(out, random, service));
            }
        });
    });
    out
}

/// Where the trace identifiers of a request are.
fn places(request: &[u8]) -> Vec<usize> {
    let needle = [&[0x0a, 16][..], &[0; 16]].concat();
    let found = memchr::memmem::find_iter(request, &needle);
    found.map(|at| at + 2).collect()
}

fn settings(wait_s: u64) -> TailSampling {
    let policy = |name: &str, kind| Policy {
        name: name.to_owned(),
        kind,
    };
    let error = StatusCodes {
        error: true,
        ..StatusCodes::default()
    };
    TailSampling {
        policies: vec![
            policy(
                "share",
                PolicyKind::Probabilistic {
                    percentage: 5.0,
                    hash_salt: String::new(),
                },
            ),
            policy("errors", PolicyKind::StatusCode(error)),
            policy(
                "slow",
                PolicyKind::Latency {
                    threshold_ms: 2000,
                    upper_threshold_ms: 0,
                },
            ),
            policy(
                "gold",
                PolicyKind::StringAttribute {
                    key: "customer.tier".to_owned(),
                    values: vec!["gold".to_owned()],
                    regex: false,
                    cache_max_size: 0,
                    invert: false,
                },
            ),
        ],
        decision_wait_ns: wait_s * SECOND_NS,
        traces_max: 1_000_000,
        ..TailSampling::default()
    }
}

fn main() {
    let numbers: Vec<u64> = std::env::args()
        .skip(1)
        .filter_map(|arg| arg.parse().ok())
        .collect();
    let argument = |at: usize, default| numbers.get(at).copied().unwrap_or(default);
    let (load_s, rate, wait_s) = (argument(0, 20), argument(1, 400_000), argument(2, 5));
    let mut random = Random(7);
    let mut requests: Vec<_> = (0..REQUESTS)
        .map(|at| request(&mut random, at % (SERVICES * INSTANCES)))
        .collect();
    let places: Vec<_> = requests.iter().map(|request| places(request)).collect();
    let bytes: usize = requests.iter().map(Vec::len).sum();
    println!("{} B a span", bytes / REQUESTS / BATCH_SPANS);

    let options = Options {
        segment_bytes: 32 << 20,
        templates: argument(3, 1) == 1,
        ..Options::default()
    };
    let budget = Arc::new(Budget::new(16 << 30));
    let mut shard = Shard::tail_sampling(&settings(wait_s), options, budget).expect("policies");
    let (total, mut sent, mut kept, mut out_bytes) = (rate * load_s, 0_u64, 0_u64, 0_u64);
    let (mut spent, mut ticks, mut longest, mut steady, mut held) =
        ([0; 2], 0_u64, 0, (0, 0), (0, 0));
    let mut next_tick_ns = 0;
    while sent < total {
        let at = (sent / BATCH_SPANS as u64) as usize % REQUESTS;
        // Eight requests in a row are of the same 512 traces.
        let first = sent / BATCH_SPANS as u64 / SPANS_OF_TRACE * BATCH_SPANS as u64;
        for (trace, place) in places[at].iter().enumerate() {
            let mut id = Random((first + trace as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
            requests[at][*place..place + 8].copy_from_slice(&id.next().to_be_bytes());
            requests[at][place + 8..place + 16].copy_from_slice(&id.next().to_be_bytes());
        }
        let now_ns = (u128::from(sent) * u128::from(SECOND_NS) / u128::from(rate)) as u64;
        let start = now();
        shard.accept(&requests[at], now_ns).expect("room");
        spent[0] += start.elapsed().as_nanos() as u64;
        sent += BATCH_SPANS as u64;
        if now_ns >= next_tick_ns {
            next_tick_ns = now_ns + SECOND_NS / 100;
            let start = now();
            while shard.tick(now_ns, 2000).more {}
            let took = start.elapsed().as_nanos() as u64;
            longest = longest.max(took);
            spent[1] += took;
            ticks += 1;
            while let Some(batch) = shard.pop() {
                kept += batch.spans;
                out_bytes += batch.bytes.len() as u64;
                shard.acked(batch.spans, batch.bytes.len() as u64);
            }
        }
        // From here on segments are used again.
        if steady.0 == 0 && now_ns > (wait_s + 2) * SECOND_NS {
            steady = (sent, spent[0] + spent[1]);
            held = (shard.held_bytes(), shard.account().pending);
        }
    }
    let account = shard.account();
    assert_eq!(account.difference(), 0);
    let all = spent[0] + spent[1];
    let steady_ns = (all - steady.1) as f64 / (sent - steady.0) as f64;
    println!(
        "{sent} spans, {kept} kept ({:.1} %), {out_bytes} B out",
        kept as f64 * 100.0 / sent as f64
    );
    println!(
        "all:    {:.1} ns a span (accept {:.1}, tick {:.1})",
        all as f64 / sent as f64,
        spent[0] as f64 / sent as f64,
        spent[1] as f64 / sent as f64
    );
    println!(
        "steady: {steady_ns:.1} ns a span, {:.2} M spans/s; longest tick of {ticks}: {:.2} ms",
        1e3 / steady_ns,
        longest as f64 / 1e6
    );
    println!(
        "held: {} B for {} waiting spans, {:.1} B each",
        held.0,
        held.1,
        held.0 as f64 / held.1.max(1) as f64
    );
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
fn now() -> Instant {
    Instant::now()
}
