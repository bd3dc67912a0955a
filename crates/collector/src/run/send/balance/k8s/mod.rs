//! The endpoints of a Kubernetes service: they are listed once, and then watched.
//!
//! A watch goes on from what was seen last, so that nothing is missed between two. What is too old
//! for the API server (410) is listed again. While it cannot be asked, the backends stay those that
//! there were.

mod pod;
mod slices;
#[cfg(test)]
mod tests;

use std::sync::Weak;
use std::time::Duration;

use export::get::{Getter, NoAnswer};
use tokio::time::{Instant, sleep, timeout, timeout_at};

pub use pod::Pod;
pub use slices::{Fault, Lines, Slices};

use export::Delays;

use self::pod::Api;
use super::Balancer;
use crate::config::components::exporters::load_balancing::K8s;
use crate::config::components::shared::retry::Retry;
use crate::run::Log;

/// Time until an answer begins, and until a list is there.
const ANSWER_MAX: Duration = Duration::from_secs(30);
/// A watch is to end when its time is over; it is given up after as long again.
const GRACE: Duration = Duration::from_secs(10);
/// Bytes of a list: some ten thousands of endpoints.
const LIST_BYTES_MAX: usize = 8 << 20;
/// From one attempt to the next.
static AGAIN: Retry = Retry {
    first: Duration::from_millis(200),
    multiplier: 2.0,
    spread: 0.5,
    delay_max: Duration::from_secs(30),
    asked_max: Duration::MAX,
    elapsed_max: None,
};
/// Any state that the API server has at hand.
const ANY_VERSION: &str = "0";

/// Whoever asks for the endpoints of one service.
pub(super) struct Watcher {
    api: Api,
    settings: K8s,
    slices: Slices,
    again: &'static Retry,
    waits: Delays,
}

/// Why there is no more to be read.
enum Stop {
    /// Nobody wants to know any more.
    Over,
    /// What was seen last is too old.
    Expired,
    /// The API server cannot be asked, or says what cannot be understood.
    Failed(String),
}

impl From<NoAnswer> for Stop {
    fn from(none: NoAnswer) -> Stop {
        match none {
            NoAnswer::Status(410, _) => Stop::Expired,
            NoAnswer::Status(status, said) => Stop::Failed(format!("status {status}: {said}")),
            NoAnswer::Failed(why) => Stop::Failed(why),
        }
    }
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Stop {
        match fault {
            Fault::Expired => Stop::Expired,
            Fault::Wrong(why) => Stop::Failed(why),
        }
    }
}

impl Watcher {
    /// Of a service, as the pod that we are in sees it.
    ///
    /// # Errors
    /// What is missing in the pod.
    pub(super) fn new(settings: &K8s, pod: &Pod, log: &Log) -> Result<Watcher, String> {
        Ok(Watcher {
            api: Api::new(settings, pod, log)?,
            settings: settings.clone(),
            slices: Slices::new(settings.return_hostnames),
            again: pod.again,
            waits: Delays::new(Some(*pod.again)),
        })
    }

    /// Lists and watches until the balancer is gone.
    pub(super) async fn run(mut self, balancer: Weak<Balancer>) {
        let mut version = Some(ANY_VERSION.to_owned());
        loop {
            let stop = match self.list(&balancer, version.as_deref()).await {
                Ok(getter) => self.watch(&balancer, &getter).await,
                Err(stop) => stop,
            };
            version = match stop {
                Stop::Over => return,
                // Not even "any" is good enough for a server that has lost what we have seen.
                Stop::Expired => None,
                Stop::Failed(why) => {
                    let Some(balancer) = balancer.upgrade() else {
                        return;
                    };
                    balancer.unresolved(&format!("{}: {why}", self.api.service()));
                    // Never back to an older state than the one that was seen.
                    Some(self.slices.version().unwrap_or(ANY_VERSION).to_owned())
                }
            };
            self.wait().await;
        }
    }

    async fn wait(&mut self) {
        sleep(self.waits.next(None).unwrap_or_default()).await;
    }

    /// All slices, none older than a version; and who is to be asked on.
    async fn list(
        &mut self,
        balancer: &Weak<Balancer>,
        version: Option<&str>,
    ) -> Result<Getter, Stop> {
        // Made anew for each list, for the authority's certificate may change.
        let getter = self.api.getter().map_err(Stop::Failed)?;
        let (url, headers) = self.api.list(version).map_err(Stop::Failed)?;
        let all = async {
            let answer = getter.get(&url, headers).await.map_err(|none| match none {
                // "Too large resource version": this server is behind the one that we saw.
                NoAnswer::Status(504, _) if version.is_some() => Stop::Expired,
                none => Stop::from(none),
            })?;
            answer.whole(LIST_BYTES_MAX).await.map_err(Stop::Failed)
        };
        let body = timeout(ANSWER_MAX, all).await.map_err(|_| late())??;
        self.slices.list(&body)?;
        self.tell(balancer)?;
        Ok(getter)
    }

    /// Watches again and again, for as long as that works.
    async fn watch(&mut self, balancer: &Weak<Balancer>, getter: &Getter) -> Stop {
        loop {
            let begin = Instant::now();
            if let Err(stop) = self.watch_once(balancer, getter).await {
                return stop;
            }
            // One that has lasted ended because its time was over.
            if begin.elapsed() * 2 >= self.api.watch_time() {
                self.waits = Delays::new(Some(*self.again));
            } else {
                self.wait().await;
            }
        }
    }

    /// Reads the events of a stream until it ends, or breaks.
    async fn watch_once(&mut self, balancer: &Weak<Balancer>, getter: &Getter) -> Result<(), Stop> {
        let version = self.slices.version();
        let (url, headers) = self.api.watch(version).map_err(Stop::Failed)?;
        let answer = timeout(ANSWER_MAX, getter.get(&url, headers)).await;
        let mut answer = answer.map_err(|_| late())??;
        let until = Instant::now() + self.api.watch_time() + GRACE;
        let mut lines = Lines::default();
        // How a stream ends tells nothing: the next attempt does.
        while let Ok(Ok(Some(piece))) = timeout_at(until, answer.next()).await {
            lines.push(&piece);
            let mut has_changed = false;
            while let Some(line) = lines.line()? {
                has_changed |= self.slices.event(&line)?;
            }
            if has_changed {
                self.tell(balancer)?;
                self.waits = Delays::new(Some(*self.again));
            }
        }
        Ok(())
    }

    /// These are the backends from now on.
    fn tell(&mut self, balancer: &Weak<Balancer>) -> Result<(), Stop> {
        let balancer = balancer.upgrade().ok_or(Stop::Over)?;
        let names = self.api.names(self.slices.hosts(), &self.settings);
        if names.is_empty() {
            balancer.warn(&format!("{} has no ready endpoints", self.api.service()));
        }
        balancer.resolved(names);
        if let Some(why) = self.slices.lacking() {
            balancer.unresolved(&format!("{}: {why}", self.api.service()));
        }
        Ok(())
    }
}

fn late() -> Stop {
    Stop::Failed(format!("no answer within {ANSWER_MAX:?}"))
}
