//! Receivers: what comes over gRPC, HTTP and UDP goes to the pipelines that name them.

mod activity;
mod body;
mod bounds;
mod cors;
mod entrance;
mod frames;
mod grpc;
mod health;
mod host;
mod http;
mod jaeger;
mod listen;
mod listeners;
mod nop;
mod otlp;
pub mod prometheus;
mod protocol;
mod scrape;
mod serve;
mod socket;
mod spans;
mod start;
mod status;
mod tls;
mod udp;
mod watched;
mod zipkin;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;
use journal::Place;

pub use entrance::Entrance;
use entrance::Fate;
pub use health::Probe;
pub use listen::{Listening, Opening, Sharing, listen};
pub use listeners::Listeners;
pub use protocol::{Answer, Protocol};
pub use socket::Socket;
pub use spans::Format;
pub use start::{RunningSource, Source, SourceDeps, SourceFailure, SourceState, StartReceiver};

use super::account::Account;
use super::charge::{Body, Charge, Memory};
use super::consume::{Consumer, Refusal};
use super::data::Batch;
use super::origin::Origin;
use super::storage::{Commit, Custody, Ending, Hold, Kept, Taken};
use crate::config::Signal;
use ::otlp::count;
use status::Fault;

/// When there may be room for a request again.
const ROOM_AFTER: Duration = Duration::from_millis(200);

/// When a queue may be able to write again, or to send on.
const FAILED_AFTER: Duration = Duration::from_secs(1);

/// What a sender is told of data that an exporter for which it waits could not get rid of.
const NEVER: &str = "what it was sent on to does not take it";

/// What is said where a queue could not write or send it.
const FAILED: &str = "it could not be written or sent on";

/// What a sender is told of data that a component panicked on: it would again.
const PANICKED: &str = "the collector failed on it: see its log";

/// Where the data of a receiver go that come in by one of its transports.
#[derive(Clone)]
pub struct Intake {
    /// By signal; none is answered as a service that is not there.
    pub outlets: Outlets,
    /// By signal.
    pub accounts: [Arc<Account>; 3],
    /// The transport.
    pub entrance: Arc<Entrance>,
    /// What all receivers may hold.
    memory: Arc<Memory>,
    /// Nothing more is taken.
    closing: Arc<AtomicBool>,
    /// Where traces are written before they are taken; they are not where their pipelines ask for
    /// none.
    pub(super) kept: Option<Arc<Kept>>,
    /// Senders are answered when queues have written what is theirs, or sent it.
    waits: bool,
    /// It takes what the proxy records that runs the collector.
    is_of_proxy: bool,
    /// Spans are looked into, as nobody else does before they are put together with those of
    /// others.
    checks_spans: bool,
}

/// By signal, in the order of [`Signal`].
pub type Outlets = [Option<Arc<dyn Consumer>>; 3];

impl Intake {
    /// For these outlets.
    #[must_use]
    pub fn new(outlets: Outlets, accounts: [Arc<Account>; 3], memory: &Arc<Memory>) -> Intake {
        let traces = outlets[Signal::Traces as usize].as_ref();
        Intake {
            checks_spans: traces.is_some_and(|outlet| outlet.mixes()),
            outlets,
            accounts,
            entrance: Arc::default(),
            memory: Arc::clone(memory),
            closing: Arc::default(),
            kept: None,
            waits: false,
            is_of_proxy: false,
        }
    }

    /// The same, with a journal of what it takes, and waiting for queues that have one.
    #[must_use]
    pub fn keeping(self, kept: Option<Kept>, waits: bool) -> Intake {
        Intake {
            kept: kept.map(Arc::new),
            waits,
            ..self
        }
    }

    /// The same of another transport.
    #[must_use]
    pub fn by(&self, entrance: &Arc<Entrance>) -> Intake {
        Intake {
            entrance: Arc::clone(entrance),
            ..self.clone()
        }
    }

    /// For what the proxy records that runs the collector. It has no journal: what a proxy has not
    /// handed over yet ends with it.
    #[must_use]
    pub(super) fn of_proxy(
        outlets: Outlets,
        accounts: [Arc<Account>; 3],
        memory: &Arc<Memory>,
    ) -> Intake {
        Intake {
            is_of_proxy: true,
            ..Intake::new(outlets, accounts, memory)
        }
    }

    /// From now on everything is refused: senders keep what they have.
    pub fn close(&self) {
        self.closing.store(true, Relaxed);
    }

    /// A request that came in another format; one that could not be read is counted.
    fn translated(&self, request: Result<Vec<u8>, String>) -> Result<Bytes, Fault> {
        request.map(Bytes::from).map_err(|why| {
            self.accounts[Signal::Traces as usize].add_malformed();
            Fault::Invalid(why)
        })
    }

    /// Whether a pipeline gets a signal.
    #[must_use]
    pub fn takes(&self, signal: Signal) -> bool {
        self.outlets[signal as usize].is_some()
    }

    /// Room for a body, given back when the guard is dropped.
    fn reserve(&self, bytes: u64) -> Option<Body> {
        self.memory.body(bytes)
    }

    /// Charges a request that was not read here.
    fn charge(&self, bytes: &Bytes) -> Result<Charge, Refusal> {
        let charge = self.memory.charge(bytes.len() as u64);
        charge.ok_or_else(no_room)
    }

    /// Hands an `Export*ServiceRequest` on, whole or not at all, once it is where it outlives the
    /// process if it must. To be called within the collector's runtime.
    ///
    /// # Errors
    /// Why it is not taken.
    pub async fn take(&self, signal: Signal, bytes: Bytes) -> Result<(), Refusal> {
        let charge = self.charge(&bytes)?;
        match self.ending_of(signal, (bytes, charge), None).await? {
            Ending::Done => Ok(()),
            Ending::Failed => Err(Refusal::busy(FAILED_AFTER, &FAILED.into())),
            Ending::Never => Err(Refusal::Malformed(NEVER.into())),
        }
    }

    /// The same of a request that the receiver has made itself, and that is lost if it is not taken:
    /// a lack of memory counts as a refusal too.
    ///
    /// # Errors
    /// Why it is not taken.
    async fn take_made(&self, signal: Signal, bytes: Bytes) -> Result<(), Refusal> {
        if let Err(refusal) = self.charge(&bytes) {
            let records = self.count(signal, &bytes)?;
            self.entrance.count(signal, records, Fate::Refused);
            return Err(self.refused(signal, records, refusal));
        }
        self.take(signal, bytes).await
    }

    /// The same of a request whose client is known, and is told.
    async fn take_of(
        &self,
        signal: Signal,
        request: (Bytes, Charge),
        origin: Option<Arc<Origin>>,
    ) -> Result<(), Fault> {
        match self.ending_of(signal, request, origin).await? {
            Ending::Done => Ok(()),
            Ending::Failed => Err(Fault::Failed(FAILED_AFTER)),
            Ending::Never => Err(Fault::Invalid(NEVER.into())),
        }
    }

    /// What comes of a request for which somebody waits.
    async fn ending_of(
        &self,
        signal: Signal,
        request: (Bytes, Charge),
        origin: Option<Arc<Origin>>,
    ) -> Result<Ending, Refusal> {
        match self.give(signal, request, origin).await? {
            Some(commit) => Ok(commit.outcome().await),
            None => Ok(Ending::Done),
        }
    }

    /// The same, for whoever does not wait for queues.
    ///
    /// # Errors
    /// Why it is not taken.
    async fn give(
        &self,
        signal: Signal,
        (bytes, charge): (Bytes, Charge),
        origin: Option<Arc<Origin>>,
    ) -> Result<Option<Arc<Commit>>, Refusal> {
        let Some(outlet) = &self.outlets[signal as usize] else {
            return Err(Refusal::Malformed(format!("no pipeline takes {signal}")));
        };
        if self.closing.load(Relaxed) {
            return Err(Refusal::Closing);
        }
        let records = self.count(signal, &bytes)?;
        if records == 0 {
            return Ok(None);
        }
        let request = (signal, bytes, records, charge);
        let passed = self.pass(outlet, request, origin).await;
        let fate = match &passed {
            Ok(_) => Fate::Accepted,
            Err(Refusal::Malformed(why)) if why == PANICKED => Fate::Failed,
            Err(_) => Fate::Refused,
        };
        self.entrance.count(signal, records, fate);
        passed
    }

    /// Hands records on, once they are where they outlive the process if they must; for what is to
    /// be waited then.
    async fn pass(
        &self,
        outlet: &Arc<dyn Consumer>,
        (signal, bytes, records, charge): (Signal, Bytes, u64, Charge),
        origin: Option<Arc<Origin>>,
    ) -> Result<Option<Arc<Commit>>, Refusal> {
        let mut custody = Custody::default();
        let commit = self.waits.then(Arc::<Commit>::default);
        if let Some(commit) = &commit {
            custody.wait(Arc::clone(commit));
        }
        match &self.kept {
            Some(kept) if signal == Signal::Traces => {
                // What is refused anyway need not be written.
                let room = outlet.room();
                room.map_err(|why| self.refused(signal, records, why))?;
                let place = kept.write(signal, bytes.clone(), origin.as_deref()).await;
                let place = place.map_err(|why| self.refused(signal, records, why))?;
                custody.add(place.hold.clone());
                let handed = self.hand_on(signal, (bytes, charge), records, (custody, origin));
                if let Err(refusal) = handed {
                    kept.forget(place);
                    return Err(refusal);
                }
            }
            _ => self.hand_on(signal, (bytes, charge), records, (custody, origin))?,
        }
        Ok(commit)
    }

    /// Hands a request on that an earlier process took; how many records it has.
    ///
    /// # Errors
    /// Why it is not taken; it stays where it is.
    pub(super) fn take_again(&self, taken: &Taken<'_>, place: &Place) -> Result<u64, Refusal> {
        let (signal, bytes, origin) = (taken.signal, taken.request.clone(), taken.origin.clone());
        if self.closing.load(Relaxed) {
            return Err(Refusal::Closing);
        }
        let records = self.count(signal, &bytes)?;
        let mut custody = Custody::default();
        custody.add(place.hold.clone());
        let charge = self.charge(&bytes)?;
        self.hand_on(signal, (bytes, charge), records, (custody, origin))?;
        self.accounts[signal as usize].add_recovered(records);
        Ok(records)
    }

    #[cfg_attr(
        not(feature = "kafka"),
        allow(dead_code, reason = "receivers of Kafka call it")
    )]
    /// Hands on a request of traces that is read again unless it is settled, which `hold` tells.
    /// Nobody waits, and no journal has it. To be called within the collector's runtime.
    ///
    /// # Errors
    /// Why it is not taken.
    pub(super) fn take_held(
        &self,
        bytes: Bytes,
        hold: Hold,
        origin: Option<Arc<Origin>>,
    ) -> Result<(), Refusal> {
        if self.closing.load(Relaxed) {
            return Err(Refusal::Closing);
        }
        let records = self.count(Signal::Traces, &bytes)?;
        if records == 0 {
            return Ok(());
        }
        let charge = self.charge(&bytes)?;
        let custody = Custody::of(vec![hold]);
        let taken = self.hand_on(Signal::Traces, (bytes, charge), records, (custody, origin));
        let fate = match &taken {
            Ok(()) => Fate::Accepted,
            Err(Refusal::Malformed(why)) if why == PANICKED => Fate::Failed,
            Err(Refusal::Malformed(_)) => Fate::Refused,
            // It comes again.
            Err(_) => return taken,
        };
        self.entrance.count(Signal::Traces, records, fate);
        taken
    }

    /// Records were not taken, for lack of room.
    fn refused(&self, signal: Signal, records: u64, why: Refusal) -> Refusal {
        self.accounts[signal as usize].accept(records).refuse();
        why
    }

    fn count(&self, signal: Signal, bytes: &[u8]) -> Result<u64, Refusal> {
        let count = match signal {
            Signal::Traces if self.checks_spans => count::well_formed_spans(bytes),
            _ => count::records(signal, bytes),
        };
        count.map_err(|fault| {
            self.accounts[signal as usize].add_malformed();
            Refusal::Malformed(fault.to_string())
        })
    }

    fn hand_on(
        &self,
        signal: Signal,
        (bytes, charge): (Bytes, Charge),
        records: u64,
        (custody, origin): (Custody, Option<Arc<Origin>>),
    ) -> Result<(), Refusal> {
        let account = &self.accounts[signal as usize];
        let Some(outlet) = &self.outlets[signal as usize] else {
            return Ok(());
        };
        let mut receipt = if self.is_of_proxy {
            account.accept_of_proxy(records, Some(charge))
        } else {
            account.accept_charged(records, charge)
        };
        receipt.custody = custody;
        let batch = Batch {
            signal,
            bytes,
            records,
            receipt,
            origin,
        };
        // A panic in a component ends this request, and nothing else.
        let Ok(taken) = catch_unwind(AssertUnwindSafe(|| outlet.consume(batch))) else {
            account.add_panic();
            return Err(Refusal::Malformed(PANICKED.into()));
        };
        taken.map_err(|given_back| {
            given_back.batch.receipt.refuse();
            if matches!(given_back.refusal, Refusal::Malformed(_)) {
                account.add_malformed();
            }
            given_back.refusal
        })
    }
}

/// There is no room for the bytes of a request.
fn no_room() -> Refusal {
    let why = "what is being read and what waits take all the memory that they may";
    Refusal::busy(ROOM_AFTER, &why.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::consume::{Permit, Refused};

    /// A component with a fault.
    struct Panics;

    impl Consumer for Panics {
        fn reserve(&self, batch: Batch) -> Result<Box<dyn Permit>, Box<Refused>> {
            // What was copied before is lost as well.
            let _copy = batch.shared();
            panic!("injected");
        }
    }

    #[tokio::test]
    async fn a_panic_of_a_component_ends_one_request_and_the_books_balance() {
        let accounts: [Arc<Account>; 3] = Default::default();
        let outlets: Outlets = [Some(Arc::new(Panics)), None, None];
        let budget = Arc::new(tail::store::Budget::new(1 << 30));
        let intake = Intake::new(outlets, accounts.clone(), &Memory::new(&budget));
        // One span without fields.
        let request = Bytes::from_static(b"\x0a\x04\x12\x02\x12\x00");
        for times in 1..=2 {
            let taken = intake.take(Signal::Traces, request.clone()).await;
            assert_eq!(taken, Err(Refusal::Malformed(PANICKED.into())));
            let balance = accounts[Signal::Traces as usize].balance();
            assert_eq!((balance.accepted, balance.dropped), (times, times));
            assert_eq!((balance.exported, balance.held()), (0, 0));
            assert_eq!(balance.panics, times);
        }
    }
}
