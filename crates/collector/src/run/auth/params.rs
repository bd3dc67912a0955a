//! `request_params`: parameters of a URL that an authenticator sees as if they were fields of the
//! request.

use std::borrow::Cow;

use hyper::Uri;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use syntax::escape::{Plus, unescaped};

/// The fields of a request, and in their places the parameters of these names; of two of a name the
/// first counts.
#[must_use]
pub fn seen<'a>(headers: &'a HeaderMap, uri: &Uri, names: &[String]) -> Cow<'a, HeaderMap> {
    let mut seen = Cow::Borrowed(headers);
    let query = uri.query().unwrap_or_default();
    if names.is_empty() || query.is_empty() {
        return seen;
    }
    for name in names {
        let mut pairs = query
            .split('&')
            .map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        let is_it = |(key, _): &(&str, &str)| decoded(key).as_deref() == Some(name.as_bytes());
        let Some((_, value)) = pairs.find(is_it) else {
            continue;
        };
        let field = HeaderName::from_bytes(name.as_bytes());
        let value = decoded(value).and_then(|value| HeaderValue::from_bytes(&value).ok());
        if let (Ok(field), Some(value)) = (field, value) {
            seen.to_mut().insert(field, value);
        }
    }
    seen
}

fn decoded(text: &str) -> Option<Vec<u8>> {
    unescaped(text, Plus::Space)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_take_the_places_of_fields() {
        let headers = HeaderMap::from_iter([(
            HeaderName::from_static("authorization"),
            HeaderValue::from_static("Bearer field"),
        )]);
        let names = ["Authorization".to_owned(), "x y".to_owned()];
        let field = |uri: &str| {
            let seen = seen(&headers, &uri.parse().unwrap(), &names);
            let value = seen.get("authorization").unwrap();
            (value.to_str().unwrap().to_owned(), seen.len())
        };
        for (uri, value) in [
            ("/", "Bearer field"),
            ("/?a=b&x+y=z", "Bearer field"),
            ("/?authorization=Bearer+other", "Bearer field"),
            (
                "/?a=b&Authorization=Bearer+one&Authorization=two",
                "Bearer one",
            ),
            ("/?%41uthorization=Bearer%20two", "Bearer two"),
            ("/?Authorization=%0a", "Bearer field"),
            ("/?Authorization=%4", "Bearer field"),
            ("/?Authorization=%zz", "Bearer field"),
            ("/?Authorization", ""),
        ] {
            assert_eq!(field(uri), (value.to_owned(), 1), "{uri}");
        }
    }
}
