//! `bearertokenauth` (RFC 6750).

use std::sync::Arc;

use ctutils::CtEq;
use export::tls::Reloading;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};

use super::gate::Denied;
use super::{Editor, FILE_EVERY, read};
use crate::config::components::extensions::basic_auth::Credential;
use crate::config::components::extensions::bearer_token_auth::BearerTokenAuth;

/// Values of the field, of which each will do.
pub struct Tokens {
    header: HeaderName,
    values: Arc<Reloading<Vec<HeaderValue>>>,
}

impl Tokens {
    pub(super) fn new(settings: &BearerTokenAuth) -> Result<Tokens, String> {
        let header = settings.header.to_lowercase().parse::<HeaderName>();
        let has_file = { settings.tokens.iter() }.any(|one| matches!(one, Credential::File(_)));
        let (scheme, tokens) = (settings.scheme.clone(), settings.tokens.clone());
        let load = move || {
            let mut values = Vec::new();
            for token in &tokens {
                let text = match token {
                    Credential::Text(text) => text.clone(),
                    Credential::File(path) => read(path)?,
                };
                let lines = text.lines().map(str::trim);
                for line in lines.filter(|line| !line.is_empty()) {
                    values.push(value(&scheme, line)?);
                }
            }
            if values.is_empty() {
                Err("there is no token".to_owned())
            } else {
                Ok(values)
            }
        };
        let every = has_file.then_some(FILE_EVERY);
        Ok(Tokens {
            header: header.map_err(|error| error.to_string())?,
            values: Arc::new(Reloading::new(every, load)?),
        })
    }

    pub(super) fn admit(&self, headers: &HeaderMap) -> Result<(), Denied> {
        let sent = headers.get(&self.header).ok_or(Denied::Missing)?;
        let values = self.values.get();
        let mut right =
            { values.iter() }.map(|value| bool::from(value.as_bytes().ct_eq(sent.as_bytes())));
        right.any(|right| right).then_some(()).ok_or(Denied::Wrong)
    }

    /// Sends the first.
    pub(super) fn editor(&self) -> Editor {
        let (header, values) = (self.header.clone(), Arc::clone(&self.values));
        Arc::new(move |headers, _| {
            if let Some(value) = values.get().first() {
                headers.insert(header.clone(), value.clone());
            }
            Ok(())
        })
    }
}

fn value(scheme: &str, token: &str) -> Result<HeaderValue, String> {
    let text = match scheme {
        "" => token.to_owned(),
        scheme => format!("{scheme} {token}"),
    };
    let mut value = HeaderValue::try_from(text).map_err(|_| "a token cannot be in a field")?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_token_will_do_and_the_first_is_sent() {
        let tokens = Tokens::new(&BearerTokenAuth {
            header: "Authorization".into(),
            scheme: "Bearer".into(),
            tokens: ["one", "two"]
                .map(|token| Credential::Text(token.into()))
                .into(),
        });
        let tokens = tokens.unwrap();
        let sent =
            |text: &str| HeaderMap::from_iter([(tokens.header.clone(), text.parse().unwrap())]);
        assert_eq!(tokens.admit(&sent("Bearer one")), Ok(()));
        assert_eq!(tokens.admit(&sent("Bearer two")), Ok(()));
        for wrong in ["one", "Bearer", "Bearer three", "bearer one", "Bearer one "] {
            assert_eq!(tokens.admit(&sent(wrong)), Err(Denied::Wrong), "{wrong}");
        }
        assert_eq!(tokens.admit(&HeaderMap::new()), Err(Denied::Missing));
        let mut headers = HeaderMap::new();
        tokens.editor()(&mut headers, None).unwrap();
        assert_eq!(headers["authorization"], "Bearer one");
    }
}
