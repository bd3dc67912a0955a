//! `… ssl cert`: certificates, their keys and the files that belong to them; `… ssl jwt`:
//! certificates that verify tokens.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proxy::CertificateView;
use tls::KeyForm;

use super::{
    Asked, Command, Kind, Level, Reply, aborted, certificates_changed, command, committed, detail,
    name, names, ocsp, refused, shown_name, status, tls,
};

pub(in super::super) const COMMANDS: &[Command] = &[
    command(
        "show ssl cert",
        "[<certfile>]",
        Level::User,
        "display the SSL certificates used in memory, or the details of a file",
        show,
    ),
    command(
        "dump ssl cert",
        "<certfile>",
        Level::Admin,
        "dump the SSL certificates in PEM format",
        dump,
    ),
    command(
        "new ssl cert",
        "<certfile>",
        Level::Admin,
        "create a new certificate file to be used in a crt-list or a directory",
        new,
    ),
    command(
        "set ssl cert",
        "<certfile> <payload>",
        Level::Admin,
        "replace a certificate file",
        set,
    ),
    command(
        "commit ssl cert",
        "<certfile>",
        Level::Admin,
        "commit a certificate file",
        |asked| match name(asked) {
            None => refused("'commit ssl cert' expects a filename\n"),
            Some(name) => {
                let edited = tls(asked).commit_certificate(name);
                committed(name, certificates_changed(asked, edited))
            }
        },
    ),
    command(
        "abort ssl cert",
        "<certfile>",
        Level::Admin,
        "abort a transaction for a certificate file",
        |asked| match name(asked) {
            None => refused("'abort ssl cert' expects a filename\n"),
            Some(name) => aborted(name, tls(asked).abort_certificate(name)),
        },
    ),
    command(
        "del ssl cert",
        "<certfile>",
        Level::Admin,
        "delete an unused certificate file",
        |asked| match name(asked) {
            None => refused("'del ssl cert' expects a certificate name\n"),
            Some(name) => {
                let edited = tls(asked).delete_certificate(name);
                KIND.delete(name, certificates_changed(asked, edited))
            }
        },
    ),
    command(
        "show ssl jwt",
        "",
        Level::Operator,
        "show list of certificates used for JWT validation",
        |asked| {
            let mut out = String::from("# filename\n");
            for view in tls(asked).certificates() {
                if view.is_for_jwt {
                    out += &view.source.name;
                    out.push('\n');
                }
            }
            Reply::Dump(out)
        },
    ),
    command(
        "add ssl jwt",
        "<certfile>",
        Level::Admin,
        "add certificate to list of certificates used for JWT validation",
        |asked| set_for_jwt(asked, true),
    ),
    command(
        "del ssl jwt",
        "<certfile>",
        Level::Admin,
        "remove certificate from list of certificates used for JWT validation",
        |asked| set_for_jwt(asked, false),
    ),
];

fn set_for_jwt(asked: &Asked<'_>, is_on: bool) -> Reply {
    let Some(name) = name(asked) else {
        let verb = if is_on { "add" } else { "del" };
        return Reply::Refused(format!("'{verb} ssl cert' expects a filename\n"));
    };
    match tls(asked).set_for_jwt(name, is_on) {
        Ok(()) => Reply::Done,
        Err(_) => refused(NOT_FOUND),
    }
}

const KIND: Kind = Kind {
    unknown: "Can't replace a certificate which is not referenced by the configuration!",
    transaction: "Transaction",
    created: |name| format!("New empty certificate store '{name}'!\n"),
    exists: "Certificate",
    deleted: "Certificate",
    delete_refused: "certificate",
    of: "certificate",
};

const NOT_FOUND: &str =
    "Can't display the certificate: Not found or the certificate is a bundle!\n";

fn new(asked: &Asked<'_>) -> Reply {
    match name(asked) {
        None => refused("'new ssl cert' expects a filename\n"),
        Some(name) => KIND.new_file(name, tls(asked).new_certificate(name)),
    }
}

fn set(asked: &Asked<'_>) -> Reply {
    let (Some(name), Some(payload)) = (name(asked), asked.payload) else {
        return refused("'set ssl cert' expects a filename and a certificate as a payload\n");
    };
    KIND.set(name, tls(asked).set_certificate(name, payload))
}

fn show(asked: &Asked<'_>) -> Reply {
    let Some(word) = name(asked) else {
        return names(tls(asked).certificate_names());
    };
    let (word, shows_status) = match word.strip_suffix(".ocsp") {
        Some(word) => (word, true),
        None => (word, false),
    };
    let (name, is_draft) = shown_name(word);
    let Some(view) = tls(asked).certificate(name, is_draft) else {
        return refused(NOT_FOUND);
    };
    match (shows_status, view.material.ocsp()) {
        (true, Some(response)) => Reply::Dump(ocsp::text(response)),
        (true, None) => Reply::Done,
        (false, _) => Reply::Dump(details(&view, is_draft)),
    }
}

fn details(view: &CertificateView, is_draft: bool) -> String {
    let source = &view.source;
    let mut out = format!(
        "Filename: {}{}\n",
        if is_draft { "*" } else { "" },
        source.name
    );
    let key = source.key.as_ref().or(source.key_beside.as_ref());
    let is_read = !source.origin.is_empty();
    for (title, path) in [
        ("Crt", Some(&source.path).filter(|_| is_read)),
        ("Key", key.or(Some(&source.path)).filter(|_| is_read)),
        ("OCSP", source.ocsp.as_ref()),
        ("OCSP Issuer", source.issuer.as_ref()),
        ("SCTL", source.sctl.as_ref()),
    ] {
        if let Some(path) = path {
            let _ = writeln!(out, "{title} filename: {}", path.display());
        }
    }
    let on = |is_on| if is_on { "on" } else { "off" };
    let update = on(source.ocsp_update == Some(true));
    let _ = writeln!(out, "Option: ocsp-update {update}");
    let _ = writeln!(out, "Option: jwt {}", on(view.is_for_jwt));
    let _ = writeln!(out, "Status: {}", status(view.status));
    if let Some(file) = &view.chain_file {
        let _ = writeln!(out, "Chain Filename: {}", file.display());
    }
    if let Some(certificate) = view.material.certificate() {
        out += &detail::certificate(certificate);
    }
    for certificate in view.material.chain() {
        out += &detail::of_chain(certificate);
    }
    if let Some(id) = tls::CertId::of(&view.material) {
        let _ = writeln!(out, "OCSP Response Key: {}", detail::lower_hex(id.der()));
    }
    out
}

fn dump(asked: &Asked<'_>) -> Reply {
    let view = name(asked).and_then(|word| {
        let (name, is_draft) = shown_name(word);
        tls(asked).certificate(name, is_draft)
    });
    let Some(view) = view else {
        return refused(NOT_FOUND);
    };
    let mut out = String::new();
    if let Some((form, key)) = view.material.key() {
        let label = match form {
            KeyForm::Pkcs1 => "RSA PRIVATE KEY",
            KeyForm::Sec1 => "EC PRIVATE KEY",
            KeyForm::Pkcs8 => "PRIVATE KEY",
        };
        pem(&mut out, label, key);
    }
    let all = view.material.certificate().into_iter();
    for certificate in all.chain(view.material.chain()) {
        pem(&mut out, "CERTIFICATE", certificate);
    }
    Reply::Dump(out)
}

/// Writes PEM (RFC 7468).
fn pem(out: &mut String, label: &str, der: &[u8]) {
    const LINE_BYTES: usize = 48;
    let _ = writeln!(out, "-----BEGIN {label}-----");
    for line in der.chunks(LINE_BYTES) {
        out.push_str(&STANDARD.encode(line));
        out.push('\n');
    }
    let _ = writeln!(out, "-----END {label}-----");
}
