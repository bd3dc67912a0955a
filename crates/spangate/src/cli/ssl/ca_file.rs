//! `… ssl ca-file`: files of certificate authorities.

use std::fmt::Write as _;

use super::{
    Asked, Command, Kind, Level, Reply, aborted, command, committed, detail, index, name, refused,
    shown_name, status, tls,
};

pub(in super::super) const COMMANDS: &[Command] = &[
    command(
        "show ssl ca-file",
        "[<cafile>[:<index>]]",
        Level::User,
        "display the SSL CA files used in memory, or the details of a <cafile>, or a single certificate of index <index> of a CA file <cafile>",
        show,
    ),
    command(
        "new ssl ca-file",
        "<cafile>",
        Level::Admin,
        "create a new CA file to be used in a crt-list",
        |asked| match name(asked) {
            None => refused("'new ssl ca-file' expects a filename\n"),
            Some(name) => KIND.new_file(name, tls(asked).new_authorities(name)),
        },
    ),
    command(
        "set ssl ca-file",
        "<cafile> <payload>",
        Level::Admin,
        "replace a CA file",
        |asked| set(asked, false),
    ),
    command(
        "add ssl ca-file",
        "<cafile> <payload>",
        Level::Admin,
        "add a certificate into the CA file",
        |asked| set(asked, true),
    ),
    command(
        "commit ssl ca-file",
        "<cafile>",
        Level::Admin,
        "commit a CA file",
        |asked| match name(asked) {
            None => refused("'commit ssl ca-file' expects a filename\n"),
            Some(name) => committed(name, tls(asked).commit_authorities(name)),
        },
    ),
    command(
        "abort ssl ca-file",
        "<cafile>",
        Level::Admin,
        "abort a transaction for a CA file",
        |asked| match name(asked) {
            None => refused("'abort ssl ca-file' expects a filename\n"),
            Some(name) => aborted(name, tls(asked).abort_authorities(name)),
        },
    ),
    command(
        "del ssl ca-file",
        "<cafile>",
        Level::Admin,
        "delete an unused CA file",
        |asked| match name(asked) {
            None => refused("'del ssl ca-file' expects a CA file name\n"),
            Some(name) => KIND.delete(name, tls(asked).delete_authorities(name)),
        },
    ),
];

const KIND: Kind = Kind {
    unknown: "Can't replace a CA file which is not referenced by the configuration!",
    transaction: "transaction",
    created: |name| format!("New CA file created '{name}'!\n"),
    exists: "CA file",
    deleted: "CA file",
    delete_refused: "CA file",
    of: "CA",
};

fn set(asked: &Asked<'_>, adds: bool) -> Reply {
    let (Some(name), Some(payload)) = (name(asked), asked.payload) else {
        return refused("'set ssl ca-file' expects a filename and CAs as a payload\n");
    };
    KIND.set(name, tls(asked).set_authorities(name, payload, adds))
}

fn show(asked: &Asked<'_>) -> Reply {
    let Some(word) = name(asked) else {
        return list(asked);
    };
    let (word, index) = match index(word, "CA") {
        Ok(found) => found,
        Err(reply) => return reply,
    };
    let (name, is_draft) = shown_name(word);
    let Some(view) = tls(asked).authorities(name, is_draft) else {
        return refused("Can't display the CA file : Not found!\n");
    };
    let mut out = format!("Filename: {}{name}\n", if is_draft { "*" } else { "" });
    let _ = writeln!(out, "Status: {}", status(view.status));
    let all = view.content.iter().flat_map(|all| all.certificates());
    for (number, certificate) in (1..).zip(all) {
        if index.is_none_or(|index| index == number) {
            let _ = write!(out, " \nCertificate #{number}:\n");
            out += &detail::certificate(certificate);
        }
    }
    Reply::Dump(out)
}

fn list(asked: &Asked<'_>) -> Reply {
    let (draft, all) = tls(asked).authority_counts();
    let mut out = String::new();
    if let Some((name, count)) = draft {
        let _ = write!(out, "# transaction\n*{name} - {count} certificate(s)\n");
    }
    out += "# filename\n";
    for (name, count) in all {
        let _ = writeln!(out, "{name} - {count} certificate(s)");
    }
    Reply::Dump(out)
}
