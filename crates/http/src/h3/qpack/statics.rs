//! The static table (RFC 9204 Appendix A).

use crate::Name;
use crate::h2::hpack::Kind;

/// An entry: a field in the wire form of HTTP/1, and its properties.
pub(super) struct Static {
    pub line: &'static [u8],
    pub name: &'static str,
    pub value: &'static str,
    pub id: Name,
    pub kind: Kind,
}

macro_rules! statics {
    ($($kind:ident $id:ident $name:literal = $value:literal,)+) => {
        /// The table.
        pub(super) static TABLE: [Static; 99] = [$(Static {
            line: concat!($name, ": ", $value, "\r\n").as_bytes(),
            name: $name,
            value: $value,
            id: Name::$id,
            kind: Kind::$kind,
        },)+];

        const IDS: [Name; 99] = [$(Name::$id,)+];
    };
}

statics! {
    Authority Other ":authority" = "",
    Path Other ":path" = "/",
    Field Age "age" = "0",
    Field ContentDisposition "content-disposition" = "",
    Field ContentLength "content-length" = "0",
    Field Cookie "cookie" = "",
    Field Date "date" = "",
    Field Etag "etag" = "",
    Field IfModifiedSince "if-modified-since" = "",
    Field IfNoneMatch "if-none-match" = "",
    Field LastModified "last-modified" = "",
    Field Link "link" = "",
    Field Location "location" = "",
    Field Referer "referer" = "",
    Field SetCookie "set-cookie" = "",
    Method Other ":method" = "CONNECT",
    Method Other ":method" = "DELETE",
    Method Other ":method" = "GET",
    Method Other ":method" = "HEAD",
    Method Other ":method" = "OPTIONS",
    Method Other ":method" = "POST",
    Method Other ":method" = "PUT",
    Scheme Other ":scheme" = "http",
    Scheme Other ":scheme" = "https",
    Status Other ":status" = "103",
    Status Other ":status" = "200",
    Status Other ":status" = "304",
    Status Other ":status" = "404",
    Status Other ":status" = "503",
    Field Accept "accept" = "*/*",
    Field Accept "accept" = "application/dns-message",
    Field AcceptEncoding "accept-encoding" = "gzip, deflate, br",
    Field AcceptRanges "accept-ranges" = "bytes",
    Field AccessControlAllowHeaders "access-control-allow-headers" = "cache-control",
    Field AccessControlAllowHeaders "access-control-allow-headers" = "content-type",
    Field AccessControlAllowOrigin "access-control-allow-origin" = "*",
    Field CacheControl "cache-control" = "max-age=0",
    Field CacheControl "cache-control" = "max-age=2592000",
    Field CacheControl "cache-control" = "max-age=604800",
    Field CacheControl "cache-control" = "no-cache",
    Field CacheControl "cache-control" = "no-store",
    Field CacheControl "cache-control" = "public, max-age=31536000",
    Field ContentEncoding "content-encoding" = "br",
    Field ContentEncoding "content-encoding" = "gzip",
    Field ContentType "content-type" = "application/dns-message",
    Field ContentType "content-type" = "application/javascript",
    Field ContentType "content-type" = "application/json",
    Field ContentType "content-type" = "application/x-www-form-urlencoded",
    Field ContentType "content-type" = "image/gif",
    Field ContentType "content-type" = "image/jpeg",
    Field ContentType "content-type" = "image/png",
    Field ContentType "content-type" = "text/css",
    Field ContentType "content-type" = "text/html; charset=utf-8",
    Field ContentType "content-type" = "text/plain",
    Field ContentType "content-type" = "text/plain;charset=utf-8",
    Field Range "range" = "bytes=0-",
    Field StrictTransportSecurity "strict-transport-security" = "max-age=31536000",
    Field StrictTransportSecurity "strict-transport-security" = "max-age=31536000; includesubdomains",
    Field StrictTransportSecurity "strict-transport-security" = "max-age=31536000; includesubdomains; preload",
    Field Vary "vary" = "accept-encoding",
    Field Vary "vary" = "origin",
    Field XContentTypeOptions "x-content-type-options" = "nosniff",
    Field XXssProtection "x-xss-protection" = "1; mode=block",
    Status Other ":status" = "100",
    Status Other ":status" = "204",
    Status Other ":status" = "206",
    Status Other ":status" = "302",
    Status Other ":status" = "400",
    Status Other ":status" = "403",
    Status Other ":status" = "421",
    Status Other ":status" = "425",
    Status Other ":status" = "500",
    Field AcceptLanguage "accept-language" = "",
    Field AccessControlAllowCredentials "access-control-allow-credentials" = "FALSE",
    Field AccessControlAllowCredentials "access-control-allow-credentials" = "TRUE",
    Field AccessControlAllowHeaders "access-control-allow-headers" = "*",
    Field AccessControlAllowMethods "access-control-allow-methods" = "get",
    Field AccessControlAllowMethods "access-control-allow-methods" = "get, post, options",
    Field AccessControlAllowMethods "access-control-allow-methods" = "options",
    Field AccessControlExposeHeaders "access-control-expose-headers" = "content-length",
    Field AccessControlRequestHeaders "access-control-request-headers" = "content-type",
    Field AccessControlRequestMethod "access-control-request-method" = "get",
    Field AccessControlRequestMethod "access-control-request-method" = "post",
    Field AltSvc "alt-svc" = "clear",
    Field Authorization "authorization" = "",
    Field ContentSecurityPolicy "content-security-policy" = "script-src 'none'; object-src 'none'; base-uri 'none'",
    Field EarlyData "early-data" = "1",
    Field Other "expect-ct" = "",
    Field Forwarded "forwarded" = "",
    Field IfRange "if-range" = "",
    Field Origin "origin" = "",
    Field Other "purpose" = "prefetch",
    Field Server "server" = "",
    Field Other "timing-allow-origin" = "*",
    Field UpgradeInsecureRequests "upgrade-insecure-requests" = "1",
    Field UserAgent "user-agent" = "",
    Field XForwardedFor "x-forwarded-for" = "",
    Field XFrameOptions "x-frame-options" = "deny",
    Field XFrameOptions "x-frame-options" = "sameorigin",
}

/// The indexes of pseudo-header fields.
pub(super) const AUTHORITY: u8 = 0;
pub(super) const PATH_ROOT: u8 = 1;
pub(super) const METHOD_CONNECT: u8 = 15;
pub(super) const METHOD_DELETE: u8 = 16;
pub(super) const METHOD_GET: u8 = 17;
pub(super) const METHOD_HEAD: u8 = 18;
pub(super) const METHOD_OPTIONS: u8 = 19;
pub(super) const METHOD_POST: u8 = 20;
pub(super) const METHOD_PUT: u8 = 21;
pub(super) const SCHEME_HTTP: u8 = 22;
pub(super) const SCHEME_HTTPS: u8 = 23;
pub(super) const STATUS_103: u8 = 24;
pub(super) const STATUS_200: u8 = 25;

/// For each name, by its number, its first and its last entry; first 1 and last 0 if it has none.
static ENTRIES: [(u8, u8); 128] = {
    let mut entries = [(1, 0); 128];
    let mut at = 0;
    while at < IDS.len() {
        let id = IDS[at];
        if !matches!(id, Name::Other) {
            let (first, last) = &mut entries[id as usize];
            if *first > *last {
                *first = at as u8;
            }
            *last = at as u8;
        }
        at += 1;
    }
    entries
};

/// The entry of a name, and whether its value is this one too.
#[inline]
pub(super) fn find(id: Name, value: &[u8]) -> Option<(u8, bool)> {
    let (first, last) = ENTRIES[id as usize % ENTRIES.len()];
    let is_field = |at: &u8| {
        let entry = &TABLE[usize::from(*at)];
        entry.id == id && entry.value.as_bytes() == value
    };
    match (first..=last).find(is_field) {
        Some(at) => Some((at, true)),
        None => (first <= last).then_some((first, false)),
    }
}

/// The index of a status that has one.
#[inline]
pub(super) fn status(status: u16) -> Option<u8> {
    Some(match status {
        103 => STATUS_103,
        200 => STATUS_200,
        304 => 26,
        404 => 27,
        503 => 28,
        100 => 63,
        204 => 64,
        206 => 65,
        302 => 66,
        400 => 67,
        403 => 68,
        421 => 69,
        425 => 70,
        500 => 71,
        _ => return None,
    })
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
                let found = find(entry.id, entry.value.as_bytes());
                assert_eq!(found, Some((at as u8, true)));
            }
        }
        for code in 0..1000 {
            let text = code.to_string();
            let place = TABLE
                .iter()
                .position(|entry| entry.kind == Kind::Status && entry.value == text);
            assert_eq!(status(code).map(usize::from), place);
        }
        for (at, name, value) in [
            (AUTHORITY, ":authority", ""),
            (PATH_ROOT, ":path", "/"),
            (METHOD_CONNECT, ":method", "CONNECT"),
            (METHOD_DELETE, ":method", "DELETE"),
            (METHOD_GET, ":method", "GET"),
            (METHOD_HEAD, ":method", "HEAD"),
            (METHOD_OPTIONS, ":method", "OPTIONS"),
            (METHOD_POST, ":method", "POST"),
            (METHOD_PUT, ":method", "PUT"),
            (SCHEME_HTTP, ":scheme", "http"),
            (SCHEME_HTTPS, ":scheme", "https"),
        ] {
            let entry = &TABLE[usize::from(at)];
            assert_eq!((entry.name, entry.value), (name, value));
        }
        assert_eq!(find(Name::XRequestId, b""), None);
        assert_eq!(find(Name::Other, b""), None);
        assert_eq!(find(Name::Vary, b"cookie"), Some((59, false)));
    }
}
