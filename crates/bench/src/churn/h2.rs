//! Clients of HTTP/2 at a steady rate: connections that several requests share at a time, as a browser or another proxy has them.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ::h2::client::{SendRequest, handshake};
use bytes::Bytes;
use http_types::Request;
use rustls::ClientConfig;
use tokio::sync::Mutex;
use tokio::task::{LocalSet, spawn_local};
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::load::{Plan, Tally};
use crate::Failure;
use crate::https::{Offer, PATIENCE, config, connect};

/// Requests at a time on one connection.
const STREAMS: u32 = 8;

/// Sends requests until `stop` is set.
///
/// # Errors
/// When the client cannot be set up.
pub fn run(plan: &Plan, stop: &Arc<AtomicBool>) -> Result<Tally, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let config = config(Offer::Usual, &["h2"], true)?;
    let tally = Rc::new(RefCell::new(Tally::default()));
    let users = LocalSet::new();
    for _ in 0..plan.connections {
        let connection = Rc::new(Connection {
            plan: *plan,
            config: Arc::clone(&config),
            sender: Mutex::default(),
        });
        for _ in 0..STREAMS {
            let connection = Rc::clone(&connection);
            users.spawn_local(connection.use_it(Rc::clone(&tally), Arc::clone(stop)));
        }
    }
    runtime.block_on(users);
    Ok(tally.take())
}

/// A connection that is made anew when the other side has asked to go away.
struct Connection {
    plan: Plan,
    config: Arc<ClientConfig>,
    sender: Mutex<Option<SendRequest<Bytes>>>,
}

/// How a request ended without an answer.
enum Broken {
    /// It was not worked on (RFC 9113 §8.7), or the connection was over before it left: a client sends it again.
    Refused,
    Failed(String),
}

impl From<::h2::Error> for Broken {
    fn from(error: ::h2::Error) -> Self {
        let is_refused = error.reason() == Some(::h2::Reason::REFUSED_STREAM);
        let no_error = error.is_go_away() && error.reason() == Some(::h2::Reason::NO_ERROR);
        match is_refused || no_error {
            true => Broken::Refused,
            false => Broken::Failed(error.to_string()),
        }
    }
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Self {
        Broken::Failed(error.to_string())
    }
}

impl Connection {
    async fn use_it(self: Rc<Self>, tally: Rc<RefCell<Tally>>, stop: Arc<AtomicBool>) {
        let users = STREAMS * self.plan.connections;
        let mut ticks = interval(Duration::from_secs(1) * users / self.plan.per_second.max(1));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        while !stop.load(Ordering::Relaxed) {
            ticks.tick().await;
            let start = crate::clock::now();
            let mut outcome = self.exchange().await;
            if matches!(outcome, Err(Broken::Refused)) {
                tally.borrow_mut().repeated += 1;
                outcome = self.exchange().await;
            }
            let mut tally = tally.borrow_mut();
            match outcome {
                Ok(()) => tally.latencies.record(crate::clock::now() - start),
                Err(Broken::Refused) => tally.fail("refused twice".to_owned()),
                Err(Broken::Failed(why)) => tally.fail(why),
            }
        }
    }

    async fn exchange(&self) -> Result<(), Broken> {
        match timeout(PATIENCE, self.exchange_in_time()).await {
            Ok(outcome) => outcome,
            Err(late) => Err(Broken::Failed(late.to_string())),
        }
    }

    async fn exchange_in_time(&self) -> Result<(), Broken> {
        let request = Request::get(format!("https://localhost{}", self.plan.path)).body(());
        let request = request.map_err(|error| Broken::Failed(error.to_string()))?;
        let mut sender = self.sender().await?;
        let (answer, _) = sender.send_request(request, true)?;
        let answer = answer.await?;
        if answer.status() != 200 {
            return Err(Broken::Failed(format!("status {}", answer.status())));
        }
        let mut body = answer.into_body();
        while let Some(data) = body.data().await {
            let _ = body.flow_control().release_capacity(data?.len());
        }
        Ok(())
    }

    /// What sends a request: of the connection that there is, or of a new one.
    async fn sender(&self) -> Result<SendRequest<Bytes>, Broken> {
        let mut kept = self.sender.lock().await;
        if let Some(sender) = kept.take()
            && let Ok(sender) = sender.ready().await
        {
            *kept = Some(sender.clone());
            return Ok(sender);
        }
        let stream = connect(self.plan.address, &self.config).await?;
        let (sender, connection) = handshake(stream).await?;
        // Its errors are those of its requests.
        spawn_local(async { drop(connection.await) });
        let sender = sender.ready().await?;
        *kept = Some(sender.clone());
        Ok(sender)
    }
}
