//! Backends that come and go; nothing listens at their addresses, so what is theirs waits.

use std::sync::Arc;

use bytes::Bytes;
use export::client::{GrpcOptions, Proxies};
use otlp::write;
use telemetry::settings::{Compression, Headers, OtlpGrpc, Tls};

use super::*;
use crate::config::components::exporters::load_balancing::Routing;
use crate::config::components::exporters::otlp_grpc::OtlpGrpcExporter;
use crate::config::components::shared::grpc::GrpcClient;
use crate::config::components::shared::queue::{Queue, QueueBatch, Sizer};
use crate::config::components::shared::retry::Retry;
use crate::run::Log;
use crate::run::account::Account;
use crate::run::account::Loss;
use crate::run::auth::Authenticators;
use crate::run::consume::Does;
use crate::run::send::{Backends as _, Room};

pub(super) fn settings(names: &[&str], queue_size: u64) -> LoadBalancingExporter {
    LoadBalancingExporter {
        otlp: OtlpGrpcExporter {
            client: GrpcClient {
                auth: None,
                otlp: OtlpGrpc {
                    endpoint: "http://".to_owned(),
                    headers: Headers::default(),
                    timeout_ms: 1000,
                    requests_max: 0,
                    compression: Compression::None,
                    user_agent: None,
                    tls: Tls::default(),
                },
                options: GrpcOptions {
                    is_balanced: true,
                    ..GrpcOptions::default()
                },
            },
            queue: Some(Queue {
                sizer: Sizer::Items,
                size_max: queue_size,
                block_on_overflow: false,
                wait_for_result: false,
                storage: None,
                folder: None,
                consumers: 1,
                batch: None,
            }),
            retry: Some(Retry {
                first: Duration::from_secs(3600),
                multiplier: 1.0,
                spread: 0.0,
                delay_max: Duration::from_secs(3600),
                asked_max: Duration::MAX,
                elapsed_max: None,
            }),
        },
        resolver: Resolver::Static(names.iter().map(|name| (*name).to_owned()).collect()),
        routing: Routing::TraceId,
        own: None,
    }
}

fn balancer(names: &[&str], queue_size: u64) -> Arc<Balancer> {
    started(&settings(names, queue_size))
}

fn started(settings: &LoadBalancingExporter) -> Arc<Balancer> {
    start("lb", settings, &common()).unwrap()
}

pub(super) fn common() -> SignalDeps {
    SignalDeps {
        account: Arc::default(),
        auth: Authenticators::default(),
        proxies: Proxies::default(),
        room: Room::new(1 << 30),
        log: Log::new(|_, _| {}),
    }
}

/// A request of a span of each trace.
fn request(traces: std::ops::Range<u128>) -> Bytes {
    let mut scope = Vec::new();
    for trace in traces {
        write::message(&mut scope, 2, |out| {
            write::bytes(out, 1, &trace.to_be_bytes())
        });
    }
    let mut resource = Vec::new();
    write::bytes(&mut resource, 2, &scope);
    let mut request = Vec::new();
    write::bytes(&mut request, 1, &resource);
    request.into()
}

fn batch(account: &Arc<Account>, traces: std::ops::Range<u128>) -> Batch {
    let records = (traces.end - traces.start) as u64;
    Batch {
        signal: Signal::Traces,
        bytes: request(traces),
        records,
        receipt: account.accept(records),
        origin: None,
    }
}

/// Ports where nothing listens: they were free a moment ago, and belong to no one.
const DEAD: [&str; 3] = ["127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"];

/// Spans of a range that belong to a backend.
fn share(names: &[&str], traces: std::ops::Range<u128>, owner: usize) -> u64 {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let ring = Ring::new(&names);
    let mine = traces.filter(|trace| ring.owner(&trace.to_be_bytes()) == owner);
    mine.count() as u64
}

#[tokio::test]
async fn a_batch_is_taken_whole_or_not_at_all() {
    let account = Arc::new(Account::default());
    let balancer = balancer(&DEAD[..2], 50);
    let shares = [0, 1].map(|owner| share(&DEAD[..2], 0..60, owner));
    assert!(
        shares.iter().all(|share| (10..50).contains(share)),
        "{shares:?}"
    );
    balancer.consume(batch(&account, 0..60)).unwrap();
    assert_eq!(account.balance().held(), 60);
    // One batch of each backend may be on its way: the next ones fill the queues.
    let mut taken = 60;
    let refused = loop {
        match balancer.consume(batch(&account, 0..60)) {
            Ok(()) => taken += 60,
            Err(given_back) => break given_back,
        }
        assert!(taken < 1000);
    };
    assert!(matches!(refused.refusal, Refusal::Busy(_)));
    assert_eq!(refused.batch.bytes, request(0..60));
    refused.batch.receipt.refuse();
    assert_eq!(account.balance().held(), taken);
    balancer.end(Instant::now()).await;
    let balance = account.balance();
    assert_eq!((balance.shutdown, balance.held()), (taken, 0));
    let closing = balancer.consume(batch(&account, 0..1)).unwrap_err();
    assert_eq!(closing.refusal, Refusal::Closing);
}

/// A backend with room for everything, or for nothing and a connection that fails.
#[derive(Default)]
struct Backend {
    is_dead: bool,
    taken: Arc<AtomicU64>,
    passed_by: AtomicU64,
}

impl Consumer for Backend {
    fn reserve(&self, batch: Batch) -> Result<Box<dyn Permit>, Box<Refused>> {
        if self.is_dead {
            return refused(batch, Refusal::busy(AGAIN, &"full".into()));
        }
        let taken = Arc::clone(&self.taken);
        Ok(Does::new(move || {
            taken.fetch_add(batch.records, Relaxed);
        }))
    }

    fn is_failing(&self) -> bool {
        self.is_dead
    }

    fn pass_by(&self, batch: Batch) {
        self.passed_by.fetch_add(batch.records, Relaxed);
        batch.receipt.lose(batch.records, Loss::ExportFailed);
    }
}

#[tokio::test]
async fn a_backend_that_is_dead_stops_no_other() {
    let account = Arc::new(Account::default());
    let balancer = balancer(&DEAD, 10);
    let backends = [false, false, true].map(|is_dead| {
        Arc::new(Backend {
            is_dead,
            ..Backend::default()
        })
    });
    let use_backends = |backends: &[Arc<Backend>]| {
        let names = DEAD[..backends.len()].iter().map(|name| (*name).to_owned());
        *lock(&balancer.table) = Arc::new(Table {
            ring: Ring::new(&names.collect::<Vec<_>>()),
            senders: backends.iter().map(|one| Arc::clone(one) as _).collect(),
        });
    };
    use_backends(&backends);
    // Also batches that are all of one backend.
    for first in 0..300 {
        balancer.consume(batch(&account, first..first + 1)).unwrap();
        balancer.consume(batch(&account, 0..300)).unwrap();
    }
    for (owner, backend) in backends.iter().enumerate() {
        let share = share(&DEAD, 0..300, owner) * 301;
        let counts = [&*backend.taken, &backend.passed_by].map(|count| count.load(Relaxed));
        let wanted = if backend.is_dead {
            [0, share]
        } else {
            [share, 0]
        };
        assert_eq!(counts, wanted, "backend {owner}");
    }
    assert_eq!(account.balance().held(), 0);
    // Without any that lives, senders keep what they have.
    use_backends(&backends[2..]);
    let given_back = balancer.consume(batch(&account, 0..10)).unwrap_err();
    assert!(matches!(given_back.refusal, Refusal::Busy(_)));
    given_back.batch.receipt.refuse();
    let balance = account.balance();
    assert_eq!((balance.refused, balance.held()), (10, 0));
}

#[tokio::test]
async fn what_a_backend_held_goes_to_the_others() {
    let account = Arc::new(Account::default());
    let balancer = balancer(&DEAD, 100_000);
    let spans = 300;
    for first in (0..spans).step_by(50) {
        balancer
            .consume(batch(&account, first..first + 50))
            .unwrap();
    }
    let endpoints = || {
        let view = balancer.view().into_iter();
        view.map(|backend| backend.endpoint).collect::<Vec<_>>()
    };
    assert_eq!(endpoints(), DEAD);
    balancer.resolved(DEAD[..2].iter().map(|name| (*name).to_owned()).collect());
    assert_eq!(endpoints(), DEAD[..2]);
    // Those that are going have handed over when their tasks are done.
    let mut tasks = std::mem::take(&mut balancer.backends().tasks);
    while tasks.join_next().await.is_some() {}
    assert_eq!(account.balance().held(), spans as u64);
    // All but what is on its way waits where it belongs now.
    let shares = [0, 1].map(|owner| share(&DEAD[..2], 0..spans, owner));
    assert_eq!(shares.iter().sum::<u64>(), spans as u64);
    for (backend, share) in balancer.view().iter().zip(shares) {
        assert!(backend.sender.fill().0 <= share);
        assert!(backend.sender.fill().0 + 50 >= share);
    }
    let counts = &balancer.counts;
    assert_eq!(
        (counts.resolved.load(Relaxed), counts.updates.load(Relaxed)),
        (2, 2)
    );
    // The same backends in another order are no change, and none at all leave those that there are.
    balancer.resolved(vec![DEAD[1].to_owned(), DEAD[0].to_owned()]);
    balancer.unresolved("nobody answers");
    assert_eq!(
        (counts.resolved.load(Relaxed), counts.updates.load(Relaxed)),
        (3, 2)
    );
    assert_eq!(counts.failed.load(Relaxed), 1);
    balancer.end(Instant::now()).await;
    let balance = account.balance();
    assert_eq!((balance.shutdown, balance.held()), (spans as u64, 0));
}

#[tokio::test]
async fn what_a_backend_puts_together_goes_to_the_others_too() {
    let account = Arc::new(Account::default());
    let mut settings = settings(&DEAD, 100_000);
    let queue = settings.otlp.queue.as_mut().unwrap();
    queue.batch = Some(QueueBatch {
        flush_timeout_ns: 3_600_000_000_000,
        sizer: Sizer::Items,
        size_min: 100_000,
        size_max: 0,
        metadata_keys: Vec::new(),
    });
    let balancer = started(&settings);
    for first in (0..300).step_by(50) {
        let batch = batch(&account, first..first + 50);
        balancer.consume(batch).unwrap();
    }
    let waiting = || {
        balancer
            .view()
            .iter()
            .map(|one| one.sender.fill().0)
            .sum::<u64>()
    };
    assert_eq!((account.balance().held(), waiting()), (300, 0));
    balancer.resolved(DEAD[..2].iter().map(|name| (*name).to_owned()).collect());
    let mut tasks = std::mem::take(&mut balancer.backends().tasks);
    while tasks.join_next().await.is_some() {}
    assert_eq!((account.balance().held(), waiting()), (300, 0));
    balancer.end(Instant::now()).await;
    let balance = account.balance();
    assert_eq!((balance.shutdown, balance.held()), (300, 0));
}

#[tokio::test]
async fn without_backends_senders_wait() {
    let account = Arc::new(Account::default());
    let balancer = balancer(&[], 10);
    let refused = balancer.consume(batch(&account, 0..5)).unwrap_err();
    assert!(matches!(refused.refusal, Refusal::Busy(no_room) if no_room.after == AGAIN));
    refused.batch.receipt.refuse();
    balancer.resolved(vec!["127.0.0.1".to_owned()]);
    assert_eq!(balancer.view()[0].endpoint, "127.0.0.1:4317");
}

#[tokio::test]
async fn hosts_are_asked_for_as_often_as_the_settings_say() {
    let exporter = crate::config::exporter(
        "loadbalancing: { protocol: { otlp: { tls: { insecure: true } } }, \
         resolver: { dns: { hostname: 127.0.0.1, port: '1', interval: 1ms } } }",
    );
    let often = start("lb", exporter.get().expect("a balancer"), &common()).unwrap();
    let deadline = Instant::now() + Duration::from_secs(30);
    while often.counts.resolved.load(Relaxed) <= 10 {
        assert!(Instant::now() < deadline, "it was not asked for");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
