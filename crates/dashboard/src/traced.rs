//! `GET /api/traces`, `/api/traces/ID`, `/api/heatmap`, `/api/services`: the stored traces.

use hyper::StatusCode;
use traces::{HeatMapQuery, Store, TraceQuery};

use crate::query;
use crate::reply::{self, Reply};

/// The list of traces.
pub fn list(store: Option<&Store>, text: &str) -> Reply {
    let pairs = query::pairs(text);
    let pairs = pairs.iter().map(|(name, value)| (&**name, &**value));
    answered(store, TraceQuery::from_pairs(pairs), |store, query| {
        reply::of(&store.list(query, now_ms()))
    })
}

/// Counts by time and duration.
pub fn heat_map(store: Option<&Store>, text: &str) -> Reply {
    let pairs = query::pairs(text);
    let pairs = pairs.iter().map(|(name, value)| (&**name, &**value));
    answered(store, HeatMapQuery::from_pairs(pairs), |store, query| {
        reply::of(&store.heat_map(query, now_ms()))
    })
}

/// The values for the search fields.
pub fn services(store: Option<&Store>) -> Reply {
    answered(store, Ok(()), |store, ()| {
        reply::of(&store.services(now_ms()))
    })
}

/// One trace.
pub fn trace(store: Option<&Store>, id: &str) -> Reply {
    let id = traces::trace_id(id).ok_or_else(|| "this is no identifier of a trace".to_owned());
    answered(store, id, |store, id| match store.trace(id) {
        Some(trace) => reply::of(&trace),
        None => reply::error(
            StatusCode::NOT_FOUND,
            "this trace is not held, or not any more",
        ),
    })
}

/// Milliseconds of the UNIX epoch.
pub fn now_ms() -> u64 {
    net::sys::now().wall_ns / 1_000_000
}

fn answered<Q>(
    store: Option<&Store>,
    query: Result<Q, String>,
    answer: impl FnOnce(&Store, &Q) -> Reply,
) -> Reply {
    let Some(store) = store else {
        return nothing_held();
    };
    match query {
        Ok(query) => answer(store, &query),
        Err(why) => reply::error(StatusCode::BAD_REQUEST, &why),
    }
}

/// The answer without a store.
pub fn nothing_held() -> Reply {
    let why =
        "no traces are held: they come from a section 'collector' with an exporter 'dashboard'";
    reply::error(StatusCode::NOT_FOUND, why)
}
