//! Exporters: queues, attempts, and what the other side says.

mod balance;
mod debug;
mod file;
mod number;
mod outlet;
mod prometheus;
mod queue;
mod room;
mod stored;

use std::sync::Arc;

use bytes::Bytes;
use export::client::{Client, Outcome, Proxies};
use journal::Left;
use outlet::Outlet;
use telemetry::settings::Encoding;
use tokio::time::Instant;
use traces::Stage;

pub use balance::Balancer;
pub(in crate::run) use balance::split_by;
pub(in crate::run) use balance::start as balance;
pub use balance::{K8sFault, K8sLines, K8sSlices};
pub use file::Files;
pub use prometheus::Exposition;
pub use queue::{Counts, Failing, Sender, SenderEnd};
pub use room::Room;

use super::Log;
use super::account::{Account, Loss};
use super::auth::Authenticators;
use super::consume::{Consumer, Refusal, Refused};
use super::data::Batch;
use super::kafka;
use super::process::dashboard::Shown;
use super::storage::{Ending, Pledge, Stored};
use crate::config::components::shared::queue::Queue;
use crate::config::components::shared::retry::Retry;
use crate::config::{Exporter, Signal};

/// Where batches end.
enum Target {
    /// A receiver of OTLP.
    Otlp(Box<Outlet>, Encoding),
    /// One of the backends of a load balancer, and what became of what was sent to it.
    Backend(Box<Outlet>, Arc<balance::Attempts>),
    /// The log.
    Debug(debug::Debug),
    /// A file.
    File(Arc<file::File>),
    /// The backends of a load balancer.
    Tier(Arc<Balancer>),
    /// Topics of Kafka.
    Kafka(Box<kafka::Producer>),
    /// The process's trace store.
    Dashboard(Arc<Shown>),
    /// A page for Prometheus.
    Prometheus(Arc<Exposition>),
    /// Nowhere.
    Nop,
}

/// The work of the first attempt to send a batch, kept for the next.
#[derive(Default)]
struct Prepared {
    otlp: Option<export::client::Prepared>,
    kafka: Option<kafka::Pending>,
    file: Option<file::Pending>,
    tier: Option<balance::Remains>,
}

impl Prepared {
    /// Records of a batch that nobody has taken yet.
    fn records_left(&self, batch: &Batch) -> u64 {
        let tier = self.tier.as_ref();
        tier.map_or(batch.records, |tier| tier.records)
    }
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
    /// Pages of exporters `prometheus`, to be served.
    pub expositions: &'a mut Vec<Arc<Exposition>>,
    /// Where exporters `dashboard` put traces.
    pub traces: Option<&'a Arc<Shown>>,
    /// The load balancer that it is the queue of.
    pub balancer: Option<Arc<Balancer>>,
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
                Box::new(outlet::grpc(
                    &settings.client,
                    signal,
                    (&common.auth, &common.proxies),
                )?),
                Encoding::Protobuf,
            ),
            Around {
                queue: settings.queue.clone(),
                retry: settings.retry,
            },
        ),
        Exporter::OtlpHttp(settings) => {
            let (client, encoding) =
                outlet::http(settings, signal, (&common.auth, &common.proxies))?;
            let around = Around {
                queue: settings.queue.clone(),
                retry: settings.retry,
            };
            (Target::Otlp(Box::new(client), encoding), around)
        }
        Exporter::Debug(settings) => {
            let debug = debug::Debug::new(name, settings, &common.log)?;
            (Target::Debug(debug), NONE)
        }
        Exporter::File(settings) => {
            let file = file::File::of(outside.files, name, settings)?;
            let around = Around {
                queue: None,
                retry: Some(file::retry()),
            };
            (Target::File(file), around)
        }
        Exporter::Kafka(settings) => {
            let producer = kafka::Producer::start(name, settings, &common.log)?;
            let around = Around {
                queue: settings.queue.clone(),
                retry: settings.retry,
            };
            (Target::Kafka(Box::new(producer)), around)
        }
        Exporter::Dashboard(_) => {
            let store = outside.traces.ok_or("there is no trace store")?;
            (Target::Dashboard(Arc::clone(store)), NONE)
        }
        Exporter::Prometheus(settings) => {
            let exposition = Exposition::new(name, settings);
            outside.expositions.push(Arc::clone(&exposition));
            (Target::Prometheus(exposition), NONE)
        }
        Exporter::Nop => (Target::Nop, NONE),
        Exporter::LoadBalancing(settings) => {
            let (Some(balancer), Some(own)) = (outside.balancer.clone(), &settings.own) else {
                return Err("it has no queue of its own".into());
            };
            let around = Around {
                queue: own.queue.clone(),
                retry: own.retry,
            };
            (Target::Tier(balancer), around)
        }
    };
    queue::start(name, (target, signal), around, outside)
}

/// Hands a batch to a component as soon as there is room, or until a time: then it is lost. Senders
/// who wait by the pledge go on waiting.
async fn hand_over(to: &dyn Consumer, batch: Batch, pledge: Pledge, until: Option<Instant>) {
    let mut next = Some(batch);
    while let Some(batch) = next.take() {
        let Err(given_back) = to.consume(batch) else {
            // Whoever has it now has made a promise of their own.
            return pledge.end(Ending::Done);
        };
        let Refused { batch, refusal } = *given_back;
        let is_over = until.is_some_and(|until| Instant::now() >= until);
        let cause = match refusal {
            Refusal::Busy(no_room) if !is_over => {
                tokio::time::sleep(no_room.after).await;
                next = Some(batch);
                continue;
            }
            Refusal::Busy(_) | Refusal::Closing => Loss::Shutdown,
            Refusal::Malformed(_) => Loss::Dropped,
        };
        batch.receipt.lose(batch.records, cause);
    }
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
            Target::Kafka(_)
            | Target::Tier(_)
            | Target::Debug(_)
            | Target::File(_)
            | Target::Dashboard(_)
            | Target::Prometheus(_)
            | Target::Nop => None,
        }
    }

    /// What a producer of Kafka counts.
    fn kafka(&self) -> Option<&Arc<kafka::Counts>> {
        match self {
            Target::Kafka(producer) => Some(&producer.counts),
            _ => None,
        }
    }

    /// Sends a batch once. `prepared` keeps the work of the first attempt.
    async fn send(&self, batch: &Batch, prepared: &mut Prepared) -> Outcome {
        match self {
            Target::Nop => TAKEN,
            Target::Dashboard(store) => {
                store.add(&batch.bytes, Stage::Kept);
                TAKEN
            }
            Target::Prometheus(exposition) => exposition.take(batch),
            Target::Debug(debug) => {
                debug.tell(batch);
                TAKEN
            }
            Target::File(file) => file::write(file, batch, &mut prepared.file).await,
            Target::Kafka(producer) => producer.send(batch, &mut prepared.kafka).await,
            Target::Tier(balancer) => balancer.attempt(batch, &mut prepared.tier).await,
            Target::Otlp(client, encoding) => {
                send(client, *encoding, batch, &mut prepared.otlp).await
            }
            Target::Backend(client, attempts) => {
                let begin = Instant::now();
                let outcome = send(client, Encoding::Protobuf, batch, &mut prepared.otlp).await;
                let is_success = matches!(outcome, Outcome::Taken { .. });
                attempts.add(begin.elapsed(), is_success);
                outcome
            }
        }
    }
}

async fn send(
    outlet: &Outlet,
    encoding: Encoding,
    batch: &Batch,
    prepared: &mut Option<export::client::Prepared>,
) -> Outcome {
    let request = match prepared {
        Some(request) => request,
        None => match prepare(&outlet.client, encoding, batch) {
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

fn prepare(
    client: &Client,
    encoding: Encoding,
    batch: &Batch,
) -> Result<export::client::Prepared, String> {
    let body: Bytes = match encoding {
        Encoding::Protobuf => batch.bytes.clone(),
        Encoding::Json => otlp::json::encode(batch.signal, &batch.bytes).into(),
    };
    client.prepare(vec![body])
}
