//! Header names that are common enough to be interned when a head is parsed.
//!
//! One table entry a name; the enum, its spelling and the lookup all come from it.

/// Slots of the lookup table; a power of two, at least twice the number of names.
const SLOTS: usize = 512;

macro_rules! names {
    ($($id:ident = $text:literal,)+) => {
        /// A header name. Names are stored in lower case.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Name {
            /// A name without an entry of its own.
            #[default]
            Other,
            $(#[doc = concat!("`", $text, "`")] $id,)+
        }

        /// Every interned name; the place of one is its number.
        const ALL: &[Name] = &[Name::Other, $(Name::$id,)+];
        /// Their spelling, in the same order.
        const TEXTS: &[&str] = &["", $($text,)+];
    };
}

names! {
    Accept = "accept",
    AcceptCharset = "accept-charset",
    AcceptEncoding = "accept-encoding",
    AcceptLanguage = "accept-language",
    AcceptRanges = "accept-ranges",
    AccessControlAllowCredentials = "access-control-allow-credentials",
    AccessControlAllowHeaders = "access-control-allow-headers",
    AccessControlAllowMethods = "access-control-allow-methods",
    AccessControlAllowOrigin = "access-control-allow-origin",
    AccessControlExposeHeaders = "access-control-expose-headers",
    AccessControlMaxAge = "access-control-max-age",
    AccessControlRequestHeaders = "access-control-request-headers",
    AccessControlRequestMethod = "access-control-request-method",
    Age = "age",
    Allow = "allow",
    AltSvc = "alt-svc",
    Authorization = "authorization",
    Baggage = "baggage",
    CacheControl = "cache-control",
    CdnLoop = "cdn-loop",
    Connection = "connection",
    ContentDisposition = "content-disposition",
    ContentEncoding = "content-encoding",
    ContentLanguage = "content-language",
    ContentLength = "content-length",
    ContentLocation = "content-location",
    ContentRange = "content-range",
    ContentSecurityPolicy = "content-security-policy",
    ContentType = "content-type",
    Cookie = "cookie",
    Date = "date",
    Dnt = "dnt",
    EarlyData = "early-data",
    Etag = "etag",
    Expect = "expect",
    Expires = "expires",
    Forwarded = "forwarded",
    From = "from",
    GrpcStatus = "grpc-status",
    GrpcTimeout = "grpc-timeout",
    Host = "host",
    IfMatch = "if-match",
    IfModifiedSince = "if-modified-since",
    IfNoneMatch = "if-none-match",
    IfRange = "if-range",
    IfUnmodifiedSince = "if-unmodified-since",
    KeepAlive = "keep-alive",
    LastModified = "last-modified",
    Link = "link",
    Location = "location",
    MaxForwards = "max-forwards",
    Origin = "origin",
    Pragma = "pragma",
    Priority = "priority",
    ProxyAuthenticate = "proxy-authenticate",
    ProxyAuthorization = "proxy-authorization",
    ProxyConnection = "proxy-connection",
    Range = "range",
    Referer = "referer",
    ReferrerPolicy = "referrer-policy",
    RetryAfter = "retry-after",
    SecFetchDest = "sec-fetch-dest",
    SecFetchMode = "sec-fetch-mode",
    SecFetchSite = "sec-fetch-site",
    SecFetchUser = "sec-fetch-user",
    SecWebsocketAccept = "sec-websocket-accept",
    SecWebsocketExtensions = "sec-websocket-extensions",
    SecWebsocketKey = "sec-websocket-key",
    SecWebsocketProtocol = "sec-websocket-protocol",
    SecWebsocketVersion = "sec-websocket-version",
    Server = "server",
    SetCookie = "set-cookie",
    StrictTransportSecurity = "strict-transport-security",
    Te = "te",
    Traceparent = "traceparent",
    Tracestate = "tracestate",
    Trailer = "trailer",
    TransferEncoding = "transfer-encoding",
    Upgrade = "upgrade",
    UpgradeInsecureRequests = "upgrade-insecure-requests",
    UserAgent = "user-agent",
    Vary = "vary",
    Via = "via",
    WwwAuthenticate = "www-authenticate",
    XContentTypeOptions = "x-content-type-options",
    XForwardedFor = "x-forwarded-for",
    XForwardedHost = "x-forwarded-host",
    XForwardedPort = "x-forwarded-port",
    XForwardedProto = "x-forwarded-proto",
    XFrameOptions = "x-frame-options",
    XOriginalTo = "x-original-to",
    XPoweredBy = "x-powered-by",
    XRealIp = "x-real-ip",
    XRequestId = "x-request-id",
    XRequestedWith = "x-requested-with",
    XXssProtection = "x-xss-protection",
}

// A head keeps the set of names it holds in the bits of a `u128`.
const _: () = assert!(ALL.len() <= 128 && ALL.len() * 2 <= SLOTS);

static TABLE: [Name; SLOTS] = table();

impl Name {
    /// Finds the entry of a name written in lower case, [`Name::Other`] where it has none.
    #[must_use]
    pub fn from_lower(name: &[u8]) -> Name {
        Name::lookup(name, |text| text == name)
    }

    /// The same for a name in any case.
    #[must_use]
    pub fn from_any(name: &[u8]) -> Name {
        Name::lookup(name, |text| text.eq_ignore_ascii_case(name))
    }

    /// The name in lower case; empty for [`Name::Other`].
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        TEXTS[self as usize]
    }

    /// All interned names, [`Name::Other`] first.
    #[must_use]
    pub const fn all() -> &'static [Name] {
        ALL
    }

    /// The bit that stands for this name in a set of names.
    pub(crate) const fn bit(self) -> u128 {
        1 << self as u8
    }

    fn lookup(name: &[u8], same: impl Fn(&[u8]) -> bool) -> Name {
        if name.is_empty() {
            return Name::Other;
        }
        let mut slot = hash(name);
        loop {
            let found = TABLE[slot];
            if found == Name::Other || same(found.as_str().as_bytes()) {
                return found;
            }
            slot = (slot + 1) % SLOTS;
        }
    }
}

/// A slot from the length and three bytes of a name that is not empty, letters in either case.
const fn hash(name: &[u8]) -> usize {
    let len = name.len();
    let first = (name[0] | 0x20) as usize;
    let middle = (name[len / 2] | 0x20) as usize;
    let last = (name[len - 1] | 0x20) as usize;
    (len * 67 + first * 5 + middle * 23 + last * 107) % SLOTS
}

/// Open addressing: a name stands in the first free slot from its hash on, so a free slot ends a search.
const fn table() -> [Name; SLOTS] {
    let mut table = [Name::Other; SLOTS];
    let mut entry = 1;
    while entry < ALL.len() {
        let mut slot = hash(TEXTS[entry].as_bytes());
        while !matches!(table[slot], Name::Other) {
            slot = (slot + 1) % SLOTS;
        }
        table[slot] = ALL[entry];
        entry += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_is_found_in_either_case() {
        for &name in &ALL[1..] {
            let text = name.as_str();
            assert_eq!(text, text.to_ascii_lowercase(), "entries are lower case");
            assert_eq!(Name::from_lower(text.as_bytes()), name);
            assert_eq!(Name::from_any(text.to_ascii_uppercase().as_bytes()), name);
        }
    }

    #[test]
    fn other_names_have_no_entry() {
        for text in [
            "",
            "x",
            "hosts",
            "hast",
            "content-lengt",
            "content\rlength",
            "x-unheard-of",
        ] {
            assert_eq!(Name::from_lower(text.as_bytes()), Name::Other, "{text:?}");
            assert_eq!(Name::from_any(text.as_bytes()), Name::Other, "{text:?}");
        }
        assert_eq!(
            Name::from_lower(b"Host"),
            Name::Other,
            "only lower case is looked up"
        );
    }

    #[test]
    fn searches_are_short() {
        let probes = |name: &Name| {
            let home = hash(name.as_str().as_bytes());
            let at = TABLE.iter().position(|slot| slot == name).unwrap();
            (at + SLOTS - home) % SLOTS
        };
        let most = ALL[1..].iter().map(probes).max().unwrap();
        assert!(most <= 3, "{most} probes");
    }
}
