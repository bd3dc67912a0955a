//! Actions that HTTP rules and TCP rules share (manual §4.4): marks on packets, the level of a
//! stream's log line, its priority in queues. Addresses are in `address`.

use config::model::{Number, Side, StreamAction};
use net::Labels;
use sample::{Expr, Scope};

use super::Cx;
use crate::ids::ProxyId;
use crate::stream::Stream;

/// The highest class and the highest offset in a queue; the lowest are the negated values.
const CLASS_MAX: i64 = 2047;
const OFFSET_MS_MAX: i64 = 524_287;

impl Cx<'_> {
    /// Executes the action of a stream's rule; `proxy`: the rule's proxy.
    pub(super) fn stream_action(
        &mut self,
        stream: &mut Stream,
        proxy: ProxyId,
        action: &StreamAction,
    ) {
        match action {
            StreamAction::SetMark(side, number) => {
                let labels = marked(number, |expr| self.eval().int(stream, expr));
                self.label(stream, *side, labels);
            }
            StreamAction::SetTos(side, number) => {
                let labels = of_service(number, |expr| self.eval().int(stream, expr));
                self.label(stream, *side, labels);
            }
            StreamAction::SetAddress(part, expr) => {
                self.set_stream_address(stream, *part, expr);
            }
            StreamAction::Table(action) => {
                // HTTP rules get no more data; rules of `tcp-request content` call `table_action`
                // themselves.
                let _ = self.table_action(stream, action, true);
            }
            StreamAction::SetBandwidthLimit(switch) => {
                self.set_bandwidth_limit(stream, proxy, switch);
            }
            StreamAction::SetLogLevel(level) => stream.log.level = Some(*level),
            StreamAction::SetPriorityClass(expr) => {
                if let Some(class) = self.eval().int(stream, expr) {
                    stream.txn.prio_class = class.clamp(-CLASS_MAX, CLASS_MAX) as i16;
                }
            }
            StreamAction::SetPriorityOffset(expr) => {
                if let Some(offset) = self.eval().int(stream, expr) {
                    stream.txn.prio_offset = offset.clamp(-OFFSET_MS_MAX, OFFSET_MS_MAX) as i32;
                }
            }
        }
    }

    /// Executes the action for a connection that has no stream yet: marks and addresses.
    /// `connection`: as in `set_address`.
    pub(super) fn connection_action(&mut self, action: &StreamAction, connection: bool) {
        let eval = self.eval();
        let value = |expr: &Expr| {
            let eval_int = |scope: &Scope<'_>| expr.eval(scope)?.into_int();
            eval.with_session(eval_int)
        };
        let labels = match action {
            StreamAction::SetMark(_, number) => marked(number, value),
            StreamAction::SetTos(_, number) => of_service(number, value),
            StreamAction::SetAddress(part, expr) => {
                return self.set_address(*part, expr, connection);
            }
            StreamAction::Table(action) => return self.connection_table_action(action),
            // The configuration allows them only in rules of streams.
            StreamAction::SetBandwidthLimit(_)
            | StreamAction::SetLogLevel(_)
            | StreamAction::SetPriorityClass(_)
            | StreamAction::SetPriorityOffset(_) => return,
        };
        self.label_client(labels);
    }

    /// Sets the mark and TOS of the client's packets at once, and of the server's when its
    /// connection is opened.
    fn label(&mut self, stream: &mut Stream, side: Side, labels: Labels) {
        match side {
            Side::Client => self.label_client(labels),
            Side::Server => {
                let own = &mut stream.route.labels;
                own.mark = labels.mark.or(own.mark);
                own.tos = labels.tos.or(own.tos);
            }
        }
    }

    fn label_client(&mut self, labels: Labels) {
        let eval = &mut self.scene.eval;
        if let Some(client) = eval.client {
            eval.io.label(client.sock, labels);
        }
    }
}

fn marked(number: &Number, value: impl FnOnce(&Expr) -> Option<i64>) -> Labels {
    Labels {
        mark: int(number, value).map(|mark| mark as u32),
        tos: None,
    }
}

fn of_service(number: &Number, value: impl FnOnce(&Expr) -> Option<i64>) -> Labels {
    Labels {
        mark: None,
        tos: int(number, value).map(|tos| tos as u8),
    }
}

fn int(number: &Number, value: impl FnOnce(&Expr) -> Option<i64>) -> Option<i64> {
    match number {
        Number::Fixed(number) => Some(i64::from(*number)),
        Number::Computed(expr) => value(expr),
    }
}
