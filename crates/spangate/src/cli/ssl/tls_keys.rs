//! `show tls-keys` and `set ssl tls-key`: the keys of session tickets.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::{Asked, Command, Level, Reply, command, refused, tls};

pub(in super::super) const COMMANDS: &[Command] = &[
    command(
        "show tls-keys",
        "[id|*]",
        Level::Admin,
        "show tls keys references or dump tls ticket keys when id specified",
        show,
    ),
    command(
        "set ssl tls-key",
        "[id|file] <key>",
        Level::Admin,
        "set the next TLS key for the <id> or <file> listener to <key>",
        set,
    ),
];

fn show(asked: &Asked<'_>) -> Reply {
    let all = tls(asked).ticket_keys();
    let mut out = String::new();
    let wanted = asked.rest.first().copied();
    let Some(wanted) = wanted else {
        out += "# id (file)\n";
        for (id, file, _) in all {
            let _ = writeln!(out, "{id} ({})", file.display());
        }
        return Reply::Dump(out);
    };
    let is_wanted = |id: usize, file: &std::path::Path| {
        wanted == "*"
            || wanted
                .strip_prefix('#')
                .is_some_and(|word| word.parse() == Ok(id))
            || file.as_os_str() == wanted
    };
    let found = all.into_iter().filter(|(id, file, _)| is_wanted(*id, file));
    let found: Vec<_> = found.collect();
    if found.is_empty() {
        return refused("'show tls-keys' unable to locate referenced filename\n");
    }
    out += "# id secret\n";
    for (id, file, keys) in found {
        let _ = writeln!(out, "# {id} ({})", file.display());
        for (number, key) in keys.secrets().iter().enumerate() {
            let _ = writeln!(out, "{id}.{number} {}", STANDARD.encode(key));
        }
    }
    Reply::Dump(out)
}

fn set(asked: &Asked<'_>) -> Reply {
    let [wanted, key, ..] = asked.rest else {
        return refused(
            "'set ssl tls-key' expects a filename and the new TLS key in base64 encoding.\n",
        );
    };
    let all = tls(asked).ticket_keys();
    let found = all.into_iter().find(|(id, file, _)| {
        wanted
            .strip_prefix('#')
            .is_some_and(|word| word.parse() == Ok(*id))
            || file.as_os_str() == *wanted
    });
    let Some((_, _, keys)) = found else {
        return refused("'set ssl tls-key' unable to locate referenced filename\n");
    };
    let Ok(key) = STANDARD.decode(key) else {
        return refused("'set ssl tls-key' received invalid base64 encoded TLS key.\n");
    };
    if keys.rotate(&key) {
        Reply::Said("TLS ticket key updated!\n".to_owned())
    } else {
        refused("'set ssl tls-key' received a key of wrong size.\n")
    }
}
