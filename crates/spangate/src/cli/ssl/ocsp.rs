//! `… ssl ocsp-response`: the status that is stapled to certificates.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use health::OcspRefusal;
use proxy::EditError;
use tls::{CertId, CertStatus, Material, OcspResponse, Responder};

use super::detail::{lower_hex, upper_hex};
use super::{Asked, Command, Level, Reply, certificates_changed, command, name, refused, tls};

pub(in super::super) const COMMANDS: &[Command] = &[
    command(
        "show ssl ocsp-response",
        "[[text|base64] id]",
        Level::Admin,
        "display the IDs of the OCSP responses used in memory, or the details of a single OCSP response (in text or base64 format)",
        show,
    ),
    command(
        "set ssl ocsp-response",
        "<resp|payload>",
        Level::Admin,
        "update a certificate's OCSP Response from a base64-encode DER",
        set,
    ),
    command(
        "show ssl ocsp-updates",
        "",
        Level::Admin,
        "display information about the next 'nb' ocsp responses that will be updated automatically",
        updates,
    ),
    command(
        "update ssl ocsp-response",
        "<certfile>",
        Level::Admin,
        "send ocsp request and update stored ocsp response",
        update,
    ),
];

/// Reasons of revocation, in OpenSSL's words (RFC 5280 §5.3.1).
const REASONS: [(u8, &str); 10] = [
    (0, "unspecified"),
    (1, "keyCompromise"),
    (2, "cACompromise"),
    (3, "affiliationChanged"),
    (4, "superseded"),
    (5, "cessationOfOperation"),
    (6, "certificateHold"),
    (8, "removeFromCRL"),
    (9, "privilegeWithdrawn"),
    (10, "aACompromise"),
];

fn set(asked: &Asked<'_>) -> Reply {
    let payload = asked.payload.or(asked.bytes.first().copied());
    let Some(payload) = payload.filter(|payload| !payload.is_empty()) else {
        return refused("'set ssl ocsp-response' expects response in base64 encoding.\n");
    };
    let text: Vec<u8> = payload
        .iter()
        .copied()
        .filter(|byte| !matches!(byte, b'\r' | b'\n'))
        .collect();
    let Ok(response) = STANDARD.decode(text) else {
        return refused("'set ssl ocsp-response' received invalid base64 encoded response.\n");
    };
    let now_s = net::sys::now().wall_ns / 1_000_000_000;
    match certificates_changed(asked, tls(asked).set_ocsp(&response, now_s)) {
        Ok(_) => Reply::Said("OCSP Response updated!\n".to_owned()),
        Err(EditError::Wrong(why)) => Reply::Refused(format!("{why}.\n")),
        Err(_) => refused(
            "OCSP single response: Certificate ID does not match any certificate or issuer.\n",
        ),
    }
}

fn show(asked: &Asked<'_>) -> Reply {
    let (is_base64, wanted) = match asked.rest {
        [] => return list(asked),
        ["base64", id, ..] => (true, *id),
        ["text", id, ..] => (false, *id),
        ["text" | "base64"] => {
            return refused("'show ssl ocsp-response [text|base64]' expects a valid certid.\n");
        }
        [id, ..] => (false, *id),
    };
    let all = tls(asked).certificates();
    let found = all.into_iter().find(|view| {
        view.material.ocsp().is_some()
            && (view.source.name == wanted
                || CertId::of(&view.material).is_some_and(|id| lower_hex(id.der()) == wanted))
    });
    let response = found.and_then(|view| view.material.ocsp().map(<[u8]>::to_vec));
    match response {
        None => refused("Certificate ID or path does not match any certificate.\n"),
        Some(response) if is_base64 => Reply::Dump(STANDARD.encode(response) + "\n"),
        Some(response) => Reply::Dump(text(&response)),
    }
}

fn list(asked: &Asked<'_>) -> Reply {
    let mut out = String::from("# Certificate IDs\n");
    let mut seen = Vec::new();
    for view in tls(asked).certificates() {
        let words = &asked.subjects.runtime_config.config.global.tls.ocsp;
        let is_asked_for = words.are_on(view.source.ocsp_update) && has_responder(&view.material);
        let has_status = view.material.ocsp().is_some() || is_asked_for;
        let Some(id) = CertId::of(&view.material).filter(|_| has_status) else {
            continue;
        };
        if seen.contains(&id) {
            continue;
        }
        let name = &view.source.name;
        let _ = write!(
            out,
            "Certificate ID key : {}\nCertificate path : {name}\n",
            lower_hex(id.der())
        );
        out += &certificate_id(&id, " ");
        seen.push(id);
    }
    Reply::Dump(out)
}

fn updates(asked: &Asked<'_>) -> Reply {
    let zone = &asked.subjects.runtime_config.process.local_time;
    let date = |seconds: u64| sample::zoned_log_date(seconds, zone);
    let mut out = String::from(
        "OCSP Certid | Path | Next Update | Last Update | Successes | Failures | Last Update Status | Last Update Status (str)\n",
    );
    let now_s = net::sys::now().wall_ns / 1_000_000_000;
    for each in asked.subjects.ocsp.list() {
        let _ = writeln!(
            out,
            "{} | {} | {} | {} | {} | {} | {} | {}",
            lower_hex(each.id.der()),
            each.name,
            date(if each.next_s == 0 { now_s } else { each.next_s }),
            each.last_s.map_or_else(|| "-".to_owned(), date),
            each.successes,
            each.failures,
            each.outcome.number(),
            each.outcome_text()
        );
    }
    Reply::Dump(out)
}

fn update(asked: &Asked<'_>) -> Reply {
    let Some(name) = name(asked) else {
        return refused("'update ssl ocsp-response' expects a filename\n");
    };
    let subjects = asked.subjects;
    let why = match subjects.ocsp.ask_now(&subjects.runtime_config, name) {
        Ok(()) => return Reply::Done,
        Err(OcspRefusal::UnknownCertificate) => {
            "Unknown certificate! 'update ssl ocsp-response' expects an already known certificate file name."
        }
        Err(OcspRefusal::NoResponse) => {
            "'update ssl ocsp-response' only works on certificates that already have a known OCSP response."
        }
    };
    Reply::Refused(format!("{why}\nCan't send ocsp request for {name}!\n"))
}

/// Whether a certificate names a responder.
fn has_responder(material: &Material) -> bool {
    material.certificate().and_then(sample::ocsp_uri).is_some()
}

/// The fields that identify a certificate, in lines that begin with `indent`.
fn certificate_id(id: &CertId, indent: &str) -> String {
    let Some([name, key, serial]) = id.parts() else {
        return String::new();
    };
    let serial = match serial {
        [0, rest @ ..] if !rest.is_empty() => rest,
        serial => serial,
    };
    format!(
        "{indent} Certificate ID:\n{indent}   Issuer Name Hash: {}\n{indent}   Issuer Key Hash: {}\n{indent}   Serial Number: {}\n",
        upper_hex(name),
        upper_hex(key),
        upper_hex(serial)
    )
}

/// A response in the format of OpenSSL.
pub(super) fn text(response: &[u8]) -> String {
    let Ok(response) = OcspResponse::parse(response) else {
        return "Unable to parse OCSP response\n".to_owned();
    };
    let responder = match &response.responder {
        Responder::Name(name) => sample::shown_name(name).unwrap_or_default(),
        Responder::Key(key) => upper_hex(key),
    };
    let mut out = format!(
        "OCSP Response Data:\n    OCSP Response Status: successful (0x0)\n    Response Type: Basic OCSP Response\n    \
         Version: 1 (0x0)\n    Responder Id: {responder}\n    Produced At: {}\n    Responses:\n    Certificate ID:\n      \
         Hash Algorithm: sha1\n",
        sample::shown_time(response.produced_s)
    );
    let id = certificate_id(&response.id, "   ");
    out += id.split_once('\n').map_or("", |(_, lines)| lines);
    match response.status {
        CertStatus::Good => out += "    Cert Status: good\n",
        CertStatus::Unknown => out += "    Cert Status: unknown\n",
        CertStatus::Revoked(since, reason) => {
            out += "    Cert Status: revoked\n";
            let _ = writeln!(out, "    Revocation Time: {}", sample::shown_time(since));
            let known = REASONS.iter().find(|(number, _)| Some(*number) == reason);
            if let Some((number, name)) = known {
                let _ = writeln!(out, "    Revocation Reason: {name} ({number:#x})");
            }
        }
    }
    let this_update = sample::shown_time(response.this_update_s);
    let _ = writeln!(out, "    This Update: {this_update}");
    if let Some(next) = response.next_update_s {
        let _ = writeln!(out, "    Next Update: {}", sample::shown_time(next));
    }
    out
}
