//! The static table (RFC 7541 Appendix A).

use super::Kind;
use crate::Name;

/// An entry: a field in the wire form of HTTP/1, and its properties.
pub(super) struct Static {
    pub line: &'static [u8],
    pub name: &'static str,
    pub value: &'static str,
    pub id: Name,
    pub kind: Kind,
}

/// The number of entries; the first dynamic one has the next index.
pub(super) const STATICS: usize = TABLE.len();

macro_rules! statics {
    ($($kind:ident $id:ident $name:literal = $value:literal,)+) => {
        /// The table; index 1 is its first entry.
        pub(super) static TABLE: [Static; 61] = [$(Static {
            line: concat!($name, ": ", $value, "\r\n").as_bytes(),
            name: $name,
            value: $value,
            id: Name::$id,
            kind: Kind::$kind,
        },)+];

        const IDS: [Name; 61] = [$(Name::$id,)+];
    };
}

statics! {
    Authority Other ":authority" = "",
    Method Other ":method" = "GET",
    Method Other ":method" = "POST",
    Path Other ":path" = "/",
    Path Other ":path" = "/index.html",
    Scheme Other ":scheme" = "http",
    Scheme Other ":scheme" = "https",
    Status Other ":status" = "200",
    Status Other ":status" = "204",
    Status Other ":status" = "206",
    Status Other ":status" = "304",
    Status Other ":status" = "400",
    Status Other ":status" = "404",
    Status Other ":status" = "500",
    Field AcceptCharset "accept-charset" = "",
    Field AcceptEncoding "accept-encoding" = "gzip, deflate",
    Field AcceptLanguage "accept-language" = "",
    Field AcceptRanges "accept-ranges" = "",
    Field Accept "accept" = "",
    Field AccessControlAllowOrigin "access-control-allow-origin" = "",
    Field Age "age" = "",
    Field Allow "allow" = "",
    Field Authorization "authorization" = "",
    Field CacheControl "cache-control" = "",
    Field ContentDisposition "content-disposition" = "",
    Field ContentEncoding "content-encoding" = "",
    Field ContentLanguage "content-language" = "",
    Field ContentLength "content-length" = "",
    Field ContentLocation "content-location" = "",
    Field ContentRange "content-range" = "",
    Field ContentType "content-type" = "",
    Field Cookie "cookie" = "",
    Field Date "date" = "",
    Field Etag "etag" = "",
    Field Expect "expect" = "",
    Field Expires "expires" = "",
    Field From "from" = "",
    Field Host "host" = "",
    Field IfMatch "if-match" = "",
    Field IfModifiedSince "if-modified-since" = "",
    Field IfNoneMatch "if-none-match" = "",
    Field IfRange "if-range" = "",
    Field IfUnmodifiedSince "if-unmodified-since" = "",
    Field LastModified "last-modified" = "",
    Field Link "link" = "",
    Field Location "location" = "",
    Field MaxForwards "max-forwards" = "",
    Field ProxyAuthenticate "proxy-authenticate" = "",
    Field ProxyAuthorization "proxy-authorization" = "",
    Field Range "range" = "",
    Field Referer "referer" = "",
    Field Other "refresh" = "",
    Field RetryAfter "retry-after" = "",
    Field Server "server" = "",
    Field SetCookie "set-cookie" = "",
    Field StrictTransportSecurity "strict-transport-security" = "",
    Field TransferEncoding "transfer-encoding" = "",
    Field UserAgent "user-agent" = "",
    Field Vary "vary" = "",
    Field Via "via" = "",
    Field WwwAuthenticate "www-authenticate" = "",
}

/// The index of `:authority`, `:method`, `:path`, `:scheme` and `:status`, the first of each.
pub(super) const AUTHORITY: u8 = 1;
pub(super) const METHOD_GET: u8 = 2;
pub(super) const METHOD_POST: u8 = 3;
pub(super) const PATH_ROOT: u8 = 4;
pub(super) const SCHEME_HTTP: u8 = 6;
pub(super) const SCHEME_HTTPS: u8 = 7;
pub(super) const STATUS_200: u8 = 8;

/// For each name, by its number, the index of its first entry; 0 if it has none.
static INDEXES: [u8; 128] = {
    let mut indexes = [0; 128];
    let mut at = IDS.len();
    while at > 0 {
        at -= 1;
        if !matches!(IDS[at], Name::Other) {
            indexes[IDS[at] as usize] = at as u8 + 1;
        }
    }
    indexes
};

/// The index of the first entry of a name; 0 if it has none.
#[inline]
pub(super) fn index_of(id: Name) -> u8 {
    INDEXES[id as usize % INDEXES.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_agree_with_the_names() {
        for (at, entry) in TABLE.iter().enumerate() {
            assert_eq!(entry.id, Name::from_lower(entry.name.as_bytes()));
            assert_eq!(entry.kind == Kind::Field, !entry.name.starts_with(':'));
            if entry.id != Name::Other {
                assert_eq!(usize::from(index_of(entry.id)), at + 1);
            }
        }
        let names = [AUTHORITY, METHOD_GET, PATH_ROOT, SCHEME_HTTP, STATUS_200]
            .map(|index| TABLE[usize::from(index) - 1].name);
        assert_eq!(
            names,
            [":authority", ":method", ":path", ":scheme", ":status"]
        );
        assert_eq!(index_of(Name::XRequestId), 0);
    }
}
