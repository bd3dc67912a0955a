//! A receiver: a member of a consumer group, on a thread of its own.
//!
//! The thread polls the client all the time, because a member that does not poll is removed from
//! the group. If the pipeline has no room for a message, the message waits here and its partition
//! is paused. A partition is also paused while too many bytes of its messages are not settled.

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
/// The time between two checks of settled offsets and of waiting messages.
const TICK: Duration = Duration::from_millis(50);
/// The pause after a poll that failed.
const POLL_AGAIN: Duration = Duration::from_millis(100);
/// The longest time for a seek.
const SEEK_MAX: Duration = Duration::from_secs(1);
/// The longest time to commit the last offsets and to leave the group.
const END_MAX: Duration = Duration::from_secs(5);

/// A receiver that runs.
pub struct Member {
    stage: Arc<AtomicU8>,
    /// Tells that the thread has ended.
    ended: Option<oneshot::Receiver<()>>,
}

/// The stages of a member's life.
const RECEIVES: u8 = 0;
const WAITS: u8 = 1;
const ENDS: u8 = 2;

/// Starts a member, which joins the group. The caller must be within the runtime.
///
/// # Errors
/// The client refuses a property or a topic.
pub fn start(
    id: &str,
    settings: &KafkaReceiver,
    (intake, wanted): (Arc<Intake>, Option<Wanted>),
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
        wanted,
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

/// Starts the thread. The returned channel reports its end.
fn spawn(
    receiving: Receiving,
    (name, log): (String, Log),
) -> Result<oneshot::Receiver<()>, String> {
    let runtime = tokio::runtime::Handle::current();
    let (tell, ended) = oneshot::channel();
    let thread = std::thread::Builder::new().name("kafka".into());
    let spawned = thread.spawn(move || {
        // Components spawn tasks on the runtime.
        let _within = runtime.enter();
        let ran = catch_unwind(AssertUnwindSafe(|| receiving.run()));
        if ran.is_err() {
            log.error(&format!("{name}: it has failed, and receives nothing more"));
        }
        // The receiver of this is gone if the end took too long.
        let _ = tell.send(());
    });
    spawned.map(|_| ended).map_err(|why| why.to_string())
}

impl KafkaReceiver {
    /// Whether settled offsets are committed immediately.
    fn commits_at_once(&self) -> bool {
        self.commit_interval_ns.is_none_or(|interval| interval == 0)
    }
}

impl Member {
    /// Stops receiving. The member stays in the group until its messages are settled.
    pub fn close(&self) {
        self.stage.fetch_max(WAITS, Relaxed);
    }

    /// Commits the settled offsets, and leaves the group.
    pub async fn end(mut self) {
        self.stage.store(ENDS, Relaxed);
        if let Some(ended) = self.ended.take() {
            // If the brokers cannot be reached, this takes long. The thread then ends with the
            // process.
            let _ = tokio::time::timeout(END_MAX, ended).await;
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.stage.store(ENDS, Relaxed);
    }
}

/// The state of the thread.
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
        // Dropping the client leaves the group.
    }

    /// Waits for the next message, for [`POLL`] at most.
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

    /// Applies the changes of the assignment that the last poll reported.
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

    /// Handles a message that cannot be decoded or is refused permanently.
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

    /// The headers that components of the pipeline read.
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

    /// Passes a request to the pipeline, or keeps it until the pipeline has room.
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
            // The request was not accepted. The next owner of the partition reads it again.
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
                // The waiting messages keep their tokens, so this does not settle them.
                self.offsets.close();
            }
        }
        let context = self.consumer.context();
        let moved = context.commit(&self.consumer, false);
        self.holding.moved(&moved);
        self.read_again(now);
        self.pause(stage);
    }

    /// Seeks back to messages that were given up, when their delay is over.
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
                // The next attempt is made after the next delay.
                Err(why) => {
                    let voice = &self.consumer.context().voice;
                    let what = format!("{topic}[{number}] is not read again: {why}");
                    voice.tell("seek", &what);
                }
            }
        }
    }

    /// Pauses the partitions that must wait, and resumes the others.
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
