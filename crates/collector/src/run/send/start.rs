//! How an exporter is started from its settings, and what the collector keeps of it.

use std::sync::Arc;

use export::client::Proxies;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::queue;
use super::{Backends, QueueDeps, QueueSettings, Room, Sender, SenderEnd, SignalDeps, Target};
use crate::config::Signal;
use crate::run::Log;
use crate::run::account::Account;
use crate::run::auth::Authenticators;
use crate::run::consume::Consumer;
use crate::run::part::Part;
use crate::run::process::batch::{self, Rules};
use crate::run::process::dashboard::Shown;
use crate::run::receive::{Listening, Opening};
use crate::run::start::View;
use crate::run::storage::{Storages, Stored};
use crate::run::tasks;

/// Settings that an exporter is started from.
pub trait StartExporter {
    /// Starts the exporter for all signals of [`ExporterDeps::signals`]. Called once, within the
    /// runtime.
    ///
    /// # Errors
    /// Why it cannot be started.
    fn start(&self, deps: ExporterDeps<'_, '_>) -> Result<Started, String>;
}

/// Dependencies of an exporter that is started.
pub struct ExporterDeps<'a, 'c> {
    /// Its id.
    pub name: &'a str,
    /// The signals of the pipelines that it is in.
    pub signals: Vec<Signal>,
    /// Where exporters `dashboard` put traces; none: there are none.
    pub traces: Option<&'a Arc<Shown>>,
    /// Where its lines go.
    pub log: &'a Log,
    pub(in crate::run) accounts: &'a [Arc<Account>; 3],
    pub(in crate::run) auth: &'a Authenticators,
    pub(in crate::run) proxies: &'a Proxies,
    /// What bytes may wait in all queues.
    pub(in crate::run) room: &'a Arc<Room>,
    pub(in crate::run) storages: &'a mut Storages<'c>,
}

/// Tasks and counters of an exporter that was started.
#[derive(Default)]
pub struct Started {
    /// Where its data come in, by signal.
    pub entrances: Vec<(Signal, Arc<dyn Consumer>)>,
    /// Its queues.
    pub queues: Vec<(Signal, Arc<Sender>)>,
    /// What puts requests together for them.
    pub batchers: Vec<Arc<dyn Part>>,
    /// What it serves.
    pub pages: Vec<Arc<dyn Page>>,
    /// Its back ends, where it has several.
    pub backends: Option<Arc<dyn Backends>>,
    ends: Vec<SenderEnd>,
}

/// A page that a component serves.
pub trait Page: Send + Sync {
    /// Listens, and serves the page.
    ///
    /// # Errors
    /// Why it cannot be served.
    fn open(self: Arc<Self>, opening: Opening<'_>) -> Result<Listening, String>;
}

impl ExporterDeps<'_, '_> {
    /// What the exporter has for one signal.
    #[must_use]
    pub(in crate::run) fn of(&self, signal: Signal) -> SignalDeps {
        SignalDeps {
            account: Arc::clone(&self.accounts[signal as usize]),
            auth: self.auth.clone(),
            proxies: self.proxies.clone(),
            room: Arc::clone(self.room),
            log: self.log.clone(),
        }
    }

    /// Starts an exporter that has a target and a queue for each signal.
    ///
    /// # Errors
    /// Why a target or a queue cannot be started.
    pub(in crate::run) fn queues<T: Target>(
        mut self,
        settings: impl Fn() -> QueueSettings,
        mut target: impl FnMut(&SignalDeps, Signal) -> Result<T, String>,
    ) -> Result<Started, String> {
        let mut started = Started::default();
        for signal in std::mem::take(&mut self.signals) {
            let deps = self.of(signal);
            let target = target(&deps, signal)?;
            self.queue(&mut started, settings(), (target, signal), &deps)?;
        }
        Ok(started)
    }

    /// Starts the queue of a signal, and what puts requests together for it.
    fn queue<T: Target>(
        &mut self,
        started: &mut Started,
        settings: QueueSettings,
        (target, signal): (T, Signal),
        common: &SignalDeps,
    ) -> Result<(), String> {
        let name = format!("exporter {} {signal}", self.name);
        let storage = settings.queue.as_ref();
        let opened = match storage.map(|queue| (&queue.storage, &queue.folder)) {
            Some((Some(storage), _)) => Some(self.storages.journal(storage, &name)?),
            Some((None, Some(folder))) => {
                Some(self.storages.own_journal(self.name, folder, &name)?)
            }
            Some((None, None)) | None => None,
        };
        let stored = opened.map(|(journal, left)| (Stored::new(journal), left));
        let rules = settings.queue.as_ref().and_then(Rules::of_queue);
        let deps = QueueDeps { common, stored };
        let (sender, end) = queue::start(self.name, (target, signal), settings, deps);
        started.ends.push(end);
        started.queues.push((signal, Arc::clone(&sender)));
        let entrance: Arc<dyn Consumer> = match rules {
            None => sender,
            Some(rules) => {
                let batcher = batch::start(rules, sender);
                started.batchers.push(Arc::clone(&batcher) as Arc<dyn Part>);
                batcher
            }
        };
        started.entrances.push((signal, entrance));
        Ok(())
    }
}

impl Started {
    /// The end of the exporter with this id.
    #[must_use]
    pub fn exit(&mut self, id: &str) -> Exit {
        Exit {
            id: id.to_owned(),
            queues: std::mem::take(&mut self.ends),
            backends: self.backends.clone(),
        }
    }
}

/// The end of an exporter: its queues send what they hold, then its back ends do.
pub struct Exit {
    id: String,
    queues: Vec<SenderEnd>,
    backends: Option<Arc<dyn Backends>>,
}

impl Exit {
    /// Ends it until a time. With a collector that runs in its place, what waits goes to that one's
    /// exporter of the same id.
    pub fn end(
        self,
        next: Option<&View>,
        until: Instant,
    ) -> impl Future<Output = ()> + Send + use<> {
        let heir = |end: &SenderEnd| next.and_then(|next| next.sender(&end.of));
        let queues = self.queues.into_iter().map(|end| (heir(&end), end));
        let queues: Vec<_> = queues.collect();
        let heir = next.and_then(|next| next.backends_of(&self.id));
        async move {
            let mut ends = JoinSet::new();
            for (heir, end) in queues {
                ends.spawn(end_queue(end, heir, until));
            }
            tasks::ended(&mut ends).await;
            match (self.backends, heir) {
                (None, _) => {}
                (Some(backends), Some(heir)) => backends.hand_to(heir, until).await,
                (Some(backends), None) => backends.end(until).await,
            }
        }
    }
}

/// Sends the requests that wait, or hands them to the exporter that takes over.
async fn end_queue(end: SenderEnd, heir: Option<Arc<Sender>>, until: Instant) {
    match heir {
        Some(heir) => end.hand_to(heir, until).await,
        None => end.end(until).await,
    }
}
