//! `slowstart`: the shares of servers that come up grow.

use std::rc::Rc;
use std::time::Duration;

use crate::Control;

/// Runs until the process stops.
pub(crate) async fn run(control: Rc<Control>) {
    while !control.stopping.get() {
        let (woken, next_ms) = control.shared.warm_up();
        control.wake(&woken);
        match next_ms {
            Some(ms) => tokio::time::sleep(Duration::from_millis(ms)).await,
            None => control.bells.starts.notified().await,
        }
    }
}
