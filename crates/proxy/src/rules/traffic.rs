//! Actions that HTTP rules and TCP rules share (manual §4.4): marks on packets, the level of a stream's log line, its place
//! in the queues; addresses are in `address`.

use config::model::{Number, Side, StreamAction};
use net::{ConnId, Driver, Labels};
use sample::{Expr, Scope};

use crate::engine::{Core, Cx};
use crate::stream::Stream;

/// The highest class and the highest offset in a queue; the lowest are as far below 0.
const CLASS_MAX: i64 = 2047;
const OFFSET_MS_MAX: i64 = 524_287;

impl Core {
    /// Does what the rule of a stream says. `answer`: bytes of a server that are no HTTP, in `tcp-response content`.
    pub(super) fn stream_action<D: Driver>(
        &mut self,
        cx: &mut Cx<'_, D>,
        stream: &mut Stream,
        action: &StreamAction,
        answer: Option<&[u8]>,
    ) {
        let value = |expr: &Expr| {
            let eval = |scope: &Scope<'_>| expr.eval(scope)?.into_int();
            self.with_answer_scope(cx, stream, true, answer, eval)
                .flatten()
        };
        match action {
            StreamAction::SetMark(side, number) => {
                let labels = marked(number, value);
                self.label(cx, stream, *side, labels);
            }
            StreamAction::SetTos(side, number) => {
                let labels = of_service(number, value);
                self.label(cx, stream, *side, labels);
            }
            StreamAction::SetAddress(part, expr) => {
                self.set_stream_address(cx, stream, *part, expr);
            }
            StreamAction::SetLogLevel(level) => stream.log_level = Some(*level),
            StreamAction::SetPriorityClass(expr) => {
                if let Some(class) = value(expr) {
                    stream.txn.prio_class = class.clamp(-CLASS_MAX, CLASS_MAX) as i16;
                }
            }
            StreamAction::SetPriorityOffset(expr) => {
                if let Some(offset) = value(expr) {
                    stream.txn.prio_offset = offset.clamp(-OFFSET_MS_MAX, OFFSET_MS_MAX) as i32;
                }
            }
            _ => debug_assert!(false, "an action without an implementation was accepted"),
        }
    }

    /// The same of a connection that has no stream yet: its marks, its addresses. `connection`: as in `set_address`.
    pub(super) fn connection_action<D: Driver>(
        &mut self,
        cx: &mut Cx<'_, D>,
        conn: ConnId,
        action: &StreamAction,
        connection: bool,
    ) {
        let value = |expr: &Expr| {
            let eval = |scope: &Scope<'_>| expr.eval(scope)?.into_int();
            self.with_session(cx, conn, eval).flatten()
        };
        let labels = match action {
            StreamAction::SetMark(_, number) => marked(number, value),
            StreamAction::SetTos(_, number) => of_service(number, value),
            StreamAction::SetAddress(part, expr) => {
                return self.set_address(cx, conn, *part, expr, connection);
            }
            _ => return debug_assert!(false, "an action of streams was accepted"),
        };
        cx.driver.label(conn, labels);
    }

    /// Labels the client's packets at once, the server's when its connection is made.
    fn label<D: Driver>(
        &mut self,
        cx: &mut Cx<'_, D>,
        stream: &mut Stream,
        side: Side,
        labels: Labels,
    ) {
        match (side, stream.client) {
            (Side::Client, Some(client)) => cx.driver.label(client, labels),
            (Side::Client, None) => {}
            (Side::Server, _) => {
                stream.labels.mark = labels.mark.or(stream.labels.mark);
                stream.labels.tos = labels.tos.or(stream.labels.tos);
            }
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
