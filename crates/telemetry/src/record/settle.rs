//! Hands over the finished records of a long stream while the stream continues.

use super::{Next, Outbox, Owner, Trace};
use crate::program::{Evaluated, Program};
use crate::record::{Kept, Text};

impl Trace {
    /// Encodes and removes finished records; open spans stay. For streams without a decision at
    /// their end.
    pub fn settle(&mut self, program: &Program, out: &mut Outbox) {
        let old = std::mem::take(self);
        self.begin(program);
        (self.spans_dropped, self.logs_dropped) = (old.spans_dropped, old.logs_dropped);
        let before = out.spans.records;
        let mut over = 0;
        for (place, span) in old.spans.iter().enumerate() {
            if span.end_mono_ns == 0 {
                self.adopt(&old, place);
                continue;
            }
            over += 1;
            if span.is_recorded {
                old.encode_one(program, span, Kept::default(), out);
            }
        }
        out.counts.spans_started += over;
        out.counts.spans_sampled_out += over - u64::from(out.spans.records - before);
        out.counts.logs_started += old.logs.len() as u64;
        old.encode_logs(program, out);
        for (context, kept) in old.contexts.iter().zip(&mut self.contexts) {
            *kept = context.map(|mut context| {
                for text in [&mut context.state, &mut context.baggage] {
                    *text = self.arena.text(old.arena.get(*text));
                }
                context
            });
        }
    }

    /// Takes an open span over from the old records.
    fn adopt(&mut self, old: &Trace, place: usize) {
        let mut span = old.spans[place];
        for text in [&mut span.status_text, &mut span.state, &mut span.baggage] {
            *text = self.arena.text(old.arena.get(*text));
        }
        let (attributes, events, links) = (span.first_attribute, span.first_event, span.first_link);
        (span.first_attribute, span.last_attribute) = (0, 0);
        (span.first_event, span.last_event) = (0, 0);
        (span.first_link, span.last_link) = (0, 0);
        let new = self.spans.len();
        self.open[usize::from(span.name)] = new as u16 + 1;
        self.spans.push(span);
        self.adopt_attributes(old, attributes, Owner::Span(new));
        let mut next = events;
        while let Some(place) = next.checked_sub(1) {
            let event = &old.events[place as usize];
            if let Some(own) = self.event(new, event.name, event.wall_ns) {
                self.adopt_attributes(old, event.first_attribute, Owner::Event(own));
            }
            next = event.next;
        }
        let mut next = links;
        while let Some(place) = next.checked_sub(1) {
            let link = &old.links[place as usize];
            let state = self.copied(old, link.state);
            if let Some(own) = self.link(new, link.to, state) {
                self.adopt_attributes(old, link.first_attribute, Owner::Link(own));
            }
            next = link.next;
        }
    }

    fn adopt_attributes(&mut self, old: &Trace, first: Next, owner: Owner) {
        let mut next = first;
        while let Some(place) = next.checked_sub(1) {
            let attribute = &old.attributes[place as usize];
            let value = match attribute.value {
                Evaluated::Text(text) => Evaluated::Text(self.copied(old, text)),
                value => value,
            };
            self.attribute(owner, attribute.key, value);
            next = attribute.next;
        }
    }

    fn copied(&mut self, old: &Trace, text: Text) -> Text {
        self.arena.text(old.arena.get(text))
    }
}
