//! One name with several addresses: receivers that come, go and answer.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use super::lanes::{ADDRESSES_MAX, Lanes, World};
use super::*;
use std::net::SocketAddr;

use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use telemetry::settings::{Headers, Tls};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tonic::transport::server::TcpIncoming;

/// Addresses, and which of them can be connected to; connections are their numbers.
#[derive(Clone, Default)]
struct Fake(Arc<Mutex<Net>>);

#[derive(Default)]
struct Net {
    addresses: Vec<SocketAddr>,
    is_unknown: bool,
    dead: Vec<SocketAddr>,
    attempts: HashMap<SocketAddr, usize>,
    asked: usize,
}

impl World for Fake {
    type Connection = SocketAddr;

    async fn ask(&self) -> Result<Vec<SocketAddr>, String> {
        let mut net = self.0.lock().unwrap();
        net.asked += 1;
        if net.is_unknown {
            Err("no such name".into())
        } else {
            Ok(net.addresses.clone())
        }
    }

    async fn connect(&self, to: SocketAddr) -> Result<SocketAddr, String> {
        let mut net = self.0.lock().unwrap();
        *net.attempts.entry(to).or_default() += 1;
        if net.dead.contains(&to) {
            Err("refused".into())
        } else {
            Ok(to)
        }
    }
}

impl Fake {
    fn new(count: u8) -> (Fake, Vec<SocketAddr>) {
        let addresses: Vec<_> = (1..=count)
            .map(|last| ([10, 0, 0, last], 1).into())
            .collect();
        let fake = Fake::default();
        fake.with(|net| net.addresses = addresses.clone());
        (fake, addresses)
    }

    fn with<T>(&self, change: impl FnOnce(&mut Net) -> T) -> T {
        change(&mut self.0.lock().unwrap())
    }

    fn attempts(&self, to: SocketAddr) -> usize {
        self.with(|net| net.attempts.get(&to).copied().unwrap_or_default())
    }
}

/// The addresses of so many calls, sorted, once all that can be connected to is.
async fn calls(lanes: &Lanes<Fake>, count: usize) -> Vec<SocketAddr> {
    let mut taken = Vec::new();
    for _ in 0..count {
        taken.push(lanes.take().await.map(|taken| taken.connection).unwrap());
        // Others may be connected meanwhile.
        tokio::task::yield_now().await;
    }
    taken.sort();
    taken
}

async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn calls_go_to_all_addresses_in_turn() {
    let (fake, all) = Fake::new(3);
    let lanes = Lanes::new(fake.clone());
    settle().await;
    assert_eq!(fake.with(|net| net.asked), 0, "nobody called");
    lanes.take().await.unwrap();
    settle().await;
    assert_eq!(calls(&lanes, 3).await, all);
    let twice: Vec<_> = all.iter().flat_map(|one| [*one, *one]).collect();
    assert_eq!(calls(&lanes, 6).await, twice);
    assert!(all.iter().all(|one| fake.attempts(*one) == 1));
}

#[tokio::test(start_paused = true)]
async fn what_fails_is_left_out_and_tried_again_less_and_less_often() {
    let (fake, all) = Fake::new(3);
    fake.with(|net| net.dead.push(all[1]));
    let lanes = Lanes::new(fake.clone());
    lanes.take().await.unwrap();
    settle().await;
    assert_eq!(calls(&lanes, 2).await, [all[0], all[2]]);
    assert_eq!(fake.attempts(all[1]), 1);
    tokio::time::sleep(Duration::from_secs(600)).await;
    // 1 s, 1.6 s, … 120 s, each give or take a fifth.
    let attempts = fake.attempts(all[1]);
    assert!((10..20).contains(&attempts), "{attempts}");
    fake.with(|net| net.dead.clear());
    tokio::time::sleep(Duration::from_secs(144)).await;
    assert_eq!(calls(&lanes, 3).await, all);
}

#[tokio::test(start_paused = true)]
async fn a_call_fails_when_all_addresses_have_and_the_next_one_has_them_tried_again() {
    let (fake, all) = Fake::new(2);
    fake.with(|net| net.dead = all.clone());
    let lanes = Lanes::new(fake.clone());
    let begin = tokio::time::Instant::now();
    let why = lanes.take().await.err().unwrap();
    assert!(why.ends_with(": refused"), "{why}");
    assert_eq!([0, 1].map(|at| fake.attempts(all[at])), [1, 1]);
    assert!(lanes.take().await.is_err());
    assert_eq!([0, 1].map(|at| fake.attempts(all[at])), [2, 2]);
    fake.with(|net| net.dead.pop());
    assert_eq!(lanes.take().await.unwrap().connection, all[1]);
    assert_eq!(begin.elapsed(), Duration::ZERO, "nobody slept");
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_broke_is_made_anew_while_others_have_its_calls() {
    let (fake, all) = Fake::new(2);
    let lanes = Lanes::new(fake.clone());
    lanes.take().await.unwrap();
    settle().await;
    let taken = lanes.take().await.unwrap();
    let other = all.iter().find(|one| **one != taken.connection).unwrap();
    fake.with(|net| net.dead.push(taken.connection));
    lanes.broken(&taken);
    assert_eq!(calls(&lanes, 2).await, [*other, *other]);
    fake.with(|net| net.dead.clear());
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(calls(&lanes, 2).await, all);
    // Who hears of it late breaks nothing.
    let attempts = fake.attempts(taken.connection);
    lanes.broken(&taken);
    settle().await;
    assert_eq!(calls(&lanes, 2).await, all);
    assert_eq!(fake.attempts(taken.connection), attempts);
}

#[tokio::test(start_paused = true)]
async fn the_name_is_asked_for_again_while_calls_are_made() {
    let (fake, all) = Fake::new(3);
    fake.with(|net| net.addresses.truncate(1));
    let lanes = Lanes::new(fake.clone());
    assert_eq!(calls(&lanes, 2).await, [all[0], all[0]]);
    fake.with(|net| net.addresses = all[1..].to_vec());
    tokio::time::sleep(Duration::from_secs(29)).await;
    assert_eq!(calls(&lanes, 1).await, all[..1]);
    tokio::time::sleep(Duration::from_secs(2)).await;
    settle().await;
    assert_eq!(calls(&lanes, 2).await, all[1..]);
    // One that is not answered changes nothing.
    fake.with(|net| net.is_unknown = true);
    tokio::time::sleep(Duration::from_secs(31)).await;
    assert_eq!(calls(&lanes, 2).await, all[1..]);
    settle().await;
    let asked = fake.with(|net| net.asked);
    tokio::time::sleep(Duration::from_secs(3600)).await;
    // Nobody calls: nobody asks.
    assert!(fake.with(|net| net.asked) <= asked + 1);
}

#[tokio::test(start_paused = true)]
async fn a_name_may_be_unknown_empty_or_have_too_many_addresses() {
    let (fake, all) = Fake::new(1);
    fake.with(|net| net.is_unknown = true);
    let lanes = Lanes::new(fake.clone());
    assert_eq!(lanes.take().await.err().unwrap(), "no such name");
    fake.with(|net| (net.is_unknown, net.addresses) = (false, Vec::new()));
    assert_eq!(lanes.take().await.err().unwrap(), "the name has no address");
    fake.with(|net| net.addresses = all.clone());
    assert_eq!(calls(&lanes, 1).await, all);
    let many = |last: u16| SocketAddr::from(([10, 1, (last >> 8) as u8, last as u8], 1));
    fake.with(|net| net.addresses = (0..1000).map(many).collect());
    tokio::time::sleep(Duration::from_secs(31)).await;
    settle().await;
    assert_eq!(lanes.count(), ADDRESSES_MAX);
}

/// A receiver of traces that counts what comes.
struct Receiver {
    address: SocketAddr,
    came: Arc<AtomicUsize>,
    end: tokio::sync::oneshot::Sender<()>,
    serving: JoinHandle<()>,
}

struct Counting(Arc<AtomicUsize>);

#[tonic::async_trait]
impl TraceService for Counting {
    async fn export(
        &self,
        _: tonic::Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        self.0.fetch_add(1, SeqCst);
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

impl Receiver {
    async fn at(address: &str) -> Receiver {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let came = Arc::new(AtomicUsize::new(0));
        let service = TraceServiceServer::new(Counting(Arc::clone(&came)));
        let mut server = tonic::transport::Server::builder();
        let (end, ended) = tokio::sync::oneshot::channel();
        let incoming = TcpIncoming::from(listener);
        let ended = async { ended.await.unwrap() };
        let serving = { server.add_service(service) }.serve_with_incoming_shutdown(incoming, ended);
        let serving = tokio::spawn(async move { serving.await.unwrap() });
        Receiver {
            address,
            came,
            end,
            serving,
        }
    }

    fn count(&self) -> usize {
        self.came.load(SeqCst)
    }

    /// Listens no more, and closes its connections; how many calls came.
    async fn end(self) -> usize {
        self.end.send(()).unwrap();
        self.serving.await.unwrap();
        self.came.load(SeqCst)
    }
}

/// A client of a name that has these addresses.
fn client(addresses: Vec<SocketAddr>) -> Grpc {
    let settings = OtlpGrpc {
        endpoint: "http://receivers.example:4317".into(),
        headers: Headers::default(),
        timeout_ms: 30_000,
        requests_max: 0,
        compression: Compression::None,
        user_agent: None,
        tls: Tls::default(),
    };
    let options = GrpcOptions {
        is_balanced: true,
        ..GrpcOptions::default()
    };
    let ask = |host: &str, port: u16| -> Ask {
        assert_eq!((host, port), ("receivers.example", 4317));
        Box::new(move || Box::pin(std::future::ready(Ok(addresses.clone()))))
    };
    Grpc::asking(&settings, Signal::Traces, options, ask).unwrap()
}

async fn sent(client: &Grpc) -> bool {
    let outcome = client.send(&Prepared(Vec::new()), client.headers()).await;
    matches!(outcome, Outcome::Taken { .. })
}

/// Two addresses of this machine, at one of which nobody listens any more.
#[tokio::test]
async fn receivers_share_the_calls_and_one_that_goes_costs_none() {
    let [one, two, gone] = [
        Receiver::at("127.0.0.1:0").await,
        Receiver::at("127.0.0.2:0").await,
        Receiver::at("127.0.0.3:0").await,
    ];
    let addresses = vec![one.address, two.address, gone.address];
    gone.end().await;
    let client = client(addresses);
    let deadline = tokio::time::Instant::now() + Duration::from_secs(30);
    while one.count().min(two.count()) == 0 {
        assert!(sent(&client).await);
        assert!(tokio::time::Instant::now() < deadline);
    }
    let before = (one.count(), two.count());
    for _ in 0..10 {
        assert!(sent(&client).await);
    }
    let shares = (one.count() - before.0, two.count() - before.1);
    assert_eq!(shares, (5, 5));
    // Its connections end with it; no call is lost by that.
    two.end().await;
    let before = one.count();
    for _ in 0..10 {
        assert!(sent(&client).await);
    }
    assert_eq!(one.count(), before + 10);
}

/// The connection to the only address was closed while nothing was sent: the call waits for the
/// next one.
#[tokio::test]
async fn one_that_is_there_again_is_found_at_once() {
    let first = Receiver::at("127.0.0.1:0").await;
    let address = first.address;
    let client = client(vec![address]);
    assert!(sent(&client).await);
    assert_eq!(first.end().await, 1);
    assert!(!sent(&client).await);
    let again = Receiver::at(&address.to_string()).await;
    assert!(sent(&client).await);
    assert_eq!(again.end().await, 1);
}
