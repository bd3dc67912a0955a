//! `POST /api/actions`: changes to servers.

use serde_json::{Map, Value};

/// A change to a server. Each is a command of the runtime interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// The server gets new requests again.
    Ready,
    /// The server gets no new clients.
    Drain,
    /// The server gets no requests, and its health checks stop.
    Maintenance,
    /// The weight: a number from 0 to 256, or a percentage of the configured one.
    Weight(String),
    /// Enables or disables health checks.
    Health(bool),
}

/// Applies an action to a server of a backend. Returns the message of the command, or why it was
/// refused.
pub type Change = dyn Fn(&str, &str, &Action) -> Result<String, String> + Send + Sync;

/// Most bytes of a weight.
const WEIGHT_BYTES_MAX: usize = 16;

/// An action with the names of its backend and its server.
#[derive(Debug, PartialEq, Eq)]
pub struct Asked {
    pub backend: String,
    pub server: String,
    pub action: Action,
}

/// Reads a request's body: `{"backend", "server", "action", "weight"}`.
///
/// # Errors
/// The fault in the body.
pub fn read(body: &[u8]) -> Result<Asked, String> {
    let body: Map<String, Value> =
        serde_json::from_slice(body).map_err(|error| format!("the body is no object: {error}"))?;
    let text = |name: &str| {
        let text = body.get(name).and_then(Value::as_str);
        text.ok_or_else(|| format!("'{name}' must be a string"))
    };
    let action = match text("action")? {
        "ready" => Action::Ready,
        "drain" => Action::Drain,
        "maintenance" => Action::Maintenance,
        "enable-health" => Action::Health(true),
        "disable-health" => Action::Health(false),
        "weight" => {
            let weight = text("weight")?;
            let is_weight = |byte: u8| byte.is_ascii_digit() || byte == b'%';
            if weight.len() > WEIGHT_BYTES_MAX || !weight.bytes().all(is_weight) {
                return Err("'weight' must be a number from 0 to 256, or per cent".to_owned());
            }
            Action::Weight(weight.to_owned())
        }
        other => {
            return Err(format!(
                "'action' is '{other}', not one of 'ready', 'drain', 'maintenance', 'weight', 'enable-health' and 'disable-health'"
            ));
        }
    };
    Ok(Asked {
        backend: text("backend")?.to_owned(),
        server: text("server")?.to_owned(),
        action,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_are_read() {
        let action = |rest: &str| {
            let body = format!("{{\"backend\":\"b\",\"server\":\"s\",{rest}}}");
            read(body.as_bytes()).map(|asked| asked.action)
        };
        assert_eq!(action(r#""action":"drain""#), Ok(Action::Drain));
        assert_eq!(
            action(r#""action":"disable-health""#),
            Ok(Action::Health(false))
        );
        assert_eq!(
            action(r#""action":"weight","weight":"50%""#),
            Ok(Action::Weight("50%".to_owned()))
        );
        for wrong in [
            r#""action":"weight""#,
            r#""action":"weight","weight":"1;shutdown""#,
            r#""action":"weight","weight":"11111111111111111""#,
            r#""action":"delete""#,
            r#""action":1"#,
        ] {
            assert!(action(wrong).is_err(), "{wrong}");
        }
        for wrong in ["", "[]", "{}", "{\"action\":\"drain\"}", "\u{0}"] {
            assert!(read(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
