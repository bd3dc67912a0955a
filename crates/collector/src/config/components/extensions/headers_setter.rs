//! `headers_setter`: fields of the requests that exporters send.

use super::Extension;
use super::basic_auth::Credential;
use crate::config::components::shared::context::Context;
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
    pub source: Source,
}

/// What a field is set to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// `value`, `value_file`
    Value(Credential),
    /// `from_context`, `from_attribute`, and what stands for it where it is not known.
    Context(Context, String),
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
    opt("from_context", Kind::Text, "", "or a header field of the request that the data came with; see [A client's metadata](#a-clients-metadata)"),
    opt("from_attribute", Kind::Text, "", "or what its authenticator found"),
    opt("default_value", Kind::Text, "", "where those have none; an empty text where it is not written"),
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
    let key = section.text("key");
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if key.is_empty() || !key.bytes().all(token) {
        section.error("key", "must be the name of a field");
    }
    let source = source(section, action);
    Change {
        key,
        action,
        source,
    }
}

fn source(section: &Section<'_>, action: Action) -> Source {
    let text = |name| section.text_unless_empty(name);
    let value = |credential| Source::Value(credential);
    let context = |context| Source::Context(context, section.text("default_value"));
    let sources = [
        text("value").map(|text| value(Credential::Text(text))),
        text("value_file").map(|path| value(Credential::File(path))),
        text("from_context").map(|name| context(Context::field(&name))),
        text("from_attribute").map(|name| context(Context::Auth(name))),
    ];
    let mut sources = sources.into_iter().flatten();
    let first = sources.next();
    if action != Action::Delete && first.is_none() {
        section.error("value", "is missing");
    }
    if sources.next().is_some() {
        let message = "'value_file', 'from_context' and 'from_attribute': one of them is enough";
        section.error("value", message);
    }
    first.unwrap_or_else(|| value(Credential::Text(String::new())))
}
