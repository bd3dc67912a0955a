//! `capture`: keeps samples and header fields for the logs (manual §4.4).

use config::model::Proxy;

use super::Cx;
use crate::stream::Stream;

impl Stream {
    /// Keeps the captured fields of the request (`capture request header`). A response of the proxy
    /// itself has the slots of the response too, and leaves them empty.
    #[inline]
    pub fn capture_request_fields(&mut self, frontend: &Proxy) {
        for capture in &frontend.capture_request {
            let value = self.request.find(capture.header.as_bytes()).last();
            let value = value.map(|(_, value)| &value[..value.len().min(capture.len)]);
            self.txn.captured_request.push(value);
        }
        for _ in &frontend.capture_response {
            self.txn.captured_response.push(None);
        }
    }

    /// Keeps the captured fields of the response (`capture response header`).
    #[inline]
    pub fn capture_response_fields(&mut self, frontend: &Proxy) {
        for (slot, capture) in frontend.capture_response.iter().enumerate() {
            if let Some((_, value)) = self.response.find(capture.header.as_bytes()).last() {
                let kept = &value[..value.len().min(capture.len)];
                self.txn.captured_response.set(slot, kept);
            }
        }
    }
}

impl Cx<'_> {
    /// Keeps a sample for the logs, truncated to the size of its slot.
    pub fn capture(
        &mut self,
        stream: &mut Stream,
        of_response: bool,
        expr: &sample::Expr,
        slot: usize,
    ) {
        let frontend = self.eval().runtime_config.proxy(stream.frontend);
        let lines = if of_response {
            &frontend.capture_response
        } else {
            &frontend.capture_request
        };
        // A rule of a backend may name a slot that this frontend does not have (manual §4.4
        // capture).
        let Some(line) = lines.get(slot) else { return };
        let mut text = std::mem::take(self.scene.eval.text);
        let found = self
            .eval()
            .with_scope(stream, true, |scope| expr.append_text(scope, &mut text));
        if found {
            let kept = &text[..text.len().min(line.len)];
            let slots = if of_response {
                &mut stream.txn.captured_response
            } else {
                &mut stream.txn.captured_request
            };
            slots.set(slot, kept);
        }
        text.clear();
        *self.scene.eval.text = text;
    }
}
