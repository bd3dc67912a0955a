//! `headers_setter`: fields of requests that are sent.

use std::sync::Arc;

use export::tls::Reloading;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};

use super::{Editor, text};
use crate::config::components::extensions::headers_setter::{Action, HeadersSetter, Source};
use crate::config::components::shared::context::Context;
use crate::run::origin::Origin;

struct Change {
    key: HeaderName,
    action: Action,
    value: Value,
}

enum Value {
    Own(Reloading<String>),
    /// What is known of the client, or what stands for it.
    Client(Context, HeaderValue),
}

pub(super) fn editor(settings: &HeadersSetter) -> Result<Editor, String> {
    let mut changes = Vec::new();
    for change in &settings.headers {
        let key = change.key.to_lowercase().parse::<HeaderName>();
        changes.push(Change {
            key: key.map_err(|error| error.to_string())?,
            action: change.action,
            value: match &change.source {
                Source::Value(credential) => Value::Own(text(credential)?),
                Source::Context(context, default) => {
                    let default = HeaderValue::from_str(default);
                    let default = default.map_err(|error| error.to_string())?;
                    Value::Client(context.clone(), default)
                }
            },
        });
    }
    Ok(Arc::new(move |headers, origin| {
        let mut changes = changes.iter();
        changes.try_for_each(|change| change.make(headers, origin))
    }))
}

impl Change {
    fn make(&self, headers: &mut HeaderMap, origin: Option<&Origin>) -> Result<(), String> {
        let is_due = match self.action {
            Action::Insert => !headers.contains_key(&self.key),
            Action::Update => headers.contains_key(&self.key),
            Action::Upsert => true,
            Action::Delete => {
                headers.remove(&self.key);
                false
            }
        };
        if !is_due {
            return Ok(());
        }
        // A file may hold what no field can.
        if let Some(mut value) = self.value.get(origin)? {
            value.set_sensitive(true);
            headers.insert(self.key.clone(), value);
        }
        Ok(())
    }
}

impl Value {
    /// None where there is nothing that a field can hold.
    ///
    /// # Errors
    /// There is more than one: it cannot be told whose the data are.
    fn get(&self, origin: Option<&Origin>) -> Result<Option<HeaderValue>, String> {
        let (context, default) = match self {
            Value::Own(text) => return Ok(HeaderValue::from_str(&text.get()).ok()),
            Value::Client(context, default) => (context, default),
        };
        let known = match (context, origin) {
            (_, None) | (Context::Address, _) => None,
            (Context::Auth(name), Some(origin)) => {
                let found = { origin.identity() }.and_then(|identity| identity.attribute(name));
                found.and_then(|text| HeaderValue::from_str(text).ok())
            }
            (Context::Field(name), Some(origin)) => match origin.field(name) {
                [] => None,
                [one] => Some(one.clone()),
                all => {
                    let count = all.len();
                    return Err(format!("the request had {count} fields '{name}', not one"));
                }
            },
        };
        Ok(Some(known.unwrap_or_else(|| default.clone())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::components::extensions::basic_auth::Credential;
    use crate::config::components::extensions::headers_setter::Change as Setting;

    fn field(key: &'static str, value: &'static str) -> (HeaderName, HeaderValue) {
        (
            HeaderName::from_static(key),
            HeaderValue::from_static(value),
        )
    }

    #[test]
    fn fields_are_changed_in_order() {
        let change = |key: &str, action, value: &str| Setting {
            key: key.into(),
            action,
            source: Source::Value(Credential::Text(value.into())),
        };
        let settings = HeadersSetter {
            headers: vec![
                change("X-New", Action::Insert, "1"),
                change("X-New", Action::Insert, "2"),
                change("X-Old", Action::Insert, "2"),
                change("X-None", Action::Update, "3"),
                change("X-Old", Action::Update, "4"),
                change("X-Set", Action::Upsert, "5"),
                change("X-Gone", Action::Delete, ""),
            ],
        };
        let mut headers = HeaderMap::from_iter([field("x-old", "0"), field("x-gone", "0")]);
        editor(&settings).unwrap()(&mut headers, None).unwrap();
        let wanted = [
            field("x-new", "1"),
            field("x-old", "4"),
            field("x-set", "5"),
        ];
        assert_eq!(headers, HeaderMap::from_iter(wanted));
    }

    #[test]
    fn what_is_known_of_the_client_is_sent_or_what_stands_for_it() {
        let change = |key: &str, context, default: &str| Setting {
            key: key.into(),
            action: Action::Upsert,
            source: Source::Context(context, default.into()),
        };
        let settings = HeadersSetter {
            headers: vec![
                change("tenant", Context::field("X-Tenant"), "nobody"),
                change("plain", Context::field("x-none"), ""),
                change("user", Context::Auth("username".into()), "anybody"),
            ],
        };
        let edit = editor(&settings).unwrap();
        let edited = |origin: Option<&Origin>| {
            let mut headers = HeaderMap::new();
            edit(&mut headers, origin).map(|()| headers)
        };
        let fields = |tenant, user| {
            let fields = [
                field("tenant", tenant),
                field("plain", ""),
                field("user", user),
            ];
            Ok(HeaderMap::from_iter(fields))
        };
        assert_eq!(edited(None), fields("nobody", "anybody"));
        let origin = Origin::with_fields(&[("x-tenant", "a")]);
        assert_eq!(edited(Some(&origin)), fields("a", "anybody"));
        let two = Origin::with_fields(&[("x-tenant", "a"), ("x-tenant", "b")]);
        assert!(
            edited(Some(&two))
                .unwrap_err()
                .contains("2 fields 'x-tenant'")
        );
    }
}
