//! Faults of a filter: counts them, and logs a few to the filter's `log` targets.

use std::sync::atomic::Ordering::Relaxed;

use telemetry::Program;
use telemetry::program::{Ref, SpanSlot, TextId};

use super::Worker;
use crate::logging::Scene;
use crate::runtime_config::Logging;
use crate::stream::Attached;

/// How many lines one filter and worker may log within [`WINDOW_MS`].
const LINES_MAX: usize = 3;
/// The window of [`LINES_MAX`], milliseconds.
const WINDOW_MS: u64 = 10_000;
/// The longest message, bytes.
const MESSAGE_BYTES_MAX: usize = 512;
/// The severity of a fault that ends the filter's work for its stream, and of one that loses one
/// output.
const ERROR: u8 = 3;
const WARNING: u8 = 4;

/// The cause of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// A span's parent is neither open nor extracted.
    NoParent { span: SpanSlot, parent: Ref },
    /// An attribute of a span, or of a link, an event or an exception of it, has a binary value.
    Attribute { span: SpanSlot, key: TextId },
    /// The value for an instrument is not a number.
    NoNumber { instrument: u32 },
    /// An attribute of a measurement has a binary value.
    MeasuredAttribute { instrument: u32, key: TextId },
    /// An attribute of a log record has a binary value.
    LoggedAttribute { scope: u32, key: TextId },
    /// A stream's texts exceed their limit.
    TextsCut,
}

impl Cause {
    fn write(self, program: &Program, out: &mut Vec<u8>) {
        let span = |slot: SpanSlot| name(&program.spans, usize::from(slot));
        let scope = |number: u32| {
            let scope = program.scopes.get(number as usize);
            scope.map_or(&b""[..], |scope| scope.name.as_bytes())
        };
        let instrument = |number: u32| {
            let instrument = program.instruments.get(number as usize);
            instrument.map_or(&b""[..], |instrument| instrument.name.as_bytes())
        };
        let parts: [&[u8]; 5] = match self {
            Cause::NoParent { span: of, parent } => [
                b"span '",
                span(of),
                b"' is not started: its parent '",
                match parent {
                    Ref { span: Some(of), .. } => span(of),
                    Ref { context, .. } => {
                        let context = context.map(usize::from);
                        let context = context.and_then(|slot| program.contexts.get(slot));
                        context.map_or(b"", |context| context.name.as_bytes())
                    }
                },
                b"' is neither an open span nor an extracted context",
            ],
            Cause::Attribute { span: of, key } => [
                b"attribute '",
                program.text(key),
                b"' of span '",
                span(of),
                b"' is left out: its value is binary",
            ],
            Cause::NoNumber { instrument: of } => [
                b"instrument '",
                instrument(of),
                b"' records nothing: its value is not a number",
                b"",
                b"",
            ],
            Cause::MeasuredAttribute {
                instrument: of,
                key,
            } => [
                b"instrument '",
                instrument(of),
                b"' records nothing: its attribute '",
                program.text(key),
                b"' is binary",
            ],
            Cause::LoggedAttribute { scope: of, key } => [
                b"attribute '",
                program.text(key),
                b"' of a log record of scope '",
                scope(of),
                b"' is left out: its value is binary",
            ],
            Cause::TextsCut => [
                b"texts of a stream are left empty: it has more than 1 MiB of them",
                b"",
                b"",
                b"",
                b"",
            ],
        };
        for part in parts {
            escape(part, out);
        }
    }
}

fn name(names: &[Box<str>], place: usize) -> &[u8] {
    names.get(place).map_or(b"", |name| name.as_bytes())
}

/// Writes control bytes as `#` and two digits, as in logs, so that a message stays one line.
fn escape(text: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for byte in text {
        if byte.is_ascii_control() {
            let digits = [
                DIGITS[usize::from(byte >> 4)],
                DIGITS[usize::from(byte & 15)],
            ];
            out.push(b'#');
            out.extend_from_slice(&digits);
        } else {
            out.push(*byte);
        }
    }
}

/// Limits the logged faults of a filter: each cause once per window, and only a few causes.
#[derive(Debug, Default)]
pub(crate) struct Limiter {
    began_ms: Option<u64>,
    told: [Option<Cause>; LINES_MAX],
    untold: u64,
    /// The last applied count of [`crate::runtime_config::Filter::reset_errors`].
    resets: u64,
}

impl Limiter {
    /// Whether to log a fault: the number of faults that were suppressed since the last logged one;
    /// none if this one is suppressed.
    fn admits(&mut self, cause: Cause, now_ms: u64) -> Option<u64> {
        let over = |began| now_ms.saturating_sub(began) >= WINDOW_MS;
        if self.began_ms.is_none_or(over) {
            (self.began_ms, self.told) = (Some(now_ms), [None; LINES_MAX]);
        }
        let known = self.told.contains(&Some(cause));
        match self.told.iter_mut().find(|place| place.is_none()) {
            Some(place) if !known => {
                *place = Some(cause);
                Some(std::mem::take(&mut self.untold))
            }
            _ => {
                self.untold = self.untold.saturating_add(1);
                None
            }
        }
    }

    fn follow(&mut self, resets: u64) {
        if self.resets != resets {
            *self = Limiter {
                resets,
                ..Limiter::default()
            };
        }
    }
}

/// A message: prefix, cause, and the number of suppressed faults.
fn message(id: &str, cause: Cause, program: &Program, untold: u64) -> Vec<u8> {
    let suffix = match untold {
        0 => String::new(),
        untold => format!(" ({untold} more suppressed)"),
    };
    let mut text = b"[OTEL]: [".to_vec();
    escape(id.as_bytes(), &mut text);
    text.extend_from_slice(b"] ");
    cause.write(program, &mut text);
    let mut room = MESSAGE_BYTES_MAX
        .saturating_sub(suffix.len())
        .min(text.len());
    // Does not cut a UTF-8 character.
    while text.get(room).is_some_and(|byte| byte & 0xc0 == 0x80) {
        room -= 1;
    }
    text.truncate(room);
    text.extend_from_slice(suffix.as_bytes());
    text
}

impl Worker {
    /// Counts a fault and logs it.
    #[cold]
    #[inline(never)]
    pub(super) fn trace_fault(
        &mut self,
        scene: &mut Scene<'_>,
        attached: &mut Attached,
        cause: Cause,
    ) {
        let index = attached.filter;
        let filter = &scene.eval.runtime_config.tracing.filters[index];
        let hard = filter.fault();
        attached.stopped |= hard;
        let severity = if hard { ERROR } else { WARNING };
        match filter.switches.logging() {
            Logging::Off => return,
            Logging::DontlogNormal if !hard => return,
            Logging::On | Logging::DontlogNormal => {}
        }
        let limiter = &mut self.limiters[index];
        limiter.follow(filter.counters.resets.load(Relaxed));
        let Some(untold) = limiter.admits(cause, scene.eval.now.ms()) else {
            filter.counters.lines_suppressed.fetch_add(1, Relaxed);
            return;
        };
        let config = &scene.eval.runtime_config.config.otel[index];
        let text = message(&config.id, cause, &config.program, untold);
        let Scene { eval, logging } = scene;
        logging.emit_for_filter(eval, index, severity, &text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Cause = Cause::NoNumber { instrument: 0 };

    #[test]
    fn a_cause_is_told_once_and_few_causes_are() {
        let of = |instrument| Cause::NoNumber { instrument };
        let mut limiter = Limiter::default();
        let told: Vec<_> = (0..5).map(|n| limiter.admits(of(n), 0)).collect();
        assert_eq!(told, [Some(0), Some(0), Some(0), None, None]);
        assert_eq!(limiter.admits(FIRST, WINDOW_MS - 1), None);
        assert_eq!(limiter.admits(FIRST, WINDOW_MS), Some(3));
        assert_eq!(limiter.admits(FIRST, WINDOW_MS), None);
        limiter.follow(1);
        assert_eq!(limiter.admits(FIRST, WINDOW_MS), Some(0));
    }

    #[test]
    fn a_message_is_one_bounded_line() {
        let named = |name: &str| {
            let mut program = Program::default();
            program.instruments.push(telemetry::metrics::Instrument {
                name: name.to_owned(),
                kind: telemetry::metrics::Kind::Gauge,
                description: String::new(),
                unit: String::new(),
                aggregation: telemetry::metrics::Aggregation::Default,
            });
            let text = message("a\nb", FIRST, &program, 2);
            String::from_utf8(text).expect("text")
        };
        assert_eq!(
            named("x\u{7f}"),
            "[OTEL]: [a#0Ab] instrument 'x#7F' records nothing: its value is not a number (2 more suppressed)"
        );
        for long in ["ä".repeat(600), format!("x{}", "ä".repeat(600))] {
            let text = named(&long);
            assert!((MESSAGE_BYTES_MAX - 1..=MESSAGE_BYTES_MAX).contains(&text.len()));
            assert!(text.ends_with("ä (2 more suppressed)"));
        }
    }
}
