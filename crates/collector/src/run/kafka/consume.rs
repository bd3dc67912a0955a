//! A receiver: a member of a consumer group, on a thread of its own.
//!
//! The thread polls the client all the time, so that the group hears of it. What the pipeline has no room for waits here,
//! one message of each partition, while the partition is paused. A partition of whose messages too many bytes are not settled is
//! paused too.

mod context;
mod hold;
mod received;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::time::Duration;

use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use rdkafka::consumer::{BaseConsumer, Consumer};

use tokio::sync::oneshot;
use tokio::time::Instant;

use self::context::{Context, Event, list_of};
use self::hold::{Held, Holding};
use self::received::Received;
use super::client::{self, Voice};
use super::decode::{Header, decode, extract};
use super::offsets::{Offsets, Partition};
use super::{Counts, properties};
use crate::config::components::receivers::kafka::KafkaReceiver;
use crate::run::Log;
use crate::run::consume::Refusal;
use crate::run::origin::{Came, Origin, Wanted};
use crate::run::receive::Intake;
use crate::run::storage::{Fate, Hold};

/// A poll ends after this time without a message.
const POLL: Duration = Duration::from_millis(50);
/// Between two looks at what is settled, and at what waits.
const TICK: Duration = Duration::from_millis(50);
/// A poll that fails is not done again at once.
const POLL_AGAIN: Duration = Duration::from_millis(100);
/// Time for the client to go back to an offset.
const SEEK_MAX: Duration = Duration::from_secs(1);
/// Time to commit the last offsets and to leave the group.
const END_MAX: Duration = Duration::from_secs(5);

/// A receiver that runs.
pub struct Member {
    stage: Arc<AtomicU8>,
    /// Tells that the thread has ended.
    ended: Option<oneshot::Receiver<()>>,
}

/// How far it is.
const RECEIVES: u8 = 0;
const WAITS: u8 = 1;
const ENDS: u8 = 2;

/// Joins the group. To be called within the runtime.
///
/// # Errors
/// What the client does not take.
pub fn start(
    id: &str,
    settings: &KafkaReceiver,
    (intake, wanted): (Arc<Intake>, Option<&Wanted>),
    (log, counts): (&Log, &Arc<Counts>),
) -> Result<Member, String> {
    let offsets = Offsets::new(settings.marking);
    let voice = Voice::new(format!("receiver '{id}'"), log, counts);
    let context = Context::new(voice, Arc::clone(&offsets), settings.commits_at_once());
    let config = client::config(properties::consumer(settings));
    let made: Result<BaseConsumer<Context>, _> = config.create_with_context(context);
    let consumer = made.map_err(|why| why.to_string())?;
    let topics: Vec<&str> = settings.traces.names.iter().map(String::as_str).collect();
    let subscribed = consumer.subscribe(&topics);
    subscribed.map_err(|why| why.to_string())?;
    let stage = Arc::new(AtomicU8::new(RECEIVES));
    let receiving = Receiving {
        consumer,
        settings: settings.clone(),
        intake,
        wanted: wanted.and_then(|wanted| wanted.of_receiver(true)),
        holding: Holding::new(settings.error_backoff),
        offsets,
        stage: Arc::clone(&stage),
        topic: "".into(),
    };
    let ended = spawn(receiving, (format!("receiver '{id}'"), log.clone()))?;
    Ok(Member {
        stage,
        ended: Some(ended),
    })
}

/// Runs it on a thread of its own; what tells of the end of that.
fn spawn(
    receiving: Receiving,
    (name, log): (String, Log),
) -> Result<oneshot::Receiver<()>, String> {
    let runtime = tokio::runtime::Handle::current();
    let (tell, ended) = oneshot::channel();
    let thread = std::thread::Builder::new().name("kafka".into());
    let spawned = thread.spawn(move || {
        // Components start tasks of their own.
        let _within = runtime.enter();
        let ran = catch_unwind(AssertUnwindSafe(|| receiving.run()));
        if ran.is_err() {
            log.error(&format!("{name}: it has failed, and receives nothing more"));
        }
        // Nobody waits any more where this took too long.
        let _ = tell.send(());
    });
    spawned.map(|_| ended).map_err(|why| why.to_string())
}

impl KafkaReceiver {
    /// What is settled is committed as soon as that is seen.
    fn commits_at_once(&self) -> bool {
        self.commit_interval_ns.is_none_or(|interval| interval == 0)
    }
}

impl Member {
    /// Takes no more messages; it stays in the group, for what it has taken to be settled.
    pub fn close(&self) {
        self.stage.fetch_max(WAITS, Relaxed);
    }

    /// Commits what is settled, and leaves the group.
    pub async fn end(mut self) {
        self.stage.store(ENDS, Relaxed);
        if let Some(ended) = self.ended.take() {
            // While the brokers are away that takes long: then the thread ends with the process.
            let _ = tokio::time::timeout(END_MAX, ended).await;
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.stage.store(ENDS, Relaxed);
    }
}

/// What the thread has.
struct Receiving {
    consumer: BaseConsumer<Context>,
    settings: KafkaReceiver,
    intake: Arc<Intake>,
    wanted: Option<Wanted>,
    offsets: Arc<Offsets>,
    holding: Holding,
    stage: Arc<AtomicU8>,
    /// The topic of the last message.
    topic: Arc<str>,
}

impl Receiving {
    fn run(mut self) {
        let mut next = Instant::now();
        loop {
            let stage = self.stage.load(Relaxed);
            if stage == ENDS {
                break;
            }
            if let Some(received) = self.poll() {
                self.heed();
                if stage == RECEIVES {
                    self.receive(received);
                }
            }
            let now = Instant::now();
            if now >= next {
                next = now + TICK;
                self.heed();
                self.tick(stage, now);
            }
        }
        self.offsets.close();
        self.consumer.context().commit(&self.consumer, true);
        self.holding.leave();
        // The client leaves the group as it is dropped.
    }

    /// The next message, if one comes soon.
    fn poll(&mut self) -> Option<Received> {
        match self.consumer.poll(POLL)? {
            Ok(message) => Some(Received::of(&message, &mut self.topic)),
            Err(why) => {
                let voice = &self.consumer.context().voice;
                voice.tell("poll", &why.to_string());
                std::thread::park_timeout(POLL_AGAIN);
                None
            }
        }
    }

    /// What happened to the assignment during a poll.
    fn heed(&mut self) {
        for event in self.consumer.context().events() {
            match event {
                Event::Assigned(partition) | Event::Revoked(partition) => {
                    self.holding.forget(&partition);
                }
            }
        }
    }

    fn receive(&mut self, received: Received) {
        let Received {
            partition,
            offset,
            payload,
            headers,
        } = received;
        let bytes = payload.len() as u64;
        let counts = &self.consumer.context().voice.counts;
        counts.partition(&partition.topic, partition.number, |own| {
            own.records += 1;
            own.bytes += bytes;
            own.offset = Some(offset);
        });
        let token = self
            .offsets
            .take(&partition, (offset, bytes), Instant::now());
        let decoded = decode(self.settings.traces.encoding, payload);
        let names = &self.settings.extracted_headers;
        let decoded = decoded.and_then(|request| extract(request, &headers, names));
        match decoded {
            Ok(request) => {
                let origin = self.origin(headers);
                let hold = Hold::Messages(token);
                self.hand_on(
                    partition,
                    Held {
                        offset,
                        request,
                        hold,
                        origin,
                    },
                );
            }
            Err(why) => self.unread(&partition, offset, &why),
        }
    }

    /// A message is not one, or is refused for good.
    fn unread(&self, partition: &Partition, offset: i64, why: &str) {
        self.offsets.mark(partition, offset, Fate::Refused);
        let voice = &self.consumer.context().voice;
        let Partition { topic, number } = partition;
        voice
            .counts
            .partition(topic, *number, |own| own.unread += 1);
        let what = format!("the message {offset} of {topic}[{number}] is not taken: {why}");
        voice.tell("message", &what);
    }

    /// What components ask of the headers.
    fn origin(&self, headers: Vec<Header>) -> Option<Arc<Origin>> {
        let wanted = self.wanted.as_ref()?;
        let mut fields = HeaderMap::new();
        for (name, value) in headers {
            let name = HeaderName::from_bytes(name.as_bytes());
            if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(&value)) {
                fields.append(name, value);
            }
        }
        let came = Came {
            headers: &fields,
            authority: None,
            address: None,
        };
        match wanted.origin(&came, None) {
            Ok(origin) => origin,
            Err(_) => {
                let voice = &self.consumer.context().voice;
                voice.tell(
                    "headers",
                    "headers of a message are more than are kept: they are left out",
                );
                None
            }
        }
    }

    /// Hands a request on, or keeps it until there is room.
    fn hand_on(&mut self, partition: Partition, held: Held) {
        let Held {
            request,
            hold,
            origin,
            ..
        } = &held;
        let taken = self
            .intake
            .take_held(request.clone(), hold.clone(), origin.clone());
        match taken {
            Ok(()) => {}
            Err(Refusal::Busy(no_room)) => {
                let voice = &self.consumer.context().voice;
                voice.tell("busy", &format!("waits: {}", no_room.why));
                self.holding
                    .add(partition, held, Instant::now() + no_room.after);
            }
            // It was not taken: others have it.
            Err(Refusal::Closing) => hold.stay(),
            Err(Refusal::Malformed(why)) => self.unread(&partition, held.offset, &why),
        }
    }

    fn tick(&mut self, stage: u8, now: Instant) {
        match stage {
            RECEIVES => {
                self.offsets.rotate(now);
                for (partition, held) in self.holding.due(now) {
                    self.hand_on(partition, held);
                }
            }
            _ => {
                // What waits here is not settled by that.
                self.offsets.close();
            }
        }
        let context = self.consumer.context();
        let moved = context.commit(&self.consumer, false);
        self.holding.moved(&moved);
        self.read_again(now);
        self.pause(stage);
    }

    /// Goes back to what was given up, where it is time.
    fn read_again(&mut self, now: Instant) {
        let stuck = self.offsets.stuck();
        for one in self
            .holding
            .rewinds(&stuck, now, &self.consumer.context().voice)
        {
            let Partition { topic, number } = &one.partition;
            let offset = rdkafka::Offset::Offset(one.offset);
            match self.consumer.seek(topic, *number, offset, SEEK_MAX) {
                Ok(()) => {
                    self.offsets.forget(&one.partition);
                    self.holding.forget_held(&one.partition);
                }
                // It is tried again, after the next wait.
                Err(why) => {
                    let voice = &self.consumer.context().voice;
                    let what = format!("{topic}[{number}] is not read again: {why}");
                    voice.tell("seek", &what);
                }
            }
        }
    }

    /// Pauses and resumes partitions, as they wait for something or do not.
    fn pause(&mut self, stage: u8) {
        let all = match stage {
            RECEIVES => None,
            _ => self.consumer.assignment().ok(),
        };
        let all = all.map(|list| context::partitions(&list));
        let (pause, resume) = self.holding.changes(&self.offsets.waiting(), all);
        let mut changed = Ok(());
        if !pause.is_empty() {
            changed = self.consumer.pause(&list_of(&pause));
        }
        if !resume.is_empty() {
            changed = changed.and(self.consumer.resume(&list_of(&resume)));
        }
        if let Err(why) = changed {
            self.consumer
                .context()
                .voice
                .tell("pause", &why.to_string());
        }
    }
}
