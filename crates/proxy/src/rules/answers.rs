//! Actions that answer a request themselves, or end it without an answer (manual §4.4): `return`, `deny`, `tarpit`,
//! `silent-drop`, `early-hint`. Redirects are put together in [`crate::reply`].

use config::model::{HttpAction, HttpRule, Reply};
use http::FieldName;
use net::Driver;
use net::timers::NEVER_MS;
use sample::LogFormat;
use telemetry::Event;

use crate::engine::{Core, Cx};
use crate::running::deadline;
use crate::stream::{Phase, Stream};

impl Core {
    /// `return`, `deny`. `end`: who ended the stream, and when.
    pub(super) fn answer_rule<D: Driver>(
        &mut self,
        cx: &mut Cx<'_, D>,
        stream: &mut Stream,
        reply: &Reply,
        end: [u8; 2],
    ) {
        stream.ended_by(end[0], end[1]);
        stream.request_processed(cx.now());
        self.reply(cx, stream, reply);
    }

    /// `silent-drop`
    pub(super) fn vanish<D: Driver>(
        &mut self,
        cx: &mut Cx<'_, D>,
        stream: &mut Stream,
        rst_ttl: Option<u8>,
        end: [u8; 2],
    ) {
        stream.ended_by(end[0], end[1]);
        if let Some(client) = stream.client {
            cx.driver.vanish(client, rst_ttl);
        }
        self.cut(cx, stream);
    }

    /// `tarpit`: its answer comes later, with what the rule at `place` says.
    pub(super) fn tarpit<D: Driver>(
        &mut self,
        cx: &mut Cx<'_, D>,
        stream: &mut Stream,
        place: (usize, usize),
    ) {
        self.trace(cx, stream, Event::HttpTarpitRequest);
        stream.tarpit = Some(place);
        stream.phase = Phase::Tarpit;
        if let Some(client) = stream.client {
            let wait_ms = stream.tarpit_ms(cx.running);
            self.set_deadline(client, deadline(cx.now(), wait_ms));
        }
    }

    /// A tarpitted client has waited long enough.
    pub fn end_tarpit<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &mut Stream) {
        if let Some(client) = stream.client {
            self.set_deadline(client, NEVER_MS);
        }
        stream.phase = Phase::Transfer;
        self.answer_tarpit(cx, stream);
    }

    /// Answers a tarpitted request with what its rule says.
    fn answer_tarpit<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &mut Stream) {
        let Some((proxy, place)) = stream.tarpit else {
            return;
        };
        stream.ended_by(b'P', b'T');
        stream.txn.timing.queued_ms = Some(cx.now().ms());
        if let HttpAction::Tarpit(reply) = &cx.running.proxy(proxy).http_request[place].action {
            let reply: &Reply = reply;
            self.reply(cx, stream, reply);
        }
    }

    /// `early-hint`: a field of a 103 response, which leaves with the last of several such rules in a row (RFC 8297). A client
    /// of HTTP/1.0 knows no interim responses.
    pub(super) fn early_hint<D: Driver>(
        &mut self,
        cx: &mut Cx<'_, D>,
        stream: &mut Stream,
        name: &FieldName,
        value: &LogFormat,
        next: Option<&HttpRule>,
    ) {
        let Some(client) = stream.client.filter(|_| !stream.old_client) else {
            return;
        };
        let mut hints = std::mem::take(&mut self.rules.hints);
        if hints.is_empty() {
            hints.extend_from_slice(b"HTTP/1.1 103 Early Hints\r\n");
        }
        hints.extend_from_slice(name.as_bytes());
        hints.extend_from_slice(b": ");
        self.render(cx, stream, value, &mut hints);
        hints.extend_from_slice(b"\r\n");
        // One with a condition begins a response of its own: it may not hold.
        let goes_on = next.is_some_and(|rule| {
            rule.condition.is_none() && matches!(rule.action, HttpAction::EarlyHint { .. })
        });
        if !goes_on {
            hints.extend_from_slice(b"\r\n");
            stream.txn.bytes_out += hints.len() as u64;
            self.send(cx, client, &hints, &[]);
            hints.clear();
        }
        self.rules.hints = hints;
    }
}
