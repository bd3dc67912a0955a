//! TLS options: for `bind` lines, for `server` and `default-server` lines, for certificate lists,
//! and those that `ssl-default-bind-options` and `ssl-default-server-options` accept (manual §3.1,
//! §5.1, §5.2).

use super::arguments::{Args, ON_OFF};
use super::{Keyword, Places, Secret};
use crate::build::tls::TlsParser::{self, Bind, Nothing, Server, Shared};
use crate::build::tls::{bind, options, server};

/// An option.
pub type Known = Keyword<TlsParser>;

/// Implemented.
const fn k(
    name: &'static str,
    places: Places,
    args: Args,
    parser: TlsParser,
    doc: &'static str,
) -> Known {
    Keyword::yes(name, places, parser, doc).args(args)
}

/// Implemented without `missing`.
const fn partly(
    name: &'static str,
    places: Places,
    args: Args,
    parser: TlsParser,
    missing: &'static str,
    doc: &'static str,
) -> Known {
    Keyword::partly(name, places, parser, missing, doc).args(args)
}

/// Without a meaning here.
const fn moot(
    name: &'static str,
    places: Places,
    reason: &'static str,
    args: Args,
    doc: &'static str,
) -> Known {
    Keyword::moot(name, places, reason, args, doc)
}

/// Cancels an option that is off anyway.
const fn off(name: &'static str, places: Places, doc: &'static str) -> Known {
    Keyword::yes(name, places, Nothing, doc)
}

const B: Places = Places::BIND;
const S: Places = Places::SERVER;
/// Certificate lists.
const L: Places = Places::CRT_LIST;
const BL: Places = B.or(L);
const BSL: Places = BL.or(S);
/// Words that `ssl-default-bind-options` accepts too.
const BB: Places = B.or(Places::BIND_DEFAULTS);
/// Words that `ssl-default-server-options` accepts too.
const SS: Places = S.or(Places::SERVER_DEFAULTS);
const ALL: Places = BB.or(SS);

const NONE: Args = Args::None;
const WORD: Args = Args::Word;
const VERSION: Args = Args::OneOf(&["SSLv3", "TLSv1.0", "TLSv1.1", "TLSv1.2", "TLSv1.3"]);
const EARLY: &str = "early data over TCP: a request waits for the handshake with its server";
const NPN: &str = "ALPN has replaced it";
const KERNEL: &str = "encryption stays in the process";
const RENEGOTIATION: &str = "no side renegotiates";

/// Every option, sorted by name.
#[rustfmt::skip]
pub const OPTIONS: &[Known] = &[
    k("allow-0rtt", BL, NONE, Shared(options::allow_0rtt), "TLS and QUIC: takes early data of clients."),
    partly("allow-0rtt", S, NONE, Shared(options::allow_0rtt), EARLY, "QUIC: sends servers safe requests as early data."),
    k("alpn", BSL, WORD, Shared(options::alpn), "TLS: the protocols that are offered."),
    k("ca-file", BSL, WORD, Shared(options::ca_file), "TLS: the authorities that certify the other side."),
    k("ca-ignore-err", B, WORD, Bind(bind::ca_ignore_err), "TLS: errors of the chain that are ignored."),
    k("ca-sign-file", B, WORD, Bind(bind::ca_sign_file), "TLS: the authority that generated certificates are signed with, and its key."),
    k("ca-sign-pass", B, WORD, Bind(bind::ca_sign_pass), "TLS: the passphrase of that authority's key.").secret(Secret::All),
    k("ca-verify-file", BL, WORD, Shared(options::ca_verify_file), "TLS: authorities that are not named to clients."),
    k("check-alpn", S, WORD, Server(server::check_alpn), "Health checks: the protocols that are offered."),
    k("check-sni", S, WORD, Server(server::check_sni), "Health checks: the name that the server is asked for."),
    k("check-sni-auto", S, NONE, Server(server::check_sni_auto), "Health checks: ask for the request's host."),
    k("check-ssl", S, NONE, Server(server::check_ssl), "Health checks: over TLS."),
    k("ciphers", BSL, WORD, Shared(options::ciphers), "TLS: cipher suites up to TLS 1.2."),
    k("ciphersuites", BSL, WORD, Shared(options::ciphersuites), "TLS: cipher suites of TLS 1.3."),
    k("client-sigalgs", BSL, WORD, Shared(options::client_sigalgs), "TLS: signature algorithms of client certificates."),
    k("crl-file", BSL, WORD, Shared(options::crl_file), "TLS: revoked certificates."),
    k("crt", B, WORD, Bind(bind::crt), "TLS: a certificate and its key."),
    k("crt", S, WORD, Server(server::crt), "TLS: the certificate that the server is shown."),
    k("crt-ignore-err", B, WORD, Bind(bind::crt_ignore_err), "TLS: errors of the certificate that are ignored."),
    k("crt-list", B, WORD, Bind(bind::crt_list), "TLS: a list of certificates with their options."),
    k("curves", BSL, WORD, Shared(options::curves), "TLS: elliptic curves."),
    k("default-crt", B, WORD, Bind(bind::default_crt), "TLS: the certificate where no name fits."),
    k("ecdhe", BL, WORD, Shared(options::ecdhe), "TLS: the curve of ECDHE."),
    Keyword::not_yet("ech", B, "TLS: keys of encrypted client hellos.").args(WORD),
    k("force-sslv3", ALL, NONE, Shared(options::force_sslv3), "TLS: SSL 3.0 only."),
    k("force-tlsv10", ALL, NONE, Shared(options::force_tlsv10), "TLS: version 1.0 only."),
    k("force-tlsv11", ALL, NONE, Shared(options::force_tlsv11), "TLS: version 1.1 only."),
    k("force-tlsv12", ALL, NONE, Shared(options::force_tlsv12), "TLS: version 1.2 only."),
    k("force-tlsv13", ALL, NONE, Shared(options::force_tlsv13), "TLS: version 1.3 only."),
    k("generate-certificates", B, NONE, Bind(bind::generate_certificates), "TLS: makes certificates for names that no certificate has."),
    moot("ktls", BSL, KERNEL, ON_OFF, "TLS: leaves encryption to the kernel."),
    k("no-alpn", BL, NONE, Shared(options::no_alpn), "TLS: offers no protocols."),
    k("no-ca-names", BL, NONE, Shared(options::no_ca_names), "TLS: does not tell clients the authorities."),
    k("no-check-sni-auto", S, NONE, Server(server::no_check_sni_auto), "Health checks: cancels `check-sni-auto`."),
    Keyword::yes("no-check-ssl", S, Server(server::no_check_ssl), "Health checks: cancels `check-ssl`."),
    off("no-renegotiate", SS, "TLS: cancels `renegotiate`."),
    Keyword::yes("no-sni-auto", S, Server(server::no_sni_auto), "TLS: cancels `sni-auto`."),
    Keyword::yes("no-ssl", S, Server(server::no_ssl), "TLS: cancels `ssl`."),
    k("no-ssl-reuse", S, NONE, Server(server::no_ssl_reuse), "TLS: does not resume sessions."),
    k("no-sslv3", ALL, NONE, Shared(options::no_sslv3), "TLS: without SSL 3.0."),
    k("no-strict-sni", BB, NONE, Bind(bind::no_strict_sni), "TLS: cancels `strict-sni`."),
    k("no-tls-tickets", ALL, NONE, Shared(options::no_tls_tickets), "TLS: without session tickets."),
    k("no-tlsv10", ALL, NONE, Shared(options::no_tlsv10), "TLS: without version 1.0."),
    k("no-tlsv11", ALL, NONE, Shared(options::no_tlsv11), "TLS: without version 1.1."),
    k("no-tlsv12", ALL, NONE, Shared(options::no_tlsv12), "TLS: without version 1.2."),
    k("no-tlsv13", ALL, NONE, Shared(options::no_tlsv13), "TLS: without version 1.3."),
    Keyword::yes("no-verifyhost", S, Server(server::no_verifyhost), "TLS: cancels `verifyhost`."),
    moot("npn", BSL, NPN, WORD, "TLS: the protocols that are offered in the old way."),
    k("prefer-client-ciphers", BB, NONE, Bind(bind::prefer_client_ciphers), "TLS: the client's order of ciphers counts."),
    moot("renegotiate", SS, RENEGOTIATION, NONE, "TLS: lets the server renegotiate."),
    k("sigalgs", BSL, WORD, Shared(options::sigalgs), "TLS: signature algorithms."),
    k("sni", S, Args::Sample, Server(server::sni), "TLS: the name that the server is asked for."),
    k("sni-auto", S, NONE, Server(server::sni_auto), "TLS: asks for the request's host."),
    Keyword::yes("ssl", B, Bind(bind::ssl), "TLS."),
    Keyword::yes("ssl", S, Server(server::ssl), "TLS."),
    k("ssl-max-ver", ALL.or(L), VERSION, Shared(options::ssl_max_ver), "TLS: the highest version."),
    k("ssl-min-ver", ALL.or(L), VERSION, Shared(options::ssl_min_ver), "TLS: the lowest version."),
    k("ssl-reuse", S, NONE, Server(server::ssl_reuse), "TLS: resumes sessions."),
    k("strict-sni", BB, NONE, Bind(bind::strict_sni), "TLS: refuses names without a certificate."),
    k("tls-ticket-keys", B, WORD, Bind(bind::tls_ticket_keys), "TLS: keys of session tickets."),
    k("tls-tickets", BB.or(S), NONE, Shared(options::tls_tickets), "TLS: session tickets."),
    k("verify", BL, Args::OneOf(&["none", "optional", "required"]), Shared(options::verify_client), "TLS: whether clients must have a certificate."),
    k("verify", S, Args::OneOf(&["none", "required"]), Shared(options::verify_server), "TLS: whether the server's certificate is verified."),
    k("verifyhost", S, WORD, Server(server::verifyhost), "TLS: the name that the server's certificate must have."),
];
