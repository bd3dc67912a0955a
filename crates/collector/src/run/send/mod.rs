//! Exporters: queues, attempts, and what the other side says.

mod balance;
mod debug;
mod file;
mod otlp;
mod queue;
mod retry;
mod room;
mod stored;

use std::sync::Arc;

use bytes::Bytes;
use export::client::{Client, Outcome, Proxies};
use journal::Left;
use otlp::Outlet;
use tokio::time::Instant;
use traces::Stage;

pub(in crate::run) use balance::start as balance;
pub use balance::{BOUNDS_MS, Balancer};
pub use balance::{K8sFault, K8sLines, K8sSlices};
pub use file::Files;
pub use queue::{Counts, Failing, Sender, SenderEnd};
pub use room::Room;

use super::Log;
use super::account::Account;
use super::auth::Authenticators;
use super::data::Batch;
use super::json;
use super::process::dashboard::Shown;
use super::storage::Stored;
use crate::config::components::shared::queue::Queue;
use crate::config::components::shared::retry::Retry;
use crate::config::{Exporter, Signal};

/// Where batches end.
enum Target {
    /// A receiver of OTLP.
    Otlp(Box<Outlet>, Form),
    /// One of the backends of a load balancer, and what became of what was sent to it.
    Backend(Box<Outlet>, Arc<balance::Attempts>),
    /// The log.
    Debug(debug::Debug),
    /// A file.
    File(Arc<file::File>),
    /// The process's trace store.
    Dashboard(Arc<Shown>),
    /// Nowhere.
    Nop,
}

/// What a request is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Protobuf,
    Json,
}

/// What an exporter has besides its target.
struct Around {
    queue: Option<Queue>,
    retry: Option<Retry>,
}

/// What all exporters of a signal have in common.
#[derive(Clone)]
pub(in crate::run) struct Common {
    /// Of the signal.
    pub account: Arc<Account>,
    /// Who we are.
    pub auth: Authenticators,
    pub proxies: Proxies,
    /// What bytes may wait in all queues.
    pub room: Arc<Room>,
    pub log: Log,
}

/// What an exporter's queue is told besides its settings.
pub(super) struct Outside<'a> {
    pub common: &'a Common,
    /// What keeps the queue over the end of the process, and what an earlier one left.
    pub stored: Option<(Stored, Left)>,
    /// Files that are open.
    pub files: &'a mut Files,
    /// Where exporters `dashboard` put traces.
    pub traces: Option<&'a Arc<Shown>>,
}

/// Starts the exporter of a signal. To be called within the runtime.
///
/// # Errors
/// Why it cannot be started.
pub(super) fn start(
    name: &str,
    exporter: &Exporter,
    signal: Signal,
    outside: Outside<'_>,
) -> Result<(Arc<Sender>, SenderEnd), String> {
    let common = outside.common;
    let (target, around) = match exporter {
        Exporter::OtlpGrpc(settings) => (
            Target::Otlp(
                Box::new(otlp::grpc(
                    settings,
                    signal,
                    (&common.auth, &common.proxies),
                )?),
                Form::Protobuf,
            ),
            Around {
                queue: settings.queue.clone(),
                retry: settings.retry.clone(),
            },
        ),
        Exporter::OtlpHttp(settings) => {
            let (client, form) = otlp::http(settings, signal, (&common.auth, &common.proxies))?;
            let around = Around {
                queue: settings.queue.clone(),
                retry: settings.retry.clone(),
            };
            (Target::Otlp(Box::new(client), form), around)
        }
        Exporter::Debug(settings) => {
            let debug = debug::Debug::new(name, settings, &common.log)?;
            (Target::Debug(debug), NONE)
        }
        Exporter::File(settings) => {
            let file = file::File::of(outside.files, name, settings)?;
            (Target::File(file), NONE)
        }
        Exporter::Dashboard(_) => {
            let store = outside.traces.ok_or("there is no trace store")?;
            (Target::Dashboard(Arc::clone(store)), NONE)
        }
        Exporter::Nop => (Target::Nop, NONE),
        Exporter::LoadBalancing(_) => return Err("it has no queue of its own".into()),
    };
    queue::start(name, (target, signal), around, outside)
}

const NONE: Around = Around {
    queue: None,
    retry: None,
};

impl Target {
    /// The host and port that it sends to, where it has some.
    fn server(&self) -> Option<&(String, String)> {
        match self {
            Target::Otlp(outlet, _) | Target::Backend(outlet, _) => outlet.server.as_ref(),
            Target::Debug(_) | Target::File(_) | Target::Dashboard(_) | Target::Nop => None,
        }
    }

    /// Sends a batch once. `prepared` keeps the work of the first attempt.
    async fn send(
        &self,
        batch: &Batch,
        prepared: &mut Option<export::client::Prepared>,
    ) -> Outcome {
        match self {
            Target::Nop => TAKEN,
            Target::Dashboard(store) => {
                store.add(&batch.bytes, Stage::Kept);
                TAKEN
            }
            Target::Debug(debug) => {
                debug.tell(batch);
                TAKEN
            }
            Target::File(file) => file::write(file, batch).await,
            Target::Otlp(client, form) => send(client, *form, batch, prepared).await,
            Target::Backend(client, attempts) => {
                let begin = Instant::now();
                let outcome = send(client, Form::Protobuf, batch, prepared).await;
                let is_success = matches!(outcome, Outcome::Taken { .. });
                attempts.add(begin.elapsed(), is_success);
                outcome
            }
        }
    }
}

async fn send(
    outlet: &Outlet,
    form: Form,
    batch: &Batch,
    prepared: &mut Option<export::client::Prepared>,
) -> Outcome {
    let request = match prepared {
        Some(request) => request,
        None => match prepare(&outlet.client, form, batch) {
            Ok(request) => prepared.insert(request),
            Err(why) => return Outcome::Refused(why),
        },
    };
    outlet.send(request, batch.origin.as_deref()).await
}

const TAKEN: Outcome = Outcome::Taken {
    rejected: 0,
    message: String::new(),
};

fn prepare(client: &Client, form: Form, batch: &Batch) -> Result<export::client::Prepared, String> {
    let body: Bytes = match form {
        Form::Protobuf => batch.bytes.clone(),
        Form::Json => json::encode(batch.signal, &batch.bytes).into(),
    };
    client.prepare(vec![body])
}
