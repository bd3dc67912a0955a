use hyper::header::{AUTHORIZATION, HeaderName};

use super::*;

fn wanted(names: &[&str]) -> Wanted {
    Wanted {
        names: names.iter().map(|name| Arc::from(*name)).collect(),
        address: true,
        identity: true,
    }
}

fn headers(fields: &[(&'static str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in fields {
        let name = HeaderName::from_static(name);
        headers.append(name, HeaderValue::from_str(value).unwrap());
    }
    headers
}

fn came(headers: &HeaderMap) -> Came<'_> {
    Came {
        headers,
        authority: Some("host:1"),
        address: Some("::ffff:10.0.0.1".parse().unwrap()),
    }
}

#[test]
fn what_is_asked_for_is_kept_and_nothing_else() {
    let headers = headers(&[
        ("x-tenant", "a"),
        ("x-tenant", "b"),
        ("x-empty", ""),
        ("x-other", "c"),
    ]);
    let wanted = wanted(&["x-tenant", "x-empty", "x-none", "host", ":authority"]);
    let identity = Identity::of_basic("YTpi");
    let origin = wanted.origin(&came(&headers), identity).unwrap().unwrap();
    let text = |name: &str| text(Some(&origin), &Context::of_action(name));
    for (name, expected) in [
        ("metadata.X-Tenant", Some("a;b")),
        ("x-empty", Some("")),
        ("x-none", None),
        ("x-other", None),
        ("metadata.host", Some("host:1")),
        ("metadata.:authority", Some("host:1")),
        ("client.address", Some("10.0.0.1")),
        ("auth.username", Some("a")),
        ("auth.raw", Some("YTpi")),
        ("auth.password", None),
    ] {
        assert_eq!(text(name).as_deref(), expected, "{name}");
    }
    let lost = |name: &str| super::text(None, &Context::of_action(name));
    assert_eq!(lost("client.address").as_deref(), Some(""));
    assert_eq!((lost("x-tenant"), lost("auth.raw")), (None, None));
}

#[test]
fn a_receiver_without_metadata_keeps_no_fields() {
    let headers = headers(&[("x-tenant", "a")]);
    let all = wanted(&["x-tenant"]);
    let none = all.of_receiver(false).unwrap();
    let origin = none.origin(&came(&headers), None).unwrap().unwrap();
    assert!(origin.field("x-tenant").is_empty() && origin.address.is_some());
    let fields_only = Wanted {
        address: false,
        identity: false,
        ..all
    };
    assert!(fields_only.of_receiver(false).is_none());
    let kept = fields_only.of_receiver(true).unwrap();
    let origin = kept.origin(&came(&headers), None).unwrap().unwrap();
    assert_eq!(origin.field("x-tenant"), ["a"]);
    assert_eq!(origin.address, None);
}

#[test]
fn more_than_is_kept_is_too_much() {
    let wanted = wanted(&["a", "b"]);
    let origin = |fields: &[(&'static str, &str)]| wanted.origin(&came(&headers(fields)), None);
    let mut many = vec![("a", ""); FIELDS_MAX];
    assert!(origin(&many).is_ok());
    many.push(("b", ""));
    assert_eq!(origin(&many), Err(TooMuch));
    let long = "v".repeat(FIELDS_BYTES_MAX - 1);
    let fits = origin(&[("a", &long)]).unwrap().unwrap();
    assert!(fits.bytes() > long.len() as u64);
    assert_eq!(origin(&[("a", &long), ("b", "")]), Err(TooMuch));
    assert!(origin(&[("c", &long), (AUTHORIZATION.as_str(), &long)]).is_ok());
}
