//! A target: it is scraped again and again.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use export::clock::now_unix_ns;
use export::get::Getter;
use syntax::escape::{escaped, is_unreserved};
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};

use super::convert::Origin;
use super::fetch::{BODY_BYTES_MAX, Fetched, fetch};
use super::process::{Report, Scraped, Series, leave, process};
use super::relabel::Rule;
use super::text::Labels;
use crate::config::Signal;
use crate::config::components::receivers::prometheus::Job;
use crate::run::Log;
use crate::run::log::Shown;
use crate::run::receive::Intake;
use crate::run::receive::status::Fault;

/// State that all targets of a job share.
pub(super) struct Shared {
    /// The receiver's id.
    pub id: String,
    pub job: Job,
    pub getter: Getter,
    pub metric_rules: Vec<Rule>,
    pub external_labels: Labels,
    pub trims_suffixes: bool,
    pub reports_extra: bool,
    /// The job has more targets than it may have.
    pub has_too_many: AtomicBool,
    pub intake: Arc<Intake>,
    pub log: Log,
}

impl Shared {
    pub fn warn(&self, what: &str) {
        let (id, job) = (&self.id, Shown(&self.job.name));
        let line = format!("receiver '{id}', job '{job}': {what}");
        self.log.warn(&line);
    }

    pub fn body_bytes_max(&self) -> u64 {
        self.job.limits.body_bytes.unwrap_or(BODY_BYTES_MAX)
    }
}

/// A target.
pub(super) struct Target {
    /// All labels after the rules, by which it is known.
    pub discovered: Labels,
    /// Labels of its series.
    pub labels: Labels,
    pub origin: Origin,
    pub url: String,
    pub shared: Arc<Shared>,
}

impl Target {
    /// With these labels, which have an address, a job and an instance.
    pub fn new(discovered: Labels, shared: &Arc<Shared>) -> Target {
        let get = |name: &str| discovered.get(name).map_or("", String::as_str);
        let own = discovered
            .iter()
            .filter(|(name, _)| !name.starts_with("__"));
        Target {
            labels: own
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
            origin: Origin {
                job: get("job").to_owned(),
                instance: get("instance").to_owned(),
                scheme: get("__scheme__").to_owned(),
            },
            url: url(&discovered, &shared.job),
            shared: Arc::clone(shared),
            discovered,
        }
    }

    /// Scrapes it until it is gone; then its series are stale.
    pub async fn run(self, mut gone: watch::Receiver<bool>) {
        let interval = Duration::from_nanos(self.shared.job.interval_ns.max(1));
        let mut due = interval_at(Instant::now() + self.offset(interval), interval);
        due.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let this = Arc::new(self);
        let (mut series, mut is_failing) = (Series::default(), false);
        loop {
            let is_gone = tokio::select! {
                biased;
                is_gone = gone.wait_for(|gone| *gone) => Some(is_gone.is_ok()),
                _ = due.tick() => None,
            };
            if let Some(is_gone) = is_gone {
                // Without a sender the job has ended, and another one may scrape the target.
                if is_gone {
                    this.hand_on(leave(&this, series, now_ms())).await;
                }
                return;
            }
            series = this.scrape(series, &mut is_failing).await;
        }
    }

    /// Time until the first scrape, which spreads the targets over the interval.
    fn offset(&self, interval: Duration) -> Duration {
        let mut hasher = DefaultHasher::new();
        self.discovered.hash(&mut hasher);
        let nanoseconds = u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos(hasher.finish() % nanoseconds.max(1))
    }

    async fn scrape(self: &Arc<Target>, series: Series, is_failing: &mut bool) -> Series {
        let (begun, now_ms) = (Instant::now(), now_ms());
        let fetched = self.fetch().await;
        let report = Report {
            now_ms,
            seconds: begun.elapsed().as_secs_f64(),
        };
        // As many at a time as there are processors: what a body is parsed into takes more memory
        // than the body.
        let decoders = fetched.as_ref().ok().map(|fetched| fetched.room.decoders());
        let permit = match decoders {
            Some(decoders) => decoders.acquire_owned().await.ok(),
            None => None,
        };
        let this = Arc::clone(self);
        let processed = spawn_blocking(move || process(&this, series, fetched, report)).await;
        drop(permit);
        // A panic was told by the runtime: the series begin anew.
        let Ok(scraped) = processed else {
            return Series::default();
        };
        if let Some(why) = &scraped.failure
            && !*is_failing
        {
            let (url, why) = (Shown(&self.url), Shown(why));
            self.shared.warn(&format!("failed to scrape {url}: {why}"));
        }
        *is_failing = scraped.failure.is_some();
        let Scraped {
            series, request, ..
        } = scraped;
        self.hand_on(request).await;
        series
    }

    async fn fetch(&self) -> Result<Fetched, String> {
        let Shared { job, intake, .. } = &*self.shared;
        if self.shared.has_too_many.load(Relaxed) {
            return Err("target_limit exceeded".to_owned());
        }
        let client = (&job.client.credentials, job.is_compressed);
        let bytes_max = self.shared.body_bytes_max();
        let asked = fetch(&self.shared.getter, &self.url, client, bytes_max, intake);
        let in_time = timeout(Duration::from_nanos(job.timeout_ns), asked).await;
        in_time.unwrap_or_else(|_| Err("no answer in time".to_owned()))
    }

    async fn hand_on(&self, request: Vec<u8>) {
        let intake = &self.shared.intake;
        if let Err(refusal) = intake.take_made(Signal::Metrics, request.into()).await {
            intake.entrance.tell(&Fault::from(refusal));
        }
    }
}

fn now_ms() -> i64 {
    i64::try_from(now_unix_ns() / 1_000_000).unwrap_or(i64::MAX)
}

/// The URL of a target. A label `__param_…` is the first value of a parameter.
fn url(discovered: &Labels, job: &Job) -> String {
    let get = |name: &str| discovered.get(name).map_or("", String::as_str);
    let path = get("__metrics_path__");
    let slash = if path.starts_with('/') { "" } else { "/" };
    let (scheme, address) = (get("__scheme__"), get("__address__"));
    let mut url = format!("{scheme}://{address}{slash}{path}");
    let mut separator = if path.contains('?') { '&' } else { '?' };
    let mut add = |name: &str, value: &str| {
        url.push(separator);
        url.push_str(&escaped(name, is_unreserved));
        url.push('=');
        url.push_str(&escaped(value, is_unreserved));
        separator = '&';
    };
    for (name, values) in &job.params {
        let first = discovered.get(&format!("__param_{name}"));
        let others = values.iter().skip(1);
        for value in first.into_iter().chain(others) {
            add(name, value);
        }
    }
    let own = |name: &str| job.params.iter().any(|(own, _)| own == name);
    for (label, value) in discovered {
        if let Some(name) = label.strip_prefix("__param_").filter(|name| !own(name)) {
            add(name, value);
        }
    }
    url
}
