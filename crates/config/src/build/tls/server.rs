//! TLS of `server` and `default-server` lines (manual §5.2).

use super::super::Shared;
use super::super::line::{Cursor, Fault, Parse};
use super::options::{protocols, value};
use super::{TlsParser, Words, certificates};
use crate::keywords::Places;
use crate::keywords::tls::Known;
use crate::model::{BindTls, ServerTls};
use crate::tree::Span;
use sample::Place;
use std::sync::Arc;

/// The options of a server line during parsing; `default-server` passes them to server lines.
#[derive(Clone, Debug, Default)]
pub struct ServerWords {
    /// The options that bind lines have too.
    pub words: Words,
    tls: ServerTls,
    /// The place of `ssl` or `check-ssl`.
    span: Option<Span>,
}

impl ServerWords {
    /// The result of the options; None if neither traffic nor health checks may use TLS. Health
    /// checks may, because their rules can request it. `title` is the line's name in messages,
    /// `name` the place of the server's name.
    pub fn finish(
        self,
        title: &str,
        name: &Span,
        is_checked: bool,
        shared: &mut Shared<'_>,
    ) -> Option<Box<ServerTls>> {
        let mut tls = self.tls;
        let of_traffic = tls.ssl || tls.may_turn_on;
        if !of_traffic && tls.check.ssl != Some(true) && !is_checked {
            return tls.is_refused.then(|| Box::new(tls));
        }
        let span = self.span.unwrap_or_else(|| name.clone());
        tls.options = self.words.finish(title, &span, shared);
        if tls.verifies() && tls.options.ca_file.is_none() && of_traffic {
            let message = format!(
                "{title} : verify is enabled by default but no CA file specified. If you're running on a LAN where you're \
                 certain to trust the server's certificate, please set an explicit 'verify none' statement on the 'server' \
                 line, or use 'ssl-server-verify none' in the global section to disable server-side verifications by default."
            );
            shared.settle(Err(Fault::new(span, message)));
        }
        Some(Box::new(tls))
    }
}

impl ServerWords {
    /// A server over QUIC has TLS, and speaks HTTP/3, also where `alpn` has only protocols of TCP.
    pub fn begin_quic(&mut self, title: &str, address: &Span, shared: &mut Shared<'_>) {
        if !self.tls.ssl {
            let message = format!("{title} : QUIC has TLS always; 'ssl' is missing.");
            shared.diagnostics.warning(address, message);
            self.tls.ssl = true;
            self.tls.is_refused = false;
            self.span.get_or_insert_with(|| address.clone());
        }
        self.tls.is_quic = true;
        let alpn = &mut self.words.options.alpn;
        let has_h3 = |alpn: &[Vec<u8>]| {
            BindTls::QUIC_ALPN
                .iter()
                .any(|h3| alpn.iter().any(|one| one == h3))
        };
        if alpn.as_deref().is_some_and(|alpn| !has_h3(alpn)) {
            let message = format!("{title} : QUIC has HTTP/3 only: 'alpn h3' is used.");
            shared.diagnostics.warning(address, message);
            *alpn = None;
        }
        alpn.get_or_insert_with(|| BindTls::QUIC_ALPN.map(<[u8]>::to_vec).into());
    }
}

/// Options of TLS that depend on a stream or on checks.
const OPTIONS_OF_STREAMS: [&str; 11] = [
    "allow-0rtt",
    "alpn",
    "check-alpn",
    "check-sni",
    "check-sni-auto",
    "check-ssl",
    "npn",
    "renegotiate",
    "sni",
    "sni-auto",
    "no-alpn",
];

/// An option of TLS that servers take whose connections belong to no stream: those of rings and
/// peers.
pub fn option_without_streams(word: &str) -> Option<&'static Known> {
    super::find(word, Places::SERVER).filter(|_| !OPTIONS_OF_STREAMS.contains(&word))
}

impl ServerWords {
    /// Takes an option, after its name was taken.
    pub fn option(
        &mut self,
        keyword: &'static Known,
        cursor: &mut Cursor<'_>,
        shared: &mut Shared<'_>,
    ) -> Parse {
        match shared.use_of(keyword, "server", cursor)? {
            Some(TlsParser::Shared(parser)) => parser(&mut self.words, cursor, shared),
            Some(TlsParser::Server(parser)) => parser(self, cursor, shared),
            Some(TlsParser::Bind(_) | TlsParser::Nothing) | None => Ok(()),
        }
    }

    /// The result of the options of such a server; none for plain connections.
    pub fn finish_without_streams(
        self,
        title: &str,
        name: &Span,
        shared: &mut Shared<'_>,
    ) -> Option<Box<ServerTls>> {
        self.finish(title, name, false, shared)
            .filter(|tls| tls.ssl)
    }
}

/// `ssl`
pub fn ssl(words: &mut ServerWords, cursor: &mut Cursor<'_>, _shared: &mut Shared<'_>) -> Parse {
    words.tls.ssl = true;
    words.tls.is_refused = false;
    words.span = Some(cursor.line.span(cursor.at - 1));
    Ok(())
}

/// Options without arguments.
macro_rules! switches {
    ($($name:ident $($field:ident).+ = $value:expr;)*) => {$(
        #[doc = concat!("`", stringify!($name), "`, with `-` for `_`.")]
        pub fn $name(words: &mut ServerWords, _cursor: &mut Cursor<'_>, _shared: &mut Shared<'_>) -> Parse {
            words.tls.$($field).+ = $value;
            Ok(())
        }
    )*};
}
switches! {
    sni_auto sni_auto = true;
    no_sni_auto sni_auto = false;
    ssl_reuse reuses_sessions = true;
    no_ssl_reuse reuses_sessions = false;
    no_verifyhost verifyhost = None;
    no_check_ssl check.ssl = Some(false);
    check_sni_auto check.no_sni_auto = false;
    no_check_sni_auto check.no_sni_auto = true;
}

/// `no-ssl`
pub fn no_ssl(
    words: &mut ServerWords,
    _cursor: &mut Cursor<'_>,
    _shared: &mut Shared<'_>,
) -> Parse {
    words.tls.may_turn_on |= words.tls.ssl;
    words.tls.ssl = false;
    words.tls.is_refused = true;
    Ok(())
}

/// `check-ssl`
pub fn check_ssl(
    words: &mut ServerWords,
    cursor: &mut Cursor<'_>,
    _shared: &mut Shared<'_>,
) -> Parse {
    words.tls.check.ssl = Some(true);
    words.span = words
        .span
        .take()
        .or_else(|| Some(cursor.line.span(cursor.at - 1)));
    Ok(())
}

/// `check-sni`
pub fn check_sni(
    words: &mut ServerWords,
    cursor: &mut Cursor<'_>,
    _shared: &mut Shared<'_>,
) -> Parse {
    words.tls.check.sni = Some(value(cursor, "missing server name")?.to_owned());
    Ok(())
}

/// `check-alpn`
pub fn check_alpn(
    words: &mut ServerWords,
    cursor: &mut Cursor<'_>,
    _shared: &mut Shared<'_>,
) -> Parse {
    words.tls.check.alpn = Some(protocols(cursor)?);
    Ok(())
}

/// `sni`
pub fn sni(words: &mut ServerWords, cursor: &mut Cursor<'_>, shared: &mut Shared<'_>) -> Parse {
    cursor
        .line
        .need(cursor.at, || "'sni' : missing sni expression.".to_owned())?;
    words.tls.sni = Some(shared.next_expr(cursor, Place::BE_SERVER_SOURCE)?);
    Ok(())
}

/// `verifyhost`
pub fn verifyhost(
    words: &mut ServerWords,
    cursor: &mut Cursor<'_>,
    _shared: &mut Shared<'_>,
) -> Parse {
    let name = value(cursor, "missing hostname to verify against")?;
    words.tls.verifyhost = Some(name.to_owned());
    Ok(())
}

/// `crt`
pub fn crt(words: &mut ServerWords, cursor: &mut Cursor<'_>, shared: &mut Shared<'_>) -> Parse {
    value(cursor, "missing certificate file path")?;
    let mut sources = certificates::named(cursor, shared)?;
    let Some(source) = sources.pop().filter(|_| sources.is_empty()) else {
        return Err(cursor.fault(format!(
            "'crt' : '{}' is not the name of one certificate.",
            cursor.last()
        )));
    };
    words.tls.certificate = Some(Arc::new(source));
    Ok(())
}
