//! All sections' resolvers on one thread of their own, with their sockets.
//!
//! [`Runner`] has the thread, [`Handle`] is how others talk to it: it is cheap to clone and may be
//! used by any thread. Events go to the function that [`Setup`] has, answers to questions to their
//! own functions; both are called on the resolvers' thread and must not block.
//!
//! [`turns`] moves messages between resolvers and links, [`udp`] and [`tcp`] are links to one
//! nameserver.

mod tcp;
mod turns;
mod udp;

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::Random;
use crate::counters::Counters;
use crate::name::Name;
use crate::records::Records;
use crate::resolver::{Outcome, Question, Status};
use crate::section::{Families, Family, Section};

/// The stack size of the thread, in bytes.
const STACK_BYTES: usize = 1 << 20;

/// The most questions that wait for an answer at once.
pub const QUESTIONS_MAX: usize = 16_384;

/// What a runner needs.
pub struct Setup {
    /// The sections; others name them by their index here.
    pub sections: Vec<Section>,
    /// Random numbers that others cannot predict, from the operating system.
    pub random: Random,
    /// Receives the events of subscriptions.
    pub on_event: Box<dyn Fn(SubscriptionEvent) + Send>,
}

/// A subscription of a [`Handle`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SubscriptionId(u64);

/// A question of a [`Handle`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct QuestionId(u64);

/// An event of a subscription.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubscriptionEvent {
    /// The index of the section.
    pub section: usize,
    /// Whose.
    pub subscription: SubscriptionId,
    /// How its resolution ended.
    pub outcome: Outcome,
}

/// A section's part of `show resolvers`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SectionView {
    /// The section's name.
    pub name: String,
    /// Its nameservers, in order.
    pub nameservers: Vec<NameserverView>,
}

/// A nameserver's part of `show resolvers`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameserverView {
    /// Its name.
    pub name: String,
    /// Its address.
    pub address: SocketAddr,
    /// Its counters.
    pub counters: Counters,
}

/// The thread of the resolvers. Dropped, it stops the thread without waiting for it.
pub struct Runner {
    thread: Option<JoinHandle<()>>,
    handle: Handle,
}

/// Talks to the resolvers. After [`Runner::stop`], requests have no effect and questions have no
/// answer.
#[derive(Clone)]
pub struct Handle {
    commands: UnboundedSender<Command>,
    shared: Arc<Shared>,
}

struct Shared {
    next: AtomicU64,
    questions: AtomicUsize,
    views: Mutex<Vec<SectionView>>,
}

enum Command {
    Subscribe {
        subscription: SubscriptionId,
        section: usize,
        name: Name,
        question: Question,
    },
    Unsubscribe(SubscriptionId),
    Kick(SubscriptionId),
    Ask {
        question: QuestionId,
        section: usize,
        name: Name,
        wanted: Wanted,
        answer: Answer,
    },
    Cancel(QuestionId),
    CountUpdate {
        section: usize,
        nameserver: usize,
    },
    SetFamilies(Families),
    Stop,
}

/// What a question asks for.
#[derive(Clone, Copy, Debug)]
enum Wanted {
    /// One address ([`crate::Resolver::ask`]).
    Address { prefer: Family },
    /// All addresses of a family ([`crate::Resolver::look_up`]).
    Records { family: Family },
}

/// What waits for the answer to a question. Dropped, it gets none.
struct Answer {
    function: Option<Box<dyn FnOnce(Option<Outcome>) + Send>>,
    shared: Arc<Shared>,
}

impl Answer {
    fn give(mut self, outcome: Option<Outcome>) {
        let function = self.function.take();
        // When the answer is there, the question no longer counts.
        drop(self);
        if let Some(function) = function {
            function(outcome);
        }
    }

    fn cancel(mut self) {
        self.function = None;
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        self.shared.questions.fetch_sub(1, Ordering::Relaxed);
        if let Some(function) = self.function.take() {
            function(None);
        }
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").finish_non_exhaustive()
    }
}

impl Runner {
    /// Starts the thread.
    ///
    /// # Errors
    /// The thread or its runtime cannot be created.
    pub fn start(setup: Setup) -> io::Result<Runner> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (commands, received) = unbounded_channel();
        let shared = Arc::new(Shared {
            next: AtomicU64::new(1),
            questions: AtomicUsize::new(0),
            views: Mutex::new(setup.sections.iter().map(view).collect()),
        });
        let handle = Handle {
            commands,
            shared: Arc::clone(&shared),
        };
        let thread = std::thread::Builder::new()
            .name("resolvers".to_owned())
            .stack_size(STACK_BYTES);
        let thread = thread.spawn(move || {
            let local = tokio::task::LocalSet::new();
            local.block_on(&runtime, turns::run(setup, shared, received));
        })?;
        Ok(Runner {
            thread: Some(thread),
            handle,
        })
    }

    /// A handle.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Ends all resolutions and closes all sockets; questions that wait get no address.
    pub fn stop(mut self) {
        self.handle.send(Command::Stop);
        if let Some(thread) = self.thread.take() {
            // The panic hook has already reported a panic of the thread.
            let _ = thread.join();
        }
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        self.handle.send(Command::Stop);
    }
}

fn view(section: &Section) -> SectionView {
    let nameservers = section.nameservers.iter();
    SectionView {
        name: section.name.clone(),
        nameservers: nameservers
            .map(|nameserver| NameserverView {
                name: nameserver.name.clone(),
                address: nameserver.address,
                counters: Counters::default(),
            })
            .collect(),
    }
}

impl Handle {
    /// Resolves a name from now on; events follow, see [`crate::Resolver::subscribe`]. A section
    /// of this index must exist, else there are no events.
    pub fn subscribe(&self, section: usize, name: Name, question: Question) -> SubscriptionId {
        let subscription = SubscriptionId(self.number());
        self.send(Command::Subscribe {
            subscription,
            section,
            name,
            question,
        });
        subscription
    }

    /// Ends a subscription. An event that is under way at this moment may still come.
    pub fn unsubscribe(&self, subscription: SubscriptionId) {
        self.send(Command::Unsubscribe(subscription));
    }

    /// Resolves a name now rather than at its next turn, see [`crate::Resolver::kick`].
    pub fn kick(&self, subscription: SubscriptionId) {
        self.send(Command::Kick(subscription));
    }

    /// Asks for an address once (`do-resolve`). `answer` is called once, with the address or none;
    /// on the resolvers' thread, or on this one if the question cannot be asked at all.
    pub fn ask(
        &self,
        section: usize,
        name: Name,
        prefer: Family,
        answer: impl FnOnce(Option<IpAddr>) + Send + 'static,
    ) -> QuestionId {
        let answer = |outcome: Option<Outcome>| answer(outcome.and_then(Outcome::into_address));
        self.question(section, name, Wanted::Address { prefer }, Box::new(answer))
    }

    /// Asks once for all addresses of a family, see [`crate::Resolver::look_up`]. `answer` is
    /// called once, with the records or the kind of the error; on the resolvers' thread, or on this
    /// one if the question cannot be asked at all.
    pub fn look_up(
        &self,
        section: usize,
        name: Name,
        family: Family,
        answer: impl FnOnce(Result<Arc<Records>, Status>) + Send + 'static,
    ) -> QuestionId {
        let answer = |outcome: Option<Outcome>| {
            answer(outcome.map_or(Err(Status::Other), Outcome::into_lookup));
        };
        self.question(section, name, Wanted::Records { family }, Box::new(answer))
    }

    fn question(
        &self,
        section: usize,
        name: Name,
        wanted: Wanted,
        function: Box<dyn FnOnce(Option<Outcome>) + Send>,
    ) -> QuestionId {
        let question = QuestionId(self.number());
        let waiting = self.shared.questions.fetch_add(1, Ordering::Relaxed);
        let answer = Answer {
            function: Some(function),
            shared: Arc::clone(&self.shared),
        };
        if waiting < QUESTIONS_MAX {
            self.send(Command::Ask {
                question,
                section,
                name,
                wanted,
                answer,
            });
        }
        question
    }

    /// Gives up a question. Its answer is not called, unless that happens at this moment.
    pub fn cancel(&self, question: QuestionId) {
        self.send(Command::Cancel(question));
    }

    /// Counts an answer of a nameserver that changed the address of a server.
    pub fn count_update(&self, section: usize, nameserver: usize) {
        self.send(Command::CountUpdate {
            section,
            nameserver,
        });
    }

    /// Changes the families that all sections ask for.
    pub fn set_families(&self, families: Families) {
        self.send(Command::SetFamilies(families));
    }

    /// All sections with their nameservers' counters (`show resolvers`).
    #[must_use]
    pub fn snapshot(&self) -> Vec<SectionView> {
        let views = self.shared.views.lock();
        views.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The number of questions that wait for an answer.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.shared.questions.load(Ordering::Relaxed)
    }

    fn number(&self) -> u64 {
        self.shared.next.fetch_add(1, Ordering::Relaxed)
    }

    /// After the end of the thread, the command is dropped.
    fn send(&self, command: Command) {
        let _ = self.commands.send(command);
    }
}

type Commands = UnboundedReceiver<Command>;

#[cfg(test)]
pub(crate) mod tests;
