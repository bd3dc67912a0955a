//! A load of new connections: each request has a separate connection, with a full handshake or a
//! resumed one.

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use rustls::{ClientConfig, HandshakeKind};
use tokio::io::AsyncReadExt;
use tokio::task::LocalSet;

use super::PATIENCE;
use super::connect::{Offer, config, connect};
use super::exchange::{exchange, request};
use super::tally::Tally;
use crate::Failure;
use crate::clock::{self, Deadline};
use crate::sys;
use crate::wrk::Outcome;

/// The parameters of a load.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The address of the proxy.
    pub address: SocketAddr,
    /// The requested path.
    pub path: &'static str,
    /// Connections at a time.
    pub connections: u32,
    /// The duration.
    pub seconds: u32,
    /// Whether handshakes resume the session of the previous connection; a handshake that does not
    /// is then an error.
    pub resumes: bool,
}

/// How long a failed client waits before it connects again.
const PAUSE: Duration = Duration::from_millis(10);
/// Runs it on one thread. A latency includes the connection, the handshake and the request.
///
/// # Errors
/// The client cannot be set up.
pub fn load(plan: &Plan) -> Result<Outcome, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let tally = Rc::new(RefCell::new(Tally::start()));
    let clients = LocalSet::new();
    for _ in 0..plan.connections {
        // Each client has its own session store: a session resumes one connection.
        let config = config(Offer::Measured, &[], plan.resumes)?;
        clients.spawn_local(client(*plan, config, Rc::clone(&tally)));
    }
    runtime.block_on(clients);
    let tally = Rc::into_inner(tally).ok_or("a client has not ended")?;
    Ok(tally.into_inner().outcome())
}

/// One client: connects, sends a request, reads to the end, and repeats.
async fn client(plan: Plan, config: Arc<ClientConfig>, tally: Rc<RefCell<Tally>>) {
    let deadline = Deadline::after(Duration::from_secs(u64::from(plan.seconds)));
    let request = request(plan.path, true);
    let mut buffer = Vec::new();
    let mut first = true;
    while !deadline.passed() && !sys::interrupted() {
        let one = once(&plan, &config, &request, &mut buffer);
        let outcome = match tokio::time::timeout(PATIENCE, one).await {
            Ok(outcome) => outcome,
            Err(late) => Err(late.into()),
        };
        let pause = outcome.is_err();
        {
            let mut tally = tally.borrow_mut();
            let problem = match outcome {
                Ok((time, resumed)) => {
                    tally.answered(time);
                    // The first connection has no session to resume.
                    let other = !first && resumed != plan.resumes;
                    other.then(|| format!("resumed: {resumed}"))
                }
                Err(error) => Some(error.to_string()),
            };
            if let Some(problem) = problem {
                tally.failed(problem);
            }
        }
        first = false;
        if pause {
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// One connection. Returns the time until the answer, and whether it resumed a session.
async fn once(
    plan: &Plan,
    config: &Arc<ClientConfig>,
    request: &[u8],
    buffer: &mut Vec<u8>,
) -> io::Result<(Duration, bool)> {
    let start = clock::now();
    let mut stream = connect(plan.address, config).await?;
    exchange(&mut stream, request, buffer).await?;
    let time = clock::now() - start;
    let resumed = stream.get_ref().1.handshake_kind() == Some(HandshakeKind::Resumed);
    // The proxy closes. If the client closed with unread data, it would reset the connection.
    while stream.read_buf(buffer).await.is_ok_and(|count| count > 0) {}
    Ok((time, resumed))
}
