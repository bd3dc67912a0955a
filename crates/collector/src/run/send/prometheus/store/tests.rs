use super::*;
use crate::run::send::prometheus::point::{Temporality, Value};

const LIMITS: Limits = Limits {
    series_max: 2,
    held_bytes_max: 1 << 20,
};
const MINUTE: Duration = Duration::from_secs(60);

fn metric(name: &str, kind: Kind) -> Metric {
    Metric {
        name: name.into(),
        kind,
        help: "".into(),
        unit: None,
    }
}

fn labels(value: &str) -> Labels {
    Labels::from_pairs(&[("a", value)])
}

fn incoming(value: i64) -> Incoming {
    Incoming {
        point: Point {
            start_ns: 0,
            time_ns: 1,
            value: Value::Int(value),
            exemplars: Vec::new(),
        },
        temporality: Temporality::Cumulative,
    }
}

fn values(store: &mut Store, now: Instant) -> Vec<f64> {
    let snapshot = store.snapshot(now);
    let samples = snapshot.metrics.iter().flat_map(|view| &view.series);
    samples
        .filter_map(|sample| sample.point.value.number())
        .collect()
}

fn put(
    store: &mut Store,
    name: &str,
    label: &str,
    value: i64,
    now: Instant,
) -> Result<(), Refusal> {
    let incoming = incoming(value);
    store.put(
        &metric(name, Kind::Gauge),
        labels(label),
        None,
        incoming,
        now,
    )
}

#[tokio::test(start_paused = true)]
async fn a_series_without_points_expires() {
    let begin = Instant::now();
    let mut store = Store::new(MINUTE, LIMITS, begin);
    assert_eq!(put(&mut store, "m", "x", 1, begin), Ok(()));
    assert_eq!(put(&mut store, "m", "y", 2, begin + MINUTE / 2), Ok(()));
    assert_eq!(values(&mut store, begin + MINUTE), [1.0, 2.0]);
    let later = begin + MINUTE + Duration::from_millis(1);
    assert_eq!(values(&mut store, later), [2.0]);
    // Nobody looks: points that come remove it all the same.
    assert_eq!(put(&mut store, "m", "x", 3, later), Ok(()));
    assert_eq!(put(&mut store, "n", "z", 4, begin + 3 * MINUTE), Ok(()));
    assert_eq!(store.series, 1);
    assert_eq!(values(&mut store, begin + 5 * MINUTE), [0.0; 0]);
    assert_eq!((store.series, store.held_bytes), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn series_are_limited_in_number_and_size() {
    let now = Instant::now();
    let mut store = Store::new(MINUTE, LIMITS, now);
    assert_eq!(put(&mut store, "m", "x", 1, now), Ok(()));
    assert_eq!(put(&mut store, "m", "y", 2, now), Ok(()));
    assert_eq!(put(&mut store, "m", "z", 3, now), Err(Refusal::Full));
    // One that is there goes on.
    assert_eq!(put(&mut store, "m", "x", 4, now), Ok(()));
    assert_eq!(values(&mut store, now), [4.0, 2.0]);
    store.remove("m", &labels("x"));
    assert_eq!(put(&mut store, "m", "z", 3, now), Ok(()));
    let limits = Limits {
        held_bytes_max: 1,
        ..LIMITS
    };
    let mut store = Store::new(MINUTE, limits, now);
    assert_eq!(put(&mut store, "m", "x", 1, now), Err(Refusal::Full));
    assert_eq!((store.series, store.held_bytes), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_name_has_one_type_as_long_as_it_has_series() {
    let now = Instant::now();
    let mut store = Store::new(MINUTE, LIMITS, now);
    assert_eq!(put(&mut store, "m", "x", 1, now), Ok(()));
    let counter = metric("m", Kind::Counter);
    let count = |store: &mut Store| {
        let incoming = incoming(5);
        store.put(&counter, labels("y"), None, incoming, now)
    };
    assert_eq!(count(&mut store), Err(Refusal::Type));
    store.remove("m", &labels("x"));
    assert_eq!(count(&mut store), Ok(()));
}

#[tokio::test(start_paused = true)]
async fn a_target_stays_as_long_as_its_series() {
    let now = Instant::now();
    let mut store = Store::new(MINUTE, LIMITS, now);
    let target = |value: &str| Target {
        identity: Arc::new(Identity {
            job: "j".into(),
            instance: "i".into(),
        }),
        labels: Arc::new(labels(value)),
    };
    let first = store.target(&target("old")).expect("room");
    let incoming = incoming(5);
    let gauge = metric("m", Kind::Gauge);
    let taken = store.put(&gauge, labels("x"), Some(&first), incoming, now);
    assert_eq!(taken, Ok(()));
    let second = store.target(&target("new")).expect("room");
    assert!(Arc::ptr_eq(&first, &second));
    drop((first, second));
    let told = store.snapshot(now).targets;
    assert_eq!(told, [Arc::new(labels("new"))]);
    store.remove("m", &labels("x"));
    assert!(store.snapshot(now).targets.is_empty());
    assert_eq!(store.held_bytes, 0);
}
