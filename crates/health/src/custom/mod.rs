//! Parsers for replies of protocols other than HTTP.

pub(crate) mod ldap;
pub(crate) mod mysql;
pub(crate) mod spop;

use config::model::{CheckStatus, CustomExpect};

/// The result of parsing a reply.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Parsed {
    Good,
    /// The reply is incomplete.
    Wait,
    Failed {
        status: CheckStatus,
        code: i64,
        text: String,
    },
}

impl Parsed {
    fn invalid(text: &str) -> Parsed {
        Parsed::Failed {
            status: CheckStatus::Layer7Invalid,
            code: 0,
            text: text.to_owned(),
        }
    }
}

/// The message for a truncated reply.
pub(crate) fn cut_off(what: CustomExpect) -> &'static str {
    match what {
        CustomExpect::SpopHello => spop::INVALID,
        _ => "",
    }
}
