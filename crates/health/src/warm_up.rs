//! `slowstart`: raises the weights of servers that come up. `outlier-ejection`: probes servers
//! whose ejection time is over.

use std::rc::Rc;
use std::time::Duration;

use crate::Control;

/// Runs until the process stops.
pub(crate) async fn run(control: Rc<Control>) {
    while !control.stopping.get() {
        let (woken, next_ms) = control.shared.warm_up();
        control.wake(&woken);
        match next_ms {
            Some(ms) => tokio::select! {
                () = tokio::time::sleep(Duration::from_millis(ms)) => {}
                // A slow start that begins now may end earlier.
                () = control.bells.starts.notified() => {}
            },
            None => control.bells.starts.notified().await,
        }
    }
}
