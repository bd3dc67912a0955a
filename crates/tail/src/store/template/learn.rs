//! Making a template of a span, and the steps in which spans are compared with it.

use super::{Hole, Layout, Learner, Op, Parts, SPAN_BYTES_MAX, Step, Template, Then};
use otlp::scan::Keys;
use otlp::scan::span;
use otlp::wire::{Reader, Value};

/// Operations of a template.
pub const OPS_MAX: usize = 96;
/// Operations of identifiers, name and times.
const HEAD_OPS: usize = 8;
/// Bytes that an operation takes with its step, about.
const OP_BYTES: u64 = 128;

/// What is gathered while a span is read.
#[derive(Default)]
struct Draft {
    bytes: Vec<u8>,
    ops: Vec<Op>,
    holes: Vec<Hole>,
    /// From here on bytes are in no operation yet.
    fixed_from: usize,
    /// Where the name is, counted without trace_state, and bytes of fields so far, counted so.
    name_at: u32,
    len: u32,
    /// A field came that is not of the same length in all spans, other than trace_state.
    varies: bool,
    /// Keys of fields that may come once only, each a bit.
    once: u128,
}

impl Template {
    /// Makes one for spans like this one, which is well formed and whose trace identifier is left
    /// out; none where that does not pay. Gives the bytes that it takes too. `keys` are those of
    /// attributes that policies name.
    pub fn learn(message: &[u8], keys: &Keys, learn: &mut Learner) -> Option<(Template, u64)> {
        if message.len() > SPAN_BYTES_MAX {
            return None;
        }
        let facts = span(message, &mut ()).ok()?;
        let mut draft = Draft::default();
        let mut reader = Reader::new(message);
        loop {
            let from = reader.rest();
            let Some(field) = reader.field().ok()? else {
                break;
            };
            let field_bytes = &from[..from.len() - reader.rest().len()];
            draft.field(field.key, field.value, field_bytes, keys)?;
        }
        draft.end_fixed();
        let held = draft.bytes.len() as u64 * 2 + draft.ops.len() as u64 * OP_BYTES;
        let mut parts = Parts {
            bytes: draft.bytes.into(),
            ops: draft.ops.into(),
            head: None,
            steps: Box::default(),
            holes: draft.holes.into(),
        };
        parts.find_steps();
        let layout = Layout::new(message, &parts.ops, &parts.holes, &mut learn.plans);
        let laid_out = layout.as_ref().map_or(0, Layout::held_bytes);
        let template = Template {
            layout,
            parts: Box::new(parts),
            name: (draft.name_at, facts.name.len() as u32),
            has_state: draft.once & 1 << 0x1a != 0,
            kind: facts.kind,
            status: facts.status,
            flags: facts.flags,
            window: 0,
        };
        Some((template, held + laid_out))
    }
}

impl Parts {
    /// Makes the steps: operations that can be done at once are put together.
    #[cold]
    pub(super) fn find_steps(&mut self) {
        let mut steps = Vec::new();
        let mut ops = &*self.ops;
        self.head = self.find_head();
        if self.head.is_some() {
            ops = &ops[HEAD_OPS..];
        }
        while let Some((first, after)) = ops.split_first() {
            let steady = ops.iter().take_while(|op| self.is_steady(op)).count();
            if steady >= 2 {
                let (run, after) = ops.split_at(steady);
                self.push_run(&mut steps, run);
                ops = after;
                continue;
            }
            ops = after;
            match (first, after.first()) {
                (Op::Fixed(from, to), Some(next)) if !matches!(next, Op::Fixed(..)) => {
                    steps.push(self.step((*from, *to), next.then()));
                    ops = &after[1..];
                }
                (Op::Fixed(from, to), _) => steps.push(self.step((*from, *to), Then::Nothing)),
                (op, _) => steps.push(self.step((0, 0), op.then())),
            }
        }
        self.steps = steps.into();
    }

    /// Operations that can be done as one, at the beginning.
    fn find_head(&self) -> Option<Step> {
        let head = self.ops.first_chunk::<HEAD_OPS>()?;
        let [
            Op::Fixed(0, 2),
            Op::Id,
            Op::Fixed(2, 4),
            Op::Parent,
            Op::Fixed(4, to),
            Op::Start,
            Op::Fixed(from, end),
            Op::Since,
        ] = head
        else {
            return None;
        };
        // Before an identifier or a time stands its key, at least.
        (end - from == 1).then(|| self.step((4, *to), Then::Start))
    }

    /// It is nearly always the same bytes.
    fn is_steady(&self, op: &Op) -> bool {
        match op {
            Op::Fixed(..) => true,
            Op::Attribute(_, _, hole) => {
                let hole = self.holes.get(usize::from(*hole));
                hole.is_some_and(|hole| !hole.is_alone())
            }
            _ => false,
        }
    }

    /// A step for all of these at once, and those that are done if that does not fit. What is
    /// written is the same, so that this may change while there are records.
    fn push_run(&self, steps: &mut Vec<Step>, run: &[Op]) {
        let ends = |op: &Op| match op {
            Op::Fixed(from, to) | Op::Attribute(from, to, _) => (*from, *to),
            _ => (0, 0),
        };
        let (from, to) = (ends(&run[0]).0, ends(&run[run.len() - 1]).1);
        let values = run.iter().filter(|op| matches!(op, Op::Attribute(..)));
        let then = Then::Run {
            done: run.len() as u8,
            values: values.count() as u8,
        };
        steps.push(self.step((from, to), then));
        steps.extend(run.iter().map(|op| match op {
            Op::Fixed(from, to) => self.step((*from, *to), Then::Nothing),
            op => self.step((0, 0), op.then()),
        }));
    }

    fn step(&self, (from, to): (u32, u32), then: Then) -> Step {
        let fixed = self.bytes.get(from as usize..to as usize);
        let fixed = fixed.unwrap_or_default();
        let mut head = [0; 8];
        let len = fixed.len().min(8);
        head[..len].copy_from_slice(&fixed[..len]);
        Step {
            head: u64::from_le_bytes(head),
            mask: u64::MAX.checked_shr(64 - 8 * len as u32).unwrap_or(0),
            from,
            len: to - from,
            then,
        }
    }
}

impl Op {
    /// What a step does for it after its fixed bytes.
    fn then(&self) -> Then {
        match self {
            Op::Fixed(..) => Then::Nothing,
            Op::Id => Then::Id,
            Op::Parent => Then::Parent,
            Op::Start => Then::Start,
            Op::End => Then::End,
            Op::Since => Then::Since,
            Op::Attribute(_, _, hole) => Then::Attribute(*hole),
            Op::Bytes(key) => Then::Bytes(*key),
        }
    }
}

impl Draft {
    /// Takes a field over.
    fn field(&mut self, key: u32, value: Value<'_>, bytes: &[u8], keys: &Keys) -> Option<()> {
        // Of fields that come twice the last one counts, which no template knows of.
        if matches!(key, 0x12 | 0x1a | 0x22 | 0x2a | 0x39 | 0x41) {
            let bit = 1 << key;
            if self.once & bit != 0 {
                return None;
            }
            self.once |= bit;
        }
        // The name is found by its place.
        let late_name = key == 0x2a && self.varies || key == 0x1a && self.once & 1 << 0x2a != 0;
        if late_name {
            return None;
        }
        self.varies |= matches!(key, 0x4a | 0x5a | 0x6a);
        self.len += if key == 0x1a { 0 } else { bytes.len() as u32 };
        // The bytes of the field before what is kept, and how the rest is kept. What is compared
        // must be one whole field each time, so that what fits is well formed: keys and lengths are
        // written with as few bytes as can be.
        let (head, op) = match (key, value) {
            // The trace's identifier, again.
            (0x0a, _) => return None,
            (0x12, Value::Bytes(id)) if id.len() == 8 => (2, Op::Id),
            (0x22, Value::Bytes(id)) if id.len() == 8 => (2, Op::Parent),
            (0x39, _) => (1, Op::Start),
            (0x41, _) if self.once & 1 << 0x39 != 0 => (1, Op::Since),
            (0x41, _) => (1, Op::End),
            (0x4a, _) if let Some(hole) = Hole::new(bytes, keys) => {
                return self.attribute(hole, bytes);
            }
            // Attributes that are long, trace_state, events and links.
            (0x4a | 0x1a | 0x5a | 0x6a, Value::Bytes(_)) => {
                (bytes[0] == key as u8).then_some(())?;
                return self.push(b"", Op::Bytes(key as u8));
            }
            _ => {
                if let (0x2a, Value::Bytes(name)) = (key, value) {
                    self.name_at = self.len - name.len() as u32;
                }
                self.bytes.extend_from_slice(bytes);
                return Some(());
            }
        };
        (bytes.len() == head + 8).then_some(())?;
        self.push(&bytes[..head], op)
    }

    /// Bytes that are the same in every span, and an operation after them.
    fn push(&mut self, fixed: &[u8], op: Op) -> Option<()> {
        self.bytes.extend_from_slice(fixed);
        self.end_fixed();
        self.ops.push(op);
        (self.ops.len() < OPS_MAX).then_some(())
    }

    fn attribute(&mut self, hole: Hole, bytes: &[u8]) -> Option<()> {
        self.end_fixed();
        let from = self.bytes.len() as u32;
        self.bytes.extend_from_slice(bytes);
        self.fixed_from = self.bytes.len();
        let op = Op::Attribute(from, self.fixed_from as u32, self.holes.len() as u16);
        self.holes.push(hole);
        self.push(b"", op)
    }

    fn end_fixed(&mut self) {
        if self.bytes.len() > self.fixed_from {
            let op = Op::Fixed(self.fixed_from as u32, self.bytes.len() as u32);
            self.ops.push(op);
            self.fixed_from = self.bytes.len();
        }
    }
}
