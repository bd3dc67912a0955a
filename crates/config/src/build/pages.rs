//! Error pages: `errorfile`, `errorloc*`, `errorfiles`, and sections `http-errors` (manual §4.2,
//! §12.4).

use super::line::{Cursor, Line, Parse};
use super::proxy::ProxyBuild;
use super::{Shared, reply, unknown};
use crate::keywords::{self, other};
use crate::model::ErrorPage;
use crate::tree::Section;
use http::Method;
use http::h1::{self, Framing, Limits, Strictness};
use sample::Place;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The statuses that can have pages; 200 is the response of `monitor-uri`.
pub const STATUSES: &[u16] = &[
    200, 400, 401, 403, 404, 405, 407, 408, 410, 413, 414, 421, 422, 425, 429, 431, 500, 501, 502,
    503, 504,
];

/// The base of relative file names (`default-path`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DefaultPath {
    /// The directory in which the process was started.
    #[default]
    Current,
    /// The directory of the file that names them.
    Config,
    /// The parent of that directory.
    Parent,
    /// This directory.
    Origin(PathBuf),
}

impl DefaultPath {
    /// Parses the line.
    pub fn parse(line: &Line<'_>) -> Parse<DefaultPath> {
        let (path, args) = match line.arg(1) {
            "current" => (DefaultPath::Current, 1),
            "config" => (DefaultPath::Config, 1),
            "parent" => (DefaultPath::Parent, 1),
            "origin" => {
                line.need(2, || "'default-path origin' expects a directory as an argument.".into())?;
                (DefaultPath::Origin(line.path(2).to_owned()), 2)
            }
            _ => return Err(line.fault(1, "'default-path' expects 'current', 'config', 'parent', or 'origin' followed by a directory.")),
        };
        line.at_most(args)?;
        Ok(path)
    }

    /// The path of `name` in a configuration file called `source`.
    pub fn resolve(&self, name: &Path, source: &str) -> PathBuf {
        let directory = || {
            Path::new(source)
                .parent()
                .unwrap_or(Path::new(""))
                .to_path_buf()
        };
        match self {
            _ if name.is_absolute() => name.to_owned(),
            DefaultPath::Current => name.to_owned(),
            DefaultPath::Config => directory().join(name),
            DefaultPath::Parent => directory().join("..").join(name),
            DefaultPath::Origin(origin) => origin.join(name),
        }
    }
}

/// Reads the response in the file that word `index` names, and checks it. An empty file means no
/// response at all.
pub fn response(shared: &Shared<'_>, line: &Line<'_>, index: usize) -> Parse<Vec<u8>> {
    let raw = file(shared, line, index)?;
    if raw.is_empty() {
        return Ok(raw);
    }
    whole(&raw).map_err(|what| {
        let name = line.arg(index);
        line.fault(index, format!("{} : '{name}': {what}", line.keyword()))
    })?;
    Ok(raw)
}

/// Checks a response from a file.
fn whole(raw: &[u8]) -> Result<(), String> {
    let limits = Limits {
        head_bytes_max: raw.len() + 1,
        fields_max: usize::MAX,
    };
    let mut head = http::Head::default();
    let parsed = h1::parse_response(raw, Method::Get, limits, Strictness::Relaxed, &mut head);
    let parsed = match parsed {
        Ok(Some(parsed)) => parsed,
        Ok(None) => return Err("unable to parse headers, the empty line is missing.".into()),
        Err(error) => return Err(format!("unable to parse headers ({error}).")),
    };
    let status = head.status();
    if status < 200 && status != 101 {
        return Err(format!(
            "invalid http status code for an error message ({status})"
        ));
    }
    let payload = (raw.len() - parsed.consumed) as u64;
    match parsed.framing {
        Framing::Chunked => Err("chunk-encoded payload not supported".into()),
        Framing::None | Framing::Length(0) if payload > 0 => {
            Err("message payload not expected".into())
        }
        Framing::Length(length) if length != payload => Err(format!(
            "payload size does not match the announced content-length ({payload} != {length})"
        )),
        _ => Ok(()),
    }
}

/// Reads the file that word `index` names.
pub fn file(shared: &Shared<'_>, line: &Line<'_>, index: usize) -> Parse<Vec<u8>> {
    let name = line.arg(index);
    let path = shared
        .default_path
        .resolve(line.path(index), &line.span(index).source.name);
    let fault = |what: &str| {
        line.fault(
            index,
            format!("'{}' : error {what} file '{name}'.", line.keyword()),
        )
    };
    let most = shared.bufsize_bytes as u64;
    let bytes = files::read(&path, most + 1).map_err(|_| fault("opening"))?;
    if bytes.len() as u64 > most {
        return Err(line.fault(
            index,
            format!("file '{name}' exceeds the buffer size (more than {most} bytes)."),
        ));
    }
    Ok(bytes)
}

fn status(line: &Line<'_>, index: usize) -> Parse<u16> {
    let text = line.arg(index);
    let status = text.parse().ok().filter(|status| STATUSES.contains(status));
    status.ok_or_else(|| {
        line.fault(
            index,
            format!("{} : status code '{text}' not handled.", line.keyword()),
        )
    })
}

/// A page of a line `errorfile|errorloc* <status> <what>`.
fn page(shared: &Shared<'_>, line: &Line<'_>, redirect: Option<u16>) -> Parse<(u16, ErrorPage)> {
    let what = if redirect.is_some() {
        "<status_code> and <url>"
    } else {
        "<status_code> and <file>"
    };
    for index in [1, 2] {
        line.need(index, || {
            format!("{} : expects {what} as arguments.", line.keyword())
        })?;
    }
    let status = status(line, 1)?;
    let page = match redirect {
        None => ErrorPage::Raw(response(shared, line, 2)?.into()),
        Some(status) => ErrorPage::Redirect {
            status,
            location: line.octets(2),
        },
    };
    line.at_most(2)?;
    Ok((status, page))
}

/// Adds a page; the last page of a status wins.
fn put(pages: &mut Vec<(u16, ErrorPage)>, page: (u16, ErrorPage)) {
    pages.retain(|(status, _)| *status != page.0);
    pages.push(page);
}

fn proxy_page(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>, redirect: Option<u16>) -> Parse {
    let page = page(build.shared, line, redirect)?;
    put(&mut build.proxy.error_pages, page);
    Ok(())
}

/// `errorfile <status> <file>`
pub fn errorfile(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    proxy_page(build, line, None)
}

/// `errorloc`, `errorloc302`
pub fn errorloc302(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    proxy_page(build, line, Some(302))
}

/// `errorloc303`
pub fn errorloc303(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    proxy_page(build, line, Some(303))
}

/// `errorfiles <name> [<status> …]`
pub fn errorfiles(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let name = line.need(1, || "errorfiles : expects <name> as argument.".into())?;
    let pages = section_pages(build.shared, line, 1, name)?.to_vec();
    let mut wanted = Vec::new();
    for index in 2..line.count() {
        let status = status(line, index)?;
        if !pages.iter().any(|(known, _)| *known == status) {
            return Err(line.fault(index, format!("errorfiles : status code '{status}' not declared in 'http-errors' section '{name}'.")));
        }
        wanted.push(status);
    }
    for page in pages
        .into_iter()
        .filter(|(status, _)| wanted.is_empty() || wanted.contains(status))
    {
        put(&mut build.proxy.error_pages, page);
    }
    Ok(())
}

/// `http-error status <status> …`
pub fn http_error(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let place = build.place(Place::FE_HTTP_REQUEST, Place::BE_HTTP_REQUEST);
    let mut cursor = Cursor { line: *line, at: 1 };
    let page = reply::reply(build.shared, &mut cursor, place, 0)?;
    if !STATUSES.contains(&page.status) {
        return Err(match page.status {
            0 => cursor.fault("expects 'status <status_code>'."),
            status => cursor.fault(format!("status code '{status}' not handled.")),
        });
    }
    if !cursor.peek().is_empty() {
        return Err(cursor.fault("takes no condition."));
    }
    let page = (page.status, ErrorPage::Reply(page.into()));
    put(&mut build.proxy.error_pages, page);
    Ok(())
}

/// The pages of the `http-errors` section that word `index` names.
pub fn section_pages<'s>(
    shared: &'s Shared<'_>,
    line: &Line<'_>,
    index: usize,
    name: &str,
) -> Parse<&'s [(u16, ErrorPage)]> {
    let pages = shared.http_errors.get(name).map(Vec::as_slice);
    pages.ok_or_else(|| {
        line.fault(
            index,
            format!("unable to find the http-errors section '{name}'."),
        )
    })
}

/// A section `http-errors`.
pub fn http_errors_section(section: &Section, shared: &mut Shared<'_>) {
    let header = Line::new(&section.header);
    let name = header.arg(1).to_owned();
    if name.is_empty() {
        shared
            .diagnostics
            .alert(&header.span(1), "missing name for http-errors section.");
    } else if shared.http_errors.contains_key(&name) {
        shared.diagnostics.alert(
            &header.span(1),
            format!("http-errors section '{name}' already exists."),
        );
    }
    let mut pages = Vec::new();
    for line in section.statements.iter().map(Line::new) {
        let result = match line.keyword() {
            "errorfile" => page(shared, &line, None),
            "errorloc" | "errorloc302" => page(shared, &line, Some(302)),
            "errorloc303" => page(shared, &line, Some(303)),
            _ => Err(unknown(&line, "http-errors", http_errors_names())),
        };
        match result {
            Ok(page) => put(&mut pages, page),
            Err(fault) => shared.settle(Err(fault)),
        }
    }
    shared.http_errors.insert(name, pages);
}

fn http_errors_names() -> impl Iterator<Item = &'static str> {
    other::table("http-errors")
        .unwrap_or_default()
        .iter()
        .map(|known: &keywords::Keyword<()>| known.name)
}

/// The raw response for a page of an `http-errors` section.
pub fn raw(page: &ErrorPage) -> Arc<[u8]> {
    match page {
        ErrorPage::Raw(bytes) => Arc::clone(bytes),
        // Pages of `http-errors` sections are never replies.
        ErrorPage::Reply(_) => Arc::default(),
        ErrorPage::Redirect { status, location } => {
            let reason = if *status == 303 { "See Other" } else { "Found" };
            let mut bytes =
                format!("HTTP/1.1 {status} {reason}\r\nCache-Control: no-cache\r\nContent-length: 0\r\nLocation: ").into_bytes();
            bytes.extend_from_slice(location);
            bytes.extend_from_slice(b"\r\n\r\n");
            bytes.into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_names_count_from_the_default_path() {
        let cases = [
            (DefaultPath::Current, "a", "a"),
            (DefaultPath::Config, "a", "/etc/haproxy/a"),
            (DefaultPath::Parent, "a", "/etc/haproxy/../a"),
            (DefaultPath::Origin("/srv".into()), "a", "/srv/a"),
            (DefaultPath::Origin("/srv".into()), "/b", "/b"),
        ];
        for (path, name, expected) in cases {
            assert_eq!(
                path.resolve(Path::new(name), "/etc/haproxy/x.cfg"),
                PathBuf::from(expected)
            );
        }
    }
}
