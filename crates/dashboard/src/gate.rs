//! Access control: the `Host` of a request, its password, and the origin of an action.

use std::net::IpAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ctutils::{Choice, CtEq as _};
use hyper::HeaderMap;
use hyper::header::{AUTHORIZATION, HOST, HeaderName, ORIGIN};
use syntax::octets::Octets;

/// The field that carries the token of an action.
const TOKEN: HeaderName = HeaderName::from_static("x-spangate-token");

/// See the module.
pub struct Gate {
    /// `user:password` of every permitted user; empty if no password is asked for.
    accounts: Vec<Vec<u8>>,
    /// The token that every action must carry. Pages of the dashboard receive it with their data;
    /// other sites cannot read it.
    token: String,
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The `Host` field may name another site.
    Host,
    /// The password is wrong or missing.
    Password,
    /// The request does not come from a page of the dashboard.
    Origin,
}

impl Gate {
    /// `seed`: random numbers for the token.
    pub fn new(users: &[(Octets, Octets)], seed: [u64; 2]) -> Gate {
        let account = |(user, password): &(Octets, Octets)| [user, &b":"[..], password].concat();
        let [high, low] = seed;
        Gate {
            accounts: users.iter().map(account).collect(),
            token: format!("{high:016x}{low:016x}"),
        }
    }

    /// Returns the token that every action must carry.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// Whether a request may be answered.
    ///
    /// # Errors
    /// Why not.
    pub fn admit(&self, fields: &HeaderMap) -> Result<(), Refusal> {
        if self.accounts.is_empty() {
            return if host(fields).is_none_or(is_ours) {
                Ok(())
            } else {
                Err(Refusal::Host)
            };
        }
        if self.knows(fields) {
            Ok(())
        } else {
            Err(Refusal::Password)
        }
    }

    /// Whether a request for data comes from the page of another site, according to the browser
    /// (`Sec-Fetch-Site`).
    pub fn is_foreign(fields: &HeaderMap) -> bool {
        let site = fields.get("sec-fetch-site");
        site.is_some_and(|site| !matches!(site.as_bytes(), b"same-origin" | b"none"))
    }

    /// Checks that a request with a change comes from one of our pages: its origin is the address
    /// to which it was sent, and it carries the token.
    ///
    /// # Errors
    /// It does not.
    pub fn admit_action(&self, fields: &HeaderMap) -> Result<(), Refusal> {
        let text = |name| fields.get(name).and_then(|value| value.to_str().ok());
        let origin = text(ORIGIN).and_then(|origin| origin.split_once("://"));
        let is_own = origin.is_some_and(|(_, origin)| Some(origin) == host(fields));
        let token = fields.get(TOKEN).map_or(&b""[..], |token| token.as_bytes());
        if is_own && is_same(token, self.token.as_bytes()).to_bool() {
            Ok(())
        } else {
            Err(Refusal::Origin)
        }
    }

    /// Compares with every account, in a time that does not reveal which bytes differ.
    fn knows(&self, fields: &HeaderMap) -> bool {
        let value = fields.get(AUTHORIZATION).map(|value| value.as_bytes());
        let Some((scheme, encoded)) = value.and_then(|value| value.split_at_checked(6)) else {
            return false;
        };
        if !scheme.eq_ignore_ascii_case(b"Basic ") {
            return false;
        }
        let Ok(given) = STANDARD.decode(encoded.trim_ascii()) else {
            return false;
        };
        let known = { self.accounts.iter() }.fold(Choice::FALSE, |known, account| {
            known | is_same(account, &given)
        });
        known.to_bool()
    }
}

fn is_same(one: &[u8], other: &[u8]) -> Choice {
    one.ct_eq(other)
}

fn host(fields: &HeaderMap) -> Option<&str> {
    fields.get(HOST).and_then(|host| host.to_str().ok())
}

/// Whether another site cannot have made this name point here (DNS rebinding): it is an address, or
/// a name of this machine.
fn is_ours(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    let is_local = |name: &str| {
        let name = name.to_ascii_lowercase();
        name == "localhost" || name.ends_with(".localhost")
    };
    name.parse::<IpAddr>().is_ok() || is_local(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;

    fn fields(all: &[(HeaderName, &str)]) -> HeaderMap {
        let field = |(name, value): &(HeaderName, &str)| {
            (name.clone(), HeaderValue::from_str(value).expect("a value"))
        };
        all.iter().map(field).collect()
    }

    fn account(user: &str, password: &str) -> (Octets, Octets) {
        (user.as_bytes().into(), password.as_bytes().into())
    }

    #[test]
    fn without_passwords_only_names_of_this_machine_are_answered() {
        let gate = Gate::new(&[], [1, 2]);
        for host in [
            "127.0.0.1:8404",
            "[::1]:8404",
            "localhost",
            "LOCALHOST:1",
            "a.localhost",
            "10.0.0.1",
        ] {
            assert_eq!(gate.admit(&fields(&[(HOST, host)])), Ok(()), "{host}");
        }
        for host in [
            "evil.example:8404",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "",
        ] {
            assert_eq!(
                gate.admit(&fields(&[(HOST, host)])),
                Err(Refusal::Host),
                "{host}"
            );
        }
    }

    #[test]
    fn a_password_is_that_of_its_user() {
        let gate = Gate::new(&[account("ann", "a:b"), account("bob", "c")], [1, 2]);
        let basic = |text: &str| format!("Basic {}", STANDARD.encode(text));
        let admitted = |value: &str| {
            let fields = fields(&[(HOST, "proxy.example"), (AUTHORIZATION, value)]);
            gate.admit(&fields).is_ok()
        };
        assert!(admitted(&basic("ann:a:b")) && admitted(&basic("bob:c")));
        assert!(admitted(&basic("bob:c").replace("Basic", "basic")));
        for wrong in ["ann:c", "bob:", "bob", "", ":", "bob:cc", "bob:C"] {
            assert!(!admitted(&basic(wrong)), "{wrong}");
        }
        for wrong in ["Basic", "Basic !", "Bearer x", "Ba\u{e9}"] {
            assert!(!admitted(wrong), "{wrong}");
        }
        assert_eq!(gate.admit(&fields(&[])), Err(Refusal::Password));
    }

    #[test]
    fn an_action_has_the_token_and_comes_from_here() {
        let gate = Gate::new(&[], [1, 2]);
        let token = gate.token().to_owned();
        assert_eq!(token, "00000000000000010000000000000002");
        let asked = |origin: &str, token: &str| {
            let host = (HOST, "127.0.0.1:8404");
            gate.admit_action(&fields(&[host, (ORIGIN, origin), (TOKEN, token)]))
        };
        assert_eq!(asked("http://127.0.0.1:8404", &token), Ok(()));
        assert_eq!(asked("https://127.0.0.1:8404", &token), Ok(()));
        for (origin, token) in [
            ("http://127.0.0.1:8404", ""),
            ("http://127.0.0.1:8404", "0"),
            ("http://127.0.0.1:1", &*token),
            ("http://evil.example", &*token),
            ("null", &*token),
        ] {
            assert_eq!(
                asked(origin, token),
                Err(Refusal::Origin),
                "{origin} {token}"
            );
        }
        let no_origin = fields(&[(HOST, "127.0.0.1:8404"), (TOKEN, &token)]);
        assert_eq!(gate.admit_action(&no_origin), Err(Refusal::Origin));
    }
}
