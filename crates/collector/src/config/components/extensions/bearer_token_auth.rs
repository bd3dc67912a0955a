//! `bearertokenauth`: a token (RFC 6750), of clients that come or for servers that are sent to.

use super::Extension;
use super::basic_auth::Credential;
use crate::config::components::{Entry, Parse, name};
use crate::config::options::{Kind, Opt, Section, opt};

/// Tokens that open the door. The first one is what we send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BearerTokenAuth {
    /// The field that they are in.
    pub header: String,
    /// What stands before them, and a space; empty: nothing.
    pub scheme: String,
    /// Them, or the file that has one a line.
    pub tokens: Vec<Credential>,
}

#[rustfmt::skip]
const OPTIONS: &[Opt] = &[
    opt("header", Kind::Text, "Authorization", "the field"),
    opt("scheme", Kind::Text, "Bearer", "what stands before the token"),
    opt("token", Kind::Text, "", "the token"),
    opt("tokens", Kind::Texts, "", "several, of which each will do; the first is sent"),
    opt("filename", Kind::Text, "", "file of tokens, one a line, which is read again when it changes; counts more"),
];

pub(crate) const ENTRY: Entry = Entry {
    names: &[name("bearertokenauth"), name("bearer_token_auth")],
    doc: "tokens",
    takes: &[],
    carries: &[],
    options: &[OPTIONS],
    parse: Parse::Extension(parse),
};

fn parse(section: &Section<'_>) -> Extension {
    let several = section.texts("tokens");
    let one = section.text_unless_empty("token");
    if one.is_some() && !several.is_empty() {
        section.error("tokens", "'token' is there too: one of the two is enough");
    }
    let tokens: Vec<Credential> = match section.text_unless_empty("filename") {
        Some(path) => vec![Credential::File(path)],
        None => { several.into_iter() }
            .chain(one)
            .map(Credential::Text)
            .collect(),
    };
    if tokens.is_empty() {
        section.fault("must have 'token', 'tokens' or 'filename'");
    }
    let header = section.text("header");
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if header.is_empty() || !header.bytes().all(token) {
        section.error("header", "is no name of a field");
    }
    Extension::BearerTokenAuth(BearerTokenAuth {
        header,
        scheme: section.text("scheme"),
        tokens,
    })
}
