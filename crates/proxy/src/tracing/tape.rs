//! Tapes. If the sampling decision is made at the end of a stream, the work of its scopes is
//! recorded in a short form, and played back when it is needed.

use telemetry::program::{Program, Scope, SpanLine};
use telemetry::record::{Run, Tracer};

use super::Worker;
use super::details::{details, link_all, log};
use super::run::Moment;
use super::values::{Player, Recorder};
use crate::logging::Scene;
use crate::stream::{Attached, Stream};

impl Worker {
    /// Records the spans of a scope on the tape. False if they must be created at once; then
    /// everything recorded before has been played.
    pub(super) fn tape_spans(
        &mut self,
        scene: &mut Scene<'_>,
        stream: &Stream,
        attached: &mut Attached,
        (number, scope): (u32, &Scope),
        moment: Moment,
    ) -> bool {
        let program = &scene.eval.runtime_config.config.otel[attached.filter].program;
        let (direction, at) = moment;
        let Attached { trace, tape, .. } = attached;
        let before = tape.mark();
        let mut write = |line: &SpanLine| {
            if !tape.span(line, direction) {
                return false;
            }
            if !line.evaluates {
                return true;
            }
            let fault = scene.eval.with_scope(stream, true, |facts| {
                let mut recorder = Recorder { facts, tape };
                details(program, trace, line, 0, (&mut recorder, at))
            });
            fault.is_none()
        };
        let written = scope.spans.iter().all(&mut write) && tape.run(number, direction, at, before);
        if !written {
            attached.tape.rewind(before);
            self.play(scene, attached);
        }
        written
    }

    /// Records the log records of a scope on the tape, after its spans.
    pub(super) fn tape_logs(
        &mut self,
        scene: &mut Scene<'_>,
        stream: &Stream,
        attached: &mut Attached,
        (number, scope): (u32, &Scope),
        (_, at): Moment,
    ) {
        let least = self.least_severity(scene, attached);
        let mut faults = Vec::new();
        let records = scene.eval.with_scope(stream, true, |facts| {
            let Attached { trace, tape, .. } = &mut *attached;
            let mut recorder = Recorder { facts, tape };
            let lines = scope.logs.iter().enumerate();
            let lines = lines.filter(|(_, line)| line.severity >= least);
            lines
                .filter_map(|(place, line)| {
                    let place = (number, place as u32);
                    let logged = log(trace, line, place, (&mut recorder, at))?;
                    faults.extend(logged.fault);
                    Some(())
                })
                .count()
        });
        attached.tape.logged(records as u32);
        self.log_faults(scene, attached, number, &faults);
    }

    /// Log records with a lower severity are not created.
    pub(super) fn least_severity(&self, scene: &Scene<'_>, attached: &Attached) -> u8 {
        let export = &scene.eval.runtime_config.tracing.filters[attached.filter].export;
        export.severity_min
    }

    /// Creates the records of a tape; later ones are created at once.
    pub(super) fn play(&mut self, scene: &Scene<'_>, attached: &mut Attached) {
        let program = &scene.eval.runtime_config.config.otel[attached.filter].program;
        let (runs, values, first) = attached.tape.take();
        attached.trace.name_next_trace(first);
        for run in &runs {
            let rest = values.get(run.values as usize..).unwrap_or_default();
            let mut player = Player(rest.iter());
            self.play_run(scene, attached, (program, run), &mut player);
        }
        attached.tape.give_back(runs, values);
    }

    fn play_run(
        &mut self,
        scene: &Scene<'_>,
        attached: &mut Attached,
        (program, run): (&Program, &Run),
        player: &mut Player<'_>,
    ) {
        let scope = &program.scopes[run.scope as usize];
        let head = scene.eval.runtime_config.tracing.filters[attached.filter].head();
        let least = self.least_severity(scene, attached);
        let trace = &mut attached.trace;
        for line in &scope.spans {
            let open = trace.open_span(line.name);
            let span = open.or_else(|| {
                let parent = line.parent.and_then(|of| trace.resolve(of));
                let tracer = Tracer {
                    ids: &mut self.ids,
                    head,
                };
                let (direction, at) = (run.direction, run.at);
                trace.start_span(line.name, line.kind, parent, direction, at, tracer)
            });
            // There is room, because a tape holds less than a stream may have.
            let Some(span) = span else { continue };
            if line.evaluates {
                details(program, trace, line, span, (player, run.at));
            } else {
                link_all(trace, line, span);
            }
        }
        if run.logs {
            for (place, line) in scope.logs.iter().enumerate() {
                if line.severity >= least {
                    let place = (run.scope, place as u32);
                    log(trace, line, place, (player, run.at));
                }
            }
        }
        trace.end_spans(&scope.finish, run.at);
        if run.stops {
            trace.finish_where(None, run.at);
        }
    }
}
