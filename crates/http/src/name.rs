//! Header names that the proxy itself looks at, interned when a head is parsed.

/// A header name. Names are stored in lower case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Name {
    /// A name without an entry of its own.
    Other,
    Connection,
    ContentLength,
    ContentType,
    Cookie,
    Date,
    Expect,
    Host,
    KeepAlive,
    ProxyConnection,
    Server,
    SetCookie,
    Te,
    Trailer,
    TransferEncoding,
    Upgrade,
    UserAgent,
    XForwardedFor,
    // … whatever else is worth interning
}
