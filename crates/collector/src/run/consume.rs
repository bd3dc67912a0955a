//! The way from one component to the next.

use std::sync::Arc;
use std::time::Duration;

use super::account::Loss;
use super::data::Batch;

/// Why a batch was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There is no room now.
    Busy(NoRoom),
    /// The collector ends.
    Closing,
    /// It is not what it should be; never send it again.
    Malformed(String),
}

/// There is no room now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoRoom {
    /// Try again after this time.
    pub after: Duration,
    /// What is full, for the operator.
    pub why: Arc<str>,
}

impl Refusal {
    /// There is no room now, for this reason; try again after this time.
    #[must_use]
    pub fn busy(after: Duration, why: &Arc<str>) -> Refusal {
        let why = Arc::clone(why);
        Refusal::Busy(NoRoom { after, why })
    }
}

/// A batch that was not taken, given back whole.
#[derive(Debug)]
pub struct Refused {
    /// It.
    pub batch: Batch,
    /// Why.
    pub refusal: Refusal,
}

/// Room for a batch, and the batch: what a component has agreed to take. Dropped, it gives the room
/// back, and nobody has taken anything.
pub trait Permit {
    /// The component takes the batch.
    fn send(self: Box<Self>);
}

/// A component that takes batches.
///
/// A batch is taken in two steps, so that of several components either all take it or none does:
/// whatever may be refused is refused in the first.
pub trait Consumer: Send + Sync {
    /// Makes room for a batch, which the permit holds. Does not wait.
    ///
    /// # Errors
    /// The batch, and why it is not taken.
    fn reserve(&self, batch: Batch) -> Result<Box<dyn Permit>, Box<Refused>>;

    /// Takes a batch whole, or gives it back whole. Does not wait.
    ///
    /// # Errors
    /// The batch, and why it was not taken.
    fn consume(&self, batch: Batch) -> Result<(), Box<Refused>> {
        self.reserve(batch).map(Permit::send)
    }

    /// What it hands everything on to at once, where it does nothing else.
    fn next(&self) -> Option<&dyn Consumer> {
        None
    }

    /// Whether a batch might be taken now: what is refused for certain need not be prepared. A batch
    /// may be refused all the same.
    ///
    /// # Errors
    /// Why not.
    fn room(&self) -> Result<(), Refusal> {
        self.next().map_or(Ok(()), |next| next.room())
    }

    /// Whether no back end behind it has taken anything for [`FAILING_AFTER`]: where it has no room
    /// now, it may have none for long.
    fn is_failing(&self) -> bool {
        self.next().is_some_and(|next| next.is_failing())
    }

    /// Whether it puts requests of several senders together without having looked into them: one
    /// that is malformed would have all of them refused, so that receivers look into what they
    /// take.
    fn mixes(&self) -> bool {
        self.next().is_some_and(|next| next.mixes())
    }

    /// Loses a copy that it has no room for while others have theirs, and counts that where it
    /// would have gone.
    fn pass_by(&self, batch: Batch) {
        match self.next() {
            Some(next) => next.pass_by(batch),
            None => batch.receipt.lose(batch.records, Loss::ExportFailed),
        }
    }
}

/// A component that hands each batch on at once, as it is or changed.
pub trait Through: Send + Sync {
    /// The component behind it.
    fn next(&self) -> &dyn Consumer;

    /// Whether it takes anything at all now.
    ///
    /// # Errors
    /// Why not.
    fn open(&self) -> Result<(), Refusal> {
        Ok(())
    }

    /// Hands a batch on.
    ///
    /// # Errors
    /// The batch as it came, and why it was not taken.
    fn pass<P: Pass>(&self, batch: Batch) -> Result<P::Taken, Box<Refused>>;
}

impl<T: Through> Consumer for T {
    fn reserve(&self, batch: Batch) -> Result<Box<dyn Permit>, Box<Refused>> {
        self.pass::<Reserving>(batch)
    }

    fn consume(&self, batch: Batch) -> Result<(), Box<Refused>> {
        self.pass::<AtOnce>(batch)
    }

    fn next(&self) -> Option<&dyn Consumer> {
        Some(Through::next(self))
    }

    fn room(&self) -> Result<(), Refusal> {
        self.open()?;
        Through::next(self).room()
    }
}

/// How a batch passes a component: in one step, or in two.
pub trait Pass {
    /// What the next component has answered.
    type Taken;

    /// Hands a batch to the next component.
    ///
    /// # Errors
    /// As [`Consumer::consume`].
    fn on(next: &dyn Consumer, batch: Batch) -> Result<Self::Taken, Box<Refused>>;

    /// `done` runs once the batch is taken, and not at all where it is not.
    fn then(taken: Self::Taken, done: impl FnOnce() + 'static) -> Self::Taken;

    /// The next component gets nothing: `does` takes the batch.
    fn ends(batch: Batch, does: impl FnOnce(Batch) + 'static) -> Self::Taken;
}

/// [`Consumer::consume`].
pub struct AtOnce;

impl Pass for AtOnce {
    type Taken = ();

    fn on(next: &dyn Consumer, batch: Batch) -> Result<(), Box<Refused>> {
        next.consume(batch)
    }

    fn then((): (), done: impl FnOnce() + 'static) {
        done();
    }

    fn ends(batch: Batch, does: impl FnOnce(Batch) + 'static) {
        does(batch);
    }
}

/// [`Consumer::reserve`].
pub struct Reserving;

impl Pass for Reserving {
    type Taken = Box<dyn Permit>;

    fn on(next: &dyn Consumer, batch: Batch) -> Result<Self::Taken, Box<Refused>> {
        next.reserve(batch)
    }

    fn then(permit: Self::Taken, done: impl FnOnce() + 'static) -> Self::Taken {
        Does::new(move || {
            permit.send();
            done();
        })
    }

    fn ends(batch: Batch, does: impl FnOnce(Batch) + 'static) -> Self::Taken {
        Does::new(move || does(batch))
    }
}

/// A permit that is a function.
pub struct Does<F>(F);

impl<F: FnOnce()> Does<F> {
    /// Sent, it calls the function. Dropped, it drops it.
    pub fn new(does: F) -> Box<Does<F>> {
        Box::new(Does(does))
    }
}

impl<F: FnOnce()> Permit for Does<F> {
    fn send(self: Box<Self>) {
        (self.0)();
    }
}

/// Attempts that fail for so long make a back end one that others do not wait for.
pub const FAILING_AFTER: Duration = Duration::from_secs(5);

/// Gives a batch back.
pub fn refused<T>(batch: Batch, refusal: Refusal) -> Result<T, Box<Refused>> {
    Err(Box::new(Refused { batch, refusal }))
}

/// All of several consumers: each gets every batch.
///
/// One that is full holds the others up, so that nothing is lost while back ends are slow. One
/// whose back ends take nothing ([`Consumer::is_failing`]) holds nobody up: when it is full, it
/// loses its own copies. Nothing waits here.
pub struct FanOut {
    consumers: Vec<Arc<dyn Consumer>>,
}

/// The permits of several consumers, and who is passed by. Sent together, or not at all.
#[derive(Default)]
pub struct Permits {
    takers: Vec<Box<dyn Permit>>,
    passed_by: Vec<(Arc<dyn Consumer>, Batch)>,
    /// Why the last of those has no room.
    why: Option<Refusal>,
}

impl Permits {
    /// Makes room for a batch in a consumer. One that is full and failing is passed by.
    ///
    /// # Errors
    /// Why the consumer does not take it.
    pub fn add(&mut self, consumer: &Arc<dyn Consumer>, batch: Batch) -> Result<(), Refusal> {
        let given_back = match consumer.reserve(batch) {
            Ok(permit) => {
                self.takers.push(permit);
                return Ok(());
            }
            Err(given_back) => *given_back,
        };
        let Refused { batch, refusal } = given_back;
        if !(matches!(refusal, Refusal::Busy(_)) && consumer.is_failing()) {
            return Err(refusal);
        }
        self.passed_by.push((Arc::clone(consumer), batch));
        self.why = Some(refusal);
        Ok(())
    }

    /// Why nobody takes anything; none where somebody does.
    pub fn nobody(&self) -> Option<&Refusal> {
        self.why.as_ref().filter(|_| self.takers.is_empty())
    }
}

impl Permit for Permits {
    fn send(self: Box<Self>) {
        self.takers.into_iter().for_each(Permit::send);
        for (consumer, copy) in self.passed_by {
            // Whoever waits for the outcome hears of it.
            drop(copy.receipt.custody.pledge());
            consumer.pass_by(copy);
        }
    }
}

impl FanOut {
    /// Hands everything to all of these.
    #[must_use]
    pub fn new(consumers: Vec<Arc<dyn Consumer>>) -> FanOut {
        FanOut { consumers }
    }

    /// One consumer that hands everything to all of these: the only one itself.
    #[must_use]
    pub fn of(mut consumers: Vec<Arc<dyn Consumer>>) -> Arc<dyn Consumer> {
        if consumers.len() == 1 {
            return consumers.remove(0);
        }
        Arc::new(FanOut { consumers })
    }
}

impl Consumer for FanOut {
    fn reserve(&self, batch: Batch) -> Result<Box<dyn Permit>, Box<Refused>> {
        let mut permits = Permits::default();
        for consumer in &self.consumers {
            if let Err(refusal) = permits.add(consumer, batch.shared()) {
                return refused(batch, refusal);
            }
        }
        match permits.nobody() {
            Some(refusal) => refused(batch, refusal.clone()),
            None => Ok(Box::new(permits)),
        }
    }

    fn room(&self) -> Result<(), Refusal> {
        let mut passed_by = Ok(());
        let mut has_taker = self.consumers.is_empty();
        for consumer in &self.consumers {
            match consumer.room() {
                Ok(()) => has_taker = true,
                Err(refusal @ Refusal::Busy(_)) if consumer.is_failing() => {
                    passed_by = Err(refusal);
                }
                Err(refusal) => return Err(refusal),
            }
        }
        if has_taker { Ok(()) } else { passed_by }
    }

    fn is_failing(&self) -> bool {
        !self.consumers.is_empty() && self.consumers.iter().all(|each| each.is_failing())
    }

    fn mixes(&self) -> bool {
        self.consumers.iter().any(|each| each.mixes())
    }

    fn pass_by(&self, batch: Batch) {
        for consumer in &self.consumers {
            consumer.pass_by(batch.shared());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::account::Account;
    use super::*;
    use crate::config::Signal;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

    /// Has room for so many permits at a time, and keeps nothing.
    struct Narrow {
        room: Arc<AtomicU64>,
        taken: Arc<AtomicU64>,
        passed_by: AtomicU64,
        is_failing: AtomicBool,
    }

    struct Room(Arc<AtomicU64>, Arc<AtomicU64>);

    impl Permit for Room {
        fn send(self: Box<Self>) {
            self.1.fetch_add(1, SeqCst);
        }
    }

    impl Drop for Room {
        fn drop(&mut self) {
            self.0.fetch_add(1, SeqCst);
        }
    }

    impl Narrow {
        fn new(room: u64) -> Arc<Narrow> {
            Arc::new(Narrow {
                room: Arc::new(room.into()),
                taken: Arc::default(),
                passed_by: AtomicU64::new(0),
                is_failing: AtomicBool::new(false),
            })
        }

        fn counts(&self) -> [u64; 3] {
            [&self.room, &self.taken, &self.passed_by].map(|count| count.load(SeqCst))
        }
    }

    impl Consumer for Narrow {
        fn reserve(&self, batch: Batch) -> Result<Box<dyn Permit>, Box<Refused>> {
            let less = |room: u64| room.checked_sub(1);
            match self.room.fetch_update(SeqCst, SeqCst, less) {
                Ok(_) => Ok(Box::new(Room(
                    Arc::clone(&self.room),
                    Arc::clone(&self.taken),
                ))),
                Err(_) => refused(batch, Refusal::busy(Duration::ZERO, &"full".into())),
            }
        }

        fn is_failing(&self) -> bool {
            self.is_failing.load(SeqCst)
        }

        fn pass_by(&self, batch: Batch) {
            self.passed_by.fetch_add(1, SeqCst);
            batch.receipt.lose(batch.records, Loss::ExportFailed);
        }
    }

    fn batch(account: &Arc<Account>) -> Batch {
        Batch {
            signal: Signal::Traces,
            bytes: Default::default(),
            records: 10,
            receipt: account.accept(10),
            origin: None,
        }
    }

    #[test]
    fn all_of_several_take_a_batch_or_none_does() {
        let account = Arc::<Account>::default();
        let (wide, narrow) = (Narrow::new(5), Narrow::new(0));
        let both = FanOut::new(vec![wide.clone(), narrow.clone()]);
        let given_back = both.consume(batch(&account)).unwrap_err();
        assert_eq!(account.balance().held(), 10, "the sender has it");
        assert_eq!((wide.counts(), narrow.counts()), ([5, 0, 0], [0, 0, 0]));
        narrow.room.store(1, SeqCst);
        both.consume(given_back.batch).unwrap();
        assert_eq!((wide.counts(), narrow.counts()), ([5, 1, 0], [1, 1, 0]));
        let balance = account.balance();
        assert_eq!((balance.exported, balance.held()), (10, 0));
    }

    #[test]
    fn who_is_full_and_failing_is_passed_by_unless_all_are() {
        let account = Arc::<Account>::default();
        let (living, dead) = (Narrow::new(1), Narrow::new(0));
        dead.is_failing.store(true, SeqCst);
        let both = FanOut::new(vec![living.clone(), dead.clone()]);
        both.consume(batch(&account)).unwrap();
        assert_eq!((living.counts(), dead.counts()), ([1, 1, 0], [0, 0, 1]));
        assert_eq!(account.balance().failed, 10);

        living.room.store(0, SeqCst);
        living.is_failing.store(true, SeqCst);
        let given_back = both.consume(batch(&account)).unwrap_err();
        assert!(matches!(given_back.refusal, Refusal::Busy(_)));
        given_back.batch.receipt.refuse();
        assert_eq!(dead.counts(), [0, 0, 1]);
        assert_eq!(account.balance().held(), 0);
    }
}
