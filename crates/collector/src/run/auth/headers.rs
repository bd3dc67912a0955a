//! `headers_setter`: fields of requests that are sent.

use std::sync::Arc;

use export::client::Editor;
use export::tls::Reloading;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};

use super::text;
use crate::config::components::extensions::headers_setter::{Action, HeadersSetter};

struct Change {
    key: HeaderName,
    action: Action,
    value: Reloading<String>,
}

pub(super) fn editor(settings: &HeadersSetter) -> Result<Editor, String> {
    let mut changes = Vec::new();
    for change in &settings.headers {
        let key = change.key.to_lowercase().parse::<HeaderName>();
        changes.push(Change {
            key: key.map_err(|error| error.to_string())?,
            action: change.action,
            value: text(&change.value)?,
        });
    }
    Ok(Arc::new(move |headers: &mut HeaderMap| {
        for change in &changes {
            change.make(headers);
        }
    }))
}

impl Change {
    fn make(&self, headers: &mut HeaderMap) {
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
            return;
        }
        // A file may hold what no field can.
        if let Ok(mut value) = HeaderValue::from_str(&self.value.get()) {
            value.set_sensitive(true);
            headers.insert(self.key.clone(), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::components::extensions::basic_auth::Credential;
    use crate::config::components::extensions::headers_setter::Change as Setting;

    #[test]
    fn fields_are_changed_in_order() {
        let change = |key: &str, action, value: &str| Setting {
            key: key.into(),
            action,
            value: Credential::Text(value.into()),
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
        let field = |key: &'static str, value: &'static str| {
            (
                HeaderName::from_static(key),
                HeaderValue::from_static(value),
            )
        };
        let mut headers = HeaderMap::from_iter([field("x-old", "0"), field("x-gone", "0")]);
        editor(&settings).unwrap()(&mut headers);
        let wanted = [
            field("x-new", "1"),
            field("x-old", "4"),
            field("x-set", "5"),
        ];
        assert_eq!(headers, HeaderMap::from_iter(wanted));
    }
}
