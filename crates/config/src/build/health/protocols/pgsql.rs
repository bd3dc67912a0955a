//! `option pgsql-check user <name>`: sends the first message of a session; the server answers with
//! an authentication request.

use super::{Expect as _, Protocol, Texts, connect, regex, send, user};
use crate::model::CheckStatus;

/// Length, version, the key `user` and two NUL bytes.
const PACKET_BYTES: usize = 15;

/// `option pgsql-check`
pub const PROTOCOL: Protocol = Protocol {
    name: "pgsql-check",
    doc: "PostgreSQL health checks.",
    words_max: 2,
    rules: |shared, line, at| {
        let option = line.texts(0)[..at].join(" ");
        let missing = || format!("'{option}' expects 'user <username>' as argument.");
        line.need(at, missing)?;
        line.need(at + 1, missing)?;
        let name = user(line, at)?.unwrap_or_default();
        let length = (PACKET_BYTES + name.len()) as u32;
        let mut packet = length.to_be_bytes().to_vec();
        packet.extend_from_slice(b"\x00\x03\x00\x00user\x00");
        packet.extend_from_slice(name);
        packet.extend_from_slice(b"\x00\x00");
        let error = Texts {
            on_error: "%[res.payload(6,0)]",
            ..Texts::default()
        };
        let answer = Texts {
            on_success: "PostgreSQL server is ok",
            on_error: "PostgreSQL unknown error",
            ..Texts::default()
        };
        Ok(vec![
            connect(),
            send(packet),
            regex("^E", false)
                .not()
                .min_recv(5)
                .error_status(CheckStatus::Layer7Invalid)
                .texts(shared, error)
                .rule(),
            regex(
                "^52000000[A-Z0-9]{2}000000(00|02|03|04|05|06|07|09|0A)",
                true,
            )
            .min_recv(9)
            .error_status(CheckStatus::Layer7WrongStatus)
            .texts(shared, answer)
            .rule(),
        ])
    },
};
