//! Changes certificates and the other files of TLS at run time (management guide §9.3 `… ssl …`). A
//! file is changed in a transaction: `set` begins one, `commit` and `abort` end it.

mod ca_file;
mod cert;
mod crl_file;
mod crt_list;
mod detail;
mod ocsp;
mod sni;
mod tls_keys;

use proxy::{Draft, EditError, Tls, TlsFileNames, TlsStatus};

use super::{Asked, Command, Level, Reply, command};

pub(super) use ca_file::COMMANDS as CA_FILE;
pub(super) use cert::COMMANDS as CERT;
pub(super) use crl_file::COMMANDS as CRL_FILE;
pub(super) use crt_list::COMMANDS as CRT_LIST;
pub(super) use ocsp::COMMANDS as OCSP;
pub(super) use sni::COMMANDS as SNI;
pub(super) use tls_keys::COMMANDS as TLS_KEYS;

fn tls<'a>(asked: &'a Asked<'_>) -> &'a Tls {
    asked.subjects.runtime_config.tls()
}

/// Requests the status of new and changed certificates after an edit that may have succeeded.
fn certificates_changed<T, E>(asked: &Asked<'_>, edited: Result<T, E>) -> Result<T, E> {
    if edited.is_ok() {
        asked.subjects.ocsp.refresh(&asked.subjects.runtime_config);
    }
    edited
}

/// The first word, a file's name; None if there is no word.
fn name<'a>(asked: &Asked<'a>) -> Option<&'a str> {
    asked.rest.first().copied()
}

/// The name of the file to show, and whether `*` before it asks for the copy of a transaction. A
/// `\` before the name is removed.
fn shown_name(word: &str) -> (&str, bool) {
    let (name, is_draft) = match word.strip_prefix('*') {
        Some(name) => (name, true),
        // Clients escape the star for their shells.
        None => match word.strip_prefix("\\*") {
            Some(name) => (name, true),
            None => (word, false),
        },
    };
    (name.strip_prefix('\\').unwrap_or(name), is_draft)
}

/// The names of a kind of files in answers.
struct Kind {
    /// The answer to `set ssl …` for an unknown file.
    unknown: &'static str,
    /// The name in the answer to `set`.
    transaction: &'static str,
    /// The answer to `new ssl …`.
    created: fn(&str) -> String,
    exists: &'static str,
    /// The answer to `del ssl …`.
    deleted: &'static str,
    delete_refused: &'static str,
    /// The kind's name within a sentence.
    of: &'static str,
}

impl Kind {
    fn new_file(&self, name: &str, made: Result<(), EditError>) -> Reply {
        match made {
            Ok(()) => Reply::Said((self.created)(name)),
            Err(_) => Reply::Refused(format!("{} '{name}' already exists!\n", self.exists)),
        }
    }

    fn set(&self, name: &str, set: Result<Draft, EditError>) -> Reply {
        let why = match set {
            Ok(Draft { name, is_new }) => {
                let how = if is_new { "created" } else { "updated" };
                let transaction = self.transaction;
                return Reply::Said(format!("{transaction} {how} for {} {name}!\n", self.of));
            }
            Err(EditError::Ongoing(ongoing)) => {
                let stem = proxy::certificate_name(name);
                format!(
                    "The ongoing transaction is about '{ongoing}' but you are trying to set '{stem}'\n"
                )
            }
            Err(EditError::Wrong(why)) => format!("{why}.\nCan't load the payload\n"),
            Err(_) => format!("{}\n", self.unknown),
        };
        Reply::Refused(format!("{why}Can't update {name}!\n"))
    }

    fn delete(&self, name: &str, deleted: Result<(), EditError>) -> Reply {
        let (what, of) = (self.exists, self.of_file());
        let why = match deleted {
            Ok(()) => return Reply::Said(format!("{} '{name}' deleted!\n", self.deleted)),
            Err(EditError::Ongoing(_)) => format!("ongoing transaction for the {of} '{name}'"),
            Err(EditError::Unknown) => format!("{what} '{name}' doesn't exist!\n"),
            Err(EditError::UsedForJwt) => {
                format!("{what} '{name}' in use for JWT validation, can't be deleted!\n")
            }
            Err(EditError::OtherKind) => {
                "'del ssl crl-file' does not work on CA files!\n".to_owned()
            }
            Err(_) => format!("{what} '{name}' in use, can't be deleted!\n"),
        };
        Reply::Refused(format!("Can't remove the {}: {why}\n", self.delete_refused))
    }

    fn of_file(&self) -> &'static str {
        self.delete_refused
    }
}

/// The answer to `commit`.
fn committed(name: &str, committed: Result<usize, EditError>) -> Reply {
    let why = match committed {
        Ok(count) => {
            let dots = ".".repeat(count);
            return Reply::Dump(format!("Committing {name}{dots}\nSuccess!\n"));
        }
        Err(EditError::Ongoing(ongoing)) => format!(
            "The ongoing transaction is about '{ongoing}' but you are trying to set '{name}'\n"
        ),
        Err(EditError::Wrong(why)) => format!("{why}.\n"),
        Err(_) => "No ongoing transaction! !\n".to_owned(),
    };
    Reply::Refused(format!("{why}Can't commit {name}!\n"))
}

/// The answer to `abort`.
fn aborted(name: &str, aborted: Result<(), EditError>) -> Reply {
    match aborted {
        Ok(()) => Reply::Said(format!("Transaction aborted for certificate '{name}'!\n")),
        Err(EditError::Ongoing(ongoing)) => Reply::Refused(format!(
            "The ongoing transaction is about '{ongoing}' but you are trying to abort a transaction for '{name}'\n"
        )),
        Err(_) => Reply::Refused("No ongoing transaction!\n".to_owned()),
    }
}

/// The names of files, one per line. The file that a transaction changes comes first.
fn names(names: TlsFileNames) -> Reply {
    let mut out = String::new();
    if let Some(draft) = names.draft {
        out += &format!("# transaction\n*{draft}\n");
    }
    out += "# filename\n";
    for name in names.all {
        out += &name;
        out.push('\n');
    }
    Reply::Dump(out)
}

fn status(status: TlsStatus) -> &'static str {
    match status {
        TlsStatus::Empty => "Empty",
        TlsStatus::Uncommitted => "Uncommitted",
        TlsStatus::UsedForJwt => "Used for JWT verification",
        TlsStatus::Unused => "Unused",
        TlsStatus::Used => "Used",
    }
}

/// The index after the colon of a name, from 1 on.
fn index<'a>(word: &'a str, what: &str) -> Result<(&'a str, Option<usize>), Reply> {
    let Some((name, digits)) = word.split_once(':') else {
        return Ok((word, None));
    };
    match digits.parse() {
        Ok(index @ 1..) => Ok((name, Some(index))),
        _ => Err(Reply::Refused(format!(
            "wrong {what} index after colons in '{word}'!\n"
        ))),
    }
}

fn refused(text: &str) -> Reply {
    Reply::Refused(text.to_owned())
}
