//! `option mysql-check [user <name> [post-41|pre-41|post-80]]`: checks the server's handshake; with
//! a name, also a login and COM_QUIT.

use super::{Protocol, connect, custom, send, user};
use crate::model::CustomExpect;

/// COM_QUIT in a separate packet.
const QUIT: &[u8] = b"\x01\x00\x00\x00\x01";
/// The authentication method for `post-80`.
const NATIVE_PASSWORD: &[u8] = b"mysql_native_password\x00";

/// `option mysql-check`
pub const PROTOCOL: Protocol = Protocol {
    name: "mysql-check",
    doc: "MySQL health checks.",
    words_max: 3,
    rules: |_, line, at| {
        let Some(name) = user(line, at)? else {
            return Ok(vec![connect(), custom(CustomExpect::MysqlHandshake)]);
        };
        let login = match line.arg(at + 2) {
            "" | "post-41" => login_41(name, [0x00, 0x82, 0x00, 0x00], b""),
            "post-80" => login_41(name, [0x00, 0x82, 0x08, 0x00], NATIVE_PASSWORD),
            "pre-41" => login_40(name),
            word => {
                return Err(line.fault(at + 2, format!("keyword 'user' only supports 'post-41', 'pre-41' and 'post-80' (got '{word}').")));
            }
        };
        Ok(vec![
            connect(),
            send(packets(&login)),
            custom(CustomExpect::MysqlHandshake),
            custom(CustomExpect::MysqlLogin),
        ])
    },
};

/// Capabilities, maximum packet size, name, no password.
fn login_40(name: &[u8]) -> Vec<u8> {
    [b"\x00\x80\x00\x00\x01", name, b"\x00\x00"].concat()
}

/// The same with a character set (UTF-8) and 23 reserved bytes.
fn login_41(name: &[u8], capabilities: [u8; 4], plugin: &[u8]) -> Vec<u8> {
    [
        &capabilities[..],
        b"\x00\x80\x00\x01\x21",
        &[0; 23],
        name,
        b"\x00\x00",
        plugin,
    ]
    .concat()
}

/// The login in its packet, which is the second of the connection, and COM_QUIT.
fn packets(login: &[u8]) -> Vec<u8> {
    let [first, second, third, _] = (login.len() as u32).to_le_bytes();
    [&[first, second, third, 1], login, QUIT].concat()
}
