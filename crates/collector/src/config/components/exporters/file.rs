//! `file`: OTLP into files.

use super::{Exporter, ExporterSettings};
use crate::config::components::shared::retry::Retry;
use crate::config::components::{EVERY, Entry, Parse, name};
use crate::config::options::{Kind, Opt, Section, opt, required};

/// An exporter into files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileExporter {
    /// The file, or the pattern of files where `group_by` is on.
    pub path: String,
    /// Whether a file that is there is continued.
    pub append: bool,
    /// What is written.
    pub format: Format,
    /// `compression: zstd`
    pub zstd: bool,
    /// When another file begins.
    pub rotation: Option<Rotation>,
    /// A file for each value of an attribute.
    pub group_by: Option<GroupBy>,
    /// Whether folders are made.
    pub create_directory: bool,
    /// And with which permissions.
    pub directory_permissions: u32,
}

impl ExporterSettings for FileExporter {
    /// A disk error is tried again without end: the disk may be full for long, and senders are told
    /// to come back when the queue is full.
    fn retry(&self) -> Option<Retry> {
        Some(Retry {
            elapsed_max: None,
            ..Retry::default()
        })
    }

    fn is_ordered(&self) -> bool {
        true
    }

    fn writes_files(&self) -> bool {
        true
    }
}

/// `format`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A line of JSON for each request.
    Json,
    /// Length in four bytes, and protobuf, for each request.
    Proto,
}

/// `rotation`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rotation {
    /// Megabytes of a file.
    pub megabytes_max: u64,
    /// Days that an old file is kept; 0: no bound.
    pub days_max: u64,
    /// Old files that are kept; 0: no bound.
    pub backups_max: u64,
    /// Their names have the local time, not UTC.
    pub local_time: bool,
}

/// `group_by`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupBy {
    /// The resource's attribute that takes the place of `*` in the path.
    pub resource_attribute: String,
    /// Files open at a time.
    pub open_files_max: u64,
}

#[rustfmt::skip]
const ROTATION: &[Opt] = &[
    opt("max_megabytes", Kind::Int(0, i64::MAX), "100", "megabytes of a file"),
    opt("max_days", Kind::Int(0, i64::MAX), "0", "days that an old file is kept; 0: no bound"),
    opt("max_backups", Kind::Int(0, i64::MAX), "100", "old files that are kept; 0: no bound"),
    opt("localtime", Kind::Flag, "false", "their names have the local time, not UTC"),
];
#[rustfmt::skip]
const GROUP_BY: &[Opt] = &[
    opt("enabled", Kind::Flag, "false", "a file for each value of an attribute"),
    opt("resource_attribute", Kind::Text, "fileexporter.path_segment", "the attribute that takes the place of `*`"),
    opt("max_open_files", Kind::Int(1, i64::MAX), "100", "files open at a time"),
];
#[rustfmt::skip]
const OPTIONS: &[Opt] = &[
    required("path", Kind::Text, "the file to write"),
    opt("append", Kind::Flag, "false", "a file that is there is continued"),
    opt("format", Kind::Word(&["json", "proto"]), "json", "what is written"),
    opt("compression", Kind::Word(&["", "zstd"]), "", "of each request; its length stands before it then"),
    opt("flush_interval", Kind::Duration, "1s", "what is buffered is written after this time; 0: at once").no_effect("everything is written at once"),
    opt("rotation", Kind::Maybe(&[ROTATION]), "", "when another file begins; never where it is not written"),
    opt("group_by", Kind::Section(&[GROUP_BY]), "", "a file for each value of an attribute"),
    opt("create_directory", Kind::Flag, "false", "folders are made"),
    opt("directory_permissions", Kind::Text, "0755", "and with these permissions, in octal"),
    opt("encoding", Kind::Text, "", "an extension that encodes").refused("there are no extensions that encode: use 'format'"),
];

pub(crate) const ENTRY: Entry = Entry {
    names: &[name("file")],
    doc: "OTLP into files",
    takes: EVERY,
    carries: EVERY,
    options: &[OPTIONS],
    parse: Parse::Exporter(parse),
};

fn parse(section: &Section<'_>) -> Exporter {
    let exporter = FileExporter {
        path: section.text("path"),
        append: section.flag("append"),
        format: section.choice(
            "format",
            &[("json", Format::Json), ("proto", Format::Proto)],
        ),
        zstd: section.text("compression") == "zstd",
        rotation: section.maybe_filled("rotation").map(|rotation| Rotation {
            megabytes_max: rotation.int("max_megabytes"),
            days_max: rotation.int("max_days"),
            backups_max: rotation.int("max_backups"),
            local_time: rotation.flag("localtime"),
        }),
        group_by: group_by(&section.section("group_by")),
        create_directory: section.flag("create_directory"),
        directory_permissions: permissions(section),
    };
    let no_path = section.written("path").is_some() && exporter.path.is_empty();
    if no_path {
        section.error("path", "must name a file");
    }
    if exporter.append && exporter.zstd {
        section.error("append", "a compressed file cannot be continued");
    }
    if exporter.append && exporter.rotation.is_some() {
        section.error("append", "does not go together with 'rotation'");
    }
    if exporter.group_by.is_some() && exporter.path.matches('*').count() != 1 {
        section.error("path", "must have one '*' where 'group_by' is on");
    }
    Exporter::new(exporter)
}

fn group_by(section: &Section<'_>) -> Option<GroupBy> {
    section.flag("enabled").then(|| GroupBy {
        resource_attribute: section.text("resource_attribute"),
        open_files_max: section.int("max_open_files"),
    })
}

/// `directory_permissions`, in octal.
pub(crate) fn permissions(section: &Section<'_>) -> u32 {
    let text = section.text("directory_permissions");
    let permissions = u32::from_str_radix(&text, 8).ok();
    let permissions = permissions.filter(|bits| *bits <= 0o777);
    permissions.unwrap_or_else(|| {
        let message = format!("'{text}' must be permissions in octal, such as 0755");
        section.error("directory_permissions", &message);
        0
    })
}
