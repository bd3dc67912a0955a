//! `option smtpchk`: a greeting, HELO or EHLO, and QUIT.

use super::{Expect as _, Protocol, Texts, connect, regex, send};
use crate::model::CheckStatus;

const REST_OF_LINE: &str = "%[res.payload(4,0),ltrim(' '),cut_crlf]";

/// `option smtpchk`
pub const PROTOCOL: Protocol = Protocol {
    name: "smtpchk",
    doc: "SMTP health checks.",
    words_max: 2,
    rules: |shared, line, at| {
        let mut command = match (line.arg(at), line.bytes(at + 1)) {
            ("EHLO" | "HELO", [_, ..]) => [line.bytes(at), line.bytes(at + 1)].join(&b' '),
            _ => b"HELO localhost".to_vec(),
        };
        command.extend_from_slice(b"\r\n");
        let answer = Texts {
            on_success: REST_OF_LINE,
            on_error: REST_OF_LINE,
            status_code: "res.payload(0,3)",
        };
        let greeting = Texts {
            on_success: "",
            ..answer
        };
        let line_of_any = Texts {
            on_error: "%[res.payload(0,0),cut_crlf]",
            ..Texts::default()
        };
        let wrong = CheckStatus::Layer7WrongStatus;
        let text = |pattern| regex(pattern, false);
        Ok(vec![
            connect(),
            text("^[0-9]{3}[ \r]")
                .min_recv(4)
                .error_status(CheckStatus::Layer7Invalid)
                .texts(shared, line_of_any)
                .rule(),
            text("^2[0-9]{2}[ \r]")
                .min_recv(4)
                .error_status(wrong)
                .texts(shared, greeting)
                .rule(),
            send(command),
            text("^(2[0-9]{2}-[^\r]*\r\n)*2[0-9]{2}[ \r]")
                .error_status(wrong)
                .texts(shared, answer)
                .rule(),
            send("QUIT\r\n"),
            text("^2[0-9]{2}[- \r]")
                .min_recv(4)
                .error_status(wrong)
                .texts(shared, answer)
                .rule(),
        ])
    },
};
