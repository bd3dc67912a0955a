//! The machine of an experiment.

use std::fs;

/// Properties on which figures depend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The processor's name.
    pub processor: String,
    /// The cores available to this process.
    pub cores: usize,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// The system and its kernel.
    pub system: String,
    /// The load average of the last minute at the start. Above 0.5, other processes were busy, and
    /// time figures are doubtful.
    pub load: String,
}

impl Machine {
    /// The current machine.
    pub fn look() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let (cpu, memory, release) = (
            read("/proc/cpuinfo"),
            read("/proc/meminfo"),
            read("/etc/os-release"),
        );
        let kernel = read("/proc/sys/kernel/osrelease");
        let system = value(&release, "PRETTY_NAME", '=')
            .trim_matches('"')
            .to_owned();
        let memory = value(&memory, "MemTotal", ':');
        let memory_kib = memory
            .split(' ')
            .next()
            .and_then(|kib| kib.parse::<u64>().ok());
        Self {
            processor: value(&cpu, "model name", ':').to_owned(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_mib: memory_kib.unwrap_or_default() / 1024,
            system: format!("{system}, Linux {}", kernel.trim()),
            load: read("/proc/loadavg")
                .split(' ')
                .next()
                .unwrap_or_default()
                .to_owned(),
        }
    }
}

/// The text after `name` and `separator` on the first such line.
fn value<'a>(text: &'a str, name: &str, separator: char) -> &'a str {
    let mut lines = text.lines().filter_map(|line| line.split_once(separator));
    let found = lines.find(|(key, _)| key.trim() == name);
    found.map_or("unknown", |(_, value)| value.trim())
}
