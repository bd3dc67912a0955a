//! Why a head or a body was refused.

macro_rules! errors {
    ($($id:ident = $status:literal $message:literal,)+) => {
        /// One variant for each rule that a peer can break.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ParseError {
            $(#[doc = $message] $id,)+
        }

        impl ParseError {
            /// The status of the reply to a request refused for this rule. A response refused for
            /// it is a 502.
            #[must_use]
            pub const fn status(self) -> u16 {
                match self { $(ParseError::$id => $status,)+ }
            }

            /// The rule that was broken, for logs.
            #[must_use]
            pub const fn message(self) -> &'static str {
                match self { $(ParseError::$id => $message,)+ }
            }

            /// Every rule, for counters.
            #[must_use]
            pub const fn all() -> &'static [ParseError] {
                &[$(ParseError::$id,)+]
            }
        }
    };
}

errors! {
    // ---- limits
    TargetTooLong = 414 "the request line is longer than the head may be",
    TooLarge = 431 "the head is larger than the limit",
    TooManyFields = 400 "more fields than the limit",
    TooManyEmptyLines = 400 "too many empty lines before the start line",
    // ---- lines
    BareCr = 400 "a CR without LF",
    BareLf = 400 "a LF without CR",
    // ---- start line
    BadMethod = 400 "the method is not a token",
    BadTarget = 400 "a byte that must not stand in a request target",
    BadTargetForm = 400 "the request target has a form that the method does not allow",
    BadAuthority = 400 "malformed authority in the request target",
    BadVersion = 400 "malformed protocol version",
    BadStatus = 400 "malformed status code",
    BadReason = 400 "a control character in the reason phrase",
    // ---- fields
    BadFieldName = 400 "a field name that is not a token",
    SpaceBeforeColon = 400 "white space between field name and colon",
    FoldedField = 400 "obsolete line folding",
    BadFieldValue = 400 "a control character in a field value",
    NulInFieldValue = 400 "a NUL in a field value",
    // ---- host
    BadHost = 400 "malformed Host field",
    DifferentHosts = 400 "Host fields that differ",
    HostMismatch = 400 "Host differs from the authority of the request target",
    // ---- framing
    BadContentLength = 400 "malformed Content-Length",
    DifferentContentLengths = 400 "Content-Length values that differ",
    BadTransferEncoding = 400 "malformed Transfer-Encoding",
    ChunkedTwice = 400 "chunked more than once",
    ChunkedNotLast = 400 "chunked is not the last transfer coding",
    UnknownTransferCoding = 422 "a transfer coding other than chunked",
    PayloadNotAllowed = 413 "a payload in an HTTP/1.0 GET, HEAD or DELETE",
    BadWebSocketKey = 400 "a WebSocket handshake without its key",
    // ---- chunks
    BadChunkSize = 400 "malformed chunk size",
    ChunkTooLarge = 400 "a chunk size beyond the limit",
    BadChunkExtension = 400 "malformed chunk extension",
    ChunkExtensionsTooLong = 400 "chunk extensions longer than the limit",
    BadChunkEnd = 400 "no CRLF after a chunk",
}

impl std::fmt::Display for ParseError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(self.message())
    }
}

impl std::error::Error for ParseError {}
