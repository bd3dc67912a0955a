//! `option ldap-check`: an anonymous bind of LDAPv3.

use super::{Expect as _, Protocol, Texts, custom, regex, send};
use crate::model::CustomExpect;

/// LDAPMessage: bindRequest of version 3 without a name or a password (RFC 4511 §4.2).
const BIND: &[u8] = b"\x30\x0c\x02\x01\x01\x60\x07\x02\x01\x03\x04\x00\x80\x00";

/// `option ldap-check`
pub const PROTOCOL: Protocol = Protocol {
    name: "ldap-check",
    doc: "LDAPv3 health checks.",
    words_max: 0,
    rules: |shared, _, _| {
        let texts = Texts {
            on_error: "Not LDAPv3 protocol",
            ..Texts::default()
        };
        Ok(vec![
            send(BIND),
            regex("^30", true).min_recv(14).texts(shared, texts).rule(),
            custom(CustomExpect::LdapBind),
        ])
    },
};
