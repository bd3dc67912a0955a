//! An exporter: a producer. A message counts as sent when the broker has confirmed it.

use std::sync::Arc;

use export::client::Outcome;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{
    BaseRecord, DeliveryResult, NoCustomPartitioner, ProducerContext, ThreadedProducer,
};
use rdkafka::statistics::Statistics;
use rdkafka::{ClientContext, Message as _};
use tokio::sync::oneshot;

use super::client::{self, Voice};
use super::messages::{self, Message};
use super::{Counts, properties};
use crate::config::components::exporters::kafka::KafkaExporter;
use crate::run::Log;
use crate::run::data::Batch;

/// The result of sending a message.
type Delivered = Result<(), RDKafkaErrorCode>;

/// A producer and its settings.
pub struct Producer {
    producer: ThreadedProducer<Context>,
    settings: KafkaExporter,
    /// Its counts.
    pub counts: Arc<Counts>,
}

/// The messages of a batch that are still to be sent.
#[derive(Debug, Default)]
pub struct Pending {
    messages: Vec<Message>,
    /// Spans that were refused permanently, and the reason.
    refused: u64,
    why: String,
}

/// The callbacks of the client.
struct Context(Voice);

impl ClientContext for Context {
    fn log(&self, level: RDKafkaLogLevel, kind: &str, line: &str) {
        self.0.client_line(level, kind, line);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        self.0.error(&error, reason);
    }

    fn stats(&self, statistics: Statistics) {
        self.0.statistics(&statistics);
    }
}

impl ProducerContext<NoCustomPartitioner> for Context {
    type DeliveryOpaque = Box<oneshot::Sender<Delivered>>;

    fn delivery(&self, result: &DeliveryResult<'_>, told: Self::DeliveryOpaque) {
        let (message, delivered) = match result {
            Ok(message) => (message, Ok(())),
            Err((why, message)) => (message, Err(code(why))),
        };
        let bytes = message.payload_len() as u64;
        let counts = &self.0.counts;
        counts.partition(message.topic(), message.partition(), |own| {
            match delivered {
                Ok(()) => own.records += 1,
                Err(_) => own.failed += 1,
            }
            own.bytes += bytes;
        });
        // The receiver of this is gone if the process ends.
        let _ = told.send(delivered);
    }
}

fn code(why: &KafkaError) -> RDKafkaErrorCode {
    why.rdkafka_error_code().unwrap_or(RDKafkaErrorCode::Fail)
}

/// Whether the brokers will never accept the message.
fn is_permanent(why: RDKafkaErrorCode) -> bool {
    matches!(
        why,
        RDKafkaErrorCode::MessageSizeTooLarge
            | RDKafkaErrorCode::InvalidTopic
            | RDKafkaErrorCode::InvalidRecord
            | RDKafkaErrorCode::InvalidMessageSize
    )
}

impl Producer {
    /// Starts a producer for the exporter with this name.
    ///
    /// # Errors
    /// The client refuses a property.
    pub fn start(name: &str, settings: &KafkaExporter, log: &Log) -> Result<Producer, String> {
        let counts = Arc::<Counts>::default();
        let voice = Voice::new(format!("exporter '{name}'"), log, &counts);
        let config = client::config(properties::producer(settings));
        let producer = config.create_with_context(Context(voice));
        Ok(Producer {
            producer: producer.map_err(|why| why.to_string())?,
            settings: settings.clone(),
            counts,
        })
    }

    /// Makes one attempt to send a batch, or the rest of it after earlier attempts.
    pub async fn produce(&self, batch: &Batch, pending: &mut Option<Pending>) -> Outcome {
        let pending = match pending {
            Some(pending) => pending,
            None => match messages::messages(&self.settings, batch) {
                Ok(messages) => pending.insert(Pending {
                    messages,
                    ..Pending::default()
                }),
                Err(why) => return Outcome::Refused(why),
            },
        };
        let last = self.attempt(batch, pending).await;
        match (last, pending.refused) {
            (Some(why), _) => Outcome::Busy { after: None, why },
            (None, refused) if refused > 0 && refused >= batch.records => {
                Outcome::Refused(std::mem::take(&mut pending.why))
            }
            (None, rejected) => Outcome::Taken {
                rejected,
                message: std::mem::take(&mut pending.why),
            },
        }
    }

    /// Sends the remaining messages. Returns why some of them still remain.
    async fn attempt(&self, batch: &Batch, pending: &mut Pending) -> Option<String> {
        let headers = messages::headers(&self.settings, batch.origin.as_deref());
        let headers = (!headers.is_empty()).then(|| {
            headers
                .iter()
                .fold(OwnedHeaders::new(), |all, (name, value)| {
                    all.insert(Header {
                        key: name,
                        value: Some(value),
                    })
                })
        });
        let sent: Vec<_> = std::mem::take(&mut pending.messages)
            .into_iter()
            .map(|message| {
                let told = self.enqueue(&message, headers.clone());
                (message, told)
            })
            .collect();
        let mut last = None;
        for (message, told) in sent {
            let delivered = match told {
                // The client reports the delivery of each message.
                Ok(told) => told.await.unwrap_or(Err(RDKafkaErrorCode::PurgeQueue)),
                Err(why) => Err(why),
            };
            let Err(why) = delivered else { continue };
            let what = format!("topic {}: {why}", message.topic);
            if is_permanent(why) {
                pending.refused += message.spans;
                pending.why = what;
            } else {
                pending.messages.push(message);
                last = Some(what);
            }
        }
        last
    }

    /// Passes a message to the client. The returned channel reports its delivery.
    fn enqueue(
        &self,
        message: &Message,
        headers: Option<OwnedHeaders>,
    ) -> Result<oneshot::Receiver<Delivered>, RDKafkaErrorCode> {
        let (tell, told) = oneshot::channel();
        let mut record =
            BaseRecord::with_opaque_to(&message.topic, Box::new(tell)).payload(&message.value[..]);
        if let Some(key) = &message.key {
            record = record.key(&key[..]);
        }
        if let Some(headers) = headers {
            record = record.headers(headers);
        }
        let sent = self.producer.send(record);
        sent.map(|()| told).map_err(|(why, _)| code(&why))
    }
}
