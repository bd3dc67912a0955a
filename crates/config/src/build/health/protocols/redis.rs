//! `option redis-check`: sends PING and expects PONG.

use super::{Expect as _, Protocol, Texts, send};
use crate::build::health::rules;
use crate::model::{CheckStatus, Expectation};

/// `option redis-check`
pub const PROTOCOL: Protocol = Protocol {
    name: "redis-check",
    doc: "Redis health checks.",
    words_max: 0,
    rules: |shared, _, _| {
        let pong = rules::expect(Expectation::Bytes {
            bytes: b"+PONG\r\n".into(),
            is_binary: false,
        });
        let texts = Texts {
            on_success: "Redis server is ok",
            on_error: "%[res.payload(0,0),cut_crlf]",
            ..Texts::default()
        };
        Ok(vec![
            send("*1\r\n$4\r\nPING\r\n"),
            pong.error_status(CheckStatus::Layer7WrongStatus)
                .texts(shared, texts)
                .rule(),
        ])
    },
};
