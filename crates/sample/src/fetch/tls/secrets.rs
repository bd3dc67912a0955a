//! The secrets of connections (manual §7.3.4), if they are kept.

use super::{bytes, text};
use crate::Value;
use crate::facts::TlsFacts;

/// Reads of secrets: bytes, and hexadecimal text.
macro_rules! secrets {
    ($($name:ident $form:ident;)*) => {$(
        pub(super) fn $name(facts: &TlsFacts) -> Option<Value<'_>> {
            $form(&facts.secrets.as_deref()?.$name)
        }
    )*};
}
secrets! {
    client_random bytes;
    server_random bytes;
    session_key bytes;
    client_early_traffic text;
    client_handshake_traffic text;
    server_handshake_traffic text;
    client_traffic text;
    server_traffic text;
    exporter text;
}
