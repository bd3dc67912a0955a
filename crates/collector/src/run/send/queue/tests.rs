//! Two exporters of one pipeline. The back end of one of them is down.

use std::net::TcpListener;

use bytes::Bytes;

use super::*;
use crate::config::source::Outside as Source;
use crate::config::{self, Config, Exporter};
use crate::run::account::Account;
use crate::run::auth::Authenticators;
use crate::run::consume::FanOut;
use crate::run::send::{Exit, ExporterDeps, Room};
use crate::run::storage::Storages;

/// Queues of the back end that is gone. Each has room for [`QUEUE_BATCHES`] at most.
const QUEUES: [&str; 3] = [
    "queue_size: 2",
    "sizer: items, queue_size: 25",
    "sizer: bytes, queue_size: 2500000",
];
const QUEUE_BATCHES: u64 = 2;
const RECORDS: u64 = 10;
const BATCH_BYTES: usize = 1_000_000;

fn exporters(gone: &str, queue: &str) -> config::Config {
    let yaml = format!(
        "yaml:receivers: {{ otlp: {{ protocols: {{ grpc: }} }} }}\n\
         exporters: {{ nop: , otlphttp: {{ endpoint: 'http://{gone}', timeout: 1s, sending_queue: {{ {queue}, num_consumers: 1 }} }} }}\n\
         service: {{ pipelines: {{ traces: {{ receivers: [otlp], exporters: [nop, otlphttp] }} }} }}"
    );
    let outside = Source {
        variable: &|_| None,
        read_file: &|_| Err("there are no files".into()),
    };
    let config = config::load(&[&yaml], &config::Options::default(), outside);
    config.unwrap_or_else(|faults| panic!("{faults:?}"))
}

fn started(
    config: &Config,
    (accounts, room): (&[Arc<Account>; 3], &Arc<Room>),
    exporter: &Exporter,
) -> (Arc<Sender>, Exit) {
    let log = Log::new(|_, _| {});
    let deps = ExporterDeps {
        name: "out",
        signals: vec![Signal::Traces],
        traces: None,
        log: &log,
        accounts,
        auth: &Authenticators::default(),
        proxies: &config.proxies,
        room,
        storages: &mut Storages::new(config, &log),
    };
    let mut started = exporter.start(deps).expect("an exporter");
    let exit = started.exit("out");
    let (_, sender) = started.queues.remove(0);
    (sender, exit)
}

fn batch(account: &Arc<Account>) -> Batch {
    Batch {
        signal: Signal::Traces,
        bytes: Bytes::from_static(&[0; BATCH_BYTES]),
        records: RECORDS,
        receipt: account.accept(RECORDS),
        origin: None,
    }
}

/// Nobody listens at the address of a socket that is only bound.
fn nobody() -> (std::net::SocketAddr, TcpListener) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    (listener.local_addr().expect("an address"), listener)
}

#[tokio::test(start_paused = true)]
async fn an_exporter_whose_back_end_is_gone_holds_up_no_other() {
    for queue in QUEUES {
        one_lives_and_one_is_gone(queue).await;
    }
}

async fn one_lives_and_one_is_gone(queue: &str) {
    let (gone, listener) = nobody();
    drop(listener);
    let config = exporters(&gone.to_string(), queue);
    let accounts = <[Arc<Account>; 3]>::default();
    let (account, room) = (&accounts[Signal::Traces as usize], Room::new(1 << 30));
    let of = |name: &str| {
        let mut all = config.exporters.iter();
        &all.find(|each| each.id.to_string() == name)
            .expect(name)
            .settings
    };
    let (good, good_end) = started(&config, (&accounts, &room), of("nop"));
    let (dead, dead_end) = started(&config, (&accounts, &room), of("otlphttp"));
    let both = FanOut::new(vec![Arc::clone(&good) as _, Arc::clone(&dead) as _]);

    // As long as it may be a hitch, what is full holds the sender up.
    let mut sent = 0;
    let refusal = loop {
        match both.consume(batch(account)) {
            Ok(()) => sent += RECORDS,
            Err(refused) => break refused,
        }
        tokio::task::yield_now().await;
    };
    let full = "exporter 'out': its queue is full";
    assert_eq!(refusal.refusal, Refusal::busy(ROOM_AFTER, &full.into()));
    refusal.batch.receipt.refuse();
    assert!(!dead.is_failing() && sent >= QUEUE_BATCHES * RECORDS);

    // Then it does not.
    let give_up = Instant::now() + 10 * FAILING_AFTER;
    while !dead.is_failing() {
        assert!(Instant::now() < give_up, "attempts do not fail");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let before = dead.counts().passed_by.load(Relaxed);
    for _ in 0..100 {
        both.consume(batch(account)).expect("one has room");
        sent += RECORDS;
        tokio::task::yield_now().await;
    }
    let passed_by = dead.counts().passed_by.load(Relaxed) - before;
    assert!(passed_by >= (100 - QUEUE_BATCHES) * RECORDS, "{passed_by}");

    let until = Instant::now() + Duration::from_secs(1);
    good_end.end(None, until).await;
    dead_end.end(None, until).await;
    assert_eq!(good.counts().sent.load(Relaxed), sent);
    assert_eq!(dead.counts().sent.load(Relaxed), 0);
    let balance = account.balance();
    assert_eq!((balance.accepted, balance.held()), (sent, 0));
    assert_eq!(balance.exported, 0, "not all exporters have them");
}
