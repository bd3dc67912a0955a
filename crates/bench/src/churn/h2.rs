//! HTTP/2 clients at a steady rate: several requests share a connection, as in a browser or another
//! proxy.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use ::h2::client::{SendRequest, handshake};
use bytes::Bytes;
use http_types::Request;
use rustls::ClientConfig;
use tokio::sync::Mutex;
use tokio::task::spawn_local;

use super::load::{self, Broken, Plan, Tally};
use crate::Failure;
use crate::https::{Offer, config, connect};

/// Most requests at a time on one connection.
const STREAMS: u32 = 8;

/// Sends requests until `stop` is set.
///
/// # Errors
/// The client cannot be set up.
pub fn run(plan: &Plan, stop: &Arc<AtomicBool>) -> Result<Tally, Failure> {
    let config = config(Offer::Usual, &["h2"], true)?;
    load::run(plan, plan.connections * STREAMS, stop, |tasks, sender| {
        for _ in 0..plan.connections {
            let connection = Rc::new(Connection {
                plan: *plan,
                config: Arc::clone(&config),
                sender: Mutex::default(),
            });
            for _ in 0..STREAMS {
                let (connection, sender) = (Rc::clone(&connection), sender.clone());
                tasks.spawn_local(async move {
                    sender.run(async || connection.exchange().await).await;
                });
            }
        }
    })
}

/// A connection that is replaced when the other side sends GOAWAY.
struct Connection {
    plan: Plan,
    config: Arc<ClientConfig>,
    sender: Mutex<Option<SendRequest<Bytes>>>,
}

impl From<::h2::Error> for Broken {
    fn from(error: ::h2::Error) -> Self {
        let is_refused = error.reason() == Some(::h2::Reason::REFUSED_STREAM);
        let no_error = error.is_go_away() && error.reason() == Some(::h2::Reason::NO_ERROR);
        if is_refused || no_error {
            Broken::Unprocessed
        } else {
            Broken::Failed(error.to_string())
        }
    }
}

impl Connection {
    async fn exchange(&self) -> Result<(), Broken> {
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

    /// The sender of the existing connection, or of a new one.
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
        // Errors of the connection are reported by its requests.
        spawn_local(async { drop(connection.await) });
        let sender = sender.ready().await?;
        *kept = Some(sender.clone());
        Ok(sender)
    }
}
