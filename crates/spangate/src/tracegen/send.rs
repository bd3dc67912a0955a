//! Sends requests at a given rate, and counts the results.

use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use collector::generate::{Generated, Generator};
use export::client::{Client, Outcome};
use export::clock::now_unix_ns;
use telemetry::settings;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::options::{Options, Protocol};

/// Most requests that are made and not sent yet.
const READY_MAX: usize = 64;
/// With a rate, traces are made in steps of this length.
const STEP: Duration = Duration::from_millis(10);
/// The time between two lines of progress.
const TELL_EVERY: Duration = Duration::from_secs(1);
/// The pause before a retry if the receiver named none.
const AGAIN: Duration = Duration::from_millis(100);
const TIMEOUT_MS: u32 = 30_000;

/// Spans by the result of their request.
#[derive(Default)]
struct Totals {
    sent: AtomicU64,
    accepted: AtomicU64,
    rejected: AtomicU64,
    refused: AtomicU64,
    failed: AtomicU64,
    attempts_again: AtomicU64,
    bytes: AtomicU64,
    last_fault: Mutex<String>,
}

pub(super) async fn run(options: &Options) -> ExitCode {
    let client = match client(options) {
        Ok(client) => Arc::new(client),
        Err(reason) => {
            crate::say_error(&format!("spangate tracegen: {reason}\n"));
            return ExitCode::FAILURE;
        }
    };
    let totals = Arc::new(Totals::default());
    let (ready, taken) = mpsc::channel::<Generated>(READY_MAX);
    let taken = Arc::new(tokio::sync::Mutex::new(taken));
    let mut workers = JoinSet::new();
    for _ in 0..options.workers {
        let (client, totals) = (Arc::clone(&client), Arc::clone(&totals));
        let (taken, retry) = (Arc::clone(&taken), options.retry);
        workers.spawn(async move {
            loop {
                let next = taken.lock().await.recv().await;
                let Some(generated) = next else { return };
                send(&client, generated, retry, &totals).await;
            }
        });
    }
    let begin = Instant::now();
    let terminal = std::io::stderr().is_terminal();
    let shows = !options.quiet && (terminal || options.progress);
    let line = if terminal {
        LineEnds {
            before: "\r\x1b[K",
            after: "",
        }
    } else {
        LineEnds {
            before: "",
            after: "\n",
        }
    };
    let progress = shows.then(|| tokio::spawn(tell(Arc::clone(&totals), begin, line)));
    let traces = make(options, begin, ready).await;
    while workers.join_next().await.is_some() {}
    if let Some(progress) = progress {
        progress.abort();
        if terminal {
            crate::say_error("\r\x1b[K");
        }
    }
    report(&totals, traces, begin.elapsed())
}

fn client(options: &Options) -> Result<Client, String> {
    let tls = settings::Tls {
        verify: !options.skip_verify,
        ..settings::Tls::default()
    };
    let compression = if options.gzip {
        settings::Compression::Gzip
    } else {
        settings::Compression::None
    };
    let endpoint = |default: &str| options.endpoint.clone().unwrap_or(default.to_owned());
    let signal = settings::Signal::Traces;
    match options.protocol {
        Protocol::Grpc => {
            let settings = settings::OtlpGrpc {
                endpoint: endpoint("http://127.0.0.1:4317"),
                headers: settings::Headers::default(),
                timeout_ms: TIMEOUT_MS,
                requests_max: 0,
                compression,
                user_agent: None,
                tls,
            };
            Client::grpc(&settings, signal)
        }
        Protocol::Http => {
            let mut endpoint = endpoint("http://127.0.0.1:4318");
            let path = endpoint.splitn(4, '/').nth(3).unwrap_or_default();
            if path.is_empty() {
                endpoint = format!("{}/v1/traces", endpoint.trim_end_matches('/'));
            }
            let settings = settings::OtlpHttp {
                endpoint,
                encoding: settings::Encoding::Protobuf,
                headers: settings::Headers::default(),
                timeout_ms: TIMEOUT_MS,
                requests_max: 0,
                compression,
                tls,
            };
            Client::http(&settings, signal)
        }
    }
}

/// Makes traces until the limit is reached. Returns their number.
async fn make(options: &Options, begin: Instant, ready: mpsc::Sender<Generated>) -> u64 {
    let mut generator = Generator::new(options.shape.clone(), options.seed);
    let mut requests = Vec::new();
    let mut traces = 0;
    let end = options.duration.map(|duration| begin + duration);
    let interrupted = tokio::signal::ctrl_c();
    tokio::pin!(interrupted);
    loop {
        let enough = options.traces.is_some_and(|most| traces >= most)
            || end.is_some_and(|end| Instant::now() >= end);
        let now_ns = now_unix_ns();
        if !enough {
            let due = if options.rate > 0.0 {
                // The number of traces that are due by now.
                let by_now = (begin.elapsed().as_secs_f64() * options.rate) as u64 + 1;
                by_now.saturating_sub(traces)
            } else {
                u64::from(options.shape.batch_spans / options.shape.spans.max(1)).max(1)
            };
            let left = options.traces.map_or(u64::MAX, |most| most - traces);
            for _ in 0..due.min(left) {
                generator.trace(now_ns, &mut requests);
                traces += 1;
            }
        }
        generator.due(now_ns, &mut requests);
        // Waits for spans that are still to come late.
        let ends = enough && generator.last_due_ns().is_none();
        if ends {
            generator.flush(&mut requests);
        }
        for request in requests.drain(..) {
            tokio::select! {
                sent = ready.send(request) => if sent.is_err() { return traces },
                _ = &mut interrupted => return traces,
            }
        }
        if ends {
            return traces;
        }
        if enough || options.rate > 0.0 {
            tokio::select! {
                () = tokio::time::sleep(STEP) => {}
                _ = &mut interrupted => return traces,
            }
        }
    }
}

async fn send(client: &Client, generated: Generated, retry: bool, totals: &Totals) {
    let Generated { request, spans } = generated;
    totals.sent.fetch_add(spans, Relaxed);
    totals.bytes.fetch_add(request.len() as u64, Relaxed);
    let prepared = match client.prepare(vec![request]) {
        Ok(prepared) => prepared,
        Err(reason) => {
            totals.failed.fetch_add(spans, Relaxed);
            return totals.fault(reason);
        }
    };
    loop {
        match client.send(&prepared).await {
            Outcome::Taken { rejected, message } => {
                let rejected = rejected.min(spans);
                totals.rejected.fetch_add(rejected, Relaxed);
                totals.accepted.fetch_add(spans - rejected, Relaxed);
                if rejected > 0 {
                    totals.fault(message);
                }
                return;
            }
            Outcome::Busy { after, why } => {
                totals.fault(why);
                if !retry {
                    totals.refused.fetch_add(spans, Relaxed);
                    return;
                }
                totals.attempts_again.fetch_add(1, Relaxed);
                tokio::time::sleep(after.unwrap_or(AGAIN)).await;
            }
            Outcome::Refused(why) => {
                totals.failed.fetch_add(spans, Relaxed);
                return totals.fault(why);
            }
        }
    }
}

impl Totals {
    fn fault(&self, reason: String) {
        let mut last = self
            .last_fault
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *last = reason;
    }
}

/// The texts that begin and end a line: a terminal's line is written over.
struct LineEnds {
    before: &'static str,
    after: &'static str,
}

/// Prints the progress.
async fn tell(totals: Arc<Totals>, begin: Instant, line: LineEnds) {
    let (mut before, mut at) = (0, begin);
    loop {
        tokio::time::sleep(TELL_EVERY).await;
        let (accepted, now) = (totals.accepted.load(Relaxed), Instant::now());
        let rate = (accepted - before) as f64 / (now - at).as_secs_f64();
        (before, at) = (accepted, now);
        crate::say_error(&format!(
            "{}{:>7.1} s  {accepted} spans accepted  {rate:.0} spans/s  {} refused{}",
            line.before,
            (now - begin).as_secs_f64(),
            totals.refused.load(Relaxed),
            line.after
        ));
    }
}

fn report(totals: &Totals, traces: u64, elapsed: Duration) -> ExitCode {
    let [sent, accepted, rejected, refused, failed] = [
        &totals.sent,
        &totals.accepted,
        &totals.rejected,
        &totals.refused,
        &totals.failed,
    ]
    .map(|total| total.load(Relaxed));
    let seconds = elapsed.as_secs_f64();
    let bytes = totals.bytes.load(Relaxed);
    crate::say(&format!(
        "{traces} traces, {sent} spans, {bytes} bytes in {seconds:.1} s: {:.0} spans/s\n\
         {sent} sent = {accepted} accepted + {rejected} rejected + {refused} refused + {failed} failed; {} sent again\n",
        accepted as f64 / seconds,
        totals.attempts_again.load(Relaxed)
    ));
    let last = totals
        .last_fault
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    if !last.is_empty() {
        crate::say(&format!("last error: {last}\n"));
    }
    if accepted == sent {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
