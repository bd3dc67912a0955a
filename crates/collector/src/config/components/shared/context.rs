//! What components may ask of the request that data came with.

use crate::config::options::Section;

/// One thing that is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Context {
    /// The client's address.
    Address,
    /// A header field, by its name in small letters.
    Field(String),
    /// What the authenticator found, by the name it has for it.
    Auth(String),
}

impl Context {
    /// As `from_context` of an action names it: `client.address`, `auth.x`, `metadata.x`, or a
    /// header field without more.
    #[must_use]
    pub fn of_action(text: &str) -> Context {
        match text.split_once('.') {
            Some(("client", "address")) => Context::Address,
            Some(("auth", name)) => Context::Auth(name.to_owned()),
            Some(("metadata", name)) => Context::field(name),
            _ => Context::field(text),
        }
    }

    /// A header field of any case.
    #[must_use]
    pub fn field(name: &str) -> Context {
        Context::Field(name.to_ascii_lowercase())
    }
}

/// Names of header fields that tell data apart, in small letters. Errors are noted.
pub(crate) fn keys(section: &Section<'_>, name: &str) -> Vec<String> {
    let mut keys = Vec::new();
    for key in section.texts(name) {
        let key = key.to_ascii_lowercase();
        if keys.contains(&key) {
            section.error(name, &format!("'{key}' is there twice"))
        } else {
            keys.push(key)
        }
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_actions_say_what_they_are_of() {
        let field = |name: &str| Context::Field(name.to_owned());
        for (text, context) in [
            ("client.address", Context::Address),
            ("client.port", field("client.port")),
            ("auth.Name.x", Context::Auth("Name.x".to_owned())),
            ("metadata.X-Tenant", field("x-tenant")),
            ("metadata.a.b", field("a.b")),
            ("X-Tenant", field("x-tenant")),
        ] {
            assert_eq!(Context::of_action(text), context, "{text}");
        }
    }
}
