//! `timeout …` (manual §4.2).

use super::{Keyword, at::*};
use crate::model::Timeouts;
use std::time::Duration;

/// The field of [`Timeouts`] that a keyword sets.
pub type Field = fn(&mut Timeouts) -> &mut Option<Duration>;

const fn yes(
    name: &'static str,
    places: super::Places,
    field: Field,
    doc: &'static str,
) -> Keyword<Field> {
    Keyword::yes(name, places, field, doc)
}

/// Every `timeout`.
pub const KEYWORDS: &[Keyword<Field>] = &[
    yes(
        "check",
        DB,
        |t| &mut t.check,
        "How long a health check may wait for its answer once connected.",
    ),
    yes(
        "client",
        DF,
        |t| &mut t.client,
        "How long the client may stay inactive.",
    ),
    yes(
        "client-fin",
        DF,
        |t| &mut t.client_fin,
        "`client` for a connection that is half-closed.",
    ),
    yes(
        "client-hs",
        DF,
        |t| &mut t.client_hs,
        "How long a handshake with the client may take.",
    ),
    yes(
        "connect",
        DB,
        |t| &mut t.connect,
        "How long a connection to a server may take to stand.",
    ),
    yes(
        "handshake",
        DF,
        |t| &mut t.client_hs,
        "Older name of `client-hs`.",
    ),
    yes(
        "http-keep-alive",
        DFB,
        |t| &mut t.http_keep_alive,
        "How long an idle client connection waits for a new request.",
    ),
    yes(
        "http-request",
        DFB,
        |t| &mut t.http_request,
        "How long a complete request head may take to come.",
    ),
    yes(
        "queue",
        DB,
        |t| &mut t.queue,
        "How long a request may wait for a free slot of a server.",
    ),
    yes(
        "server",
        DB,
        |t| &mut t.server,
        "How long the server may stay inactive.",
    ),
    yes(
        "server-fin",
        DB,
        |t| &mut t.server_fin,
        "`server` for a connection that is half-closed.",
    ),
    yes(
        "tarpit",
        DFB,
        |t| &mut t.tarpit,
        "How long a tarpitted request is held.",
    ),
    yes(
        "tunnel",
        DB,
        |t| &mut t.tunnel,
        "How long both sides of a tunnel may stay inactive.",
    ),
];
