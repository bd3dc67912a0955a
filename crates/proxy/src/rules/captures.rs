//! `capture`: keeps samples for the logs (manual §4.4).

use super::Cx;
use crate::stream::Stream;

impl Cx<'_> {
    /// Keeps a sample for the logs, truncated to the size of its slot.
    pub fn capture(
        &mut self,
        stream: &mut Stream,
        of_response: bool,
        expr: &sample::Expr,
        slot: usize,
    ) {
        let frontend = self.eval().running.proxy(stream.frontend);
        let lines = match of_response {
            false => &frontend.capture_request,
            true => &frontend.capture_response,
        };
        // A rule of a backend may name a slot that this frontend does not have (manual §4.4 capture).
        let Some(line) = lines.get(slot) else { return };
        let mut text = std::mem::take(self.scene.eval.text);
        let found = self
            .eval()
            .with_scope(stream, true, |scope| expr.append_text(scope, &mut text));
        if found {
            let kept = &text[..text.len().min(line.len)];
            let slots = match of_response {
                true => &mut stream.txn.captured_response,
                false => &mut stream.txn.captured_request,
            };
            slots.set(slot, kept);
        }
        text.clear();
        *self.scene.eval.text = text;
    }
}
