//! Tables whose counters several proxies share through a store (`stick-table … share`).

use std::fmt::Write as _;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use config::diagnostic::Diagnostics;
use config::model::Config;
use proxy::RuntimeConfig;
use share::TableView;
use share::run::{Handle, Runner, Setup};

use crate::event_reporter::EventReporter;

/// The severity of a message about a store that is lost.
const SEVERITY_WARNING: u8 = 4;

/// Nothing is refused: the program can share tables.
pub(crate) fn check(_: &Config, _: &mut Diagnostics) {}

/// The number of descriptors that shared tables use at most: a connection each, and one that closes.
pub(crate) fn descriptors(config: &Config) -> u64 {
    let shared = config.tables.iter();
    let shared = shared.filter(|table| table.definition().share().is_some());
    2 * shared.count() as u64
}

/// The running thread; none while no table is shared.
#[derive(Default)]
pub(crate) struct Shares {
    runner: Option<Runner>,
    /// Writes to the logs, once there are some.
    reporter: Arc<Mutex<Option<Arc<EventReporter>>>>,
}

/// A look at the shared tables.
#[derive(Clone, Debug)]
pub(crate) struct View(Handle);

impl Shares {
    /// Shares the tables of a configuration that are to be shared, and no others any more.
    ///
    /// # Errors
    /// The thread cannot be created.
    pub fn follow(&mut self, runtime_config: &RuntimeConfig) -> io::Result<()> {
        let tables = &runtime_config.config.tables;
        let shared = tables
            .iter()
            .filter(|table| table.definition().share().is_some());
        let tables: Vec<_> = shared.map(Arc::clone).collect();
        match &self.runner {
            Some(runner) => runner.follow(tables),
            None if tables.is_empty() => {}
            None => {
                let reporter = Arc::clone(&self.reporter);
                self.runner = Some(Runner::start(Setup {
                    tables,
                    clock: || net::sys::now().ms(),
                    random: crate::sys::random_seed,
                    tell: Box::new(move |text| {
                        crate::warning(text);
                        let reporter = reporter.lock();
                        if let Some(reporter) = &*reporter.unwrap_or_else(PoisonError::into_inner) {
                            reporter.tell_of_process(SEVERITY_WARNING, text);
                        }
                    }),
                })?);
            }
        }
        Ok(())
    }

    /// Tells of lost stores by these logs too.
    pub fn report_to(&self, reporter: &Arc<EventReporter>) {
        let mut place = self.reporter.lock().unwrap_or_else(PoisonError::into_inner);
        *place = Some(Arc::clone(reporter));
    }

    /// A look at the tables; none while no table is shared.
    pub fn view(&self) -> Option<View> {
        let runner = self.runner.as_ref()?;
        Some(View(runner.handle()))
    }

    /// Sends the last changes, within a bounded time, and ends the thread.
    pub fn stop(self) {
        if let Some(runner) = self.runner {
            runner.stop();
        }
    }
}

impl View {
    /// Writes the state of all tables, a line each.
    pub fn describe(&self, out: &mut String) {
        for table in self.0.snapshot() {
            // Writing to memory does not fail.
            let _ = write_table(&table, out);
        }
    }
}

fn write_table(table: &TableView, out: &mut String) -> std::fmt::Result {
    let TableView {
        table: name,
        store,
        is_connected,
        last_error,
        last_refusal,
        every_ms,
        answered_ago_ms,
        answer_ms,
        waiting,
        watched,
        counters,
    } = table;
    let state = if *is_connected { "connected" } else { "lost" };
    write!(
        out,
        "table={name} store={store} state={state} every_ms={every_ms}"
    )?;
    match answered_ago_ms {
        Some(ms) => write!(out, " answered_ago_ms={ms} answer_ms={answer_ms}")?,
        None => write!(out, " answered_ago_ms=- answer_ms=-")?,
    }
    write!(out, " waiting={waiting} watched={watched}")?;
    write!(
        out,
        " answers={} sent={} merged={} connections={} failures={} resends={} removed_unsent={} lost_batches={} refused={}",
        counters.answers,
        counters.sent,
        counters.merged,
        counters.connections,
        counters.failures,
        counters.resends,
        counters.removed_unsent,
        counters.lost_batches,
        counters.refused
    )?;
    let or_none = |text: &str| {
        if text.is_empty() {
            "-".to_owned()
        } else {
            text.to_owned()
        }
    };
    writeln!(
        out,
        " last_error={} last_refusal={}",
        or_none(last_error),
        or_none(last_refusal)
    )
}
