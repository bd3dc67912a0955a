//! Credentials of a request (manual §7.3.6; RFC 7617 Basic, RFC 6750 Bearer).

use ::http::Head;

use super::request;
use crate::args::ArgKind::{Str, Userlist};
use crate::args::{Arg, NONE, Spec, spec, str_at};
use crate::auth::User;
use crate::cast::until_nul;
use crate::convert::coding::decode64;
use crate::fetch::{Cursor, Fetch, REQUEST_HEAD, fetch};
use crate::{Bytes, Kind, Scope, Value};

const LIST: Spec = spec(1, &[Userlist]);

pub(crate) const FETCHES: &[Fetch] = &[
    fetch(
        "http_auth",
        LIST,
        Kind::Bool,
        &REQUEST_HEAD,
        "whether user and password are those of a user of a list",
        |args, scope, cursor| {
            let credentials = Credentials::of(request(scope, cursor)?, scope)?;
            let right = credentials.verify(args).is_some();
            Some(Value::Bool(right))
        },
    ),
    fetch(
        "http_auth_bearer",
        spec(0, &[Str]),
        Kind::Str,
        &REQUEST_HEAD,
        "the token of the scheme Bearer",
        bearer,
    ),
    fetch(
        "http_auth_group",
        LIST,
        Kind::Str,
        &REQUEST_HEAD,
        "the user, if the password is right; an ACL compares the user's groups",
        group,
    ),
    fetch(
        "http_auth_pass",
        NONE,
        Kind::Str,
        &REQUEST_HEAD,
        "the password",
        |_, scope, cursor| {
            let credentials = Credentials::of(request(scope, cursor)?, scope)?;
            let from = credentials.colon + 1;
            Some(Value::Str(credentials.text.slice(from, usize::MAX)))
        },
    ),
    fetch(
        "http_auth_type",
        NONE,
        Kind::Str,
        &REQUEST_HEAD,
        "the scheme: Basic or Bearer",
        scheme,
    ),
    fetch(
        "http_auth_user",
        NONE,
        Kind::Str,
        &REQUEST_HEAD,
        "the user",
        |_, scope, cursor| {
            let credentials = Credentials::of(request(scope, cursor)?, scope)?;
            let end = credentials.colon;
            Some(Value::Str(credentials.text.slice(0, end)))
        },
    ),
];

/// User and password of the scheme Basic.
struct Credentials {
    /// Both, separated by a colon.
    text: Bytes<'static>,
    colon: usize,
}

impl Credentials {
    fn of(request: &Head, scope: &Scope<'_>) -> Option<Credentials> {
        let (scheme, coded) = authorization(request, field_name(scope))?;
        if !scheme.eq_ignore_ascii_case(b"basic") {
            return None;
        }
        let mut buffer = Bytes::buffer();
        decode64(coded, buffer.as_vec())?;
        let length = until_nul(buffer.as_vec()).len();
        buffer.as_vec().truncate(length);
        let colon = memchr::memchr(b':', buffer.as_vec())?;
        Some(Credentials {
            text: buffer.into(),
            colon,
        })
    }

    /// The user of a list, if the password is correct.
    fn verify<'a>(&self, args: &'a [Arg]) -> Option<&'a User> {
        let Some(Arg::Userlist(list)) = args.first() else {
            return None;
        };
        let (user, password) = (&self.text[..self.colon], &self.text[self.colon + 1..]);
        list.verify(user, password)
    }
}

/// The name of the field with the credentials.
fn field_name(scope: &Scope<'_>) -> &'static [u8] {
    if scope.txn.is_some_and(|txn| txn.is_proxied) {
        b"proxy-authorization"
    } else {
        b"authorization"
    }
}

/// Scheme and credentials of the first value of a field.
fn authorization<'a>(request: &'a Head, name: &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
    let (_, line) = request.find(name).next()?;
    let value = line.split(|byte| *byte == b',').next()?.trim_ascii();
    let space = memchr::memchr(b' ', value).filter(|space| *space > 0)?;
    Some((&value[..space], value[space..].trim_ascii_start()))
}

fn scheme<'a>(_: &'a [Arg], scope: &Scope<'a>, cursor: &mut Cursor) -> Option<Value<'a>> {
    let request = request(scope, cursor)?;
    let (scheme, _) = authorization(request, field_name(scope))?;
    if scheme.eq_ignore_ascii_case(b"bearer") {
        return Some(Value::text(&b"Bearer"[..]));
    }
    // Basic credentials that cannot be parsed count as none.
    Credentials::of(request, scope).map(|_| Value::text(&b"Basic"[..]))
}

fn bearer<'a>(args: &'a [Arg], scope: &Scope<'a>, cursor: &mut Cursor) -> Option<Value<'a>> {
    let name = match str_at(args, 0) {
        b"" => field_name(scope),
        name => name,
    };
    let (scheme, token) = authorization(request(scope, cursor)?, name)?;
    scheme
        .eq_ignore_ascii_case(b"bearer")
        .then_some(Value::text(token))
}

/// The user's name. An ACL, which asks for every value, gets the groups one by one, or one empty
/// group if there are none.
fn group<'a>(args: &'a [Arg], scope: &Scope<'a>, cursor: &mut Cursor) -> Option<Value<'a>> {
    let credentials = Credentials::of(request(scope, cursor)?, scope)?;
    let user = credentials.verify(args)?;
    if !cursor.iterate {
        return Some(Value::text(user.name.as_bytes()));
    }
    let place = cursor.index;
    cursor.index += 1;
    cursor.more = cursor.index < user.groups.len();
    match user.groups.get(place) {
        Some(group) => Some(Value::text(group.as_bytes())),
        None => Some(Value::text(&b""[..])),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::auth::{Password, User, Userlist};
    use crate::testing::{Facts, compiler};
    use crate::{Acls, Place};

    fn list() -> Arc<Userlist> {
        let user = |name: &str, groups: &[&str]| User {
            name: name.into(),
            password: Password::Plain("a:b".into()),
            groups: groups.iter().map(|group| (*group).into()).collect(),
        };
        let users = vec![user("u", &["g", "h"]), user("loner", &[])];
        Arc::new(Userlist::new(
            users,
            vec!["g".into(), "h".into(), "i".into()],
        ))
    }

    fn text(header: &str, expr: &str) -> Option<String> {
        Facts::with_request(&format!("GET / HTTP/1.1\n{header}\n\n")).text(expr)
    }

    fn holds(header: &str, words: &[&str]) -> bool {
        let mut compiler = compiler();
        compiler.declare_userlist("l", list());
        let condition = compiler
            .condition(&Acls::default(), words, false, Place::ALL)
            .unwrap_or_else(|error| panic!("{words:?}: {error}"));
        let facts = Facts::with_request(&format!("GET / HTTP/1.1\n{header}\n\n"));
        condition.matches(&facts.scope())
    }

    /// `u:a:b`, `u:x`, `loner:a:b`, `nobody`
    const U: &str = "Authorization: Basic dTphOmI=";
    const WRONG: &str = "Authorization: basic  dTp4";
    const LONER: &str = "Authorization: Basic bG9uZXI6YTpi";
    const NO_COLON: &str = "Authorization: Basic bm9ib2R5";

    #[test]
    fn parts() {
        for (header, expr, wanted) in [
            (U, "http_auth_user", Some("u")),
            (U, "http_auth_pass", Some("a:b")),
            (U, "http_auth_type", Some("Basic")),
            (U, "http_auth_bearer", None),
            (WRONG, "http_auth_pass", Some("x")),
            (NO_COLON, "http_auth_user", None),
            (NO_COLON, "http_auth_type", None),
            (
                "Authorization: bearer  x.y, z",
                "http_auth_bearer",
                Some("x.y"),
            ),
            ("Authorization: Bearer x", "http_auth_type", Some("Bearer")),
            ("Authorization: Bearer x", "http_auth_user", None),
            ("X-Token: Bearer x", "http_auth_bearer(x-token)", Some("x")),
            ("Authorization: Digest x", "http_auth_type", None),
            ("Authorization: Basic", "http_auth_user", None),
            ("Authorization: Basic ====", "http_auth_user", None),
            ("Authorization: Basic dTphOm", "http_auth_user", None),
            (
                "Proxy-Authorization: Basic dTphOmI=",
                "http_auth_user",
                None,
            ),
            // `u:a` NUL `b`
            ("Authorization: Basic dTphAGI=", "http_auth_pass", Some("a")),
        ] {
            assert_eq!(text(header, expr).as_deref(), wanted, "{header}: {expr}");
        }
    }

    #[test]
    fn users_and_groups() {
        let list = &["{", "http_auth(l)", "}"];
        assert!(holds(U, list) && holds(LONER, list));
        assert!(!holds(WRONG, list) && !holds(NO_COLON, list) && !holds("A: b", list));
        let in_group = |group| ["{", "http_auth_group(l)", group, "}"];
        assert!(holds(U, &in_group("g")) && holds(U, &in_group("h")));
        assert!(!holds(U, &in_group("i")) && !holds(LONER, &in_group("g")));
        assert!(!holds(WRONG, &in_group("g")));
        let found = ["{", "http_auth_group(l)", "-m", "found", "}"];
        assert!(holds(U, &found) && holds(LONER, &found) && !holds(WRONG, &found));
    }

    #[test]
    fn a_list_must_be_there() {
        let error = compiler().expr(&["http_auth(x)"], Place::ALL).err();
        let message = error.map(|error| error.message).unwrap_or_default();
        assert!(message.contains("unable to find userlist 'x'"), "{message}");
    }

    #[test]
    fn a_group_must_be_there() {
        let words = ["{", "http_auth_group(l)", "g", "x", "}"];
        let mut compiler = compiler();
        compiler.declare_userlist("l", list());
        let result = compiler.condition(&Acls::default(), &words, false, Place::ALL);
        let message = result.err().map(|error| error.message).unwrap_or_default();
        assert_eq!(message, "http_auth_group(): invalid group 'x'");
    }
}
