//! `option spop-check`: HELLO of the stream processing offload protocol for a health check.

use super::{Protocol, custom, send};
use crate::model::{CheckAction, CheckConnect, CheckProto, CustomExpect};

/// A HAPROXY-HELLO frame: supported versions 2.0, a maximum frame size of 16 KiB, no capabilities,
/// `healthcheck`.
const HELLO: &[u8] =
    b"\x00\x00\x00\x4e\x01\x00\x00\x00\x01\x00\x00\x12supported-versions\x08\x032.0\
\x0emax-frame-size\x03\xfc\xf0\x06\x0ccapabilities\x08\x00\x0bhealthcheck\x11";

/// `option spop-check`
pub const PROTOCOL: Protocol = Protocol {
    name: "spop-check",
    doc: "SPOP health checks.",
    words_max: 0,
    rules: |_, _, _| {
        let connect = CheckConnect {
            is_default: true,
            proto: Some(CheckProto::None),
            ..CheckConnect::default()
        };
        Ok(vec![
            CheckAction::Connect(connect),
            send(HELLO),
            custom(CustomExpect::SpopHello),
        ])
    },
};
