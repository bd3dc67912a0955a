//! The receiver `prometheus`: it scrapes targets as Prometheus does, and makes OTLP of what they
//! expose.
//!
//! A job is a task that finds targets; each target is a task of its own, so that a slow target
//! delays no other. A scrape is bounded: by its time, the bytes of its body, its samples, and the
//! memory of all receivers. Large bodies are parsed on threads that may block, as many at a time as
//! there are processors.

mod convert;
mod discovery;
mod fetch;
mod job;
mod process;
mod relabel;
mod target;
#[cfg(test)]
mod tests;
mod text;

use std::sync::Arc;

use tokio::task::JoinSet;

pub use text::{Exposition, Format, parse};

use self::job::JobRun;
use super::scrape::Running;
use super::{RunningSource, Source, SourceDeps, SourceState, StartReceiver};
use crate::config::components::receivers::prometheus::PrometheusReceiver;

impl StartReceiver for PrometheusReceiver {
    fn source(&self, mut deps: SourceDeps<'_>) -> Result<Option<Box<dyn Source>>, String> {
        let intake = deps.intake("http");
        let jobs = self.jobs.iter().map(|job| {
            let failed = |why| format!("job '{}': {why}", job.name);
            JobRun::new(deps.id, job, self, &intake, deps.log).map_err(failed)
        });
        let jobs: Result<Vec<_>, String> = jobs.collect();
        Ok(Some(Box::new(Waiting { jobs: jobs? })))
    }
}

/// A receiver that is not started yet.
struct Waiting {
    jobs: Vec<JobRun>,
}

/// Failures of targets are metrics (`up`), and no failure of the receiver.
struct State;

impl SourceState for State {}

impl Source for Waiting {
    fn state(&self) -> Arc<dyn SourceState> {
        Arc::new(State)
    }

    fn start(self: Box<Self>) -> Result<Box<dyn RunningSource>, String> {
        Ok(Box::new(Running::spawn(async move {
            let mut jobs = JoinSet::new();
            for job in self.jobs {
                jobs.spawn(job.run());
            }
            while jobs.join_next().await.is_some() {}
        })))
    }
}
