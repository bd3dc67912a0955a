//! A job: it finds targets, and starts and ends their tasks.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use export::get::Getter;
use tokio::sync::watch;
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::{Instant, sleep_until};

use super::discovery;
use super::relabel::{self, Rule};
use super::target::{Shared, Target};
use super::text::Labels;
use crate::config::components::receivers::prometheus::discovery::TargetGroup;
use crate::config::components::receivers::prometheus::{Job, PrometheusReceiver};
use crate::run::Log;
use crate::run::log::Shown;
use crate::run::receive::Intake;

/// Targets of a job. Further ones are left out.
const TARGETS_MAX: usize = 10_000;
/// A job without discovery looks again after this time, in vain.
const NEVER: Duration = Duration::from_secs(365 * 24 * 3600);
/// The longest time to open a connection; a scrape may have less.
const CONNECT_MAX: Duration = Duration::from_secs(30);

/// A job that runs.
pub(super) struct JobRun {
    rules: Vec<Rule>,
    /// Clients of the servers that list targets.
    lists: Vec<Getter>,
    shared: Arc<Shared>,
}

/// Where groups of targets come from.
#[derive(Clone, Copy)]
enum Provider {
    File(usize),
    Server(usize),
}

impl JobRun {
    /// Prepares a job of the receiver with this id.
    ///
    /// # Errors
    /// An expression or a setting of TLS cannot be used.
    pub fn new(
        id: &str,
        job: &Job,
        receiver: &PrometheusReceiver,
        intake: &Arc<Intake>,
        log: &Log,
    ) -> Result<JobRun, String> {
        let lists = job.servers.iter();
        let lists = lists.map(|server| Getter::new(&server.client.tls, CONNECT_MAX));
        Ok(JobRun {
            rules: relabel::rules(&job.relabel)?,
            lists: lists.collect::<Result<_, _>>()?,
            shared: Arc::new(Shared {
                id: id.to_owned(),
                getter: Getter::new(&job.client.tls, CONNECT_MAX)?,
                metric_rules: relabel::rules(&job.metric_relabel)?,
                external_labels: receiver.external_labels.iter().cloned().collect(),
                trims_suffixes: receiver.trims_suffixes,
                reports_extra: receiver.reports_extra,
                has_too_many: AtomicBool::new(false),
                intake: Arc::clone(intake),
                log: log.clone(),
                job: job.clone(),
            }),
        })
    }

    /// Finds targets and scrapes them, until it is dropped.
    pub async fn run(self) {
        let job = &self.shared.job;
        let providers = (0..job.files.len()).map(Provider::File);
        let providers = providers.chain((0..job.servers.len()).map(Provider::Server));
        let mut providers: Vec<_> = providers
            .map(|provider| (provider, Vec::new(), Instant::now()))
            .collect();
        let (mut targets, mut tasks) = (HashMap::new(), JoinSet::new());
        loop {
            for (provider, groups, due) in &mut providers {
                if *due > Instant::now() {
                    continue;
                }
                match self.groups(*provider).await {
                    Ok(found) => *groups = found,
                    // The targets stay those that there were.
                    Err(why) => self
                        .shared
                        .warn(&format!("targets are not found: {}", Shown(&why))),
                }
                *due = Instant::now() + self.refresh(*provider);
            }
            let found = providers.iter().flat_map(|(_, groups, _)| groups);
            self.reconcile(job.groups.iter().chain(found), &mut targets, &mut tasks);
            while tasks.try_join_next().is_some() {}
            let due = providers.iter().map(|(.., due)| *due).min();
            sleep_until(due.unwrap_or_else(|| Instant::now() + NEVER)).await;
        }
    }

    fn refresh(&self, provider: Provider) -> Duration {
        let job = &self.shared.job;
        Duration::from_nanos(match provider {
            Provider::File(place) => job.files[place].refresh_interval_ns,
            Provider::Server(place) => job.servers[place].refresh_interval_ns,
        })
    }

    async fn groups(&self, provider: Provider) -> Result<Vec<TargetGroup>, String> {
        let job = &self.shared.job;
        match provider {
            Provider::File(place) => {
                let files = job.files[place].files.clone();
                let read = spawn_blocking(move || discovery::of_files(&files)).await;
                read.map_err(|_| "the collector ends".to_owned())?
            }
            Provider::Server(place) => {
                discovery::of_server(&self.lists[place], &job.servers[place]).await
            }
        }
    }

    /// Starts the tasks of targets that are new, and ends those of targets that are gone.
    fn reconcile<'a>(
        &self,
        groups: impl Iterator<Item = &'a TargetGroup>,
        targets: &mut HashMap<Labels, watch::Sender<bool>>,
        tasks: &mut JoinSet<()>,
    ) {
        let job = &self.shared.job;
        let mut found = HashMap::new();
        for group in groups {
            for address in &group.targets {
                if found.len() < TARGETS_MAX
                    && let Some(target) = self.target(address, group)
                {
                    found.insert(target.discovered.clone(), target);
                }
            }
        }
        let has_too_many = job.limits.targets.is_some_and(|limit| found.len() > limit);
        self.shared.has_too_many.store(has_too_many, Relaxed);
        targets.retain(|labels, gone| {
            let stays = found.remove(labels).is_some();
            if !stays {
                gone.send_replace(true);
            }
            stays
        });
        for (labels, target) in found {
            let (gone, is_gone) = watch::channel(false);
            tasks.spawn(target.run(is_gone));
            targets.insert(labels, gone);
        }
    }

    /// A target with its labels after the rules; none where it is dropped or has no address.
    fn target(&self, address: &str, group: &TargetGroup) -> Option<Target> {
        let job = &self.shared.job;
        let mut labels = Labels::new();
        for (name, values) in &job.params {
            if let Some(first) = values.first() {
                labels.insert(format!("__param_{name}"), first.clone());
            }
        }
        for (name, value) in [
            ("job", &job.name),
            ("__scheme__", &job.scheme),
            ("__metrics_path__", &job.metrics_path),
        ] {
            labels.insert(name.to_owned(), value.clone());
        }
        labels.extend(group.labels.iter().cloned());
        labels.insert("__address__".to_owned(), address.to_owned());
        labels.retain(|_, value| !value.is_empty());
        if !relabel::apply(&self.rules, &mut labels) {
            return None;
        }
        let address = labels.get("__address__")?;
        if address.contains('/') {
            let shown = Shown(address).to_string();
            self.shared
                .warn(&format!("'{shown}' is not a valid hostname"));
            return None;
        }
        let address = address.clone();
        labels.entry("instance".to_owned()).or_insert(address);
        Some(Target::new(labels, &self.shared))
    }
}
