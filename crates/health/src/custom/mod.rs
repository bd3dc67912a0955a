//! Answers of protocols that functions read.

pub(crate) mod ldap;
pub(crate) mod mysql;
pub(crate) mod spop;

use config::model::{CheckStatus, CustomExpect};

/// What an answer is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Parsed {
    Good,
    /// It is not whole.
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

/// What is said of an answer that is cut off.
pub(crate) fn cut_off(what: CustomExpect) -> &'static str {
    match what {
        CustomExpect::SpopHello => spop::INVALID,
        _ => "",
    }
}
