//! `headers_setter`: fields of the requests that exporters send.

use super::Extension;
use super::basic_auth::Credential;
use crate::config::components::shared::grpc::METADATA_REASON;
use crate::config::components::{Entry, Parse, name};
use crate::config::options::{Kind, Opt, Section, opt};

/// Changes of fields, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeadersSetter {
    /// Them.
    pub headers: Vec<Change>,
}

/// One change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The field.
    pub key: String,
    /// What is done to it.
    pub action: Action,
    /// What it is set to.
    pub value: Credential,
}

/// `action`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It is set where it is not there.
    Insert,
    /// It is set where it is there.
    Update,
    /// It is set.
    Upsert,
    /// It is taken away.
    Delete,
}

#[rustfmt::skip]
const HEADER: &[Opt] = &[
    opt("key", Kind::Text, "", "the field (required)"),
    opt("action", Kind::Word(&["upsert", "insert", "update", "delete"]), "upsert", "what is done"),
    opt("value", Kind::Text, "", "what it is set to"),
    opt("value_file", Kind::Text, "", "or the file with it, which is read again when it changes"),
    opt("from_context", Kind::Text, "", "or the client's metadata").refused(METADATA_REASON),
    opt("from_attribute", Kind::Text, "", "or what an authenticator found").refused(METADATA_REASON),
    opt("default_value", Kind::Text, "", "where those have none").refused(METADATA_REASON),
];
#[rustfmt::skip]
const OPTIONS: &[Opt] = &[opt("headers", Kind::Sections(&[HEADER]), "", "changes of fields, in their order (at least one)")];

pub(crate) const ENTRY: Entry = Entry {
    names: &[name("headers_setter")],
    doc: "fields of requests",
    takes: &[],
    carries: &[],
    options: &[OPTIONS],
    parse: Parse::Extension(parse),
};

fn parse(section: &Section<'_>) -> Extension {
    let headers: Vec<Change> = section.sections("headers").iter().map(change).collect();
    if headers.is_empty() {
        section.error("headers", "there are none");
    }
    Extension::HeadersSetter(HeadersSetter { headers })
}

fn change(section: &Section<'_>) -> Change {
    let action = section.choice(
        "action",
        &[
            ("upsert", Action::Upsert),
            ("insert", Action::Insert),
            ("update", Action::Update),
            ("delete", Action::Delete),
        ],
    );
    let (key, text) = (section.text("key"), section.text("value"));
    let file = section.text_unless_empty("value_file");
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if key.is_empty() || !key.bytes().all(token) {
        section.error("key", "must be the name of a field");
    }
    // Where it would come from elsewhere, that was told.
    let others = ["from_context", "from_attribute"];
    let is_elsewhere = others.iter().any(|name| section.written(name).is_some());
    if action != Action::Delete && text.is_empty() && file.is_none() && !is_elsewhere {
        section.error("value", "is missing");
    }
    Change {
        key,
        action,
        value: file.map_or(Credential::Text(text), Credential::File),
    }
}
