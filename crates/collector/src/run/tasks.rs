//! Tasks that are waited for at an end.

use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

/// Waits until all have ended.
pub async fn ended(tasks: &mut JoinSet<()>) {
    while tasks.join_next().await.is_some() {}
}

/// Waits until all have ended; those that have not by a time are told by `cut`, after which they do
/// soon.
pub async fn ended_by(tasks: &mut JoinSet<()>, until: Instant, cut: impl FnOnce()) {
    if timeout_at(until, ended(tasks)).await.is_err() {
        cut();
        ended(tasks).await;
    }
}
