//! `option ssl-hello-chk`: sends an SSLv3 client hello, and expects a handshake message or an
//! alert.

use super::{Expect as _, Protocol, regex};
use crate::model::{CheckAction, CheckSend, CheckStatus};
use sample::{Place, Style};

/// Record and handshake headers, version, time and random bytes, no session, 39 cipher suites, no
/// compression, in hexadecimal digits.
const HELLO: &str = "16030000790100007503\
00%[date(),htonl,hex]%[str(HAPROXYSSLCHK\nHAPROXYSSLCHK\n),hex]00004E\
0001000200030004000500060007000800090\
00A000B000C000D000E000F001000110012001300140015001600170018\
0019001A001B002F0030003100320033003400350036003700380039003A0100";

/// `option ssl-hello-chk`
pub const PROTOCOL: Protocol = Protocol {
    name: "ssl-hello-chk",
    doc: "Health checks that send a TLS hello.",
    words_max: 0,
    rules: |shared, line, at| {
        let hello = HELLO.as_bytes();
        let hello = shared.styled(line, at, hello, Place::CHECK, Style::Plain)?;
        let mut answer = regex("^1[56]", true)
            .min_recv(5)
            .error_status(CheckStatus::Layer6Invalid);
        answer.ok_status = Some(CheckStatus::Layer6Ok);
        answer.timeout_status = Some(CheckStatus::Layer6Timeout);
        Ok(vec![
            CheckAction::Send(CheckSend::HexFormat(hello)),
            answer.rule(),
        ])
    },
};
