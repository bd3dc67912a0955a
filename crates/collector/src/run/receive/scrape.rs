//! Receivers that make metrics at intervals: scrapes on a thread that may block, one after the other.
//!
//! As in the Collector's `scraperhelper`: the first scrape is made after a delay, the others at the
//! interval. A scrape that takes longer than the interval delays the next one. What the pipelines
//! refuse is lost and counted as refused.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use export::clock::now_unix_ns;
use tokio::sync::watch;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::status::Fault;
use super::{Intake, RunningSource, Source, SourceDeps, SourceFailure, SourceState};
use crate::config::Signal;
use crate::run::Log;
use crate::run::log::Shown;
use crate::run::metrics::{Kind, Sheet};
use crate::run::part::Ended;

/// Scrapers that are asked together.
pub(super) trait Scrape: Send + 'static {
    /// The names of the scrapers, for the metrics.
    fn scrapers(&self) -> Vec<&'static str>;

    /// Makes a request of what there is at `now_ns` (nanoseconds of the UNIX epoch). May block.
    fn scrape(&mut self, now_ns: u64) -> Scraped;
}

/// Data of a scrape.
#[derive(Debug, Default)]
pub(super) struct Scraped {
    /// An `ExportMetricsServiceRequest`.
    pub request: Vec<u8>,
    /// Outcomes of the scrapers, in the order of [`Scrape::scrapers`].
    pub results: Vec<ScrapeResult>,
}

/// Outcome of a scraper.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ScrapeResult {
    /// Metrics that it made.
    pub metrics: u64,
    /// Metrics that it could not make.
    pub errored: u64,
    /// Why something is missing.
    pub error: Option<String>,
}

/// When scrapes are made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Schedule {
    /// Before the first one.
    pub initial_delay: Duration,
    /// Between two; not zero.
    pub interval: Duration,
}

/// The source of a receiver that scrapes.
pub(super) fn source(
    mut deps: SourceDeps<'_>,
    scrape: impl Scrape,
    schedule: Schedule,
) -> Box<dyn Source> {
    let scrapers = scrape.scrapers().into_iter();
    let counts = scrapers.map(|name| (name, Counts::default())).collect();
    Box::new(Waiting {
        task: Task {
            id: deps.id.to_owned(),
            // The Collector's scrapers name no transport.
            intake: deps.intake(""),
            log: deps.log.clone(),
            state: Arc::new(State {
                counts,
                failure: Mutex::default(),
            }),
        },
        scrape: Box::new(scrape),
        schedule,
    })
}

/// A source that is not started yet.
struct Waiting {
    task: Task,
    scrape: Box<dyn Scrape>,
    schedule: Schedule,
}

impl Source for Waiting {
    fn state(&self) -> Arc<dyn SourceState> {
        Arc::<State>::clone(&self.task.state)
    }

    fn start(self: Box<Self>) -> Result<Box<dyn RunningSource>, String> {
        let Waiting {
            task,
            scrape,
            schedule,
        } = *self;
        let scraping = async move { task.scrape_again(scrape, schedule).await };
        Ok(Box::new(Running::spawn(scraping)))
    }
}

/// Facts of the scrapes.
struct State {
    counts: Vec<(&'static str, Counts)>,
    /// Why the last scrape made nothing.
    failure: Mutex<Option<SourceFailure>>,
}

#[derive(Default)]
struct Counts {
    scraped: AtomicU64,
    errored: AtomicU64,
}

impl State {
    fn set_failure(&self, why: Option<String>) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        let since_ns = failure
            .as_ref()
            .map_or_else(now_unix_ns, |one| one.since_ns);
        *failure = why.map(|why| SourceFailure { since_ns, why });
    }
}

impl SourceState for State {
    fn describe(&self, receiver: &str, sheet: &mut Sheet) {
        type Count = fn(&Counts) -> &AtomicU64;
        let all: [(&str, &str, Count); 2] = [
            ("scraped", "successfully scraped", |own| &own.scraped),
            ("errored", "that were unable to be scraped", |own| {
                &own.errored
            }),
        ];
        for (name, what, count) in all {
            let name = format!("otelcol_scraper_{name}_metric_points");
            let help = format!("Number of metric points {what}.");
            sheet.about(Kind::Counter, &name, "{datapoint}", &help);
            for (scraper, counts) in &self.counts {
                let labels = [("receiver", receiver), ("scraper", scraper)];
                sheet.point(&labels, count(counts).load(Relaxed));
            }
        }
    }

    fn failing(&self) -> Option<SourceFailure> {
        let failure = self.failure.lock();
        failure.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A source that runs in a task until it is closed.
pub(super) struct Running {
    closing: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Running {
    /// Runs `work` in a task, until it is told to end. What is on its way then is not waited for: it
    /// may hang in a file system or a server that does not answer.
    pub fn spawn(work: impl Future<Output = ()> + Send + 'static) -> Running {
        let (closing, mut closed) = watch::channel(false);
        let task = tokio::spawn(async move {
            tokio::select! {
                biased;
                _ = closed.wait_for(|closed| *closed) => {}
                () = work => {}
            }
        });
        Running { closing, task }
    }
}

impl RunningSource for Running {
    fn close(&self) {
        self.closing.send_replace(true);
    }

    fn closed(&mut self) -> Ended<'_> {
        Box::pin(async {
            // A panic was told by the runtime.
            let _ = (&mut self.task).await;
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Task {
    id: String,
    intake: Arc<Intake>,
    log: Log,
    state: Arc<State>,
}

impl Task {
    async fn scrape_again(&self, mut scrape: Box<dyn Scrape>, schedule: Schedule) {
        let first = Instant::now() + schedule.initial_delay;
        let mut due = interval_at(first, schedule.interval);
        due.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            due.tick().await;
            let scraping = spawn_blocking(move || {
                let now_ns = now_unix_ns();
                let scraped = catch_unwind(AssertUnwindSafe(|| scrape.scrape(now_ns)));
                (scrape, scraped.ok())
            });
            // The runtime ends.
            let Ok((returned, scraped)) = scraping.await else {
                return;
            };
            scrape = returned;
            match scraped {
                Some(scraped) => self.hand_on(scraped).await,
                None => {
                    let why = "a scrape has failed on a fault of the collector: see its log";
                    self.state.set_failure(Some(why.to_owned()));
                }
            }
        }
    }

    async fn hand_on(&self, scraped: Scraped) {
        let Scraped { request, results } = scraped;
        for ((scraper, counts), result) in self.state.counts.iter().zip(&results) {
            counts.scraped.fetch_add(result.metrics, Relaxed);
            counts.errored.fetch_add(result.errored, Relaxed);
            if let Some(error) = &result.error {
                let (id, error) = (&self.id, Shown(error));
                let line =
                    format!("receiver '{id}': error scraping metrics of '{scraper}': {error}");
                self.log.error(&line);
            }
        }
        let is_empty = results.iter().all(|result| result.metrics == 0);
        let mut errors = results.into_iter().filter_map(|result| result.error);
        self.state.set_failure(errors.next().filter(|_| is_empty));
        if is_empty {
            return;
        }
        if let Err(refusal) = self.intake.take_made(Signal::Metrics, request.into()).await {
            self.intake.entrance.tell(&Fault::from(refusal));
        }
    }
}
