//! `file_storage`: a folder for what must outlive the process.

use super::Extension;
use crate::config::components::exporters::file;
use crate::config::components::{Entry, Parse, name};
use crate::config::options::{Kind, Opt, Section, opt};

/// A folder for queues and the like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileStorage {
    /// The folder.
    pub directory: String,
    /// Time to wait for a file's lock.
    pub timeout_ns: u64,
    /// Whether each write is on the disk before it counts.
    pub fsync: bool,
    /// Whether the folder is made.
    pub create_directory: bool,
    /// And with which permissions.
    pub directory_permissions: u32,
    /// A file that is broken is set aside; else nothing starts.
    pub recreate: bool,
    /// Bytes of all files.
    pub bytes_max: u64,
}

/// The largest `limit_mib`: 1 PiB.
const LIMIT_MIB_MAX: i64 = 1 << 30;
/// Bytes of all files where nothing is written.
const BYTES_MAX: u64 = 4096 << 20;
/// Permissions of a folder where nothing is written.
const PERMISSIONS: u32 = 0o750;
/// Time to wait for a file's lock where nothing is written, ns.
const LOCK_NS: u64 = 1_000_000_000;

impl FileStorage {
    /// A folder with the defaults of all options.
    #[must_use]
    pub fn folder(directory: String) -> FileStorage {
        FileStorage {
            directory,
            timeout_ns: LOCK_NS,
            fsync: false,
            create_directory: true,
            directory_permissions: PERMISSIONS,
            recreate: false,
            bytes_max: BYTES_MAX,
        }
    }
}

const COMPACTION_REASON: &str = "files here do not grow holes, so nothing is to be compacted";

#[rustfmt::skip]
const COMPACTION: &[Opt] = &[
    opt("on_start", Kind::Flag, "false", "at the start"),
    opt("on_rebound", Kind::Flag, "false", "when much has become little"),
    opt("directory", Kind::Text, "", "folder for the work"),
    opt("max_transaction_size", Kind::Int(0, i64::MAX), "65536", "entries moved at a time"),
    opt("rebound_needed_threshold_mib", Kind::Int(0, i64::MAX), "100", "MiB that are much"),
    opt("rebound_trigger_threshold_mib", Kind::Int(0, i64::MAX), "10", "MiB that are little"),
    opt("check_interval", Kind::Duration, "5s", "time between looks"),
    opt("cleanup_on_start", Kind::Flag, "false", "what was left is removed"),
];
#[rustfmt::skip]
const OPTIONS: &[Opt] = &[
    opt("directory", Kind::Text, "/var/lib/otelcol/file_storage", "the folder"),
    opt("timeout", Kind::Duration, "1s", "time to wait for a file's lock"),
    opt("fsync", Kind::Flag, "false", "each write is on the disk before it counts; else it survives the end of the process, but not a loss of power"),
    opt("create_directory", Kind::Flag, "true", "the folder is made"),
    opt("directory_permissions", Kind::Text, "0750", "and with these permissions, in octal"),
    opt("compaction", Kind::Section(&[COMPACTION]), "", "files are made smaller").no_effect(COMPACTION_REASON),
    opt("recreate", Kind::Flag, "false", "a file whose start is broken is set aside; else nothing starts"),
    opt("limit_mib", Kind::Int(1, LIMIT_MIB_MAX), "4096", "MiB of all files; from there on requests are refused until there is room (not in the Collector)"),
];

pub(crate) const ENTRY: Entry = Entry {
    names: &[name("file_storage")],
    doc: "a folder for queues",
    takes: &[],
    carries: &[],
    options: &[OPTIONS],
    parse: Parse::Extension(parse),
};

fn parse(section: &Section<'_>) -> Extension {
    let directory = section.text("directory");
    if directory.is_empty() {
        section.error("directory", "must name a folder");
    }
    Extension::FileStorage(FileStorage {
        directory,
        timeout_ns: section.duration_ns("timeout"),
        fsync: section.flag("fsync"),
        create_directory: section.flag("create_directory"),
        directory_permissions: file::permissions(section),
        recreate: section.flag("recreate"),
        bytes_max: section.int::<u64>("limit_mib") << 20,
    })
}
