//! Sample fetches: one static entry each, grouped by family.

pub(crate) mod connections;
pub(crate) mod hello;
pub(crate) mod http;
pub(crate) mod internal;
pub(crate) mod l4;
pub(crate) mod load;
pub(crate) mod otel;
pub(crate) mod payload;
pub(crate) mod protocols;
pub(crate) mod proxies;
pub(crate) mod stream;
pub(crate) mod tables;
pub(crate) mod timeouts;
pub(crate) mod tls;
mod variables;

use crate::args::{Arg, Spec, spec};
use crate::sniff::Sniffed;
use crate::{Kind, Place, Scope, Txn, Value};

/// A sample fetch.
pub(crate) struct Fetch {
    /// The name in the configuration.
    pub name: &'static str,
    /// Its arguments.
    pub args: Spec,
    /// The output type.
    pub out: Kind,
    /// The data that it reads, which determines the places where it is valid.
    pub source: &'static Source,
    /// One line for the reference.
    pub doc: &'static str,
    /// Reads the sample.
    pub eval: FetchFn,
    /// Checks the arguments at compile time; may replace them.
    pub check: CheckFn,
}

/// Reads a sample. Sets the cursor's flags if there are more values, or if a value may arrive
/// later.
pub(crate) type FetchFn = for<'a> fn(&'a [Arg], &Scope<'a>, &mut Cursor) -> Option<Value<'a>>;

/// Checks or replaces compiled arguments.
pub(crate) type CheckFn = fn(&mut [Arg]) -> Result<(), String>;

/// The position in a fetch with several values. ACLs ask for one value after the other (`iterate`).
#[derive(Debug, Default)]
pub(crate) struct Cursor {
    /// The caller wants every value in turn.
    pub iterate: bool,
    /// Set by the fetch: call again for the next value.
    pub more: bool,
    /// Set by the fetch: the result, also a missing one, may change with more data.
    pub may_change: bool,
    /// For the fetch: the number of values returned so far, or a position.
    pub index: usize,
    /// For the fetch: a byte position.
    pub offset: usize,
}

impl Cursor {
    /// A cursor for a caller that wants every value.
    #[inline]
    pub(crate) fn every() -> Cursor {
        Cursor {
            iterate: true,
            ..Cursor::default()
        }
    }
}

/// The data that a fetch reads: the places where the data exists, and its name in messages.
#[derive(Debug)]
pub(crate) struct Source {
    pub places: Place,
    pub needs: &'static str,
}

const RUNTIME: Place = Place::span(Place::FE_TCP_CONNECTION, Place::CHECK);

/// Constants and values that the process knows from the start.
pub(crate) const CONSTANT: Source = Source {
    places: Place::ALL,
    needs: "internal state",
};
/// The process at run time.
pub(crate) const INTERNAL: Source = Source {
    places: RUNTIME.with(Place::CLI),
    needs: "internal state",
};
/// The listener or the frontend.
pub(crate) const FRONTEND: Source = Source {
    places: Place::span(Place::FE_TCP_CONNECTION, Place::LOG),
    needs: "frontend",
};
/// The client connection.
pub(crate) const CLIENT: Source = Source {
    places: RUNTIME,
    needs: "client address",
};
/// The client connection's transport.
pub(crate) const CLIENT_CONNECTION: Source = Source {
    places: Place::span(Place::FE_TCP_SESSION, Place::LOG),
    needs: "client-side connection",
};
/// Bytes of the request.
pub(crate) const REQUEST_BUFFER: Source = Source {
    places: Place::span(Place::FE_TCP_REQUEST, Place::BE_SERVER_SOURCE),
    needs: "request buffer",
};
/// The request's head while it can be changed.
pub(crate) const REQUEST_HEAD: Source = Source {
    places: REQUEST_BUFFER.places,
    needs: "HTTP request headers",
};
/// The parts of the request that are kept to the end.
pub(crate) const REQUEST: Source = Source {
    places: Place::span(Place::FE_TCP_REQUEST, Place::LOG),
    needs: "HTTP request",
};
/// The backend.
pub(crate) const BACKEND: Source = Source {
    places: Place::span(Place::BE_TCP_REQUEST, Place::CHECK),
    needs: "backend",
};
/// The server.
pub(crate) const SERVER: Source = Source {
    places: Place::span(Place::BE_SERVER_SOURCE, Place::CHECK),
    needs: "server",
};
/// The server connection.
pub(crate) const SERVER_CONNECTION: Source = Source {
    places: Place::span(Place::BE_TCP_RESPONSE, Place::CHECK),
    needs: "server address",
};
/// Bytes of the response.
pub(crate) const RESPONSE_BUFFER: Source = Source {
    places: Place::span(Place::BE_TCP_RESPONSE, Place::FE_HTTP_RESPONSE_BODY).with(Place::CHECK),
    needs: "response buffer",
};
/// The response's head while it can be changed.
pub(crate) const RESPONSE_HEAD: Source = Source {
    places: RESPONSE_BUFFER.places,
    needs: "HTTP response headers",
};
/// The parts of the response that are kept to the end.
pub(crate) const RESPONSE: Source = Source {
    places: Place::span(Place::BE_TCP_RESPONSE, Place::CHECK),
    needs: "HTTP response",
};
/// Either buffer; the place of the rule selects one.
pub(crate) const ANY_BUFFER: Source = Source {
    places: REQUEST_BUFFER.places.with(RESPONSE_BUFFER.places),
    needs: "request buffer,response buffer",
};
/// Either head; the place of the rule selects one.
pub(crate) const ANY_HEAD: Source = Source {
    places: ANY_BUFFER.places,
    needs: "HTTP request headers,HTTP response headers",
};
/// The server connection, without its addresses.
pub(crate) const SERVER_SIDE: Source = Source {
    places: SERVER_CONNECTION.places,
    needs: "server-side connection",
};
/// The frontend, or the backend after it is chosen.
pub(crate) const PROXY: Source = Source {
    places: FRONTEND.places.with(BACKEND.places),
    needs: "frontend",
};
/// Counters of the request's bytes.
pub(crate) const REQUEST_TOTALS: Source = Source {
    places: REQUEST.places,
    needs: "request buffer statistics",
};
/// The result of a transaction.
pub(crate) const TRANSACTION: Source = Source {
    places: REQUEST.places,
    needs: "transaction statistics",
};
/// Counters of the response's bytes, complete at its end.
pub(crate) const TOTALS: Source = Source {
    places: Place::span(Place::BE_USE_SERVER, Place::LOG),
    needs: "response buffer statistics",
};

/// An entry without a check of its own.
pub(crate) const fn fetch(
    name: &'static str,
    args: Spec,
    out: Kind,
    source: &'static Source,
    doc: &'static str,
    eval: FetchFn,
) -> Fetch {
    Fetch {
        name,
        args,
        out,
        source,
        doc,
        eval,
        check: accept,
    }
}

/// The log message for which a server is chosen: the input of the converters of `balance log-hash`.
/// It has no name.
pub(crate) static MESSAGE: Fetch = fetch(
    "message",
    spec(0, &[]),
    Kind::Str,
    &CONSTANT,
    "the log message",
    |_, scope, _| Some(Value::text(scope.request_data)),
);

impl Fetch {
    /// Whether its value is final only at the end of a stream.
    pub(crate) fn needs_end(&self) -> bool {
        self.source.places == TOTALS.places
    }

    /// Adds a check of the arguments.
    pub(crate) const fn checked(mut self, check: CheckFn) -> Fetch {
        self.check = check;
        self
    }
}

fn accept(_args: &mut [Arg]) -> Result<(), String> {
    Ok(())
}

/// All families.
const FAMILIES: &[&[Fetch]] = &[
    internal::FETCHES,
    proxies::FETCHES,
    http::FETCHES,
    http::auth::FETCHES,
    http::bodies::FETCHES,
    http::cookies::FETCHES,
    http::fields::FETCHES,
    http::urls::FETCHES,
    l4::FETCHES,
    tls::FETCHES,
    tls::captured::FETCHES,
    tls::certificates::CLIENT,
    tls::certificates::FRONTEND,
    tls::certificates::SERVER,
    tls::certificates::OTHERS,
    stream::FETCHES,
    payload::FETCHES,
    hello::FETCHES,
    protocols::FETCHES,
    connections::FETCHES,
    timeouts::FETCHES,
    otel::FETCHES,
    load::FETCHES,
    tables::FETCHES,
    tables::ANY,
    tables::FIRST,
    tables::SECOND,
    tables::THIRD,
    tables::SOURCE,
    tables::OF_ANY,
    tables::OF_FIRST,
    tables::OF_SECOND,
    tables::OF_THIRD,
    tables::ARRAYS,
    tables::SOURCE_ARRAYS,
    variables::FETCHES,
];

/// The stream that the expression is evaluated for.
fn stream_of<'a>(scope: &Scope<'a>) -> Option<&'a Txn> {
    scope.txn
}

/// The bytes of the inspected buffer.
fn at_hand<'a>(scope: &Scope<'a>) -> &'a [u8] {
    if scope.from_server {
        scope.response_data
    } else {
        scope.request_data
    }
}

/// The raw bytes of the request, which have no meaning in mode HTTP (manual §7.3.5).
fn raw_request<'a>(scope: &Scope<'a>) -> Sniffed<&'a [u8]> {
    raw(scope, scope.request_data)
}

/// The same for the response.
fn raw_response<'a>(scope: &Scope<'a>) -> Sniffed<&'a [u8]> {
    raw(scope, scope.response_data)
}

/// The same for the inspected buffer.
fn raw_buffer<'a>(scope: &Scope<'a>) -> Sniffed<&'a [u8]> {
    raw(scope, at_hand(scope))
}

fn raw<'a>(scope: &Scope<'_>, bytes: &'a [u8]) -> Sniffed<&'a [u8]> {
    match scope.txn {
        Some(txn) if !txn.is_http => Sniffed::Found(bytes),
        _ => Sniffed::No,
    }
}

/// The found value. Sets the cursor's flag if it may still be found later.
fn sniffed<T>(found: Sniffed<T>, cursor: &mut Cursor) -> Option<T> {
    cursor.may_change = matches!(found, Sniffed::More);
    match found {
        Sniffed::Found(found) => Some(found),
        Sniffed::More | Sniffed::No => None,
    }
}

/// Every entry.
pub(crate) fn all() -> impl Iterator<Item = &'static Fetch> {
    FAMILIES.iter().copied().flatten()
}

/// The entry of this name.
pub(crate) fn find(name: &str) -> Option<&'static Fetch> {
    all().find(|fetch| fetch.name == name)
}
