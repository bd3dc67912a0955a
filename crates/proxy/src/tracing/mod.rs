//! The filter `opentelemetry`: which streams are traced, and what their scopes do at which events.
//!
//! A stream that no filter follows costs a check of an empty set of events. A followed stream owns
//! an [`Attached`] for each filter: plain records; the end of the stream decides whether they are
//! kept. `run` executes one scope, `propagation` extracts and injects contexts, `end` decides and
//! encodes, `worker` keeps the records of a worker and hands them over.

mod details;
mod end;
mod fault;
mod propagation;
mod request;
mod run;
mod tape;
mod values;
mod worker;

use std::sync::atomic::Ordering::Relaxed;

use config::model::OtelGroup;
use net::Now;
use telemetry::program::{Direction, Event};
use telemetry::record::{SETTLE_SPANS, Tracer};

use crate::ids::ProxyId;
use crate::logging::Scene;
use crate::runtime_config::Switches;
use crate::stream::{Attached, FOLLOWS_TRIES, Requests, Stream};
pub(crate) use worker::Worker;

impl Worker {
    /// Runs the scopes that are bound to an event of a stream.
    pub fn trace(&mut self, scene: &mut Scene<'_>, stream: &mut Stream, event: Event) {
        if stream.tracing.events & event.bit() != 0 {
            self.trace_event(scene, stream, event);
        }
    }

    /// A stream begins: the frontend's filters decide whether they follow it.
    pub fn begin(&mut self, scene: &mut Scene<'_>, stream: &mut Stream) {
        if !stream.tracing.begun {
            self.ask_filters(scene, stream);
        }
    }

    fn ask_filters(&mut self, scene: &mut Scene<'_>, stream: &mut Stream) {
        stream.tracing.begun = true;
        let filters = scene
            .eval
            .runtime_config
            .tracing
            .of_frontend(stream.frontend);
        self.attach_filters(scene, stream, filters, false);
        self.trace_request(scene, stream);
        self.trace(scene, stream, Event::StreamStart);
        self.trace(scene, stream, Event::ClientSessionStart);
    }

    /// `option tracing`: starts the request's span.
    fn trace_request(&mut self, scene: &mut Scene<'_>, stream: &mut Stream) {
        if stream.tracing.events & FOLLOWS_TRIES == 0 || !stream.txn.is_http {
            return;
        }
        self.each_follower(scene, stream, |worker, scene, stream, attached| {
            worker.begin_request(scene, stream, attached);
        });
    }

    /// A connection to a server is used or opened for this request.
    pub fn begin_tries(&mut self, scene: &mut Scene<'_>, stream: &mut Stream) {
        let at = scene.eval.io.clock();
        self.each_follower(scene, stream, |worker, scene, stream, attached| {
            worker.begin_try(scene, stream, attached, at);
        });
    }

    /// A try has failed; `status` is the server's, if it sent one.
    pub fn fail_tries(&mut self, scene: &mut Scene<'_>, stream: &mut Stream, status: Option<u16>) {
        let at = scene.eval.io.clock();
        self.each_follower(scene, stream, |_, _, stream, attached| {
            request::end_try(attached, stream, at, status);
        });
    }

    /// Runs work for each filter that records the requests of a stream.
    fn each_follower(
        &mut self,
        scene: &mut Scene<'_>,
        stream: &mut Stream,
        mut work: impl FnMut(&mut Worker, &mut Scene<'_>, &mut Stream, &mut Attached),
    ) {
        for place in 0..stream.tracing.attached.len() {
            let Some(mut attached) = stream.tracing.attached[place].take() else {
                continue;
            };
            if scene.eval.runtime_config.config.otel[attached.filter]
                .program
                .follows_requests
            {
                work(self, scene, stream, &mut attached);
            }
            stream.tracing.attached[place] = Some(attached);
        }
    }

    /// A stream has its backend: the backend's filters decide whether they follow it.
    pub fn begin_backend(&mut self, scene: &mut Scene<'_>, stream: &mut Stream) {
        let switched = stream.backend != stream.frontend;
        if switched {
            let filters = scene.eval.runtime_config.tracing.of_backend(stream.backend);
            self.attach_filters(scene, stream, filters, true);
        }
        self.trace(scene, stream, Event::BackendSet);
        if switched {
            self.trace(scene, stream, Event::ClientSessionStart);
        }
    }

    fn attach_filters(
        &mut self,
        scene: &mut Scene<'_>,
        stream: &mut Stream,
        filters: &[u32],
        of_backend: bool,
    ) {
        for filter in filters {
            let filter = *filter as usize;
            let state = &scene.eval.runtime_config.tracing.filters[filter];
            let switches = &state.switches;
            if switches.disabled.load(Relaxed) {
                self.count_stream(scene, filter, |streams| &mut streams.passed_while_disabled);
                continue;
            }
            let rate = switches.rate.load(Relaxed);
            if rate < Switches::ALL && scene.eval.ambient.random() >> 32 >= rate {
                self.count_stream(scene, filter, |streams| &mut streams.passed_by_rate);
                continue;
            }
            self.count_stream(scene, filter, |streams| &mut streams.attached);
            let program = &scene.eval.runtime_config.config.otel[filter].program;
            let mut attached = self.spare.pop().unwrap_or_default();
            attached.filter = filter;
            attached.stopped = false;
            attached.requests = Requests::default();
            attached.trace.begin(program);
            attached.tape.begin(program.is_taped);
            attached.events = if of_backend {
                program.events & !Event::frontends()
            } else {
                program.events
            };
            stream.tracing.events |= attached.events;
            stream.tracing.attached.push(Some(attached));
            if program.follows_requests {
                stream.tracing.events |= FOLLOWS_TRIES;
            }
            if let Some(var) = state.uuid {
                self.set_uuid(scene, stream, var);
            }
            if let Some(idle_ms) = program.idle_ms {
                let at_ms = scene.eval.now.ms().saturating_add(idle_ms);
                self.watch(at_ms, stream, filter);
            }
        }
    }

    #[inline(never)]
    fn trace_event(&mut self, scene: &mut Scene<'_>, stream: &mut Stream, event: Event) {
        if event.is_http() && !stream.txn.is_http {
            return;
        }
        stream.tracing.events &= !event.bit();
        let at = scene.eval.io.clock();
        for place in 0..stream.tracing.attached.len() {
            let Some(mut attached) = stream.tracing.attached[place].take() else {
                continue;
            };
            if attached.events & event.bit() != 0 {
                attached.events &= !event.bit();
                self.trace_scopes(scene, stream, &mut attached, event, at);
            }
            stream.tracing.attached[place] = Some(attached);
        }
    }

    /// Runs `on-idle-timeout` of one filter, which recurs.
    fn trace_idle(&mut self, scene: &mut Scene<'_>, stream: &mut Stream, filter: usize) {
        let at = scene.eval.io.clock();
        for place in 0..stream.tracing.attached.len() {
            let Some(mut attached) = stream.tracing.attached[place].take() else {
                continue;
            };
            if attached.filter == filter {
                self.trace_scopes(scene, stream, &mut attached, Event::IdleTimeout, at);
            }
            stream.tracing.attached[place] = Some(attached);
        }
    }

    fn trace_scopes(
        &mut self,
        scene: &mut Scene<'_>,
        stream: &mut Stream,
        attached: &mut Attached,
        event: Event,
        at: Now,
    ) {
        let program = &scene.eval.runtime_config.config.otel[attached.filter].program;
        let direction = event.direction();
        for number in program.scopes_of(event) {
            let scope = &program.scopes[*number as usize];
            let is_plain = scope.is_plain && !attached.stopped;
            let is_run = is_plain
                && if attached.tape.is_on() {
                    attached.tape.run_plain(*number, scope, direction, at)
                } else {
                    let head = scene.eval.runtime_config.tracing.filters[attached.filter].head();
                    let tracer = Tracer {
                        ids: &mut self.ids,
                        head,
                    };
                    let trace = &mut attached.trace;
                    trace.run_plain(scope, direction, at, tracer)
                };
            if !is_run {
                self.trace_scope(scene, stream, attached, *number, (direction, at));
            }
        }
        if attached.trace.spans().len() >= SETTLE_SPANS {
            self.settle_trace(scene, attached);
        }
    }

    /// Hands over the ended spans of a long stream.
    #[cold]
    fn settle_trace(&mut self, scene: &Scene<'_>, attached: &mut Attached) {
        let program = &scene.eval.runtime_config.config.otel[attached.filter].program;
        if program.policies.is_empty() && !program.follows_requests {
            let outbox = &mut self.outboxes[attached.filter];
            attached.trace.settle(program, outbox);
            self.schedule_flush(scene, attached.filter);
        }
    }

    /// `otel-group` in a rule of a proxy.
    pub fn trace_group(
        &mut self,
        scene: &mut Scene<'_>,
        stream: &mut Stream,
        (proxy, group): (ProxyId, OtelGroup),
        direction: Direction,
    ) {
        let filter = scene.eval.runtime_config.proxy(proxy).otel[group.filter];
        let program = &scene.eval.runtime_config.config.otel[filter].program;
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
            let at: Now = scene.eval.io.clock();
            self.trace_scope(scene, stream, &mut attached, *scope, (direction, at));
        }
        stream.tracing.attached[place] = Some(attached);
    }
}
