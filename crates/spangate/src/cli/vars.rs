//! `get var` and `set var`: variables of scope `proc` (management guide §9.3).

use proxy::AssignError;
use sample::{Value, VarScope};

use super::{Asked, Command, Level, Reply, command};

#[rustfmt::skip]
pub(super) const COMMANDS: &[Command] = &[
    command("get var", "<name>", Level::Operator, "show the value of a variable of the process", get),
    command("set var", "<name> [fmt|expr] {<format>|<expr>}", Level::Operator, "set a variable of the process from an expression or a format", set),
];

fn refused(text: &str) -> Reply {
    Reply::Refused(text.to_owned())
}

fn get(asked: &Asked<'_>) -> Reply {
    let Some(name) = asked.rest.first() else {
        return refused("Missing process-wide variable identifier.\n");
    };
    let runtime_config = &asked.subjects.runtime_config;
    let mut known = runtime_config.config.var_names.of(VarScope::Proc);
    let own = name.strip_prefix("proc.").unwrap_or_default();
    let slot = known.find(|(_, known)| *known == own).map(|(slot, _)| slot);
    let Some(value) = slot.and_then(|slot| runtime_config.proc_var(slot)) else {
        return refused("Variable not found.\n");
    };
    let mut text = Vec::new();
    value.append_text(&mut text);
    let printable = |byte: &u8| match byte {
        b' '..=b'~' => char::from(*byte),
        _ => '.',
    };
    let text: String = text.iter().map(printable).collect();
    Reply::Said(format!("{name}: type={} value=<{text}>\n", kind(&value)))
}

/// The type of a value as HAProxy names it.
fn kind(value: &Value<'_>) -> &'static str {
    match value {
        Value::Bool(_) => "bool",
        Value::Int(_) => "sint",
        Value::Ipv4(_) => "ipv4",
        Value::Ipv6(_) => "ipv6",
        Value::Str(_) => "str",
        Value::Bin(_) => "bin",
        Value::Method(..) => "meth",
    }
}

fn set(asked: &Asked<'_>) -> Reply {
    let Some(name) = asked.rest.first() else {
        return refused("Missing process-wide variable identifier.\n");
    };
    let (is_format, text) = match (asked.rest.get(1), asked.bytes.get(2)) {
        (None, _) => return refused("Missing either 'expr', 'fmt' or expression.\n"),
        (Some(_), None) => (false, asked.bytes[1]),
        (Some(&"fmt"), Some(text)) => (true, *text),
        (Some(&"expr"), Some(text)) => (false, *text),
        (Some(kind), Some(_)) => {
            return Reply::Refused(format!(
                "'set var': arg type must be either 'expr' or 'fmt' but got '{kind}'.\n"
            ));
        }
    };
    if !name.starts_with("proc.") {
        return Reply::Refused(format!(
            "'set var': cannot set variable '{name}', only scope 'proc' is permitted here.\n"
        ));
    }
    let subjects = asked.subjects;
    let now = net::sys::now();
    match subjects
        .runtime_config
        .assign_proc_var(&subjects.shared, name, (is_format, text), now)
    {
        Ok(()) => Reply::Done,
        Err(AssignError::Unnamed) => Reply::Refused(format!(
            "'set var': nothing in the configuration names variable '{name}'.\n"
        )),
        Err(AssignError::Expression(message)) => Reply::Refused(format!("'set var': {message}\n")),
    }
}
