//! Senders that are answered when what they sent was sent on.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::*;

/// A back end that answers when it is told to.
struct BackEnd {
    address: SocketAddr,
    /// Requests that came.
    came: Arc<Semaphore>,
    /// Those that may be answered.
    may_answer: Arc<Semaphore>,
}

impl BackEnd {
    /// One that always says the same.
    async fn new(status: u16) -> BackEnd {
        BackEnd::saying(&[status]).await
    }

    /// One that answers with one status after the other, and with the last one from then on.
    async fn saying(statuses: &[u16]) -> BackEnd {
        let statuses = Arc::new(Mutex::new(VecDeque::from(statuses.to_vec())));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.expect("a listener");
        let back_end = BackEnd {
            address: listener.local_addr().expect("an address"),
            came: Arc::new(Semaphore::new(0)),
            may_answer: Arc::new(Semaphore::new(0)),
        };
        let gates = (Arc::clone(&back_end.came), Arc::clone(&back_end.may_answer));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let gates = gates.clone();
                let statuses = Arc::clone(&statuses);
                let service = service_fn(move |request: Request<Incoming>| {
                    let (came, may_answer) = gates.clone();
                    let mut statuses = statuses.lock().expect("nobody panics");
                    let status = match statuses.len() {
                        1 => statuses[0],
                        _ => statuses.pop_front().expect("a status"),
                    };
                    async move {
                        let _ = request.into_body().collect().await;
                        came.add_permits(1);
                        may_answer.acquire().await.expect("it is open").forget();
                        let mut response = Response::new(Full::<Bytes>::default());
                        *response.status_mut() = status.try_into().expect("a status");
                        Ok::<_, Infallible>(response)
                    }
                });
                let serve = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service);
                tokio::spawn(serve);
            }
        });
        back_end
    }

    /// A collector that sends to it once, with these processors and options of the queue.
    fn front(&self, processors: &str, names: &str, queue: &str) -> Collector {
        self.front_that_retries(processors, names, queue, "enabled: false")
    }

    fn front_that_retries(
        &self,
        processors: &str,
        names: &str,
        queue: &str,
        retry: &str,
    ) -> Collector {
        collector(&format!(
            "processors: {{ {processors} }}\n\
             exporters: {{ otlphttp: {{ endpoint: 'http://{}', timeout: 60s, retry_on_failure: {{ {retry} }}, sending_queue: {{ {queue} }} }} }}\n\
             service: {{ {NO_METRICS}, pipelines: {{ traces: {{ receivers: [otlp], processors: [{names}], exporters: [otlphttp] }} }} }}",
            self.address
        ))
    }

    async fn next(&self) {
        let came = tokio::time::timeout(PATIENCE, self.came.acquire()).await;
        came.expect("a request").expect("it is open").forget();
    }
}

#[tokio::test]
async fn the_answer_is_that_of_the_back_end() {
    for (status, queue) in [
        (200, "wait_for_result: true"),
        (400, "wait_for_result: true"),
        (503, "wait_for_result: true"),
        (200, "enabled: false"),
        (400, "enabled: false"),
        (503, "enabled: false"),
        (200, "wait_for_result: true, batch: { flush_timeout: 10ms }"),
        (
            503,
            "wait_for_result: true, batch: { min_size: 5, max_size: 10 }",
        ),
    ] {
        let back_end = BackEnd::new(status).await;
        let front = back_end.front("", "", queue);
        let client = grpc(&front);
        let sent = tokio::spawn(async move { send(&client, request(0, 10)).await });
        back_end.next().await;
        assert!(!sent.is_finished(), "{queue}: the outcome is not known");
        assert_eq!(traces(&front).held(), 20);
        back_end.may_answer.add_permits(2);
        let outcome = sent.await.expect("an outcome");
        let as_expected = match status {
            200 => matches!(outcome, Outcome::Taken { .. }),
            400 => matches!(&outcome, Outcome::Refused(why) if why.contains("does not take it")),
            _ => {
                matches!(&outcome, Outcome::Busy { after: Some(_), why } if why.contains("sent on now"))
            }
        };
        assert!(as_expected, "{status} {queue}: {outcome:?}");
        let [balance, ..] = front.end().await;
        let expected = if status == 200 {
            (20, 0, 0)
        } else {
            (0, 20, 0)
        };
        let got = (balance.exported, balance.failed, balance.held());
        assert_eq!(got, expected, "{status} {queue}");
    }
}

/// The next so many are told to come back.
async fn refused(all: &mut JoinSet<Outcome>, count: usize) {
    for _ in 0..count {
        let outcome = all.join_next().await.expect("one").expect("an outcome");
        let is_busy = matches!(outcome, Outcome::Busy { after: Some(_), .. });
        assert!(is_busy, "{outcome:?}");
    }
}

async fn all_taken(mut all: JoinSet<Outcome>) {
    while let Some(outcome) = all.join_next().await {
        let outcome = outcome.expect("an outcome");
        assert!(matches!(outcome, Outcome::Taken { .. }), "{outcome:?}");
    }
}

#[tokio::test]
async fn nobody_waits_for_what_a_processor_holds() {
    let tail =
        "tail_sampling: { decision_wait: 300s, policies: [ { name: all, type: always_sample } ] }";
    let batch = "batch: { timeout: 300s }";
    for (processors, name, queue) in [
        (tail, "tail_sampling", "wait_for_result: true"),
        (tail, "tail_sampling", "enabled: false"),
        (batch, "batch", "wait_for_result: true"),
        (batch, "batch", "enabled: false"),
    ] {
        let back_end = BackEnd::new(200).await;
        let front = back_end.front(processors, name, queue);
        let outcome = send(&grpc(&front), request(0, 10)).await;
        assert!(matches!(outcome, Outcome::Taken { .. }), "{outcome:?}");
        assert_eq!(traces(&front).held(), 20);
        back_end.may_answer.add_permits(1);
        let [balance, ..] = front.end().await;
        assert_eq!((balance.exported, balance.held()), (20, 0));
    }
}

/// Without a queue it is the sender who waits for all attempts.
#[tokio::test]
async fn what_is_sent_again_is_answered_when_it_was_taken() {
    let back_end = BackEnd::saying(&[503, 503, 200]).await;
    let retry = "initial_interval: 1ms";
    let front = back_end.front_that_retries("", "", "enabled: false", retry);
    let client = http(&front, settings::Compression::None);
    let sent = tokio::spawn(async move { send(&client, request(0, 10)).await });
    for _ in 0..3 {
        back_end.next().await;
        assert!(!sent.is_finished(), "an attempt is under way");
        assert_eq!((traces(&front).held(), traces(&front).exported), (20, 0));
        back_end.may_answer.add_permits(1);
    }
    let outcome = sent.await.expect("an outcome");
    assert!(matches!(outcome, Outcome::Taken { .. }), "{outcome:?}");
    let [balance, ..] = front.end().await;
    assert_eq!((balance.exported, balance.held()), (20, 0));
}

/// More requests than are in flight at a time, and than wait, are told to come back.
#[tokio::test]
async fn more_senders_than_there_is_room_for_are_told_to_come_back() {
    let back_end = BackEnd::new(200).await;
    let front = Arc::new(back_end.front("", "", "enabled: false"));
    let client = Arc::new(http(&front, settings::Compression::None));
    let mut all = JoinSet::new();
    let mut send = |numbers: std::ops::Range<u64>| {
        for number in numbers {
            let client = Arc::clone(&client);
            all.spawn(async move { send(&client, request(number, 1)).await });
        }
    };
    // 64 are on their way, and 64 wait.
    send(0..64);
    for _ in 0..64 {
        back_end.next().await;
    }
    send(64..200);
    refused(&mut all, 200 - 128).await;
    back_end.may_answer.add_permits(1000);
    all_taken(all).await;
    let balance = traces(&front);
    let got = (balance.exported, balance.refused, balance.held());
    assert_eq!(got, (256, 144, 0));
}

/// A full queue lets go of a sender once what it sent has room.
#[tokio::test]
async fn senders_wait_for_room_where_a_queue_blocks() {
    for name in ["block_on_overflow", "blocking"] {
        let queue = format!("{name}: true, queue_size: 1, num_consumers: 1");
        senders_wait_for_room(&queue).await;
    }
}

async fn senders_wait_for_room(queue: &str) {
    let back_end = BackEnd::new(200).await;
    let front = back_end.front("", "", queue);
    let send_one = |number: u64| {
        let client = http(&front, settings::Compression::None);
        tokio::spawn(async move { send(&client, request(number, 1)).await })
    };
    let taken = async |sent: tokio::task::JoinHandle<Outcome>| {
        let outcome = sent.await.expect("an outcome");
        assert!(matches!(outcome, Outcome::Taken { .. }), "{outcome:?}");
    };
    // One is on its way, and one waits.
    taken(send_one(0)).await;
    back_end.next().await;
    taken(send_one(1)).await;
    let first = send_one(2);
    until("it is there", || traces(&front).held() == 6).await;
    let second = send_one(3);
    until("it is there", || traces(&front).held() == 8).await;
    assert!(!first.is_finished() && !second.is_finished());
    back_end.may_answer.add_permits(1);
    back_end.next().await;
    taken(first).await;
    assert!(!second.is_finished(), "one more has room only");
    back_end.may_answer.add_permits(1);
    taken(second).await;
    assert_eq!(traces(&front).exported, 4);
    back_end.may_answer.add_permits(2);
    let [balance, ..] = front.end().await;
    assert_eq!((balance.exported, balance.held()), (8, 0));
}

#[tokio::test]
async fn the_size_of_a_queue_is_in_the_units_of_the_settings() {
    // One request is on its way. Of the next ones, of twenty spans and more than a thousand bytes
    // each, so many wait; an empty queue has room for a larger one.
    for (sizer, waiting) in [
        ("sizer: requests, queue_size: 2", 2),
        ("sizer: items, queue_size: 30", 1),
        ("sizer: bytes, queue_size: 1000", 1),
    ] {
        let back_end = BackEnd::new(200).await;
        let front = back_end.front("", "", &format!("num_consumers: 1, {sizer}"));
        let client = http(&front, settings::Compression::None);
        let first = send(&client, request(0, 1)).await;
        assert!(matches!(first, Outcome::Taken { .. }), "{first:?}");
        back_end.next().await;
        let mut taken = 0;
        while let Outcome::Taken { .. } = send(&client, request(0, 10)).await {
            taken += 1;
            assert!(taken <= 2, "there is no bound");
        }
        assert_eq!(taken, waiting, "{sizer}");
        back_end.may_answer.add_permits(5);
        front.end().await;
    }
}

#[tokio::test]
async fn not_everyone_may_wait_for_room() {
    let back_end = BackEnd::new(200).await;
    let queue = "block_on_overflow: true, queue_size: 1, num_consumers: 1";
    let front = back_end.front("", "", queue);
    for is_on_its_way in [true, false] {
        let outcome = send(&grpc(&front), request(0, 1)).await;
        assert!(matches!(outcome, Outcome::Taken { .. }), "{outcome:?}");
        if is_on_its_way {
            back_end.next().await;
        }
    }
    let mut all = JoinSet::new();
    for _ in 0..12 {
        let client = Arc::new(grpc(&front));
        for number in 0..90 {
            let client = Arc::clone(&client);
            all.spawn(async move { send(&client, request(number, 1)).await });
        }
    }
    refused(&mut all, 12 * 90 - 1024).await;
    back_end.may_answer.add_permits(2000);
    all_taken(all).await;
    let [balance, ..] = front.end().await;
    let got = (balance.exported, balance.refused, balance.held());
    assert_eq!(got, (2 * (1024 + 2), 2 * (12 * 90 - 1024), 0));
}

/// One exporter makes senders wait, another one does not answer at all.
#[tokio::test]
async fn senders_wait_for_those_that_make_them_wait() {
    let (asked, silent) = (BackEnd::new(200).await, BackEnd::new(200).await);
    let exporter = |name: &str, to: &BackEnd, queue: &str| {
        let at = to.address;
        format!(
            "otlphttp/{name}: {{ endpoint: 'http://{at}', timeout: 60s, sending_queue: {{ {queue} }} }}"
        )
    };
    let exporters = [
        exporter("silent", &silent, ""),
        exporter("batch", &silent, "batch: { flush_timeout: 300s }"),
        exporter("asked", &asked, "wait_for_result: true"),
    ];
    let front = collector(&format!(
        "exporters: {{ {} }}\nservice: {{ {NO_METRICS}, pipelines: {{ traces: {{ receivers: [otlp], exporters: [otlphttp/silent, otlphttp/batch, otlphttp/asked] }} }} }}",
        exporters.join(", ")
    ));
    let client = http(&front, settings::Compression::None);
    let sent = tokio::spawn(async move { send(&client, request(0, 10)).await });
    asked.next().await;
    assert!(!sent.is_finished());
    asked.may_answer.add_permits(1);
    let outcome = sent.await.expect("an outcome");
    assert!(matches!(outcome, Outcome::Taken { .. }), "{outcome:?}");
    assert_eq!(traces(&front).held(), 20, "the others have it still");
    silent.may_answer.add_permits(2);
    let [balance, ..] = front.end().await;
    assert_eq!((balance.exported, balance.held()), (20, 0));
}

/// Tasks of this test that run.
fn tasks() -> usize {
    tokio::runtime::Handle::current()
        .metrics()
        .num_alive_tasks()
}

#[tokio::test]
async fn what_does_not_start_leaves_nothing_running() {
    let occupied = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = occupied.local_addr().unwrap();
    let before = tasks();
    // Its own metrics' page is opened last, when all else runs.
    let config = load(&format!(
        "receivers: {{ otlp: {{ protocols: {{ grpc: {{ endpoint: '127.0.0.1:0' }}, http: {{ endpoint: '127.0.0.1:0' }} }} }} }}\n\
         processors: {{ batch: {{}}, groupbytrace: {{}}, tail_sampling: {{ policies: [{{ name: a, type: always_sample }}] }} }}\n\
         exporters: {{ otlp: {{ endpoint: '127.0.0.1:1', tls: {{ insecure: true }}, sending_queue: {{ batch: {{}} }} }}, otlphttp: {{ endpoint: 'http://127.0.0.1:1' }},\n\
           loadbalancing: {{ protocol: {{ otlp: {{ tls: {{ insecure: true }} }} }}, resolver: {{ dns: {{ hostname: '127.0.0.1', port: '1' }} }} }} }}\n\
         connectors: {{ forward: {{}} }}\n\
         extensions: {{ health_check: {{ endpoint: '127.0.0.1:0' }} }}\n\
         service:\n  extensions: [health_check]\n  telemetry: {{ metrics: {{ readers: [{{ pull: {{ exporter: {{ prometheus: {{ host: 127.0.0.1, port: {port} }} }} }} }}] }} }}\n  pipelines:\n\
        \x20   traces: {{ receivers: [otlp], processors: [groupbytrace, batch], exporters: [forward, otlphttp] }}\n\
        \x20   traces/2: {{ receivers: [forward], processors: [tail_sampling, batch], exporters: [otlp, loadbalancing] }}\n",
        port = address.port()
    ));
    let error = Collector::start(&config, setup()).err().expect("no start");
    assert!(error.0.contains(&address.to_string()), "{}", error.0);
    until("all of it has ended", || tasks() == before).await;
}
