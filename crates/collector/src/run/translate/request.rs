//! An `ExportTraceServiceRequest` that is put together span by span: spans of one resource and
//! scope stand together.

use std::collections::HashMap;

use otlp::write;

use super::span::Span;

/// See the module.
#[derive(Default)]
pub struct Request {
    resources: Places<Places<Vec<u8>>>,
}

/// What belongs to messages, in the order in which they came.
#[derive(Default)]
struct Places<T> {
    all: Vec<(Vec<u8>, T)>,
    places: HashMap<Vec<u8>, usize>,
    last: usize,
}

impl<T: Default> Places<T> {
    fn of(&mut self, message: &[u8]) -> &mut T {
        // Spans that stand together mostly belong together.
        if !matches!(self.all.get(self.last), Some((own, _)) if own == message) {
            self.last = match self.places.get(message) {
                Some(place) => *place,
                None => {
                    self.places.insert(message.to_vec(), self.all.len());
                    self.all.push((message.to_vec(), T::default()));
                    self.all.len() - 1
                }
            };
        }
        &mut self.all[self.last].1
    }
}

impl Request {
    /// Adds a span, given the messages `Resource` and `InstrumentationScope`.
    pub fn add(&mut self, resource: &[u8], scope: &[u8], span: &Span<'_>) {
        span.write(self.resources.of(resource).of(scope));
    }

    /// The request.
    pub fn finish(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for (resource, scopes) in &self.resources.all {
            write::message(&mut out, 1, |out| {
                write::bytes(out, 1, resource);
                for (scope, spans) in &scopes.all {
                    write::message(out, 2, |out| {
                        write::bytes(out, 1, scope);
                        out.extend_from_slice(spans);
                    });
                }
            });
        }
        out
    }
}
