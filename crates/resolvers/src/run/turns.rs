//! The loop of the resolvers' thread.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::{Instant, sleep_until};

use super::tcp::TcpLink;
use super::udp::UdpLink;
use super::{
    Answer, Command, Commands, QuestionId, Setup, Shared, SubscriptionEvent, SubscriptionId, Wanted,
};
use crate::Random;
use crate::name::Name;
use crate::resolver::{
    Asked, LookedUp, Outcome, RequestId, Resolver, SendFailure, TooMany, Transmit,
};
use crate::section::{Nameserver, Transport};

/// The most messages of links that wait for the loop; links stop reading meanwhile.
const INBOUND_MAX: usize = 256;

/// The most commands, and the most messages, that are handled before deadlines are looked at.
const BATCH_MAX: usize = 64;

/// Which nameserver a link belongs to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin {
    pub section: usize,
    pub nameserver: usize,
}

/// What a link reports.
pub(super) enum Inbound {
    Message {
        origin: Origin,
        transport: Transport,
        bytes: Vec<u8>,
    },
    Failure {
        origin: Origin,
        transport: Transport,
        id: u16,
    },
}

/// Where links report to.
pub(super) type Reports = Sender<Inbound>;

/// Runs until [`Command::Stop`] or the end of all handles.
pub(super) async fn run(setup: Setup, shared: Arc<Shared>, mut commands: Commands) {
    let (reports, mut inbound) = channel(INBOUND_MAX);
    let mut world = World::new(setup, shared, reports);
    loop {
        world.turn();
        tokio::select! {
            command = commands.recv() => {
                let mut next = command.map_or(Next::Stop, |command| world.command(command));
                for _ in 1..BATCH_MAX {
                    if matches!(next, Next::Stop) {
                        return;
                    }
                    let Ok(command) = commands.try_recv() else { break };
                    next = world.command(command);
                }
                if matches!(next, Next::Stop) {
                    return;
                }
            }
            Some(first) = inbound.recv() => world.receive(first, &mut inbound),
            () = world.due() => {}
        }
    }
}

enum Next {
    Goes,
    Stop,
}

/// Where a request is.
#[derive(Clone, Copy)]
struct Place {
    section: usize,
    request: RequestId,
}

/// Who a request belongs to.
enum Owner {
    Subscription(SubscriptionId),
    Question {
        question: QuestionId,
        answer: Answer,
    },
}

struct SectionState {
    resolver: Resolver,
    links: Vec<Link>,
    owners: HashMap<RequestId, Owner>,
}

/// A nameserver with its sockets.
struct Link {
    udp: UdpLink,
    /// It opens with the first message.
    tcp: Option<TcpLink>,
    nameserver: Nameserver,
    origin: Origin,
    answer_timeout: Duration,
}

struct World {
    sections: Vec<SectionState>,
    subscriptions: HashMap<SubscriptionId, Place>,
    questions: HashMap<QuestionId, Place>,
    on_event: Box<dyn Fn(SubscriptionEvent) + Send>,
    shared: Arc<Shared>,
    reports: Reports,
    begin: Instant,
}

impl World {
    fn new(setup: Setup, shared: Arc<Shared>, reports: Reports) -> World {
        let random = Arc::new(Mutex::new(setup.random));
        let sections = setup.sections.into_iter().enumerate();
        let sections = sections.map(|(index, section)| {
            let answer_timeout = Duration::from_millis(section.timeout_retry_ms);
            let payload_bytes = usize::from(section.accepted_payload_bytes);
            let link = |(nameserver, settings): (usize, &Nameserver)| {
                let origin = Origin {
                    section: index,
                    nameserver,
                };
                Link {
                    udp: UdpLink::new(origin, settings.address, payload_bytes, answer_timeout),
                    tcp: None,
                    nameserver: settings.clone(),
                    origin,
                    answer_timeout,
                }
            };
            SectionState {
                links: section.nameservers.iter().enumerate().map(link).collect(),
                resolver: Resolver::new(section, share(&random)),
                owners: HashMap::new(),
            }
        });
        World {
            sections: sections.collect(),
            subscriptions: HashMap::new(),
            questions: HashMap::new(),
            on_event: setup.on_event,
            shared,
            reports,
            begin: Instant::now(),
        }
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.begin.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Does what is due, sends, reports, and shows the counters.
    fn turn(&mut self) {
        let now_ms = self.now_ms();
        for section in 0..self.sections.len() {
            self.sections[section].resolver.handle_timeout(now_ms);
            self.send(section, now_ms);
            self.report(section);
        }
        self.show();
    }

    /// Ends at the next deadline; never if there is none.
    async fn due(&self) {
        let resolvers = self.sections.iter().map(|section| &section.resolver);
        match resolvers.filter_map(Resolver::poll_timeout).min() {
            Some(due_ms) => sleep_until(self.begin + Duration::from_millis(due_ms)).await,
            None => std::future::pending().await,
        }
    }

    fn receive(&mut self, first: Inbound, inbound: &mut Receiver<Inbound>) {
        let now_ms = self.now_ms();
        let mut next = Some(first);
        for _ in 0..BATCH_MAX {
            let Some(report) = next else { break };
            self.handle(report, now_ms);
            next = inbound.try_recv().ok();
        }
        if let Some(report) = next {
            self.handle(report, now_ms);
        }
    }

    fn handle(&mut self, report: Inbound, now_ms: u64) {
        match report {
            Inbound::Message {
                origin,
                transport,
                bytes,
            } => {
                let resolver = &mut self.sections[origin.section].resolver;
                resolver.handle_message(origin.nameserver, transport, &bytes, now_ms);
            }
            Inbound::Failure {
                origin,
                transport,
                id,
            } => {
                let failure = SendFailure {
                    nameserver: origin.nameserver,
                    transport,
                    id,
                };
                let resolver = &mut self.sections[origin.section].resolver;
                resolver.handle_send_failure(failure, now_ms);
            }
        }
    }

    fn send(&mut self, section: usize, now_ms: u64) {
        let SectionState {
            resolver, links, ..
        } = &mut self.sections[section];
        while let Some(transmit) = resolver.poll_transmit() {
            let failure = SendFailure {
                nameserver: transmit.nameserver,
                transport: transmit.transport,
                id: transmit.id,
            };
            let link = &mut links[transmit.nameserver];
            if !link.send(transmit, &self.reports) {
                resolver.handle_send_failure(failure, now_ms);
            }
        }
    }

    fn report(&mut self, section: usize) {
        while let Some(event) = self.sections[section].resolver.poll_event() {
            let owners = &mut self.sections[section].owners;
            match event.outcome {
                Outcome::Address(_) | Outcome::NoAddress | Outcome::LookedUp(_) => {}
                Outcome::Found { .. } | Outcome::Held(_) | Outcome::Lost(_) | Outcome::Rejected => {
                    if let Some(Owner::Subscription(subscription)) = owners.get(&event.request) {
                        (self.on_event)(SubscriptionEvent {
                            section,
                            subscription: *subscription,
                            outcome: event.outcome,
                        });
                    }
                    continue;
                }
            }
            if let Some(Owner::Question { question, answer }) = owners.remove(&event.request) {
                self.questions.remove(&question);
                answer.give(Some(event.outcome));
            }
        }
    }

    fn show(&self) {
        let views = self.shared.views.lock();
        let mut views = views.unwrap_or_else(PoisonError::into_inner);
        for (view, section) in views.iter_mut().zip(&self.sections) {
            for (index, nameserver) in view.nameservers.iter_mut().enumerate() {
                nameserver.counters = section.resolver.counters(index);
            }
        }
    }

    // ---- commands

    fn command(&mut self, command: Command) -> Next {
        let now_ms = self.now_ms();
        match command {
            Command::Subscribe {
                subscription,
                section,
                name,
                question,
            } => {
                let Some(state) = self.sections.get_mut(section) else {
                    return Next::Goes;
                };
                match state.resolver.subscribe(name, question, now_ms) {
                    Ok(request) => {
                        let owner = Owner::Subscription(subscription);
                        state.owners.insert(request, owner);
                        let place = Place { section, request };
                        self.subscriptions.insert(subscription, place);
                    }
                    Err(_) => (self.on_event)(SubscriptionEvent {
                        section,
                        subscription,
                        outcome: Outcome::Rejected,
                    }),
                }
            }
            Command::Unsubscribe(subscription) => {
                if let Some(place) = self.subscriptions.remove(&subscription) {
                    self.end(place, now_ms);
                }
            }
            Command::Kick(subscription) => {
                if let Some(place) = self.subscriptions.get(&subscription) {
                    let resolver = &mut self.sections[place.section].resolver;
                    resolver.kick(place.request, now_ms);
                }
            }
            Command::Ask {
                question,
                section,
                name,
                wanted,
                answer,
            } => {
                let Some(state) = self.sections.get_mut(section) else {
                    return Next::Goes;
                };
                match ask(&mut state.resolver, name, wanted, now_ms) {
                    Ok(Reply::Now(outcome)) => answer.give(Some(outcome)),
                    Ok(Reply::Later(request)) => {
                        let owner = Owner::Question { question, answer };
                        state.owners.insert(request, owner);
                        let place = Place { section, request };
                        self.questions.insert(question, place);
                    }
                    Err(TooMany) => answer.give(None),
                }
            }
            Command::Cancel(question) => {
                if let Some(place) = self.questions.remove(&question) {
                    self.end(place, now_ms);
                }
            }
            Command::CountUpdate {
                section,
                nameserver,
            } => {
                if let Some(state) = self.sections.get_mut(section) {
                    state.resolver.count_update(nameserver);
                }
            }
            Command::SetFamilies(families) => {
                for state in &mut self.sections {
                    state.resolver.set_families(families);
                }
            }
            Command::Stop => return Next::Stop,
        }
        Next::Goes
    }

    fn end(&mut self, place: Place, now_ms: u64) {
        let state = &mut self.sections[place.section];
        state.resolver.unsubscribe(place.request, now_ms);
        if let Some(Owner::Question { answer, .. }) = state.owners.remove(&place.request) {
            answer.cancel();
        }
    }
}

/// The reply of a resolver to a question.
enum Reply {
    Now(Outcome),
    Later(RequestId),
}

fn ask(resolver: &mut Resolver, name: Name, wanted: Wanted, now_ms: u64) -> Result<Reply, TooMany> {
    match wanted {
        Wanted::Address { prefer } => Ok(match resolver.ask(name, prefer, now_ms)? {
            Asked::Now(address) => Reply::Now(Outcome::Address(address)),
            Asked::Later(request) => Reply::Later(request),
        }),
        Wanted::Records { family } => Ok(match resolver.look_up(name, family, now_ms)? {
            LookedUp::Now(found) => Reply::Now(Outcome::LookedUp(found)),
            LookedUp::Later(request) => Reply::Later(request),
        }),
    }
}

impl Link {
    /// Whether the message goes out; over TCP it may still fail later.
    fn send(&mut self, transmit: Transmit, reports: &Reports) -> bool {
        match transmit.transport {
            Transport::Udp => self.udp.send(&transmit.bytes, reports).is_ok(),
            Transport::Tcp => {
                let address = self.nameserver.address;
                let tcp = self.tcp.get_or_insert_with(|| {
                    TcpLink::open(self.origin, address, self.answer_timeout, reports)
                });
                tcp.send(transmit.id, transmit.bytes)
            }
        }
    }
}

/// A random source for one section; all sections share the same one.
fn share(random: &Arc<Mutex<Random>>) -> Random {
    let random = Arc::clone(random);
    Box::new(move || {
        let mut random = random.lock().unwrap_or_else(PoisonError::into_inner);
        random()
    })
}
