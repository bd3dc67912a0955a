//! `filesystem`: the space of mounted file systems (`/proc/1/mountinfo`, `statfs(2)`).

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};

use super::files::{Root, unescaped};
use super::filter::Matcher;
use super::points::Points;
use super::{Fault, Probe};
use crate::config::components::receivers::host_metrics::FileSystems;

/// Metrics that are missing without the list of mounts.
const METRICS: u64 = 2;

/// The scraper.
pub(super) struct FileSystem {
    with_virtual: bool,
    devices: Matcher,
    types: Matcher,
    mount_points: Matcher,
    /// Asks the kernel for the space of a mounted file system.
    usage: fn(&Path) -> io::Result<Usage>,
}

/// The space of a file system.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Usage {
    /// Bytes.
    pub total_bytes: u64,
    /// Bytes that nobody has.
    pub free_bytes: u64,
    /// Bytes of those that a user without privileges can have.
    pub available_bytes: u64,
    /// All inodes.
    pub inodes: u64,
    /// Inodes that are free.
    pub free_inodes: u64,
}

/// A mounted file system.
#[derive(Debug, PartialEq, Eq)]
struct Mount {
    device: String,
    mount_point: String,
    kind: String,
    /// `rw`, `ro` or `unknown`.
    mode: &'static str,
    /// It has no device, or is a part of another that is mounted again.
    is_virtual: bool,
}

impl FileSystem {
    /// Of some file systems.
    ///
    /// # Errors
    /// Why a filter cannot be compiled.
    pub fn new(settings: &FileSystems) -> Result<FileSystem, String> {
        Ok(FileSystem {
            with_virtual: settings.with_virtual,
            devices: Matcher::new(&settings.devices)?,
            types: Matcher::new(&settings.types)?,
            mount_points: Matcher::new(&settings.mount_points)?,
            usage,
        })
    }

    /// The same with another answer of the kernel.
    #[cfg(test)]
    pub fn with_usage(self, usage: fn(&Path) -> io::Result<Usage>) -> FileSystem {
        FileSystem { usage, ..self }
    }

    fn takes(&self, mount: &Mount) -> bool {
        (self.with_virtual || !mount.is_virtual)
            && self.devices.takes(&mount.device)
            && self.types.takes(&mount.kind)
            && self.mount_points.takes(&mount.mount_point)
    }
}

impl Probe for FileSystem {
    fn read(&mut self, root: &Root, points: &mut Points<'_>) -> Vec<Fault> {
        // The first process has the mounts of the host; a container may see its own only.
        let text = root.read("proc/1/mountinfo");
        let text = match text.or_else(|_| root.read("proc/self/mountinfo")) {
            Ok(text) => text,
            Err(why) => return vec![Fault::new(METRICS, why)],
        };
        let (mut faults, mut seen) = (Vec::new(), HashSet::new());
        for mount in mounts(&text) {
            let is_first = seen.insert((mount.mount_point.clone(), mount.device.clone()));
            if !is_first || !self.takes(&mount) {
                continue;
            }
            let path = place(root, &mount.mount_point);
            match (self.usage)(&path) {
                Ok(usage) => add(&mount, usage, points),
                Err(error) => {
                    let why = format!("failed to read usage at {}: {error}", path.display());
                    faults.push(Fault::new(0, why));
                }
            }
        }
        if points.count() == 0
            && let Some(first) = faults.first_mut()
        {
            first.errored = METRICS;
        }
        faults
    }
}

/// Where a mount point of the host is for this process. A list of this process's own mounts has the
/// root directory in its paths already.
fn place(root: &Root, mount_point: &str) -> PathBuf {
    if root.0 != Path::new("/") && Path::new(mount_point).starts_with(&root.0) {
        PathBuf::from(mount_point)
    } else {
        root.path(mount_point)
    }
}

/// The mounts of a file `mountinfo` (proc_pid_mountinfo(5)); lines that are not understood are left
/// out.
fn mounts(text: &str) -> Vec<Mount> {
    let lines: Vec<Line<'_>> = text.lines().filter_map(Line::of).collect();
    // Where the root directory of each device is mounted.
    let mut origins: HashMap<&str, &str> = HashMap::new();
    for line in lines.iter().filter(|line| line.root == "/") {
        origins.entry(line.device_id).or_insert(line.mount_point);
    }
    let mounts = lines.iter().map(|line| {
        let is_bind = line.root != "/";
        let has_device = line.source.starts_with('/');
        let device = if is_bind {
            let origin = origins.get(line.device_id);
            *origin.filter(|_| has_device).unwrap_or(&line.root)
        } else {
            line.source
        };
        Mount {
            device: unescaped(device),
            mount_point: unescaped(line.mount_point),
            kind: line.kind.to_owned(),
            mode: line.mode,
            // Pools of ZFS have names of their own instead of devices.
            is_virtual: is_bind || !(has_device || line.kind == "zfs"),
        }
    });
    mounts.collect()
}

/// A line of `mountinfo`.
struct Line<'a> {
    device_id: &'a str,
    root: &'a str,
    mount_point: &'a str,
    mode: &'static str,
    kind: &'a str,
    source: &'a str,
}

impl Line<'_> {
    fn of(line: &str) -> Option<Line<'_>> {
        let (first, second) = line.split_once(" - ")?;
        let mut first = first.split_whitespace().skip(2);
        let (device_id, root) = (first.next()?, first.next()?);
        let (mount_point, options) = (first.next()?, first.next()?);
        let has = |wanted| options.split(',').any(|option| option == wanted);
        let mode = if has("rw") {
            "rw"
        } else if has("ro") {
            "ro"
        } else {
            "unknown"
        };
        let mut second = second.split_whitespace();
        Some(Line {
            device_id,
            root,
            mount_point,
            mode,
            kind: second.next()?,
            source: second.next()?,
        })
    }
}

fn add(mount: &Mount, usage: Usage, points: &mut Points<'_>) {
    let own = [
        ("device", mount.device.as_str()),
        ("mode", mount.mode),
        ("mountpoint", mount.mount_point.as_str()),
        ("type", mount.kind.as_str()),
    ];
    let with = |state| [own[0], own[1], own[2], own[3], ("state", state)];
    let used = usage.total_bytes.saturating_sub(usage.free_bytes);
    let available = usage.available_bytes;
    let reserved = usage.free_bytes.saturating_sub(available);
    for (state, bytes) in [("used", used), ("free", available), ("reserved", reserved)] {
        points.int("system.filesystem.usage", &with(state), bytes);
    }
    let used_inodes = usage.inodes.saturating_sub(usage.free_inodes);
    for (state, inodes) in [("used", used_inodes), ("free", usage.free_inodes)] {
        points.int("system.filesystem.inodes.usage", &with(state), inodes);
    }
    // As `df` does: of what a user without privileges could have.
    let part = match used.saturating_add(available) {
        0 => 0.0,
        all => used as f64 / all as f64,
    };
    points.double("system.filesystem.utilization", &own, part);
}

/// The space of the file system that is mounted at a path (statfs(2)).
fn usage(path: &Path) -> io::Result<Usage> {
    let stat = rustix::fs::statvfs(path)?;
    let bytes = |blocks: u64| blocks.saturating_mul(stat.f_frsize);
    Ok(Usage {
        total_bytes: bytes(stat.f_blocks),
        free_bytes: bytes(stat.f_bfree),
        available_bytes: bytes(stat.f_bavail),
        inodes: stat.f_files,
        free_inodes: stat.f_ffree,
    })
}
