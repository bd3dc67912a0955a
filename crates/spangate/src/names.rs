//! Names that are resolved while the process runs (manual §5.3): the resolvers' thread, and a thread
//! that applies its results to servers ([`groups`]).

mod groups;

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;

use config::model::{self, Config};
use proxy::{NameResolver, NameTicket, RuntimeConfig, Shared};
use resolvers::run::{Handle, QuestionId, Runner, SectionView, Setup, SubscriptionEvent};
use resolvers::{Families, Family, Hold, Name, Nameserver, Section, Transport};
use stats::nameserver;

use crate::serve::Inboxes;
use groups::Groups;

/// The stack size of the thread that applies results, bytes.
const STACK_BYTES: usize = 1 << 20;

/// What the thread that applies results receives.
#[derive(Debug)]
pub(crate) enum Message {
    /// A resolution has ended.
    Event(SubscriptionEvent),
    /// Servers were added, deleted, moved or renamed.
    ServersChanged,
    /// The name of a server may have another address: a check of it timed out.
    Recheck { backend: usize, server: usize },
    /// The process ends.
    Stop,
}

/// The running threads.
pub(crate) struct Names {
    runner: Runner,
    messages: Sender<Message>,
    thread: JoinHandle<()>,
    questions: Questions,
}

/// What the names of a process need.
pub(crate) struct Parts {
    pub runtime_config: Arc<RuntimeConfig>,
    pub shared: Arc<Shared>,
    pub workers: Inboxes,
}

/// Whether any name of a configuration is resolved while the process runs.
pub(crate) fn are_needed(config: &Config) -> bool {
    let has_servers =
        |proxy: &model::Proxy| proxy.servers.iter().any(|one| one.resolvers.is_some());
    config
        .proxies
        .iter()
        .any(|proxy| has_servers(proxy) || proxy.resolves_names())
}

impl Names {
    /// Starts the threads.
    ///
    /// # Errors
    /// A thread cannot be created.
    pub fn start(parts: Parts, pending: Vec<Pending>) -> io::Result<Names> {
        let config = &parts.runtime_config.config;
        let families = families(config);
        let sections = config.resolvers.iter();
        let sections = sections.map(|one| section(one, families)).collect();
        let (messages, received) = channel();
        let events = messages.clone();
        let runner = Runner::start(Setup {
            sections,
            random: Box::new(crate::sys::random_seed),
            on_event: Box::new(move |event| {
                // After the end of the thread, nobody needs it.
                let _ = events.send(Message::Event(event));
            }),
        })?;
        let asker = Arc::new(Asker {
            handle: runner.handle(),
            shared: Arc::downgrade(&parts.shared),
            workers: parts.workers.clone(),
            questions: Arc::default(),
        });
        let questions = Arc::clone(&asker.questions);
        for question in pending {
            let section = config
                .resolvers
                .iter()
                .position(|section| section.name == question.section);
            let Pending {
                ticket,
                name,
                prefer,
                ..
            } = question;
            match section {
                Some(section) => asker.ask(section, &name, prefer, ticket),
                None => asker.answer_nothing(ticket),
            }
        }
        parts.shared.set_name_resolver(asker);
        let mut groups = Groups::new(parts, runner.handle());
        let thread = std::thread::Builder::new()
            .name("names".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || serve(&mut groups, &received))?;
        Ok(Names {
            runner,
            messages,
            thread,
            questions,
        })
    }

    /// Sends messages to the thread.
    pub fn messages(&self) -> Sender<Message> {
        self.messages.clone()
    }

    /// Ends both threads, and returns the questions without an answer, for [`Names::start`].
    pub fn hand_over(self, config: &Config) -> Vec<Pending> {
        let underway = std::mem::take(&mut *lock(&self.questions));
        let pending = underway.into_iter().filter_map(|(ticket, question)| {
            self.runner.handle().cancel(question.id);
            Some(Pending {
                ticket,
                section: config.resolvers.get(question.section)?.name.clone(),
                name: question.name,
                prefer: question.prefer,
            })
        });
        let pending = pending.collect();
        self.stop();
        pending
    }

    /// Ends both threads.
    pub fn stop(self) {
        let _ = self.messages.send(Message::Stop);
        // The panic hook has already reported a panic of the thread.
        let _ = self.thread.join();
        self.runner.stop();
    }
}

/// Applies messages until the last one.
fn serve(groups: &mut Groups, received: &Receiver<Message>) {
    groups.update();
    while let Ok(first) = received.recv() {
        // Each change of an address is a change of servers: many of them are looked at once.
        let mut servers_changed = false;
        for message in std::iter::once(first).chain(received.try_iter()) {
            match message {
                Message::Event(event) => groups.apply(event),
                Message::ServersChanged => servers_changed = true,
                Message::Recheck { backend, server } => groups.recheck(backend, server),
                Message::Stop => return,
            }
        }
        if servers_changed {
            groups.update();
        }
    }
}

/// Asks for the addresses that rules wait for (`do-resolve`).
struct Asker {
    handle: Handle,
    /// The state holds the asker.
    shared: Weak<Shared>,
    workers: Inboxes,
    /// The questions under way.
    questions: Questions,
}

type Questions = Arc<Mutex<HashMap<NameTicket, Underway>>>;

/// A question under way.
#[derive(Clone, Debug)]
struct Underway {
    id: QuestionId,
    section: usize,
    name: String,
    prefer: model::Family,
}

/// A question for which a stream waits while other threads take the resolution of names over.
pub(crate) struct Pending {
    ticket: NameTicket,
    /// The name of its section.
    section: String,
    name: String,
    prefer: model::Family,
}

impl Asker {
    /// A question whose section is gone has no answer.
    fn answer_nothing(&self, ticket: NameTicket) {
        if let Some(shared) = self.shared.upgrade() {
            let worker = shared.answer_name(ticket, None);
            self.workers.wake(&[worker]);
        }
    }
}

/// Answers questions where no names are resolved any longer.
pub(crate) fn give_up(pending: Vec<Pending>, shared: &Shared, workers: &Inboxes) {
    for question in pending {
        let worker = shared.answer_name(question.ticket, None);
        workers.wake(&[worker]);
    }
}

impl NameResolver for Asker {
    fn ask(&self, section: usize, text: &str, prefer: model::Family, ticket: NameTicket) {
        let shared = Weak::clone(&self.shared);
        let workers = self.workers.clone();
        let questions = Arc::clone(&self.questions);
        let is_answered = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&is_answered);
        let answer = move |ip| {
            told.store(true, Ordering::SeqCst);
            lock(&questions).remove(&ticket);
            if let Some(shared) = shared.upgrade() {
                let worker = shared.answer_name(ticket, ip);
                workers.wake(&[worker]);
            }
        };
        match Name::parse(text) {
            Ok(name) => {
                let question = self.handle.ask(section, name, family(prefer), answer);
                let mut questions = lock(&self.questions);
                // Either the answer is seen here, or it finds the question in the table.
                if !is_answered.load(Ordering::SeqCst) {
                    questions.insert(
                        ticket,
                        Underway {
                            id: question,
                            section,
                            name: text.to_owned(),
                            prefer,
                        },
                    );
                }
            }
            Err(_) => answer(None),
        }
    }

    fn cancel(&self, ticket: NameTicket) {
        if let Some(question) = lock(&self.questions).remove(&ticket) {
            self.handle.cancel(question.id);
        }
    }

    fn counters(&self) -> Vec<Vec<[u64; nameserver::COUNT]>> {
        let sections = self.handle.snapshot().into_iter();
        let of = |section: SectionView| {
            let nameservers = section.nameservers.into_iter();
            nameservers.map(|one| one.counters.values()).collect()
        };
        sections.map(of).collect()
    }
}

impl std::fmt::Debug for Asker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Asker").finish_non_exhaustive()
    }
}

fn family(family: model::Family) -> Family {
    match family {
        model::Family::V4 => Family::V4,
        model::Family::V6 => Family::V6,
    }
}

fn families(config: &Config) -> Families {
    let accepted = config.global.dns_families;
    match (accepted.v4, accepted.v6) {
        (true, false) => Families::V4,
        (false, true) => Families::V6,
        (true, true) | (false, false) => Families::Both,
    }
}

fn section(section: &model::Resolvers, families: Families) -> Section {
    let ms = |time: std::time::Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let nameserver = |nameserver: &model::Nameserver| Nameserver {
        name: nameserver.name.clone(),
        address: nameserver.address,
        transport: if nameserver.is_stream {
            Transport::Tcp
        } else {
            Transport::Udp
        },
    };
    let hold = section.hold;
    Section {
        name: section.name.clone(),
        nameservers: section.nameservers.iter().map(nameserver).collect(),
        hold: Hold {
            valid_ms: ms(hold.valid),
            nx_ms: ms(hold.nx),
            refused_ms: ms(hold.refused),
            timeout_ms: ms(hold.timeout),
            other_ms: ms(hold.other),
            obsolete_ms: ms(hold.obsolete),
        },
        resolve_retries: section.retries,
        timeout_resolve_ms: ms(section.timeout_resolve),
        timeout_retry_ms: ms(section.timeout_retry),
        accepted_payload_bytes: section.payload_bytes_max,
        families,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
