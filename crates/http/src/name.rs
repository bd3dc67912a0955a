//! Header names that are common enough to be interned when a head is parsed.
//!
//! One table entry per name; the enum, its text and the lookup are generated from it.

use crate::bytes::ShortName;

/// Slots of the lookup table; a power of two, at least four times the number of names.
const SLOTS: usize = 512;

macro_rules! names {
    ($($id:ident = $text:literal,)+) => {
        /// A header name. Names are stored in lower case.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Name {
            /// A name without a table entry.
            #[default]
            Other,
            $(#[doc = concat!("`", $text, "`")] $id,)+
        }

        /// Every interned name; its position is its number.
        const ALL: &[Name] = &[Name::Other, $(Name::$id,)+];
        /// Their texts, in the same order.
        const TEXTS: &[&str] = &["", $($text,)+];
    };
}

names! {
    // ---- names that affect framing, connection or routing
    Connection = "connection",
    ContentLength = "content-length",
    Expect = "expect",
    Host = "host",
    KeepAlive = "keep-alive",
    ProxyConnection = "proxy-connection",
    Te = "te",
    Trailer = "trailer",
    TransferEncoding = "transfer-encoding",
    Upgrade = "upgrade",
    // ---- all others
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
    ContentDisposition = "content-disposition",
    ContentEncoding = "content-encoding",
    ContentLanguage = "content-language",
    ContentLocation = "content-location",
    ContentRange = "content-range",
    ContentSecurityPolicy = "content-security-policy",
    ContentType = "content-type",
    Cookie = "cookie",
    Date = "date",
    Dnt = "dnt",
    EarlyData = "early-data",
    Etag = "etag",
    Expires = "expires",
    Forwarded = "forwarded",
    From = "from",
    GrpcStatus = "grpc-status",
    GrpcTimeout = "grpc-timeout",
    IfMatch = "if-match",
    IfModifiedSince = "if-modified-since",
    IfNoneMatch = "if-none-match",
    IfRange = "if-range",
    IfUnmodifiedSince = "if-unmodified-since",
    LastModified = "last-modified",
    Link = "link",
    Location = "location",
    MaxForwards = "max-forwards",
    Origin = "origin",
    Pragma = "pragma",
    Priority = "priority",
    ProxyAuthenticate = "proxy-authenticate",
    ProxyAuthorization = "proxy-authorization",
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
    Traceparent = "traceparent",
    Tracestate = "tracestate",
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

// A head keeps the set of names it holds in the bits of two words.
const _: () = assert!(ALL.len() <= 128 && ALL.len() * 4 <= SLOTS);

/// The longest interned name.
const BYTES_MAX: usize = 32;

/// A name in the form that the lookup compares: its first and its last eight bytes; a shorter one
/// is padded with zeros.
struct Entry {
    first: u64,
    last: u64,
    len: usize,
    /// The bits in which an upper-case letter of `first` and of `last` differs.
    first_case: u64,
    last_case: u64,
}

static ENTRIES: [Entry; ALL.len()] = entries();
static TABLE: [Name; SLOTS] = table();

impl Name {
    /// Finds the entry of a name written in lower case, [`Name::Other`] if it has none.
    #[must_use]
    pub fn from_lower(name: &[u8]) -> Name {
        if name.len() > BYTES_MAX {
            return Name::Other;
        }
        let (first, last) = match (name.first_chunk(), name.last_chunk()) {
            (Some(first), Some(last)) => (u64::from_le_bytes(*first), u64::from_le_bytes(*last)),
            _ => {
                let mut bytes = [0; 8];
                bytes[..name.len()].copy_from_slice(name);
                (u64::from_le_bytes(bytes), u64::from_le_bytes(bytes))
            }
        };
        Name::from_words(first, last, name)
    }

    /// Finds the entry of a name in any case.
    #[must_use]
    pub fn from_any(name: &[u8]) -> Name {
        let mut lower = [0; BYTES_MAX];
        let Some(lower) = lower.get_mut(..name.len()) else {
            return Name::Other;
        };
        lower.copy_from_slice(name);
        lower.make_ascii_lowercase();
        Name::from_lower(lower)
    }

    /// Finds the entry of a name in lower case whose first and last eight bytes the caller has
    /// loaded, little-endian.
    #[inline]
    pub(crate) fn from_words(first: u64, last: u64, name: &[u8]) -> Name {
        let mut slot = hash(first, last, name.len());
        loop {
            let found = TABLE[slot];
            let entry = &ENTRIES[found as usize];
            let same = entry.first == first && entry.last == last && entry.len == name.len();
            if found == Name::Other
                || (same && (name.len() <= 16 || found.as_str().as_bytes() == name))
            {
                return found;
            }
            slot = (slot + 1) % SLOTS;
        }
    }

    /// Finds the entry of a name of at most 16 bytes in any case, and returns its first and last
    /// eight bytes in lower case. [`Name::Other`] if the name has no entry.
    #[inline]
    pub(crate) fn from_any_words(name: &ShortName) -> (Name, u64, u64) {
        let ShortName {
            len,
            first,
            last,
            present,
        } = *name;
        // Sets the bit by which lower-case letters differ; a hyphen has it. Other bytes may become
        // a character of an entry; the comparison tells them apart.
        let lower = CASE & present;
        let mut slot = hash(first | lower, last | lower, len);
        loop {
            let found = TABLE[slot];
            let entry = &ENTRIES[found as usize];
            let differs = (first ^ entry.first) & !entry.first_case
                | (last ^ entry.last) & !entry.last_case
                | (len ^ entry.len) as u64;
            if found == Name::Other || differs == 0 {
                return (found, entry.first, entry.last);
            }
            slot = (slot + 1) % SLOTS;
        }
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

    /// Whether a field of this name frames a body (RFC 9112 §6).
    #[inline]
    #[must_use]
    pub const fn is_framing(self) -> bool {
        matches!(self, Name::ContentLength | Name::TransferEncoding)
    }

    /// Whether a field of this name may affect framing, connection or routing.
    #[inline]
    pub(crate) const fn is_deciding(self) -> bool {
        (self as u8).wrapping_sub(1) < DECIDING
    }
}

/// How many names are in the first group of the table.
const DECIDING: u8 = 10;
const _: () = assert!(Name::Upgrade as u8 == DECIDING);

/// A set of names.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NameSet([u64; 2]);

impl NameSet {
    #[inline]
    pub(crate) fn insert(&mut self, name: Name) {
        self.0[name as usize / 64 % 2] |= 1 << (name as u8 % 64);
    }

    #[inline]
    pub(crate) fn contains(self, name: Name) -> bool {
        self.0[name as usize / 64 % 2] & 1 << (name as u8 % 64) != 0
    }
}

#[inline]
const fn hash(first: u64, last: u64, len: usize) -> usize {
    let mixed = first ^ last.rotate_left(29) ^ len as u64;
    (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - SLOTS.trailing_zeros())) as usize
}

const fn entries() -> [Entry; ALL.len()] {
    let mut entries = [const {
        Entry {
            first: 0,
            last: 0,
            len: 0,
            first_case: 0,
            last_case: 0,
        }
    }; ALL.len()];
    let mut at = 0;
    while at < ALL.len() {
        let text = TEXTS[at].as_bytes();
        let len = text.len();
        assert!(len <= BYTES_MAX);
        let tail = len.saturating_sub(8);
        let (first, last) = (word(text, 0), word(text, tail));
        entries[at] = Entry {
            first,
            last,
            len,
            first_case: case_bits(first),
            last_case: case_bits(last),
        };
        at += 1;
    }
    entries
}

/// The bit in each byte by which a lower-case letter differs from its upper-case form.
const CASE: u64 = 0x2020_2020_2020_2020;

/// [`CASE`] for the bytes of `word` that are lower-case letters.
const fn case_bits(word: u64) -> u64 {
    let (mut bits, mut byte) = (0, 0);
    while byte < 8 {
        if ((word >> (8 * byte)) as u8).is_ascii_lowercase() {
            bits |= 0x20 << (8 * byte);
        }
        byte += 1;
    }
    bits
}

/// Up to eight bytes from `at` on, little-endian.
const fn word(text: &[u8], at: usize) -> u64 {
    let mut word = 0;
    let mut byte = 0;
    while byte < 8 && at + byte < text.len() {
        word |= (text[at + byte] as u64) << (8 * byte);
        byte += 1;
    }
    word
}

/// Open addressing: a name is in the first free slot from its hash on, so a free slot ends a
/// search.
const fn table() -> [Name; SLOTS] {
    let entries = entries();
    let mut table = [Name::Other; SLOTS];
    let mut at = 1;
    while at < ALL.len() {
        let entry = &entries[at];
        let mut slot = hash(entry.first, entry.last, entry.len);
        while !matches!(table[slot], Name::Other) {
            slot = (slot + 1) % SLOTS;
        }
        table[slot] = ALL[at];
        at += 1;
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

    /// Each entry of at most 16 bytes, in mixed case, and with each byte replaced by each other
    /// one.
    #[test]
    fn words_in_any_case_find_what_the_text_finds() {
        for &name in ALL[1..].iter().filter(|name| name.as_str().len() <= 16) {
            let text = name.as_str().as_bytes();
            for place in 0..text.len() {
                for byte in 0..=255u8 {
                    let mut changed = text.to_vec();
                    changed[place] = byte;
                    let len = changed.len();
                    let name = ShortName {
                        len,
                        first: word(&changed, 0),
                        last: word(&changed, len.saturating_sub(8)),
                        present: u64::MAX >> (64 - 8 * len.min(8)),
                    };
                    let (found, low_first, low_last) = Name::from_any_words(&name);
                    assert_eq!(found, Name::from_any(&changed), "{changed:?}");
                    if found != Name::Other {
                        changed.make_ascii_lowercase();
                        assert_eq!(low_first, word(&changed, 0));
                        assert_eq!(low_last, word(&changed, changed.len().saturating_sub(8)));
                    }
                }
            }
        }
    }

    #[test]
    fn searches_are_short() {
        let probes = |name: &Name| {
            let entry = &ENTRIES[*name as usize];
            let home = hash(entry.first, entry.last, entry.len);
            let at = TABLE.iter().position(|slot| slot == name).unwrap();
            (at + SLOTS - home) % SLOTS
        };
        let most = ALL[1..].iter().map(probes).max().unwrap();
        assert!(most <= 4, "{most} probes");
    }
}
