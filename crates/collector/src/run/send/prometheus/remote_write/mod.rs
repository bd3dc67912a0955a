//! The exporter `prometheus_remote_write`: it pushes the data points of a batch as Prometheus' series.

mod encode;
mod series;

pub(in crate::run) use series::STALE;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use bytes::Bytes;
use export::client::{Outcome, Prepared};
use otlp::view::View;
use tokio::task::JoinSet;

use super::labels::Labeller;
use crate::config::Signal;
use crate::config::components::exporters::prometheus_remote_write::{
    RemoteWriteExporter, WriteVersion,
};
use crate::run::data::Batch;
use crate::run::origin::Origin;
use crate::run::send::outlet::{self, Outlet};
use crate::run::send::{ExporterDeps, QueueSettings, StartExporter, Started, Target};
use encode::Encoded;
use series::{Key, Metadata, Rules, Series};

/// Where batches are pushed to.
pub(super) struct RemoteWrite {
    rules: Rules,
    outlet: Arc<Outlet>,
    send_metadata: bool,
    request_bytes_max: usize,
    parallelism: usize,
}

/// What of a batch is still to be sent. Requests are encoded when they are sent: the series of one
/// histogram can take many times its bytes.
#[derive(Default)]
pub(super) struct Pending {
    is_read: bool,
    series: Vec<(Key, Series)>,
    /// Series that were sent, or refused.
    done: usize,
    metadata: Vec<Arc<Metadata>>,
    metadata_done: usize,
    rejected: u64,
    why: String,
}

impl StartExporter for RemoteWriteExporter {
    fn start(&self, deps: ExporterDeps<'_, '_>) -> Result<Started, String> {
        let settings = || QueueSettings::of(self);
        deps.queues(settings, |deps, _| {
            let access = (&deps.auth, &deps.proxies);
            let outlet = outlet::remote_write(&self.url, &self.client, self.version, access)?;
            Ok(RemoteWrite {
                rules: Rules {
                    labeller: Labeller::new(&self.naming),
                    target_info: self.target_info,
                    version: self.version,
                },
                outlet: Arc::new(outlet),
                send_metadata: self.send_metadata && self.version == WriteVersion::One,
                request_bytes_max: self.request_bytes_max,
                parallelism: self.parallelism,
            })
        })
    }
}

impl Target for RemoteWrite {
    type Prepared = Pending;

    async fn send(&self, batch: &Batch, pending: &mut Pending) -> Outcome {
        if !pending.is_read {
            match View::request(Signal::Metrics, &batch.bytes) {
                Ok(request) => *pending = self.read(&request),
                Err(fault) => return Outcome::Refused(format!("it is malformed: {fault}")),
            }
        }
        while let Some(group) = self.next(pending) {
            if let Err(outcome) = self.send_group(group, batch.origin.as_ref(), pending).await {
                return outcome;
            }
        }
        Outcome::Taken {
            rejected: pending.rejected,
            message: std::mem::take(&mut pending.why),
        }
    }

    fn server(&self) -> Option<&(String, String)> {
        Target::server(&*self.outlet)
    }
}

/// A request that is to be sent.
struct One {
    encoded: Encoded,
    /// It has descriptions of metrics, and no series.
    is_metadata: bool,
}

impl RemoteWrite {
    fn read(&self, request: &View<'_>) -> Pending {
        let collected = self.rules.collect(request);
        let metadata = if self.send_metadata {
            collected.metadata.into_values().collect()
        } else {
            Vec::new()
        };
        Pending {
            is_read: true,
            series: collected.series.into_iter().collect(),
            done: 0,
            metadata,
            metadata_done: 0,
            rejected: collected.rejected.points,
            why: collected.rejected.why,
        }
    }

    /// The next requests, as many as may be in flight; none: all were sent.
    fn next(&self, pending: &Pending) -> Option<Vec<One>> {
        let mut group = Vec::new();
        let (mut done, mut metadata_done) = (pending.done, pending.metadata_done);
        while group.len() < self.parallelism {
            let bytes_max = self.request_bytes_max;
            let (encoded, is_metadata) = if done < pending.series.len() {
                let rest = &pending.series[done..];
                (encode::series(self.rules.version, rest, bytes_max), false)
            } else if metadata_done < pending.metadata.len() {
                let rest = &pending.metadata[metadata_done..];
                (encode::metadata(rest, bytes_max), true)
            } else {
                break;
            };
            if is_metadata {
                metadata_done += encoded.count;
            } else {
                done += encoded.count;
            }
            group.push(One {
                encoded,
                is_metadata,
            });
        }
        (!group.is_empty()).then_some(group)
    }

    /// Sends requests at the same time. What comes before the first that may succeed later is done.
    /// Prometheus takes a sample again that it has.
    async fn send_group(
        &self,
        group: Vec<One>,
        origin: Option<&Arc<Origin>>,
        pending: &mut Pending,
    ) -> Result<(), Outcome> {
        let mut sent = Vec::with_capacity(group.len());
        let mut tasks = JoinSet::new();
        for (place, one) in group.into_iter().enumerate() {
            let body = Bytes::from(one.encoded.body);
            let request: Prepared = self.outlet.pack(body).map_err(Outcome::Refused)?;
            sent.push((one.encoded.count, one.is_metadata, None));
            let (outlet, origin) = (Arc::clone(&self.outlet), origin.map(Arc::clone));
            tasks.spawn(async move {
                let outcome = outlet.attempt(&request, origin.as_deref()).await;
                (place, outcome)
            });
        }
        while let Some(ended) = tasks.join_next().await {
            if let Ok((place, outcome)) = ended {
                sent[place].2 = Some(outcome);
            }
        }
        for (count, is_metadata, outcome) in sent {
            match outcome {
                Some(Outcome::Taken { .. }) => {}
                Some(Outcome::Refused(why)) => pending.refuse(count, is_metadata, why),
                Some(busy @ Outcome::Busy { .. }) => return Err(busy),
                None => {
                    let why = "a request was given up".to_owned();
                    return Err(Outcome::Busy { after: None, why });
                }
            }
            if is_metadata {
                pending.metadata_done += count;
            } else {
                pending.done += count;
            }
        }
        Ok(())
    }
}

impl Pending {
    /// The receiver has refused the next requests' series for good; others go on.
    fn refuse(&mut self, count: usize, is_metadata: bool, why: String) {
        if is_metadata {
            return;
        }
        let refused = self.series.iter().skip(self.done).take(count);
        self.rejected += refused.map(|(_, series)| series.points).sum::<u64>();
        if self.why.is_empty() {
            self.why = why;
        }
    }
}
