//! The filter `opentelemetry`: which streams are traced, and what their scopes do at which moments.
//!
//! A stream that no filter follows costs a look at an empty set of events. One that is followed owns an [`Attached`] for each
//! filter: plain records that its end decides about. `run` is one scope, `carry` brings contexts in and out, `end` decides
//! and encodes, `worker` is what the worker keeps and hands over.

mod carry;
mod details;
mod end;
mod fault;
mod request;
mod run;
mod state;
mod tape;
mod values;
mod worker;

use std::sync::atomic::Ordering::Relaxed;

use config::model::OtelGroup;
use net::{Driver, Now};
use telemetry::Trace;
use telemetry::program::{Direction, Event};
use telemetry::record::{SETTLE_SPANS, Tape};

use crate::engine::{Core, Cx};
use crate::stream::Stream;
use crate::world::next_random;
pub(crate) use state::Filters;
pub use state::{Counters, Filter, FilterExport, Logging, Switches};
pub(crate) use worker::Worker;

/// What a filter recorded of a stream.
#[derive(Debug, Default)]
pub(crate) struct Attached {
    /// Its index among all filters.
    pub filter: usize,
    pub trace: Trace,
    /// What is not recorded yet, because nobody knows whether it will be needed.
    pub tape: Tape,
    /// A fault or `otel-stop` ended the filter's work for this stream.
    pub stopped: bool,
    /// Events with scopes that have not come yet: it sees each once, also where another filter began later.
    pub events: u32,
    /// `option tracing`
    pub requests: request::Requests,
}

/// Beside the events in their set: tries have spans of their own.
const FOLLOWS_TRIES: u32 = 1 << 31;
const _: () =
    assert!((telemetry::program::Event::ALL.len() as u32) < FOLLOWS_TRIES.trailing_zeros());

/// What a stream's filters follow.
#[derive(Debug, Default)]
pub(crate) struct Tracing {
    /// Events with scopes that have not come yet ([`Event::bit`]).
    pub events: u32,
    /// One that is at work is taken out.
    pub attached: Vec<Option<Box<Attached>>>,
    /// The frontend's filters were asked.
    pub begun: bool,
    /// The server's side began ([`Event::ServerSessionStart`]).
    pub server_began: bool,
}

impl Tracing {
    /// Back to a fresh state, the memory kept. What was attached was taken at the stream's end.
    pub fn reset(&mut self) {
        debug_assert!(self.attached.is_empty());
        (self.events, self.begun, self.server_began) = (0, false, false);
    }
}

impl Core {
    /// A stream comes to a moment that scopes may be bound to: most have none.
    #[inline(always)]
    pub fn trace<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &mut Stream, event: Event) {
        if stream.tracing.events & event.bit() != 0 {
            self.trace_event(cx, stream, event);
        }
    }

    /// It comes to several at once, in this order.
    #[inline(always)]
    pub fn trace_all<D: Driver, const N: usize>(
        &mut self,
        cx: &mut Cx<'_, D>,
        stream: &mut Stream,
        events: [Event; N],
    ) {
        let any = events.iter().fold(0, |set, event| set | event.bit());
        if stream.tracing.events & any != 0 {
            for event in events {
                self.trace(cx, stream, event);
            }
        }
    }

    /// A stream begins: the frontend's filters take it or leave it.
    #[inline(always)]
    pub fn trace_begin<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &mut Stream) {
        if cx.running.tracing.any && !stream.tracing.begun {
            self.ask_filters(cx, stream);
        }
    }

    fn ask_filters<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &mut Stream) {
        stream.tracing.begun = true;
        let filters = &cx.running.tracing.of_frontend[stream.frontend];
        self.attach_filters(cx, stream, filters, false);
        self.trace_request(cx, stream);
        let events = [Event::StreamStart, Event::ClientSessionStart];
        self.trace_all(cx, stream, events);
    }

    /// `option tracing`: the request's span begins.
    fn trace_request<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &mut Stream) {
        if stream.tracing.events & FOLLOWS_TRIES == 0 || !stream.txn.is_http {
            return;
        }
        self.each_follower(cx, stream, |core, cx, stream, attached| {
            core.begin_request(cx, stream, attached);
        });
    }

    /// A connection to a server is used or made for this request.
    #[inline(always)]
    pub fn trace_try<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &mut Stream) {
        if stream.tracing.events & FOLLOWS_TRIES != 0 {
            let at = cx.driver.clock();
            self.each_follower(cx, stream, |core, cx, stream, attached| {
                core.begin_try(cx, stream, attached, at);
            });
        }
    }

    /// A try has failed, with the server's status where it gave one.
    #[inline(always)]
    pub fn trace_failed_try<D: Driver>(
        &mut self,
        cx: &mut Cx<'_, D>,
        stream: &mut Stream,
        status: Option<u16>,
    ) {
        if stream.tracing.events & FOLLOWS_TRIES != 0 {
            let at = cx.driver.clock();
            self.each_follower(cx, stream, |_, _, stream, attached| {
                request::end_try(attached, stream, at, status);
            });
        }
    }

    /// Works on each filter of a stream that follows its requests.
    fn each_follower<D: Driver>(
        &mut self,
        cx: &mut Cx<'_, D>,
        stream: &mut Stream,
        mut work: impl FnMut(&mut Core, &mut Cx<'_, D>, &mut Stream, &mut Attached),
    ) {
        for place in 0..stream.tracing.attached.len() {
            let Some(mut attached) = stream.tracing.attached[place].take() else {
                continue;
            };
            if cx.running.config.otel[attached.filter]
                .program
                .follows_requests
            {
                work(self, cx, stream, &mut attached);
            }
            stream.tracing.attached[place] = Some(attached);
        }
    }

    /// A stream has its backend, whose filters take it or leave it.
    #[inline(always)]
    pub fn trace_backend<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &mut Stream) {
        if cx.running.tracing.any {
            self.ask_backend_filters(cx, stream);
        }
    }

    fn ask_backend_filters<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &mut Stream) {
        let switched = stream.backend != stream.frontend;
        if switched {
            let filters = &cx.running.tracing.of_backend[stream.backend];
            self.attach_filters(cx, stream, filters, true);
        }
        self.trace(cx, stream, Event::BackendSet);
        if switched {
            self.trace(cx, stream, Event::ClientSessionStart);
        }
    }

    /// The server's side stands.
    #[inline(always)]
    pub fn trace_server<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &mut Stream) {
        stream.tracing.server_began = true;
        let events = [Event::ServerSessionStart, Event::TcpResponse];
        self.trace_all(cx, stream, events);
    }

    fn attach_filters<D: Driver>(
        &mut self,
        cx: &mut Cx<'_, D>,
        stream: &mut Stream,
        filters: &[u32],
        of_backend: bool,
    ) {
        for filter in filters {
            let filter = *filter as usize;
            let state = &cx.running.tracing.filters[filter];
            let switches = &state.switches;
            if switches.disabled.load(Relaxed) {
                self.count_stream(cx, filter, |streams| &mut streams.passed_while_disabled);
                continue;
            }
            let rate = switches.rate.load(Relaxed);
            if rate < Switches::ALL && next_random(&self.random) >> 32 >= rate {
                self.count_stream(cx, filter, |streams| &mut streams.passed_by_rate);
                continue;
            }
            self.count_stream(cx, filter, |streams| &mut streams.attached);
            let program = &cx.running.config.otel[filter].program;
            let mut attached = self.tracing.spare.pop().unwrap_or_default();
            attached.filter = filter;
            attached.stopped = false;
            attached.requests = request::Requests::default();
            attached.trace.begin(program);
            attached.tape.begin(program.is_taped);
            attached.events = match of_backend {
                true => program.events & !Event::frontends(),
                false => program.events,
            };
            stream.tracing.events |= attached.events;
            stream.tracing.attached.push(Some(attached));
            if program.follows_requests {
                stream.tracing.events |= FOLLOWS_TRIES;
            }
            if let Some(var) = state.uuid {
                self.set_uuid(cx, stream, var);
            }
            if let Some(idle_ms) = program.idle_ms {
                let at_ms = cx.now().ms().saturating_add(idle_ms);
                self.tracing.watch(at_ms, stream, filter);
            }
        }
    }

    #[inline(never)]
    fn trace_event<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &mut Stream, event: Event) {
        if event.is_http() && !stream.txn.is_http {
            return;
        }
        stream.tracing.events &= !event.bit();
        let at = cx.driver.clock();
        for place in 0..stream.tracing.attached.len() {
            let Some(mut attached) = stream.tracing.attached[place].take() else {
                continue;
            };
            if attached.events & event.bit() != 0 {
                attached.events &= !event.bit();
                self.trace_scopes(cx, stream, &mut attached, event, at);
            }
            stream.tracing.attached[place] = Some(attached);
        }
    }

    /// `on-idle-timeout` comes to one filter, again and again.
    fn trace_idle<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &mut Stream, filter: usize) {
        let at = cx.driver.clock();
        for place in 0..stream.tracing.attached.len() {
            let Some(mut attached) = stream.tracing.attached[place].take() else {
                continue;
            };
            if attached.filter == filter {
                self.trace_scopes(cx, stream, &mut attached, Event::IdleTimeout, at);
            }
            stream.tracing.attached[place] = Some(attached);
        }
    }

    fn trace_scopes<D: Driver>(
        &mut self,
        cx: &mut Cx<'_, D>,
        stream: &mut Stream,
        attached: &mut Attached,
        event: Event,
        at: Now,
    ) {
        let program = &cx.running.config.otel[attached.filter].program;
        let direction = event.direction();
        for number in program.scopes_of(event) {
            let scope = &program.scopes[*number as usize];
            let is_plain = scope.is_plain && !attached.stopped;
            let is_run = is_plain
                && match attached.tape.is_on() {
                    true => attached.tape.run_plain(*number, scope, direction, at),
                    false => {
                        let head = cx.running.tracing.filters[attached.filter].head();
                        let ids = &mut self.tracing.ids;
                        let trace = &mut attached.trace;
                        trace.run_plain(scope, direction, at, (ids, head))
                    }
                };
            if !is_run {
                self.trace_scope(cx, stream, attached, *number, (direction, at));
            }
        }
        if attached.trace.spans().len() >= SETTLE_SPANS {
            self.settle_trace(cx, attached);
        }
    }

    /// A long stream: what is over of it is handed over.
    #[cold]
    fn settle_trace<D: Driver>(&mut self, cx: &Cx<'_, D>, attached: &mut Attached) {
        let program = &cx.running.config.otel[attached.filter].program;
        if program.policies.is_empty() && !program.follows_requests {
            let outbox = &mut self.tracing.outboxes[attached.filter];
            attached.trace.settle(program, outbox);
            self.schedule_flush(cx, attached.filter);
        }
    }

    /// `otel-group` of a rule of a proxy.
    pub fn trace_group<D: Driver>(
        &mut self,
        cx: &mut Cx<'_, D>,
        stream: &mut Stream,
        (proxy, group): (usize, OtelGroup),
        direction: Direction,
    ) {
        let filter = cx.running.proxy(proxy).otel[group.filter];
        let program = &cx.running.config.otel[filter].program;
        let is_meant = |attached: &Option<Box<Attached>>| {
            attached
                .as_ref()
                .is_some_and(|attached| attached.filter == filter)
        };
        let Some(place) = stream.tracing.attached.iter().position(is_meant) else {
            return;
        };
        let Some(mut attached) = stream.tracing.attached[place].take() else {
            return;
        };
        for scope in &program.groups[group.group].scopes {
            let at: Now = cx.driver.clock();
            self.trace_scope(cx, stream, &mut attached, *scope, (direction, at));
        }
        stream.tracing.attached[place] = Some(attached);
    }
}
