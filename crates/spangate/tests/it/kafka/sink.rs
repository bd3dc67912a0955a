//! A back end: it remembers each span that it has answered for.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard};

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message as _;

use crate::common::eventually;
use crate::common::origin::{Origin, ok};

/// See the module.
pub struct Sink {
    pub at: SocketAddr,
    all: Arc<Mutex<All>>,
    refuses: Arc<AtomicBool>,
}

/// What came.
#[derive(Default)]
pub struct All {
    /// How often each span came, by its trace.
    pub spans: HashMap<u64, HashMap<u8, u64>>,
    pub resources: Vec<Resource>,
}

impl Sink {
    pub fn start() -> Sink {
        let all = Arc::<Mutex<All>>::default();
        let refuses = Arc::<AtomicBool>::default();
        let (own, is_refused) = (Arc::clone(&all), Arc::clone(&refuses));
        let origin = Origin::start(move |request| {
            if is_refused.load(SeqCst) {
                return b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n".to_vec();
            }
            own.lock().expect("what came").take(&request.body);
            ok("")
        });
        Sink {
            at: origin.at,
            all,
            refuses,
        }
    }

    /// Whether it takes nothing.
    pub fn refuse(&self, refuses: bool) {
        self.refuses.store(refuses, SeqCst);
    }

    pub fn all(&self) -> MutexGuard<'_, All> {
        self.all.lock().expect("what came")
    }

    /// Waits for something to be there.
    pub fn until<T>(&self, what: &str, mut ask: impl FnMut(&All) -> Option<T>) -> T {
        eventually(what, || ask(&self.all()))
    }
}

impl All {
    fn take(&mut self, body: &[u8]) {
        let request = ExportTraceServiceRequest::decode(body).expect("spans");
        for of in request.resource_spans {
            self.resources.extend(of.resource);
            for span in of.scope_spans.into_iter().flat_map(|scope| scope.spans) {
                let trace = span.trace_id.last_chunk().expect("16 bytes");
                let trace = self.spans.entry(u64::from_be_bytes(*trace)).or_default();
                *trace.entry(span.span_id[0]).or_default() += 1;
            }
        }
    }

    /// Spans that came more than once, counted each time but the first.
    pub fn repeated(&self) -> u64 {
        let spans = self.spans.values().flat_map(HashMap::values);
        spans.map(|times| times - 1).sum()
    }
}
