//! Why a connection failed, with HAProxy's numbers, names and texts (`fc_err`, `fc_err_name`,
//! `fc_err_str` and their `bc_` forms).

/// One row: the variant, HAProxy's number, its name and its text.
macro_rules! errors {
    ($($variant:ident $number:literal $name:literal $text:literal;)*) => {
        /// Why a connection failed.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub enum ConnError {
            /// The connection did not fail.
            #[default]
            None,
            $(#[doc = concat!($text, ".")] $variant,)*
        }

        impl ConnError {
            /// HAProxy's number, 0 for none.
            #[must_use]
            pub fn number(self) -> i64 {
                match self {
                    ConnError::None => 0,
                    $(ConnError::$variant => $number,)*
                }
            }

            /// Its name, empty for none.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    ConnError::None => "",
                    $(ConnError::$variant => $name,)*
                }
            }

            /// Its text.
            #[must_use]
            pub fn text(self) -> &'static str {
                match self {
                    ConnError::None => "Success",
                    $(ConnError::$variant => $text,)*
                }
            }
        }
    };
}

errors! {
    Socket 6 "SOCK_ERR" "General socket error";
    ProxyEmpty 11 "PRX_EMPTY" "Connection closed while waiting for PROXY protocol header";
    ProxyAbort 12 "PRX_ABORT" "Connection error while waiting for PROXY protocol header";
    ProxyTimeout 13 "PRX_TIMEOUT" "Timeout while waiting for PROXY protocol header";
    ProxyTruncated 14 "PRX_TRUNCATED" "Truncated PROXY protocol header received";
    ProxyNone 15 "PRX_NOT_HDR" "Received something which does not look like a PROXY protocol header";
    ProxyBad 16 "PRX_BAD_HDR" "Received an invalid PROXY protocol header";
    ProxyUnknown 17 "PRX_BAD_PROTO" "Received an unhandled protocol in the PROXY protocol header";
    Socks4Send 36 "SOCKS4_SEND" "SOCKS4 Proxy write error during handshake";
    Socks4Deny 38 "SOCKS4_DENY" "SOCKS4 Proxy deny the request";
    TlsEmpty 24 "SSL_EMPTY" "Connection closed during SSL handshake";
    TlsAbort 25 "SSL_ABORT" "Connection error during SSL handshake";
    TlsTimeout 26 "SSL_TIMEOUT" "Timeout during SSL handshake";
    TlsTooMany 27 "SSL_TOO_MANY" "Too many SSL connections";
    TlsAuthority 30 "SSL_CA_FAIL" "SSL client CA chain cannot be verified";
    TlsCertificate 31 "SSL_CRT_FAIL" "SSL client certificate not trusted";
    TlsName 33 "SSL_MISMATCH_SNI" "Server presented an SSL certificate different from the expected one";
    TlsHandshake 34 "SSL_HANDSHAKE" "SSL handshake failure";
    TlsFatal 43 "SSL_FATAL" "SSL fatal error";
    Refused 47 "EREFUSED" "ECONNREFUSED returned by OS";
    Reset 48 "ERESET" "ECONNRESET returned by OS";
}
