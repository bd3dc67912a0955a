//! `pause`: the rules of a stream go on later (manual §4.4).

use config::model::Pause;
use net::Driver;
use net::timers::NEVER_MS;

use super::RuleSet;
use super::http::Flow;
use crate::engine::{Core, Cx};
use crate::running::deadline;
use crate::stream::Stream;

/// The longest pause that an expression may ask for, milliseconds: HAProxy's longest time.
const PAUSE_MS_MAX: i64 = i32::MAX as i64;

impl Core {
    /// The connection whose message waits has the deadline; one whose server goes on sending is not read meanwhile.
    pub(super) fn pause_rules<D: Driver>(
        &mut self,
        cx: &mut Cx<'_, D>,
        stream: &mut Stream,
        set: RuleSet,
        pause: &Pause,
    ) -> Flow {
        let (client, server) = (stream.client, stream.server);
        let Some(conn) = (if set.is_response() { server } else { client }) else {
            return Flow::Next;
        };
        let now_ms = cx.now().ms();
        if !stream.paused {
            let Some(time_ms) = self.pause_ms(cx, stream, pause) else {
                return Flow::Next;
            };
            stream.paused = true;
            stream.wait_until_ms = deadline(cx.now(), time_ms);
            self.set_deadline(conn, stream.wait_until_ms);
            if set.is_response() {
                self.pause(cx, conn);
            }
            return Flow::Wait;
        }
        if now_ms < stream.wait_until_ms {
            return Flow::Wait;
        }
        stream.paused = false;
        if set.is_response() {
            self.unpause(cx, conn);
            let timeout_ms = stream.server_ms(cx.running);
            self.set_deadline(conn, deadline(cx.now(), timeout_ms));
        } else {
            self.set_deadline(conn, NEVER_MS);
        }
        Flow::Next
    }

    fn pause_ms<D: Driver>(&self, cx: &Cx<'_, D>, stream: &Stream, pause: &Pause) -> Option<u64> {
        match pause {
            Pause::Time(time) => Some(time.as_millis() as u64),
            Pause::Computed(expr) => {
                let ms = self.int(cx, stream, expr).filter(|ms| *ms > 0)?;
                Some(ms.min(PAUSE_MS_MAX) as u64)
            }
        }
    }
}
