//! Where a job finds its targets: `static_configs`, `file_sd_configs`, `http_sd_configs`.

use super::client::{self, HttpClient};
use crate::config::options::{Kind, Opt, Section, opt, required};

/// Targets with common labels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TargetGroup {
    /// Addresses.
    pub targets: Vec<String>,
    /// Labels of each.
    pub labels: Vec<(String, String)>,
}

/// Files that list targets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSd {
    /// Paths, with `*` in the name of the file.
    pub files: Vec<String>,
    /// They are read again after this time; not zero.
    pub refresh_interval_ns: u64,
}

/// A server that lists targets.
#[derive(Clone, Debug, PartialEq)]
pub struct HttpSd {
    /// Where.
    pub url: String,
    /// It is asked again after this time; not zero.
    pub refresh_interval_ns: u64,
    /// How it is asked.
    pub client: HttpClient,
}

#[rustfmt::skip]
pub(super) const STATIC: &[Opt] = &[
    opt("targets", Kind::Texts, "", "addresses, `host:port`"),
    opt("labels", Kind::Pairs, "", "labels of each"),
];
#[rustfmt::skip]
pub(super) const FILE: &[Opt] = &[
    opt("files", Kind::Texts, "", "paths of files (`.json`, `.yml`, `.yaml`), with `*` in the name of the file"),
    opt("refresh_interval", Kind::Duration, "5m", "they are read again after this time"),
];
#[rustfmt::skip]
pub(super) const HTTP: &[Opt] = &[
    required("url", Kind::Text, "where a list of targets is, in JSON"),
    opt("refresh_interval", Kind::Duration, "1m", "it is asked again after this time"),
];

pub(super) fn groups(section: &Section<'_>) -> Vec<TargetGroup> {
    let groups = section.sections("static_configs");
    let group = |section: &Section<'_>| TargetGroup {
        targets: section.texts("targets"),
        labels: section.pairs("labels"),
    };
    groups.iter().map(group).collect()
}

pub(super) fn files(section: &Section<'_>) -> Vec<FileSd> {
    let found = section.sections("file_sd_configs");
    let file = |section: &Section<'_>| {
        let files = section.texts("files");
        if files.is_empty() {
            section.fault("file service discovery config must contain at least one path name");
        }
        let endings = [".json", ".yml", ".yaml"];
        for path in &files {
            if !endings.iter().any(|ending| path.ends_with(ending)) {
                let message = format!("path name '{path}' is not valid for file discovery");
                section.error("files", &message);
            }
        }
        FileSd {
            files,
            refresh_interval_ns: interval(section),
        }
    };
    found.iter().map(file).collect()
}

pub(super) fn servers(section: &Section<'_>) -> Vec<HttpSd> {
    let found = section.sections("http_sd_configs");
    let server = |section: &Section<'_>| {
        let url = section.text("url");
        if !["http://", "https://"]
            .iter()
            .any(|scheme| url.starts_with(scheme))
        {
            section.error("url", "URL scheme must be 'http' or 'https'");
        }
        HttpSd {
            url,
            refresh_interval_ns: interval(section),
            client: client::client(section),
        }
    };
    found.iter().map(server).collect()
}

fn interval(section: &Section<'_>) -> u64 {
    let interval = section.duration_ns("refresh_interval");
    if interval == 0 {
        section.error("refresh_interval", "requires positive value");
    }
    interval
}
