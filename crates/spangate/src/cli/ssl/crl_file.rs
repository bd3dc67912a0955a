//! `… ssl crl-file`: lists of revoked certificates.

use std::fmt::Write as _;

use super::{
    Asked, Command, Kind, Level, Reply, aborted, command, committed, detail, index, name, names,
    refused, shown_name, status, tls,
};

pub(in super::super) const COMMANDS: &[Command] = &[
    command(
        "show ssl crl-file",
        "[<crlfile[:<index>]]",
        Level::User,
        "display the SSL CRL files used in memory, or the details of a <crlfile>, or a single CRL of index <index> of CRL file <crlfile>",
        show,
    ),
    command(
        "new ssl crl-file",
        "<crlfile>",
        Level::Admin,
        "create a new CRL file to be used in a crt-list",
        |asked| match name(asked) {
            None => refused("'new ssl crl-file' expects a filename\n"),
            Some(name) => KIND.new_file(name, tls(asked).new_revocations(name)),
        },
    ),
    command(
        "set ssl crl-file",
        "<crlfile> <payload>",
        Level::Admin,
        "replace a CRL file",
        set,
    ),
    command(
        "commit ssl crl-file",
        "<crlfile>",
        Level::Admin,
        "commit a CRL file",
        |asked| match name(asked) {
            None => refused("'commit ssl ca-file' expects a filename\n"),
            Some(name) => committed(name, tls(asked).commit_revocations(name)),
        },
    ),
    command(
        "abort ssl crl-file",
        "<crlfile>",
        Level::Admin,
        "abort a transaction for a CRL file",
        |asked| match name(asked) {
            None => refused("'abort ssl crl-file' expects a filename\n"),
            Some(name) => aborted(name, tls(asked).abort_revocations(name)),
        },
    ),
    command(
        "del ssl crl-file",
        "<crlfile>",
        Level::Admin,
        "delete an unused CRL file",
        |asked| match name(asked) {
            None => refused("'del ssl crl-file' expects a CRL file name\n"),
            Some(name) => KIND.delete(name, tls(asked).delete_revocations(name)),
        },
    ),
];

const KIND: Kind = Kind {
    unknown: "Can't replace a CRL file which is not referenced by the configuration!",
    transaction: "transaction",
    created: |name| format!("New CRL file created '{name}'!\n"),
    exists: "CRL file",
    deleted: "CRL file",
    delete_refused: "CRL file",
    of: "CRL",
};

fn set(asked: &Asked<'_>) -> Reply {
    let (Some(name), Some(payload)) = (name(asked), asked.payload) else {
        return refused("'set ssl crl-file' expects a filename and CRLs as a payload\n");
    };
    KIND.set(name, tls(asked).set_revocations(name, payload))
}

fn show(asked: &Asked<'_>) -> Reply {
    let Some(word) = name(asked) else {
        return names(tls(asked).revocation_names());
    };
    let (word, index) = match index(word, "CRL") {
        Ok(found) => found,
        Err(reply) => return reply,
    };
    let (name, is_draft) = shown_name(word);
    let Some(view) = tls(asked).revocations(name, is_draft) else {
        return refused("Can't display the CRL file : Not found!\n");
    };
    let mut out = format!("Filename: {}{name}\n", if is_draft { "*" } else { "" });
    let _ = writeln!(out, "Status: {}", status(view.status));
    let all = view.content.iter().flat_map(|all| all.lists());
    for (number, list) in (1..).zip(all) {
        if index.is_none_or(|index| index == number) {
            let _ = write!(out, " \nCertificate Revocation List #{number}:\n");
            out += &detail::revocations(list);
        }
    }
    Reply::Dump(out)
}
