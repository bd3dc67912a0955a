//! A received message.

use std::sync::Arc;

use bytes::Bytes;
use rdkafka::Message as _;
use rdkafka::message::{BorrowedMessage, Headers as _};

use crate::run::kafka::decode::Header;
use crate::run::kafka::offsets::Partition;

/// The most headers of a message that are read.
const HEADERS_MAX: usize = 256;

/// See the module.
pub struct Received {
    pub partition: Partition,
    pub offset: i64,
    pub payload: Bytes,
    pub headers: Vec<Header>,
}

impl Received {
    /// `topic` is the topic of the previous message, which most messages share.
    pub fn of(message: &BorrowedMessage<'_>, topic: &mut Arc<str>) -> Received {
        if **topic != *message.topic() {
            *topic = message.topic().into();
        }
        let headers = message.headers().into_iter();
        let headers = headers.flat_map(|headers| headers.iter().take(HEADERS_MAX));
        let headers = headers.map(|header| {
            let value = header.value.unwrap_or_default();
            (header.key.to_owned(), value.to_vec())
        });
        Received {
            partition: Partition {
                topic: Arc::clone(topic),
                number: message.partition(),
            },
            offset: message.offset(),
            payload: Bytes::copy_from_slice(message.payload().unwrap_or_default()),
            headers: headers.collect(),
        }
    }
}
