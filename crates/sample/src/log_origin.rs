//! The events that write log lines: the steps of `log-profile` and `log-steps`, and the values of
//! `%OG`.

/// Why a log line is written (manual §8.2.6 `%OG`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogOrigin {
    /// Not for a log.
    #[default]
    Unspecified,
    /// The session failed before a stream began.
    SessionError,
    /// The session was rejected before it began.
    SessionKilled,
    /// A stream began.
    Accept,
    /// The request's head is complete.
    Request,
    /// The server connection is established.
    Connect,
    /// The response's head is complete.
    Response,
    /// The stream ended.
    Close,
    /// `quic-initial do-log`
    QuicInitial,
    /// `tcp-request connection do-log`
    TcpConnection,
    /// `tcp-request session do-log`
    TcpSession,
    /// `tcp-request content do-log`
    TcpRequest,
    /// `tcp-response content do-log`
    TcpResponse,
    /// `http-request do-log`
    HttpRequest,
    /// `http-response do-log`
    HttpResponse,
    /// `http-after-response do-log`
    HttpAfterResponse,
}

impl LogOrigin {
    /// The number of variants.
    pub const COUNT: usize = LogOrigin::HttpAfterResponse as usize + 1;

    /// The steps that `on` of `log-profile` and `log-steps` name, except `error` and `any`.
    pub const STEPS: &[(&'static str, LogOrigin)] = &[
        ("accept", LogOrigin::Accept),
        ("request", LogOrigin::Request),
        ("connect", LogOrigin::Connect),
        ("response", LogOrigin::Response),
        ("close", LogOrigin::Close),
        ("quic-init", LogOrigin::QuicInitial),
        ("tcp-req-conn", LogOrigin::TcpConnection),
        ("tcp-req-sess", LogOrigin::TcpSession),
        ("tcp-req-cont", LogOrigin::TcpRequest),
        ("tcp-res-cont", LogOrigin::TcpResponse),
        ("http-req", LogOrigin::HttpRequest),
        ("http-res", LogOrigin::HttpResponse),
        ("http-after-res", LogOrigin::HttpAfterResponse),
    ];

    /// The value of `%OG`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            LogOrigin::Unspecified => "unspec",
            LogOrigin::SessionError => "sess_error",
            LogOrigin::SessionKilled => "sess_killed",
            LogOrigin::Accept => "txn_accept",
            LogOrigin::Request => "txn_request",
            LogOrigin::Connect => "txn_connect",
            LogOrigin::Response => "txn_response",
            LogOrigin::Close => "txn_close",
            rule => LogOrigin::STEPS
                .iter()
                .find(|(_, step)| *step == rule)
                .map_or("unspec", |(name, _)| name),
        }
    }

    /// Whether the line reports an error: the step `error` of a profile.
    #[must_use]
    pub fn is_error(self) -> bool {
        matches!(self, LogOrigin::SessionError | LogOrigin::SessionKilled)
    }
}
