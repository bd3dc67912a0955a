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

/// How a reply is parsed, and the messages about it.
pub(crate) struct Reply {
    /// Parses what has arrived so far.
    pub parse: fn(&[u8]) -> Parsed,
    /// The message for a good reply, from its bytes.
    pub success: fn(&[u8]) -> String,
    /// The message for a truncated reply.
    pub cut_off: &'static str,
}

/// The reply that a rule expects; None for the line of an agent, which [`crate::agent`] parses.
pub(crate) fn reply(what: CustomExpect) -> Option<Reply> {
    let reply = match what {
        CustomExpect::MysqlHandshake => Reply {
            parse: mysql::handshake,
            success: mysql::version,
            cut_off: "",
        },
        CustomExpect::MysqlLogin => Reply {
            parse: mysql::login,
            success: mysql::version,
            cut_off: "",
        },
        CustomExpect::LdapBind => Reply {
            parse: ldap::bind,
            success: |_| "Success".to_owned(),
            cut_off: "",
        },
        CustomExpect::SpopHello => Reply {
            parse: spop::hello,
            success: |_| "SPOA server is ok".to_owned(),
            cut_off: spop::INVALID,
        },
        CustomExpect::Anything => Reply {
            parse: |_| Parsed::Good,
            success: |_| String::new(),
            cut_off: "",
        },
        CustomExpect::Agent => return None,
    };
    Some(reply)
}
