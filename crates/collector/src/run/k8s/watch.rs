//! One kind of objects: listed, then watched.
//!
//! A watch goes on from what was seen last, so that nothing is missed between two. What is too old
//! for the API server (410) is listed again. While it cannot be asked, the objects stay those that
//! there were.

use std::time::Duration;

use export::Delays;
use export::get::{Getter, NoAnswer};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::pod::Api;
use super::{Fault, Lines, Pod, Question};
use crate::config::components::shared::retry::Retry;

/// Time until an answer begins, and until a list or a page of it is there.
pub(super) const ANSWER_MAX: Duration = Duration::from_secs(30);
/// A watch is to end when its time is over; it is given up after as long again.
const GRACE: Duration = Duration::from_secs(10);
/// Bytes of a list, or of a page: some ten thousands of endpoints, a few hundred large pods.
const LIST_BYTES_MAX: usize = 16 << 20;
/// Pages of a list.
const PAGES_MAX: usize = 4096;
/// From one attempt to the next.
pub(super) static AGAIN: Retry = Retry {
    first: Duration::from_millis(200),
    multiplier: 2.0,
    spread: 0.5,
    delay_max: Duration::from_secs(30),
    asked_max: Duration::MAX,
    elapsed_max: None,
};
/// Any state that the API server has at hand.
const ANY_VERSION: &str = "0";

/// The objects of one kind, as lists and events tell of them.
pub trait Objects: Send {
    /// Takes a page of a list. The list takes the place of what there is once its last page is
    /// there; what cannot be read leaves that. Returns where the next page begins.
    ///
    /// # Errors
    /// Why it cannot be read.
    fn page(&mut self, body: &[u8], is_first: bool) -> Result<Option<String>, Fault>;

    /// Takes a line of a watch; tells whether anything has changed.
    ///
    /// # Errors
    /// Why it cannot be followed.
    fn event(&mut self, line: &[u8]) -> Result<bool, Fault>;

    /// The version that was seen last, from which a watch goes on.
    fn version(&self) -> Option<&str>;

    /// A list is there whole, or events have changed something. Returns whether anybody still wants
    /// to know.
    fn changed(&mut self) -> bool;

    /// The API server cannot be asked, or says what cannot be understood. Returns whether anybody
    /// still wants to know.
    fn failed(&mut self, why: &str) -> bool;
}

/// Asks for the objects of one kind.
pub struct Watcher<O> {
    api: Api,
    objects: O,
    again: &'static Retry,
    waits: Delays,
}

/// Why there is no more to be read.
enum Stop {
    /// Nobody wants to know any more.
    Over,
    /// The version that was seen last is too old.
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

impl<O: Objects> Watcher<O> {
    /// Asks as a pod may.
    ///
    /// # Errors
    /// The pod lacks something.
    pub fn new(question: Question, objects: O, pod: &Pod) -> Result<Watcher<O>, String> {
        Ok(Watcher {
            api: Api::new(question, pod)?,
            objects,
            again: pod.again,
            waits: Delays::new(Some(*pod.again)),
        })
    }

    /// Lists and watches until nobody wants to know.
    pub async fn run(mut self) {
        let mut version = Some(ANY_VERSION.to_owned());
        loop {
            let stop = match self.list(version.as_deref()).await {
                Ok(getter) => self.watch(&getter).await,
                Err(stop) => stop,
            };
            version = match stop {
                Stop::Over => return,
                // Not even "any" is good enough for a server that has lost what we have seen.
                Stop::Expired => None,
                Stop::Failed(why) => {
                    if !self.objects.failed(&why) {
                        return;
                    }
                    // Never back to an older state than the one that was seen.
                    Some(self.objects.version().unwrap_or(ANY_VERSION).to_owned())
                }
            };
            self.wait().await;
        }
    }

    async fn wait(&mut self) {
        sleep(self.waits.next(None).unwrap_or_default()).await;
    }

    /// All objects, none older than a version; and who is to be asked on.
    async fn list(&mut self, version: Option<&str>) -> Result<Getter, Stop> {
        // Made anew for each list, for the authority's certificate may change.
        let getter = self.api.getter().map_err(Stop::Failed)?;
        let mut after: Option<String> = None;
        for page in 0..PAGES_MAX {
            let request = self.api.list(version, after.as_deref());
            let (url, headers) = request.map_err(Stop::Failed)?;
            let whole = async {
                let answer = getter.get(&url, headers).await.map_err(|none| match none {
                    // "Too large resource version": this server is behind the one that we saw.
                    NoAnswer::Status(504, _) if version.is_some() && !self.api.has_pages() => {
                        Stop::Expired
                    }
                    none => Stop::from(none),
                })?;
                answer.whole(LIST_BYTES_MAX).await.map_err(Stop::Failed)
            };
            let body = timeout(ANSWER_MAX, whole).await.map_err(|_| late())??;
            after = self.objects.page(&body, page == 0)?;
            if after.is_none() {
                self.tell()?;
                return Ok(getter);
            }
        }
        Err(Stop::Failed(format!(
            "a list of more than {PAGES_MAX} pages"
        )))
    }

    /// Watches again and again, for as long as that works.
    async fn watch(&mut self, getter: &Getter) -> Stop {
        loop {
            let begin = Instant::now();
            if let Err(stop) = self.watch_once(getter).await {
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
    async fn watch_once(&mut self, getter: &Getter) -> Result<(), Stop> {
        let version = self.objects.version();
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
                has_changed |= self.objects.event(&line)?;
            }
            if has_changed {
                self.tell()?;
                self.waits = Delays::new(Some(*self.again));
            }
        }
        Ok(())
    }

    fn tell(&mut self) -> Result<(), Stop> {
        if self.objects.changed() {
            Ok(())
        } else {
            Err(Stop::Over)
        }
    }
}

fn late() -> Stop {
    Stop::Failed(format!("no answer within {ANSWER_MAX:?}"))
}
