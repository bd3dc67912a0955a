//! `status_code`: a span has one of some statuses.

use tail::settings::StatusCodes;

use super::{Block, Kind, PolicyKind, Section, Type, opt};
use crate::config::source::shortened;

#[rustfmt::skip]
pub(super) const TYPE: Type = Type {
    options: opt("status_code", Kind::Section(&[&[
        opt("status_codes", Kind::Texts, "", "OK, ERROR, UNSET: one of them keeps a trace"),
    ]]), "", "options of type status_code"),
    read,
    write,
};

fn read(options: &Section<'_>) -> Option<PolicyKind> {
    let mut codes = StatusCodes::default();
    let texts = options.texts_at("status_codes");
    if texts.is_empty() {
        options.error("status_codes", "must name OK, ERROR or UNSET");
    }
    for (text, at) in texts {
        match text.as_str() {
            "OK" => codes.ok = true,
            "ERROR" => codes.error = true,
            "UNSET" => codes.unset = true,
            _ => {
                let upper = text.to_ascii_uppercase();
                let known = ["OK", "ERROR", "UNSET"].contains(&upper.as_str());
                let message = if known {
                    format!("'{text}' is written {upper}")
                } else {
                    format!(
                        "'{}' is no status: OK, ERROR and UNSET are",
                        shortened(&text)
                    )
                };
                let path = &options.path;
                options
                    .notes
                    .error(at, format!("{path}::status_codes: {message}"));
            }
        }
    }
    Some(PolicyKind::StatusCode(codes))
}

fn write(kind: &PolicyKind, block: &mut Block<'_>) {
    if let PolicyKind::StatusCode(codes) = kind {
        block.put("status_codes", statuses(*codes));
    }
}

fn statuses(codes: StatusCodes) -> String {
    let names = [
        (codes.error, "ERROR"),
        (codes.ok, "OK"),
        (codes.unset, "UNSET"),
    ];
    let names = names.iter().filter(|(is_in, _)| *is_in);
    let names: Vec<&str> = names.map(|(_, name)| *name).collect();
    format!("[{}]", names.join(", "))
}
