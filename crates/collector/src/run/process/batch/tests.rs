use bytes::Bytes;

use super::*;
use crate::config::components::processors::batch::Batch as Settings;
use crate::config::{Signal, exporter};
use crate::run::account::Account;
use crate::run::origin::Origin;

/// Keeps what it gets.
#[derive(Default)]
struct Keeper(Arc<Mutex<Vec<Batch>>>);

impl Consumer for Keeper {
    fn reserve(&self, batch: Batch) -> Result<Box<dyn Permit>, Box<Refused>> {
        let kept = Arc::clone(&self.0);
        Ok(Does::new(move || kept.lock().unwrap().push(batch)))
    }
}

impl Keeper {
    /// The tenants and the bodies of what came.
    fn take(&self) -> Vec<(String, Bytes)> {
        let came = self.0.lock().unwrap().drain(..).collect::<Vec<_>>();
        let told = came.into_iter().map(|batch| {
            let tenant = batch.origin.as_ref().map_or("none".to_owned(), |origin| {
                let values = origin.field("tenant").iter();
                let texts = values.map(|value| value.to_str().unwrap().to_owned());
                texts.collect::<Vec<_>>().join(";")
            });
            (tenant, batch.bytes)
        });
        told.collect()
    }
}

/// A record of a tenant, each of one byte.
fn batch(account: &Arc<Account>, tenant: Option<&str>, body: &'static [u8]) -> Batch {
    let fields = tenant.map(|tenant| [("tenant", tenant), ("other", "x")]);
    Batch {
        signal: Signal::Traces,
        bytes: Bytes::from_static(body),
        records: body.len() as u64,
        receipt: account.accept(body.len() as u64),
        origin: fields.map(|fields| Arc::new(Origin::with_fields(&fields))),
    }
}

fn processor(limit: u32) -> Rules {
    Rules::of_processor(&Settings {
        timeout_ns: 1_000_000_000,
        send_size: 3,
        send_size_max: 0,
        metadata_keys: vec!["tenant".into()],
        cardinality_limit: limit,
    })
}

/// Those of a queue with these options of its `batch`.
fn queue(batch: &str) -> Rules {
    let exporter = exporter(&format!(
        "otlphttp: {{ endpoint: 'http://x', sending_queue: {{ batch: {{ {batch} }} }} }}"
    ));
    Rules::of_queue(exporter.queue().expect("a queue")).expect("a batch")
}

#[tokio::test(start_paused = true)]
async fn each_combination_has_a_batch_of_its_own() {
    let (keeper, account) = (Arc::new(Keeper::default()), Arc::default());
    let batcher = start(processor(3), Arc::clone(&keeper) as Arc<dyn Consumer>);
    assert_eq!(batcher.combinations(), 0);
    for (tenant, body) in [
        (Some("a"), b"1"),
        (None, b"2"),
        (Some("b"), b"3"),
        (Some("a"), b"4"),
    ] {
        batcher.consume(batch(&account, tenant, body)).unwrap();
    }
    assert_eq!(keeper.take(), []);
    batcher.consume(batch(&account, Some("a"), b"5")).unwrap();
    // It is full.
    let own = |tenant: &str, body: &'static [u8]| (tenant.to_owned(), Bytes::from_static(body));
    assert_eq!(keeper.take(), [own("a", b"145")]);
    // One combination more than are taken, known ones still are.
    let refused = batcher
        .consume(batch(&account, Some("c"), b"6"))
        .unwrap_err();
    assert!(matches!(refused.refusal, Refusal::Malformed(_)));
    refused.batch.receipt.refuse();
    tokio::time::sleep(Duration::from_millis(500)).await;
    batcher.consume(batch(&account, Some("a"), b"7")).unwrap();
    assert_eq!(batcher.combinations(), 3);
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert_eq!(keeper.take(), [own("none", b"2"), own("b", b"3")]);
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(keeper.take(), [own("a", b"7")]);
    batcher.consume(batch(&account, Some("b"), b"8")).unwrap();
    batcher.end(Instant::now()).await;
    assert_eq!(keeper.take(), [own("b", b"8")]);
    assert_eq!(
        (account.balance().held(), account.balance().refused),
        (0, 1)
    );
}

#[tokio::test(start_paused = true)]
async fn a_queue_forgets_combinations_and_nobody_loses_what_is_told_apart() {
    let rules = queue("flush_timeout: 1s, min_size: 100, partition: { metadata_keys: [Tenant] }");
    let (keeper, account) = (Arc::new(Keeper::default()), Arc::default());
    let next = Arc::clone(&keeper) as Arc<dyn Consumer>;
    let batcher = start(rules, next);
    for tenant in ["a", "b", "a", ""] {
        batcher
            .consume(batch(&account, Some(tenant), b"1"))
            .unwrap();
    }
    tokio::time::sleep(Duration::from_millis(900)).await;
    assert_eq!(batcher.combinations(), 3);
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(batcher.combinations(), 0);
    let came = keeper.take().into_iter();
    let came: Vec<_> = came.map(|(tenant, body)| (tenant, body.len())).collect();
    let own = |tenant: &str, records| (tenant.to_owned(), records);
    assert_eq!(came, [own("a", 2), own("b", 1), own("", 1)]);
    assert_eq!(account.balance().exported, 4);
}

#[tokio::test(start_paused = true)]
async fn without_keys_everything_goes_together_and_has_no_origin() {
    let rules = Rules::of_processor(&Settings {
        metadata_keys: Vec::new(),
        timeout_ns: 0,
        send_size: 0,
        send_size_max: 0,
        cardinality_limit: 1,
    });
    let (keeper, account) = (Arc::new(Keeper::default()), Arc::default());
    let batcher = start(rules, Arc::clone(&keeper) as Arc<dyn Consumer>);
    for tenant in [Some("a"), Some("b"), None] {
        batcher.consume(batch(&account, tenant, b"1")).unwrap();
        assert_eq!(
            keeper.take(),
            [("none".to_owned(), Bytes::from_static(b"1"))]
        );
    }
    assert_eq!(batcher.combinations(), 1);
}

/// More combinations than may wait: the oldest is sent.
#[tokio::test(start_paused = true)]
async fn what_waits_is_bounded() {
    let (keeper, account) = (Arc::new(Keeper::default()), Arc::default());
    let batcher = start(processor(0), Arc::clone(&keeper) as Arc<dyn Consumer>);
    for number in 0..=state::WAITING_MAX {
        let tenant = number.to_string();
        batcher
            .consume(batch(&account, Some(&tenant), b"1"))
            .unwrap();
    }
    assert_eq!(keeper.take(), [("0".to_owned(), Bytes::from_static(b"1"))]);
    assert_eq!(batcher.combinations(), state::WAITING_MAX as u64);
    batcher.end(Instant::now()).await;
    assert_eq!(account.balance().held(), state::WAITING_MAX as u64);
}

#[tokio::test(start_paused = true)]
async fn a_queue_may_count_bytes() {
    let rules = queue("flush_timeout: 1s, sizer: bytes, min_size: 5");
    let (keeper, account) = (Arc::new(Keeper::default()), Arc::default());
    let batcher = start(rules, Arc::clone(&keeper) as Arc<dyn Consumer>);
    batcher.consume(batch(&account, None, b"1234")).unwrap();
    assert_eq!(keeper.take(), []);
    batcher.consume(batch(&account, None, b"56")).unwrap();
    let all = Bytes::from_static(b"123456");
    assert_eq!(keeper.take(), [("none".to_owned(), all)]);
}

#[tokio::test(start_paused = true)]
async fn who_leaves_gives_back_what_waits() {
    let (keeper, account) = (Arc::new(Keeper::default()), Arc::default());
    let batcher = start(processor(0), Arc::clone(&keeper) as Arc<dyn Consumer>);
    for tenant in ["a", "b"] {
        batcher
            .consume(batch(&account, Some(tenant), b"1"))
            .unwrap();
    }
    let left = batcher.leave().await;
    assert_eq!((left.len(), account.balance().held()), (2, 2));
    let late = batcher.consume(batch(&account, None, b"1")).unwrap_err();
    assert_eq!(late.refusal, Refusal::Closing);
    assert_eq!(keeper.take(), []);
}

#[tokio::test(start_paused = true)]
async fn one_that_is_dropped_leaves_nothing_running() {
    let keeper = Arc::new(Keeper::default());
    let before = tokio::runtime::Handle::current()
        .metrics()
        .num_alive_tasks();
    let batcher = start(processor(3), Arc::clone(&keeper) as Arc<dyn Consumer>);
    tokio::task::yield_now().await;
    drop(batcher);
    assert_eq!(Arc::strong_count(&keeper), 1, "it went at once");
    tokio::task::yield_now().await;
    let after = tokio::runtime::Handle::current()
        .metrics()
        .num_alive_tasks();
    assert_eq!(after, before);
}
