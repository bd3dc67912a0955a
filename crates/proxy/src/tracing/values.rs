//! The source of the values of a scope's lines: samples that are used at once, samples that are
//! recorded on a tape, or a tape.
//!
//! One iteration over a line serves all three, so that values are recorded and read in the same
//! order.

use sample::{Condition, Scope};
use telemetry::program::{Evaluated, FirstMatch, Time, Value};
use telemetry::record::{Arena, Tape, Text};

/// A source of values.
pub(super) trait Values {
    /// Whether spans are changed.
    const APPLIES: bool;

    /// The next value; `make` evaluates it.
    fn next(
        &mut self,
        arena: &mut Arena,
        make: impl FnOnce(&Scope<'_>, &mut Arena) -> Option<Evaluated>,
    ) -> Option<Evaluated>;

    /// A value of a line.
    fn value(&mut self, value: &Value, arena: &mut Arena) -> Option<Evaluated> {
        self.next(arena, |facts, arena| value.eval(facts, arena))
    }

    /// A value of a line as a text.
    fn text(&mut self, value: &Value, arena: &mut Arena) -> Text {
        let text =
            |facts: &Scope<'_>, arena: &mut Arena| Some(Evaluated::Text(value.text(facts, arena)));
        match self.next(arena, text) {
            Some(Evaluated::Text(text)) => text,
            _ => Text::EMPTY,
        }
    }

    /// A value of a line as a number, if it is one.
    fn int(&mut self, arena: &mut Arena, value: &Value) -> Option<i64> {
        match self.next(arena, |facts, _| value.int(facts).map(Evaluated::Int))? {
            Evaluated::Int(number) => Some(number),
            _ => None,
        }
    }

    /// Whether a condition holds; without a condition it always does.
    fn holds(&mut self, arena: &mut Arena, condition: Option<&Condition>) -> bool {
        let Some(condition) = condition else {
            return true;
        };
        let holds = |facts: &Scope<'_>, _: &mut Arena| {
            condition.matches(facts).then_some(Evaluated::Bool(true))
        };
        self.next(arena, holds).is_some()
    }

    /// The first line whose condition holds.
    fn matching<'l, K, V>(
        &mut self,
        arena: &mut Arena,
        list: &'l FirstMatch<K, V>,
    ) -> Option<&'l V> {
        if let [(None, only)] = &list.lines[..] {
            return Some(only);
        }
        let found = self.next(arena, |facts, _| {
            let place = list.place(facts)?;
            Some(Evaluated::Int(place as i64))
        });
        let Some(Evaluated::Int(place)) = found else {
            return None;
        };
        let (_, value) = list.lines.get(usize::try_from(place).ok()?)?;
        Some(value)
    }

    /// The time that a sample gives, nanoseconds since the UNIX epoch; none if it gives none.
    fn moment(&mut self, arena: &mut Arena, time: Option<&Time>) -> Option<u64> {
        let time = time?;
        let number = u64::try_from(self.int(arena, &time.value)?).ok()?;
        number.checked_mul(time.unit_ns)
    }
}

/// Samples that are used at once.
pub(super) struct Live<'a, 'b>(pub &'a Scope<'b>);

impl Values for Live<'_, '_> {
    const APPLIES: bool = true;

    #[inline(always)]
    fn next(
        &mut self,
        arena: &mut Arena,
        make: impl FnOnce(&Scope<'_>, &mut Arena) -> Option<Evaluated>,
    ) -> Option<Evaluated> {
        make(self.0, arena)
    }
}

/// Samples that are recorded on a tape.
pub(super) struct Recorder<'a, 'b> {
    pub facts: &'a Scope<'b>,
    pub tape: &'a mut Tape,
}

impl Values for Recorder<'_, '_> {
    const APPLIES: bool = false;

    #[inline(always)]
    fn next(
        &mut self,
        arena: &mut Arena,
        make: impl FnOnce(&Scope<'_>, &mut Arena) -> Option<Evaluated>,
    ) -> Option<Evaluated> {
        let value = make(self.facts, arena);
        self.tape.value(value);
        value
    }
}

/// The values of a tape.
pub(super) struct Player<'a>(pub std::slice::Iter<'a, Option<Evaluated>>);

impl Values for Player<'_> {
    const APPLIES: bool = true;

    #[inline(always)]
    fn next(
        &mut self,
        _: &mut Arena,
        _: impl FnOnce(&Scope<'_>, &mut Arena) -> Option<Evaluated>,
    ) -> Option<Evaluated> {
        self.0.next().copied().flatten()
    }
}
