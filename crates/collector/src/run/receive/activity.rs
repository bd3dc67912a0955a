//! What a connection does, and when it has done so for too long.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hyper::Version;
use tokio::time::Instant;

/// What a connection is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The head of a request comes, since then.
    Head(Instant),
    /// There are requests that are not answered.
    Busy,
    /// There are none, since then.
    Idle(Instant),
}

/// How long phases may take; none: no bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Limits {
    /// The head of a request.
    pub head: Option<Duration>,
    /// Without a request.
    pub idle: Option<Duration>,
    /// The connection.
    pub age: Option<Duration>,
    /// What is not answered at that age.
    pub grace: Option<Duration>,
}

impl Limits {
    /// The shortest of those that begin again and again.
    pub(super) fn least(&self) -> Option<Duration> {
        self.head.into_iter().chain(self.idle).min()
    }
}

/// What took too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Over {
    Head,
    Idle,
}

/// See the module. Shared by a connection, its socket and its requests.
#[derive(Debug)]
pub(super) struct Activity(Mutex<State>);

#[derive(Debug)]
struct State {
    phase: Phase,
    requests: u32,
    is_http2: bool,
}

impl Activity {
    /// Of a connection that begins: the head of its first request is awaited, or of one that is
    /// HTTP/2 from the start its first bytes.
    pub(super) fn new(is_http2: bool) -> Arc<Activity> {
        Arc::new(Activity(Mutex::new(State {
            phase: Phase::Head(Instant::now()),
            requests: 0,
            is_http2,
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes came. Frames of HTTP/2 need not be of a request.
    pub(super) fn came(&self) {
        let mut state = self.state();
        match (state.is_http2, state.phase) {
            (false, Phase::Idle(_)) => state.phase = Phase::Head(Instant::now()),
            (true, Phase::Head(_)) => state.phase = Phase::Idle(Instant::now()),
            _ => {}
        }
    }

    /// Whether a client of HTTP/1 that has had answers may be sending its next request: HTTP/2 tells
    /// clients which of theirs are served.
    pub(super) fn may_get_a_request(&self) -> bool {
        let state = self.state();
        !state.is_http2 && matches!(state.phase, Phase::Head(_) | Phase::Idle(_))
    }

    /// Whether there are requests that are not answered.
    pub(super) fn has_requests(&self) -> bool {
        self.state().requests > 0
    }

    /// A request has come.
    pub(super) fn begin(self: &Arc<Activity>, version: Version) -> Begun {
        let mut state = self.state();
        let since = match state.phase {
            Phase::Head(since) if !state.is_http2 => since,
            _ => Instant::now(),
        };
        state.is_http2 |= version == Version::HTTP_2;
        state.requests += 1;
        state.phase = Phase::Busy;
        Begun {
            activity: Arc::clone(self),
            since,
        }
    }

    /// When the phase will have taken too long, and which.
    pub(super) fn due(&self, limits: &Limits) -> Option<(Instant, Over)> {
        match self.state().phase {
            Phase::Busy => None,
            Phase::Head(since) => limits.head.map(|max| (since + max, Over::Head)),
            Phase::Idle(since) => limits.idle.map(|max| (since + max, Over::Idle)),
        }
    }
}

/// A request that is not answered as long as this is there.
#[derive(Debug)]
pub(super) struct Begun {
    activity: Arc<Activity>,
    /// Since its head came.
    pub since: Instant,
}

impl Drop for Begun {
    fn drop(&mut self) {
        let mut state = self.activity.state();
        state.requests -= 1;
        if state.requests == 0 {
            state.phase = Phase::Idle(Instant::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn phases_follow_each_other() {
        let limits = Limits {
            head: Some(Duration::from_secs(1)),
            idle: Some(Duration::from_secs(5)),
            ..Limits::default()
        };
        let activity = Activity::new(false);
        let since = Instant::now();
        let head = |since: Instant| Some((since + Duration::from_secs(1), Over::Head));
        assert_eq!(activity.due(&limits), head(since));
        tokio::time::advance(Duration::from_millis(500)).await;
        activity.came();
        assert_eq!(activity.due(&limits), head(since), "it began before");
        let request = activity.begin(Version::HTTP_11);
        assert_eq!((request.since, activity.due(&limits)), (since, None));
        activity.came();
        assert_eq!(activity.due(&limits), None);
        drop(request);
        let now = Instant::now();
        let idle = Some((now + Duration::from_secs(5), Over::Idle));
        assert_eq!(activity.due(&limits), idle);
        activity.came();
        assert_eq!(activity.due(&limits), head(now));
        let grpc = Activity::new(true);
        assert_eq!(grpc.due(&limits), head(now));
        grpc.came();
        assert_eq!(grpc.due(&limits), idle);
        // Frames of HTTP/2 are no head.
        drop(activity.begin(Version::HTTP_2));
        activity.came();
        assert_eq!(activity.due(&limits), idle);
    }
}
