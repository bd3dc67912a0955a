//! A comparison as JSON.

use config::diff::{Applies, Change, Comparison, Effect, Subject, Written};
use serde_json::{Value, json};

/// The names of an effect's subject in JSON.
struct Names<'a> {
    subject: &'static str,
    /// The name of the listener, the server, the list, ….
    name: Option<&'a str>,
    option: Option<&'a str>,
}

/// JSON for programs. Its names are stable; docs/operating.md describes them.
pub(super) fn json(comparison: &Comparison) -> Value {
    let effects = comparison.effects.iter().map(effect);
    json!({
        "effects": effects.collect::<Vec<_>>(),
        "restart": comparison.restarts().next().is_some(),
    })
}

fn effect(effect: &Effect) -> Value {
    let names = names(&effect.subject);
    let change = match effect.change {
        Change::Added(_) => "added",
        Change::Removed(_) => "removed",
        Change::Changed { .. } => "changed",
        Change::Moved { .. } => "moved",
    };
    let reason = match effect.applies {
        Applies::InPlace => None,
        Applies::Restart(reason) => Some(reason),
    };
    let mut value = json!({
        "section": effect.section.kind,
        "section_name": effect.section.name,
        "subject": names.subject,
        "name": names.name,
        "option": names.option,
        "change": change,
        "old": effect.change.before().map(written),
        "new": effect.change.after().map(written),
        "restart": reason.is_some(),
        "restart_reason": reason,
    });
    if matches!(effect.subject, Subject::Acl { .. }) {
        value["used_by"] = effect.used_by.iter().map(written).collect();
    }
    value
}

fn written(written: &Written) -> Value {
    json!({
        "text": written.text,
        "file": written.place.file,
        "line": written.place.line,
    })
}

fn names(subject: &Subject) -> Names<'_> {
    let (subject, name, option) = match subject {
        Subject::Section => ("section", None, None),
        Subject::Mode => ("mode", None, None),
        Subject::Listener { address } => ("listener", Some(address), None),
        Subject::ListenerOption { address, option } => {
            ("listener_option", Some(address), Some(option))
        }
        Subject::Server { server } => ("server", Some(server), None),
        Subject::ServerAddress { server } => ("server_address", Some(server), None),
        Subject::ServerOption { server, option } => ("server_option", Some(server), Some(option)),
        Subject::Acl { acl } => ("acl", Some(acl), None),
        Subject::Rule { list } => ("rule", Some(list), None),
        Subject::Setting { setting } => ("setting", Some(setting), None),
    };
    Names {
        subject,
        name: name.map(String::as_str),
        option: option.map(String::as_str),
    }
}
