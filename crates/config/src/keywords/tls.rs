//! Options of TLS: of `bind` lines, of `server` and `default-server` lines, and what of them `ssl-default-bind-options` and
//! `ssl-default-server-options` take (manual §3.1, §5.1, §5.2). What turns TLS on is refused, what tunes it has no effect.

use super::arguments::{Args, ON_OFF};
use super::features::Feature::Tls;
use super::{Keyword, Places};

/// An option that is not parsed yet.
pub type Known = Keyword<()>;

const fn tunes(name: &'static str, places: Places, args: Args, doc: &'static str) -> Known {
    Keyword::tunes(name, places, Tls, args, doc)
}

/// Cancels what is never set.
const fn off(name: &'static str, places: Places, doc: &'static str) -> Known {
    Keyword::yes(name, places, (), doc)
}

const B: Places = Places::BIND;
const S: Places = Places::SERVER;
const BS: Places = B.or(S);
/// Also words of `ssl-default-bind-options`.
const BB: Places = B.or(Places::BIND_DEFAULTS);
/// Also words of `ssl-default-server-options`.
const SS: Places = S.or(Places::SERVER_DEFAULTS);
const ALL: Places = BB.or(SS);

const NONE: Args = Args::None;
const WORD: Args = Args::Word;
const VERSION: Args = Args::OneOf(&["SSLv3", "TLSv1.0", "TLSv1.1", "TLSv1.2", "TLSv1.3"]);

/// Every option, in the order of their names.
#[rustfmt::skip]
pub const OPTIONS: &[Known] = &[
    tunes("allow-0rtt", BS, NONE, "TLS: early data."),
    tunes("alpn", BS, WORD, "TLS: the protocols that are offered."),
    tunes("ca-file", BS, WORD, "TLS: the authorities that certify the other side."),
    tunes("ca-ignore-err", B, WORD, "TLS: errors of the chain that are ignored."),
    tunes("ca-sign-file", B, WORD, "TLS: the authority that generated certificates are signed with."),
    tunes("ca-sign-pass", B, WORD, "TLS: the passphrase of that authority's key."),
    tunes("ca-verify-file", B, WORD, "TLS: authorities that are not named to clients."),
    tunes("ciphers", BS, WORD, "TLS: cipher suites up to TLS 1.2."),
    tunes("ciphersuites", BS, WORD, "TLS: cipher suites of TLS 1.3."),
    tunes("client-sigalgs", BS, WORD, "TLS: signature algorithms of client certificates."),
    tunes("crl-file", BS, WORD, "TLS: revoked certificates."),
    tunes("crt", BS, WORD, "TLS: a certificate and its key."),
    tunes("crt-ignore-err", B, WORD, "TLS: errors of the certificate that are ignored."),
    tunes("crt-list", B, WORD, "TLS: a list of certificates with their options."),
    tunes("curves", BS, WORD, "TLS: elliptic curves."),
    tunes("default-crt", B, WORD, "TLS: the certificate where no name fits."),
    tunes("ecdhe", B, WORD, "TLS: the curve of ECDHE."),
    tunes("ech", B, WORD, "TLS: keys of encrypted client hellos."),
    tunes("force-sslv3", ALL, NONE, "TLS: SSL 3.0 only."),
    tunes("force-tlsv10", ALL, NONE, "TLS: version 1.0 only."),
    tunes("force-tlsv11", ALL, NONE, "TLS: version 1.1 only."),
    tunes("force-tlsv12", ALL, NONE, "TLS: version 1.2 only."),
    tunes("force-tlsv13", ALL, NONE, "TLS: version 1.3 only."),
    tunes("generate-certificates", B, NONE, "TLS: makes certificates on demand."),
    tunes("ktls", BS, ON_OFF, "TLS: leaves encryption to the kernel."),
    tunes("no-alpn", B, NONE, "TLS: offers no protocols."),
    tunes("no-ca-names", B, NONE, "TLS: does not tell clients the authorities."),
    off("no-renegotiate", SS, "TLS: cancels `renegotiate`."),
    off("no-sni-auto", S, "TLS: cancels `sni-auto`."),
    off("no-ssl", S, "TLS: cancels `ssl`."),
    tunes("no-ssl-reuse", S, NONE, "TLS: does not resume sessions."),
    tunes("no-sslv3", ALL, NONE, "TLS: without SSL 3.0."),
    tunes("no-strict-sni", BB, NONE, "TLS: cancels `strict-sni`."),
    tunes("no-tls-tickets", ALL, NONE, "TLS: without session tickets."),
    tunes("no-tlsv10", ALL, NONE, "TLS: without version 1.0."),
    tunes("no-tlsv11", ALL, NONE, "TLS: without version 1.1."),
    tunes("no-tlsv12", ALL, NONE, "TLS: without version 1.2."),
    tunes("no-tlsv13", ALL, NONE, "TLS: without version 1.3."),
    off("no-verifyhost", S, "TLS: cancels `verifyhost`."),
    tunes("npn", BS, WORD, "TLS: the protocols that are offered in the old way."),
    tunes("prefer-client-ciphers", BB, NONE, "TLS: the client's order of ciphers counts."),
    tunes("renegotiate", SS, NONE, "TLS: lets the server renegotiate."),
    tunes("sigalgs", BS, WORD, "TLS: signature algorithms."),
    tunes("sni", S, Args::Sample, "TLS: the name that the server is asked for."),
    tunes("sni-auto", S, NONE, "TLS: asks for the request's host."),
    Keyword::not_yet("ssl", BS, "TLS."),
    tunes("ssl-max-ver", ALL, VERSION, "TLS: the highest version."),
    tunes("ssl-min-ver", ALL, VERSION, "TLS: the lowest version."),
    tunes("ssl-reuse", S, NONE, "TLS: resumes sessions."),
    tunes("strict-sni", BB, NONE, "TLS: refuses names without a certificate."),
    tunes("tls-ticket-keys", B, WORD, "TLS: keys of session tickets."),
    tunes("tls-tickets", BS.or(Places::BIND_DEFAULTS), NONE, "TLS: session tickets."),
    tunes("verify", B, Args::OneOf(&["none", "optional", "required"]), "TLS: whether clients must have a certificate."),
    tunes("verify", S, Args::OneOf(&["none", "required"]), "TLS: whether the server's certificate is verified."),
    tunes("verifyhost", S, WORD, "TLS: the name that the server's certificate must have."),
];
