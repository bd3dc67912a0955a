//! `capture`: samples that are kept for the logs (manual §4.4).

use net::Driver;

use crate::engine::{Core, Cx};
use crate::stream::Stream;

impl Core {
    /// Keeps a sample for the logs, as far as its slot has room.
    pub fn capture<D: Driver>(
        &mut self,
        cx: &Cx<'_, D>,
        stream: &mut Stream,
        of_response: bool,
        expr: &sample::Expr,
        slot: usize,
    ) {
        let frontend = cx.running.proxy(stream.frontend);
        let lines = match of_response {
            false => &frontend.capture_request,
            true => &frontend.capture_response,
        };
        // A rule of a backend may name a slot that this frontend does not have (manual §4.4 capture).
        let Some(line) = lines.get(slot) else { return };
        let mut text = std::mem::take(&mut self.text);
        let found = self.with_scope(cx, stream, true, |scope| expr.append_text(scope, &mut text));
        if found == Some(true) {
            let kept = &text[..text.len().min(line.len)];
            let slots = match of_response {
                true => &mut stream.txn.captured_response,
                false => &mut stream.txn.captured_request,
            };
            slots.set(slot, kept);
        }
        text.clear();
        self.text = text;
    }
}
