//! The events of a stream to which scopes are bound (`otel-event`).

use sample::Place;

/// Which samples are available at an event, and the class of its spans for `finish *req*` and
/// `*res*`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The request direction.
    Request,
    /// The response direction.
    Response,
    /// Neither: events of the stream itself. Samples are those of the request.
    Neither,
}

/// One row: the variant, its name, its direction, whether headers can be written there, where
/// fetches must work.
macro_rules! events {
    ($($event:ident $name:literal $direction:ident $writes:literal $http:literal $place:expr;)*) => {
        /// An event of a stream. The order is that of a plain HTTP stream.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Event {
            $(#[doc = concat!("`", $name, "`")] $event,)*
        }

        impl Event {
            /// All events, in order.
            pub const ALL: &'static [Event] = &[$(Event::$event,)*];

            /// The name in `otel-event`.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Event::$event => $name,)* }
            }

            /// See [`Direction`].
            #[must_use]
            pub fn direction(self) -> Direction {
                match self { $(Event::$event => Direction::$direction,)* }
            }

            /// Whether `inject` can write headers at this event.
            #[must_use]
            pub fn writes_headers(self) -> bool {
                match self { $(Event::$event => $writes,)* }
            }

            /// Whether the event occurs only in mode HTTP.
            #[must_use]
            pub fn is_http(self) -> bool {
                match self { $(Event::$event => $http,)* }
            }

            /// The places that fetches must work at.
            #[must_use]
            pub fn place(self) -> Place {
                match self { $(Event::$event => $place,)* }
            }
        }
    };
}

const REQUEST: Place = Place::FE_HTTP_REQUEST;

events! {
    StreamStart "on-stream-start" Neither false false Place::FE_TCP_REQUEST;
    ClientSessionStart "on-client-session-start" Request true false Place::FE_TCP_REQUEST;
    FrontendTcpRequest "on-frontend-tcp-request" Request true false Place::FE_TCP_REQUEST;
    HttpWaitRequest "on-http-wait-request" Request true true REQUEST;
    HttpBodyRequest "on-http-body-request" Request true true REQUEST;
    FrontendHttpRequest "on-frontend-http-request" Request true true REQUEST;
    SwitchingRulesRequest "on-switching-rules-request" Request true false Place::FE_USE_BACKEND;
    BackendSet "on-backend-set" Neither false false Place::FE_USE_BACKEND;
    BackendTcpRequest "on-backend-tcp-request" Request true false Place::BE_TCP_REQUEST;
    BackendHttpRequest "on-backend-http-request" Request true true Place::BE_HTTP_REQUEST;
    HttpTarpitRequest "on-http-tarpit-request" Request true true REQUEST;
    ProcessServerRulesRequest "on-process-server-rules-request" Request true false Place::BE_USE_SERVER;
    HttpProcessRequest "on-http-process-request" Request true true Place::BE_HTTP_REQUEST;
    TcpRdpCookieRequest "on-tcp-rdp-cookie-request" Request true false Place::BE_TCP_REQUEST;
    ProcessStickingRulesRequest "on-process-sticking-rules-request" Request true false Place::BE_USE_SERVER;
    HttpHeadersRequest "on-http-headers-request" Request true true Place::BE_HTTP_REQUEST;
    HttpEndRequest "on-http-end-request" Request false true Place::BE_HTTP_REQUEST;
    ServerSessionStart "on-server-session-start" Response false false Place::BE_TCP_RESPONSE;
    TcpResponse "on-tcp-response" Response false false Place::BE_TCP_RESPONSE;
    HttpWaitResponse "on-http-wait-response" Response true true Place::BE_HTTP_RESPONSE;
    ProcessStoreRulesResponse "on-process-store-rules-response" Response true false Place::BE_STICK_STORE;
    HttpResponse "on-http-response" Response true true Place::BE_HTTP_RESPONSE;
    HttpHeadersResponse "on-http-headers-response" Response true true Place::BE_HTTP_RESPONSE;
    HttpReply "on-http-reply" Response true true Place::FE_HTTP_RESPONSE;
    HttpEndResponse "on-http-end-response" Response false true Place::FE_HTTP_RESPONSE;
    ClientSessionEnd "on-client-session-end" Request false false Place::LOG;
    ServerUnavailable "on-server-unavailable" Request false false Place::LOG;
    ServerSessionEnd "on-server-session-end" Response false false Place::LOG;
    IdleTimeout "on-idle-timeout" Neither false false Place::FE_TCP_REQUEST;
    StreamStop "on-stream-stop" Neither false false Place::LOG;
}

impl Event {
    /// The event with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Event> {
        Event::ALL
            .iter()
            .copied()
            .find(|event| event.name() == name)
    }

    /// Its bit in a set of events.
    #[must_use]
    pub const fn bit(self) -> u32 {
        1 << self as u32
    }

    /// The events for which [`Event::is_frontends`] is true.
    #[must_use]
    pub fn frontends() -> u32 {
        let own = Event::ALL.iter().filter(|event| event.is_frontends());
        own.fold(0, |set, event| set | event.bit())
    }

    /// Whether the event occurs before there is a backend: a filter of a backend section never sees
    /// it.
    #[must_use]
    pub fn is_frontends(self) -> bool {
        matches!(
            self,
            Event::StreamStart
                | Event::FrontendTcpRequest
                | Event::HttpWaitRequest
                | Event::FrontendHttpRequest
                | Event::SwitchingRulesRequest
                | Event::StreamStop
        )
    }
}
