//! Executes one scope, in HAProxy's order.

use net::Now;
use telemetry::program::{self, Direction, Finish, SpanLine, TextId};
use telemetry::record::{Tracer, key_value};

use super::Worker;
use super::details::{details, link_all, log};
use super::fault::Cause;
use super::values::Live;
use crate::logging::Scene;
use crate::stream::{Attached, Stream};

/// The time and the direction of a run.
pub(super) type Moment = (Direction, Now);

impl Worker {
    pub(super) fn trace_scope(
        &mut self,
        scene: &mut Scene<'_>,
        stream: &mut Stream,
        attached: &mut Attached,
        scope: u32,
        moment: Moment,
    ) {
        if attached.stopped {
            return;
        }
        let program = &scene.eval.runtime_config.config.otel[attached.filter].program;
        let number = scope;
        let scope = &program.scopes[scope as usize];
        if let Some(condition) = &scope.condition
            && !scene.eval.holds(stream, condition)
        {
            return;
        }
        if !scope.does_more {
            self.trace_spans(scene, stream, attached, (number, scope), moment);
            if !attached.stopped {
                self.trace_finish(scene, stream, attached, &scope.finish, moment);
            }
            return;
        }
        let (direction, at) = moment;
        for extract in &scope.extracts {
            if attached.trace.context(extract.context).is_none() {
                self.extract(scene, stream, attached, extract, direction);
            }
        }
        if program.require_context && !attached.trace.has_valid_context() {
            // The scope extracts a context and found none: no caller traces this stream.
            if !scope.extracts.is_empty() {
                attached.stopped = true;
                self.count_stream(scene, attached.filter, |streams| &mut streams.stopped);
            }
            return;
        }
        for list in &scope.set_vars {
            let line = scene
                .eval
                .with_scope(stream, true, |facts| list.matching(facts));
            if let Some(assignment) = line {
                scene.eval.assign(stream, assignment);
            }
        }
        self.trace_spans(scene, stream, attached, (number, scope), moment);
        if attached.stopped {
            return;
        }
        for list in &scope.set_var_ctx {
            self.set_var_ctx(scene, stream, attached, list);
        }
        if !scope.updates.is_empty() {
            self.trace_updates(scene, stream, attached, &scope.updates);
        }
        if !scope.logs.is_empty() {
            if attached.tape.is_on() {
                self.tape_logs(scene, stream, attached, (number, scope), moment)
            } else {
                self.trace_logs(scene, stream, attached, (number, scope), at)
            }
        }
        for list in &scope.unset_vars {
            let holds = scene
                .eval
                .with_scope(stream, true, |facts| list.matching(facts).is_some());
            if holds {
                scene
                    .eval
                    .change(stream, list.key, sample::vars::Change::Unset);
            }
        }
        self.trace_finish(scene, stream, attached, &scope.finish, moment);
        let stops = scope.stop.iter().any(|condition| {
            let condition = condition.as_ref();
            condition.is_none_or(|condition| scene.eval.holds(stream, condition))
        });
        if stops {
            attached.tape.stop();
            attached.trace.finish_where(None, at);
            let all = Finish {
                all: true,
                ..Finish::default()
            };
            self.finish_contexts(scene, stream, attached, &all, direction);
            attached.stopped = true;
            self.count_stream(scene, attached.filter, |streams| &mut streams.stopped);
        }
    }

    /// Starts the spans of a scope, until a fault ends the filter's work.
    fn trace_spans(
        &mut self,
        scene: &mut Scene<'_>,
        stream: &mut Stream,
        attached: &mut Attached,
        (number, scope): (u32, &program::Scope),
        moment: Moment,
    ) {
        if attached.tape.is_on()
            && self.tape_spans(scene, stream, attached, (number, scope), moment)
        {
            return;
        }
        for line in &scope.spans {
            self.trace_span(scene, stream, attached, line, moment);
            if attached.stopped {
                return;
            }
        }
    }

    fn trace_logs(
        &mut self,
        scene: &mut Scene<'_>,
        stream: &Stream,
        attached: &mut Attached,
        (number, scope): (u32, &program::Scope),
        at: Now,
    ) {
        let least = self.least_severity(scene, attached);
        let trace = &mut attached.trace;
        let mut faults = Vec::new();
        scene.eval.with_scope(stream, true, |facts| {
            for (place, line) in scope.logs.iter().enumerate() {
                if line.severity >= least {
                    let place = (number, place as u32);
                    let logged = log(trace, line, place, (&mut Live(facts), at));
                    faults.extend(logged.and_then(|logged| logged.fault));
                }
            }
        });
        self.log_faults(scene, attached, number, &faults);
    }

    /// Reports attributes of a scope's log records that failed.
    pub(super) fn log_faults(
        &mut self,
        scene: &mut Scene<'_>,
        attached: &mut Attached,
        scope: u32,
        keys: &[TextId],
    ) {
        for key in keys {
            let cause = Cause::LoggedAttribute { scope, key: *key };
            self.trace_fault(scene, attached, cause);
        }
    }

    fn trace_span(
        &mut self,
        scene: &mut Scene<'_>,
        stream: &mut Stream,
        attached: &mut Attached,
        line: &SpanLine,
        (direction, at): Moment,
    ) {
        let trace = &mut attached.trace;
        let span = match trace.open_span(line.name) {
            Some(span) => span,
            None => {
                let parent = line.parent.map(|of| trace.resolve(of));
                if matches!(parent, Some(None)) {
                    let cause = Cause::NoParent {
                        span: line.name,
                        parent: line.parent.unwrap_or_default(),
                    };
                    return self.trace_fault(scene, attached, cause);
                }
                let head = scene.eval.runtime_config.tracing.filters[attached.filter].head();
                let tracer = Tracer {
                    ids: &mut self.ids,
                    head,
                };
                let started = trace.start_span(
                    line.name,
                    line.kind,
                    parent.flatten(),
                    direction,
                    at,
                    tracer,
                );
                match started {
                    Some(span) => span,
                    None => return,
                }
            }
        };
        if line.evaluates {
            let program = &scene.eval.runtime_config.config.otel[attached.filter].program;
            let fault = scene.eval.with_scope(stream, true, |facts| {
                let trace = &mut attached.trace;
                details(program, trace, line, span, (&mut Live(facts), at))
            });
            if let Some(key) = fault {
                let cause = Cause::Attribute {
                    span: line.name,
                    key,
                };
                self.trace_fault(scene, attached, cause);
            }
        } else {
            link_all(&mut attached.trace, line, span);
        }
        if let Some(inject) = &line.inject
            && !attached.stopped
        {
            self.inject(scene, stream, attached, inject, (span, direction));
        }
    }

    fn trace_updates(
        &mut self,
        scene: &mut Scene<'_>,
        stream: &Stream,
        attached: &mut Attached,
        updates: &[program::Update],
    ) {
        let program = &scene.eval.runtime_config.config.otel[attached.filter].program;
        let filter = attached.filter;
        let now = scene.eval.now;
        let mut tables = std::mem::take(&mut self.tables);
        let mut encoded = std::mem::take(scene.eval.text);
        let mut faults: Vec<Cause> = Vec::new();
        scene.eval.with_scope(stream, true, |facts| {
            for update in updates {
                let condition = update.condition.as_ref();
                if condition.is_some_and(|condition| !condition.matches(facts)) {
                    continue;
                }
                encoded.clear();
                let arena = &mut attached.trace.arena;
                let failed = update.attributes.iter().find(|(key, value)| {
                    let value = value.eval(facts, arena);
                    value
                        .map(|value| {
                            let name = &program.texts[usize::from(*key)];
                            key_value(&mut encoded, 1, name, value, arena);
                        })
                        .is_none()
                });
                let instrument = update.instrument;
                let value = program::int(&update.value, facts);
                match (value, failed) {
                    (Some(value), None) => {
                        tables.record(filter, instrument, value, &encoded, now);
                    }
                    (None, _) => faults.push(Cause::NoNumber { instrument }),
                    (_, Some((key, _))) => faults.push(Cause::MeasuredAttribute {
                        instrument,
                        key: *key,
                    }),
                }
            }
        });
        encoded.clear();
        *scene.eval.text = encoded;
        self.tables = tables;
        for cause in faults {
            self.trace_fault(scene, attached, cause);
        }
    }

    fn trace_finish(
        &mut self,
        scene: &mut Scene<'_>,
        stream: &mut Stream,
        attached: &mut Attached,
        finish: &Finish,
        (direction, at): Moment,
    ) {
        if attached.tape.is_on() {
            // No contexts are extracted for streams that use a tape.
            return attached.tape.finish(finish);
        }
        attached.trace.end_spans(finish, at);
        for context in &finish.contexts {
            self.finish_context(scene, stream, attached, *context, direction);
        }
        if finish.is_wide() {
            self.finish_contexts(scene, stream, attached, finish, direction);
        }
    }
}
