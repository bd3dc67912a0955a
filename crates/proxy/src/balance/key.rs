//! What a request is hashed by. The hash is HAProxy's default (sdbm), so that a migrated backend keeps its distribution.

use config::model::Balance;
use http::Head;
use net::Addr;
use sample::Session;

/// The hash of what binds this request to a server; none for algorithms that do not hash, or where the request lacks it.
pub(crate) fn key(balance: &Balance, session: &Session, request: Option<&Head>) -> Option<u32> {
    match balance {
        Balance::Source => source(&session.src),
        Balance::Uri {
            whole,
            len,
            depth,
            path_only,
        } => {
            let request = request?;
            let uri = if *path_only {
                request.path_and_query()
            } else {
                request.target()
            };
            Some(sdbm(uri_part(uri, *whole, *len, *depth)))
        }
        Balance::UrlParam { name, .. } => {
            let query = request?.query()?;
            let value = query.split(|byte| *byte == b'&').find_map(|pair| {
                let value = pair.strip_prefix(name.as_bytes())?;
                value.strip_prefix(b"=")
            })?;
            Some(sdbm(value))
        }
        Balance::Hdr {
            name,
            use_domain_only,
        } => {
            let (_, value) = request?.find(name.as_bytes()).next()?;
            Some(sdbm(if *use_domain_only {
                domain(value)
            } else {
                value
            }))
        }
        _ => None,
    }
}

/// sdbm over bytes.
pub(crate) fn sdbm(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0_u32, |hash, byte| {
        u32::from(*byte)
            .wrapping_add(hash << 6)
            .wrapping_add(hash << 16)
            .wrapping_sub(hash)
    })
}

fn source(addr: &Addr) -> Option<u32> {
    match addr.ip()? {
        std::net::IpAddr::V4(ip) => Some(u32::from(ip)),
        std::net::IpAddr::V6(ip) => {
            let words = ip.octets();
            let words = words
                .chunks_exact(4)
                .map(|word| u32::from_be_bytes([word[0], word[1], word[2], word[3]]));
            Some(words.fold(0, |hash, word| hash ^ word))
        }
    }
}

/// The part of a URI before its query, or all of it, cut at `len` bytes and before the slash after `depth` directories.
fn uri_part(uri: &[u8], whole: bool, len: Option<usize>, depth: Option<usize>) -> &[u8] {
    let uri = &uri[..len.unwrap_or(usize::MAX).min(uri.len())];
    let mut slashes = 0;
    for (index, byte) in uri.iter().enumerate() {
        match byte {
            b'/' => {
                slashes += 1;
                if depth.is_some_and(|depth| slashes > depth) {
                    return &uri[..index];
                }
            }
            b'?' if !whole => return &uri[..index],
            _ => {}
        }
    }
    uri
}

/// The second-level label of a host name: `www.example.com` → `example`.
fn domain(host: &[u8]) -> &[u8] {
    let host = host.split(|byte| *byte == b':').next().unwrap_or(host);
    let labels: Vec<&[u8]> = host.split(|byte| *byte == b'.').collect();
    if labels.len() >= 2 {
        labels[labels.len() - 2]
    } else {
        host
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_are_cut_where_they_should() {
        assert_eq!(uri_part(b"/a/b/c?x", false, None, None), b"/a/b/c");
        assert_eq!(uri_part(b"/a/b/c?x", true, None, None), b"/a/b/c?x");
        assert_eq!(uri_part(b"/a/b/c?x", false, Some(3), None), b"/a/");
        assert_eq!(uri_part(b"/a/b/c?x", false, None, Some(1)), b"/a");
    }

    #[test]
    fn domains() {
        assert_eq!(domain(b"www.example.com:80"), b"example");
        assert_eq!(domain(b"localhost"), b"localhost");
    }
}
