//! The origins' own spans, sent to the collector as OTLP in JSON, so that a trace has more than the
//! proxy's spans.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use serde_json::{Value, json};

use super::answer::Plan;
use super::random::Random;

/// Most spans that wait to be sent; more are lost.
const WAITING_MAX: usize = 4096;
/// Most spans of one request.
const BATCH_MAX: usize = 256;
/// Most time that a batch waits for more spans.
const BATCH_TIME: Duration = Duration::from_millis(300);
const PATIENCE: Duration = Duration::from_secs(2);

/// Accepts spans. If the collector does not accept them, they are lost: this is only a demo.
#[derive(Clone)]
pub struct Spans(SyncSender<(&'static str, Value)>);

/// A served request.
pub struct Served<'a> {
    pub origin: &'static str,
    pub method: &'a str,
    pub target: &'a str,
    pub plan: &'a Plan,
    /// The field `traceparent`.
    pub parent: &'a str,
    /// The start, since the UNIX epoch.
    pub began: Duration,
    pub ended: Duration,
}

impl Spans {
    /// Sends the accepted spans to this address, on a separate thread.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub fn start(to: SocketAddr) -> io::Result<Spans> {
        let (sender, receiver) = sync_channel(WAITING_MAX);
        let builder = std::thread::Builder::new().name("demo-spans".to_owned());
        builder.spawn(move || send_all(to, &receiver))?;
        Ok(Spans(sender))
    }

    /// Adds the spans of a request: its own, and one for the work behind it.
    pub fn served(&self, served: &Served<'_>, random: &mut Random) {
        let mut parts = served.parent.split('-');
        let (Some("00"), Some(trace), Some(parent)) = (parts.next(), parts.next(), parts.next())
        else {
            return;
        };
        let own = format!("{:016x}", random.next() | 1);
        let failed = served.plan.status >= 500;
        let span = |id: &str, parent: &str, name: String, kind: u8, part: (f64, f64)| {
            let took = served.ended.saturating_sub(served.began);
            let at = |share: f64| (served.began + took.mul_f64(share)).as_nanos().to_string();
            json!({
                "traceId": trace, "spanId": id, "parentSpanId": parent,
                "name": name, "kind": kind,
                "startTimeUnixNano": at(part.0), "endTimeUnixNano": at(part.1),
            })
        };
        let route = served.plan.route;
        let mut server = span(
            &own,
            parent,
            format!("{} {route}", served.method),
            2,
            (0.0, 1.0),
        );
        server["attributes"] = attributes(&[
            ("http.request.method", served.method.into()),
            ("http.route", route.into()),
            (
                "url.path",
                served.target.split('?').next().unwrap_or_default().into(),
            ),
        ]);
        if let Some(list) = server["attributes"].as_array_mut() {
            let status = json!({"key": "http.response.status_code", "value": {"intValue": served.plan.status}});
            list.push(status);
        }
        let id = format!("{:016x}", random.next() | 1);
        let mut query = span(
            &id,
            &own,
            format!("SELECT {}", table(route)),
            3,
            (0.1, 0.85),
        );
        query["attributes"] = attributes(&[
            ("db.system.name", "postgresql".into()),
            (
                "db.query.text",
                format!("SELECT * FROM {} WHERE id = $1", table(route)),
            ),
        ]);
        if failed {
            server["status"] = json!({"code": 2, "message": "the answer has status 500"});
            query["status"] = json!({"code": 2, "message": "connection reset"});
            query["events"] = json!([{
                "name": "exception", "timeUnixNano": query["endTimeUnixNano"],
                "attributes": attributes(&[
                    ("exception.type", "ConnectionReset".into()),
                    ("exception.message", "the database closed the connection".into()),
                ]),
            }]);
        }
        for one in [server, query] {
            // If the queue is full, the span is lost.
            let _ = self.0.try_send((served.origin, one));
        }
    }
}

fn table(route: &str) -> &'static str {
    match route {
        "/cart" | "/checkout" => "carts",
        "/search" => "search_index",
        _ => "products",
    }
}

fn attributes(pairs: &[(&str, String)]) -> Value {
    let pair = |(key, value): &(&str, String)| json!({"key": key, "value": {"stringValue": value}});
    pairs.iter().map(pair).collect()
}

fn send_all(to: SocketAddr, receiver: &Receiver<(&'static str, Value)>) {
    let mut batch = Vec::new();
    loop {
        match receiver.recv_timeout(BATCH_TIME) {
            Ok(span) => batch.push(span),
            Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) if batch.is_empty() => continue,
            Err(RecvTimeoutError::Timeout) => {}
        }
        while batch.len() < BATCH_MAX
            && let Ok(span) = receiver.try_recv()
        {
            batch.push(span);
        }
        // If the collector is missing or full, the spans are lost.
        let _ = send(to, &request(std::mem::take(&mut batch)));
    }
}

/// An `ExportTraceServiceRequest` in JSON.
fn request(batch: Vec<(&'static str, Value)>) -> String {
    let mut by_origin: Vec<(&str, Vec<Value>)> = Vec::new();
    for (origin, span) in batch {
        match by_origin.iter_mut().find(|(known, _)| *known == origin) {
            Some((_, spans)) => spans.push(span),
            None => by_origin.push((origin, vec![span])),
        }
    }
    let resources = by_origin.into_iter().map(|(origin, spans)| {
        let service = format!("origin-{}", origin.to_lowercase());
        json!({
            "resource": {"attributes": attributes(&[("service.name", service)])},
            "scopeSpans": [{"scope": {"name": "demo"}, "spans": spans}],
        })
    });
    json!({"resourceSpans": resources.collect::<Vec<_>>()}).to_string()
}

fn send(to: SocketAddr, body: &str) -> io::Result<()> {
    let mut stream = TcpStream::connect_timeout(&to, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let length = body.len();
    let head = format!(
        "POST /v1/traces HTTP/1.1\r\nhost: {to}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())?;
    // The content of the answer does not matter: the spans were accepted or are lost.
    let mut answer = [0; 512];
    stream.read(&mut answer).map(drop)
}
