//! `basicauth`: users and passwords (RFC 7617), of clients that come or of servers that are sent
//! to.

use super::Extension;
use crate::config::components::{Entry, Parse, name};
use crate::config::options::{Kind, Opt, Section, opt};

/// Whose password is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BasicAuth {
    /// Clients tell theirs; it must be in a list as Apache's `htpasswd` writes it.
    Server {
        /// The list's file.
        file: Option<String>,
        /// The list itself, which counts more than the file.
        inline: String,
    },
    /// We tell ours.
    Client {
        /// Who.
        username: Credential,
        /// And what only that one knows.
        password: Credential,
    },
}

/// A text that may be a secret.
#[derive(Clone, PartialEq, Eq)]
pub enum Credential {
    /// Itself.
    Text(String),
    /// The path of the file that it is in, which is read again.
    File(String),
}

impl std::fmt::Debug for Credential {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Credential::Text(_) => out.write_str("Text"),
            Credential::File(path) => out.debug_tuple("File").field(path).finish(),
        }
    }
}

#[rustfmt::skip]
const HTPASSWD: &[Opt] = &[
    opt("file", Kind::Text, "", "file of `name:password` lines, as htpasswd writes them: bcrypt, MD5 (`$apr1$`, `$1$`), SHA-256, SHA-512, yescrypt, `{SHA}` or plain"),
    opt("inline", Kind::Text, "", "such lines, which count more than those of the file"),
];
#[rustfmt::skip]
const CLIENT_AUTH: &[Opt] = &[
    opt("username", Kind::Text, "", "who"),
    opt("username_file", Kind::Text, "", "file with it, which is read again when it changes"),
    opt("password", Kind::Text, "", "the password"),
    opt("password_file", Kind::Text, "", "file with it, which is read again when it changes"),
    opt("aws_secrets_manager", Kind::Any, "", "a secret of AWS").refused("secrets are read from texts and files only"),
];
#[rustfmt::skip]
const OPTIONS: &[Opt] = &[
    opt("htpasswd", Kind::Maybe(&[HTPASSWD]), "", "who may send (for receivers)"),
    opt("client_auth", Kind::Maybe(&[CLIENT_AUTH]), "", "who we are (for exporters)"),
];

pub(crate) const ENTRY: Entry = Entry {
    names: &[name("basicauth"), name("basic_auth")],
    doc: "users and passwords",
    takes: &[],
    carries: &[],
    options: &[OPTIONS],
    parse: Parse::Extension(parse),
};

fn parse(section: &Section<'_>) -> Extension {
    let htpasswd = section.maybe_filled("htpasswd");
    let client = section.maybe_filled("client_auth");
    if htpasswd.is_some() == client.is_some() {
        section.fault("must have either 'htpasswd' or 'client_auth'");
    }
    Extension::BasicAuth(match client {
        Some(client) => BasicAuth::Client {
            username: credential(&client, "username", "username_file"),
            password: credential(&client, "password", "password_file"),
        },
        None => {
            let list = section.section("htpasswd");
            let (file, inline) = (list.text_unless_empty("file"), list.text("inline"));
            if htpasswd.is_some() && file.is_none() && inline.is_empty() {
                list.fault("must have 'file' or 'inline'");
            }
            BasicAuth::Server { file, inline }
        }
    })
}

/// A text, or the file that counts more.
fn credential(section: &Section<'_>, text: &str, file: &str) -> Credential {
    match section.text_unless_empty(file) {
        Some(path) => Credential::File(path),
        None => Credential::Text(section.text(text)),
    }
}
