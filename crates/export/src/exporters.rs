//! The exporters' thread and its interface for other threads.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use telemetry::account::{Account, Loss, Signal};
use telemetry::queue::{Queue, QueueLimits};
use telemetry::settings::Processor;
use tokio::runtime::Runtime;
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::time::Instant;

use crate::health::Health;
use crate::memory::Memory;
use crate::plan::{PipelinePlan, Plan, Schedule};
use crate::pump::{Collect, Command, Limits, Pump, REQUEST_BYTES_MAX, State};
use crate::request::Envelope;
use crate::sink::Sink;

/// The most threads for blocking work: writes to files.
const BLOCKING_THREADS_MAX: usize = 8;
/// When an idle one of these threads ends.
const BLOCKING_IDLE_MAX: Duration = Duration::from_secs(10);
/// The time beyond the budget in which a shutdown lets the thread count what is left.
const SHUTDOWN_SLACK: Duration = Duration::from_millis(500);
/// All exporters of a process, on a thread named `otel-export`.
///
/// If dropped without [`Exporters::shutdown`], waiting records are lost, and counted as lost.
pub struct Exporters {
    pipelines: Vec<Pipeline>,
    /// In a lock, so that several threads can share the exporters; none after the end.
    thread: Mutex<Option<Thread>>,
}

struct Thread {
    handle: JoinHandle<()>,
    ended: mpsc::Receiver<()>,
}

/// A running pipeline.
pub struct Pipeline {
    /// The signal of its records.
    pub signal: Signal,
    /// The queue into which workers put batches. For metrics, the pipeline itself fills it.
    pub queue: Arc<Queue>,
    /// Its health.
    pub health: Arc<Health>,
    /// The records of an exporter of the type `memory`.
    pub memory: Option<Arc<Memory>>,
    flush_timeout: Duration,
    drops_at_end: AtomicBool,
    commands: UnboundedSender<Command>,
}

impl std::fmt::Debug for Exporters {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = self.pipelines.iter().map(|pipeline| pipeline.health.name());
        out.debug_list().entries(names).finish()
    }
}

impl Exporters {
    /// Starts the exporters: opens files and reads certificates; connections are opened with the
    /// first records. Call this in the process that continues (after a fork), and before it drops
    /// privileges that the files need.
    ///
    /// The error says which pipeline cannot work, and why.
    pub fn start(plan: Plan) -> Result<Exporters, String> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .thread_name("otel-export")
            .max_blocking_threads(BLOCKING_THREADS_MAX)
            .thread_keep_alive(BLOCKING_IDLE_MAX)
            .build()
            .map_err(|error| format!("the runtime of the exporters: {error}"))?;
        let mut pipelines = Vec::with_capacity(plan.pipelines.len());
        let mut pumps = Vec::with_capacity(plan.pipelines.len());
        {
            let _within = runtime.enter();
            for pipeline in &plan.pipelines {
                let (pipeline, pump) = Pipeline::open(pipeline, &plan)?;
                pipelines.push(pipeline);
                pumps.push(pump);
            }
        }
        let (ending, ended) = mpsc::channel();
        let handle = Builder::new()
            .name("otel-export".to_owned())
            .spawn(move || {
                run(runtime, pumps);
                // The receiver may be gone.
                let _ = ending.send(());
            })
            .map_err(|error| format!("the thread of the exporters: {error}"))?;
        Ok(Exporters {
            pipelines,
            thread: Mutex::new(Some(Thread { handle, ended })),
        })
    }

    /// The pipelines, in the order of [`Plan::pipelines`].
    #[must_use]
    pub fn pipelines(&self) -> &[Pipeline] {
        &self.pipelines
    }

    /// Exports everything that waits now, including metrics collected now. Waits at most `budget`;
    /// returns whether all of it was exported, or lost and counted.
    pub fn flush(&self, budget: Duration) -> bool {
        self.flush_these(self.pipelines.iter(), budget)
    }

    /// [`Exporters::flush`] for some pipelines, by their positions.
    pub fn flush_some(&self, places: &[usize], budget: Duration) -> bool {
        let pipelines = places.iter().filter_map(|place| self.pipelines.get(*place));
        self.flush_these(pipelines, budget)
    }

    fn flush_these<'a>(
        &self,
        pipelines: impl Iterator<Item = &'a Pipeline> + Clone,
        budget: Duration,
    ) -> bool {
        let end = Instant::now() + budget;
        let (done, ended) = mpsc::channel();
        for pipeline in pipelines.clone() {
            if pipeline
                .commands
                .send(Command::Flush(done.clone()))
                .is_err()
            {
                return false;
            }
        }
        drop(done);
        let mut pipelines = pipelines;
        pipelines.all(|_| {
            let left = end.saturating_duration_since(Instant::now());
            ended.recv_timeout(left).is_ok()
        })
    }

    /// Exports everything that waits, within `budget` (each pipeline within its own
    /// `flush_timeout`), and ends the thread. Remaining records, and those that workers offer
    /// later, are lost ([`Loss::Shutdown`]).
    pub fn shutdown(&self, budget: Duration) {
        for pipeline in &self.pipelines {
            let end = Instant::now() + budget.min(pipeline.flush_timeout());
            // A pipeline that has ended does not receive it.
            let _ = pipeline.commands.send(Command::Shutdown(end));
        }
        self.end(budget + SHUTDOWN_SLACK);
    }

    fn end(&self, budget: Duration) {
        let thread = self.thread.lock();
        let Some(thread) = thread.unwrap_or_else(PoisonError::into_inner).take() else {
            return;
        };
        let Thread { handle, ended } = thread;
        let late = ended.recv_timeout(budget) == Err(RecvTimeoutError::Timeout);
        if late {
            // The thread hangs; the process must not wait for it.
            drop(handle);
        } else {
            // The thread has ended or panicked; its tasks have counted their records.
            let _ = handle.join();
        }
        for pipeline in &self.pipelines {
            pipeline.queue.close();
            while let Some(batch) = pipeline.queue.take() {
                let account = &pipeline.queue.account;
                account.add_lost(Loss::Shutdown, u64::from(batch.records));
                account.end_flight(u64::from(batch.records));
            }
        }
    }
}

impl Drop for Exporters {
    fn drop(&mut self) {
        for pipeline in &self.pipelines {
            let _ = pipeline.commands.send(Command::Shutdown(Instant::now()));
        }
        self.end(SHUTDOWN_SLACK);
    }
}

fn run(runtime: Runtime, pumps: Vec<Pump>) {
    runtime.block_on(async {
        let mut tasks = tokio::task::JoinSet::new();
        for pump in pumps {
            tasks.spawn(pump.run());
        }
        tasks.join_all().await;
    });
    // Does not wait for a write that hangs.
    runtime.shutdown_background();
}

impl Pipeline {
    /// Sets whether records that wait at the end of the process are dropped and counted, or
    /// exported.
    pub fn drop_at_end(&self, drops: bool) {
        self.drops_at_end.store(drops, Relaxed);
    }

    /// The time for its last exports.
    fn flush_timeout(&self) -> Duration {
        if self.drops_at_end.load(Relaxed) {
            Duration::ZERO
        } else {
            self.flush_timeout
        }
    }

    fn open(plan: &PipelinePlan, all: &Plan) -> Result<(Pipeline, Pump), String> {
        let name = format!("{} {}", plan.signal.name(), Sink::name(&plan.exporter));
        let sink = Sink::open(&plan.exporter, plan.signal, &all.collectors);
        let sink = sink.map_err(|why| format!("exporter of {name}: {why}"))?;
        let memory = match &sink {
            Sink::Memory(memory) => Some(Arc::clone(memory)),
            _ => None,
        };
        let shape = Shape::new(plan);
        let limits = shape.limits;
        let notify = Arc::new(Notify::new());
        let waker = Arc::clone(&notify);
        let queue_limits = QueueLimits {
            records_max: shape.queue_records_max,
            bytes_max: plan.bytes_max,
        };
        let wake = move || waker.notify_one();
        let queue = Queue::new(plan.signal, queue_limits, Arc::<Account>::default(), wake);
        let queue = Arc::new(queue.waking_at(QueueLimits {
            records_max: limits.wake_records,
            bytes_max: limits.wake_bytes,
        }));
        let health = Arc::new(Health::new(name, Arc::clone(&all.log)));
        let (commands, receiver) = unbounded_channel();
        let pump = Pump {
            queue: Arc::clone(&queue),
            notify,
            commands: receiver,
            sink: Arc::new(sink),
            envelope: Envelope::new(&plan.resource, &plan.scope_name, &plan.scope_version),
            health: Arc::clone(&health),
            retry: all.retry,
            collect: shape.collect,
            interval: shape.interval,
            limits,
            state: State::default(),
        };
        let pipeline = Pipeline {
            signal: plan.signal,
            queue,
            health,
            memory,
            flush_timeout: plan.flush_timeout,
            drops_at_end: AtomicBool::new(false),
            commands,
        };
        Ok((pipeline, pump))
    }
}

/// How a pump runs.
struct Shape {
    limits: Limits,
    queue_records_max: usize,
    interval: Duration,
    collect: Option<Collect>,
}

impl Shape {
    fn new(plan: &PipelinePlan) -> Shape {
        let requests_max = Sink::requests_max(&plan.exporter);
        let limits = |request_records_max, requests_max, wake_records| Limits {
            request_records_max,
            requests_max,
            bytes_max: plan.bytes_max,
            wake_records,
            // The queue wakes the pump before it is full.
            wake_bytes: REQUEST_BYTES_MAX.min(plan.bytes_max / 2),
        };
        match &plan.schedule {
            Schedule::Queue(Processor::Batch(batch)) => {
                let queue = batch.queue_records_max as usize;
                let records = batch.batch_records_max as usize;
                Shape {
                    limits: limits(records, requests_max, records.min(queue / 2).max(1)),
                    queue_records_max: queue,
                    interval: Duration::from_millis(u64::from(batch.delay_ms)),
                    collect: None,
                }
            }
            Schedule::Queue(Processor::Single) => {
                let default = telemetry::settings::BatchProcessor::new(plan.signal);
                Shape {
                    limits: limits(default.batch_records_max as usize, requests_max, 1),
                    queue_records_max: default.queue_records_max as usize,
                    interval: Duration::from_millis(u64::from(default.delay_ms)),
                    collect: None,
                }
            }
            Schedule::Collect {
                interval,
                source,
                pipeline,
            } => Shape {
                // One at a time: later collections are newer and must not arrive first.
                limits: limits(usize::MAX, 1, usize::MAX),
                queue_records_max: usize::MAX,
                interval: *interval,
                collect: Some(Collect {
                    source: Arc::clone(source),
                    pipeline: *pipeline,
                }),
            },
        }
    }
}
