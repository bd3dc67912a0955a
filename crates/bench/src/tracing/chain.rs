//! The proxies of a configuration, started in series, with the files of their filters.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use super::cases::{Config, Level, Tier};
use super::exporters::{Exporter, TextTo};
use crate::Failure;
use crate::peers::{self, Installed, Running, Setting, fill};
use crate::process::Usage;

const SETTINGS: &str = include_str!("../../templates/tracing/exporters.yml");

/// Most records that wait in a proxy: the maximum of the filter's settings.
const QUEUE_RECORDS: u32 = 65_536;
/// Most records of one message to the receiver.
const BATCH_RECORDS: u32 = 8192;
/// Most milliseconds that a record waits.
pub const DELAY_MS: u32 = 200;

/// The destination of telemetry.
#[derive(Clone, Copy, Debug)]
pub struct To {
    /// The format.
    pub exporter: Exporter,
    /// The receiver of OTLP.
    pub receiver: SocketAddr,
    /// The destination of text.
    pub text: TextTo,
}

/// State that all chains of a run share.
pub struct Place<'a> {
    /// A folder for their files.
    pub dir: &'a Path,
    /// The server after the last proxy.
    pub origin: SocketAddr,
    /// The destination of telemetry.
    pub to: To,
    /// Threads of each proxy.
    pub workers: u32,
    /// Most client connections at a time.
    pub connections_max: u32,
}

/// Running proxies; the first one is the client's.
pub struct Chain(Vec<Running>);

impl Chain {
    /// Starts the proxies of `config` at `level`, the last one first.
    ///
    /// # Errors
    /// A proxy does not start.
    pub fn start(
        program: &Installed,
        config: &Config,
        level: &Level,
        place: &Place<'_>,
    ) -> Result<Self, Failure> {
        let mut chain = Vec::new();
        let mut next = place.origin;
        for (number, tier) in config.tiers.iter().enumerate().rev() {
            let dir = place.dir.join(tier.name);
            fs::create_dir_all(&dir)?;
            let rules = rules(number, tier, level, place.to, &dir)?;
            let setting = Setting {
                workers: Some(place.workers),
                connections_max: place.connections_max,
                rules,
                ..Setting::between(peers::free_address()?, next)
            };
            next = setting.listen;
            chain.insert(0, program.start(&setting, &dir)?);
        }
        Ok(Self(chain))
    }

    /// The address for clients.
    pub fn listen(&self) -> Option<SocketAddr> {
        self.0.first().map(|first| first.listen)
    }

    /// The CPU time of each proxy until now.
    pub fn usage(&self) -> Vec<Usage> {
        self.0.iter().map(|proxy| proxy.process.usage()).collect()
    }

    /// The CPU time of all proxies since `earlier`: microseconds, and those in user mode.
    pub fn used_since(&self, earlier: &[Usage]) -> (f64, f64) {
        let used = self.usage().into_iter().zip(earlier);
        used.map(|(now, before)| now.since(*before))
            .fold((0.0, 0.0), |sum, used| (sum.0 + used.0, sum.1 + used.1))
    }
}

/// The frontend lines of the proxy at an index of its series, whose files are in `dir`.
pub fn rules(
    number: usize,
    tier: &Tier,
    level: &Level,
    to: To,
    dir: &Path,
) -> Result<String, Failure> {
    Ok(match level.lines(number) {
        Some(lines) => tier.frontend(&write(tier, lines, to, dir)?),
        None => String::new(),
    })
}

/// Writes the files of a filter. Returns the first of them.
fn write(tier: &Tier, level: &str, to: To, dir: &Path) -> io::Result<PathBuf> {
    let (file, settings) = (dir.join("otel.cfg"), dir.join("otel.yml"));
    let values: [(&str, &dyn std::fmt::Display); 2] = [
        ("settings", &settings.display()),
        ("level", &format!("        {level}")),
    ];
    fs::write(&file, fill(tier.template, &values))?;
    let values: [(&str, &dyn std::fmt::Display); 5] = [
        ("exporters", &to.exporter.section(to.receiver, to.text, dir)),
        ("queue", &QUEUE_RECORDS),
        ("batch", &BATCH_RECORDS),
        ("delay_ms", &DELAY_MS),
        ("name", &tier.name),
    ];
    fs::write(&settings, fill(SETTINGS, &values))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::super::cases::{CONFIGS, LEVELS};
    use super::super::exporters::EXPORTERS;
    use super::*;
    use crate::workdir::Workdir;

    #[test]
    fn files_are_filled_whole() {
        let dir = Workdir::new("tracing-test").unwrap();
        let receiver = SocketAddr::from(([127, 0, 0, 1], 4318));
        let tos = EXPORTERS.iter().flat_map(|&exporter| {
            [TextTo::Nowhere, TextTo::Files].map(|text| To {
                exporter,
                receiver,
                text,
            })
        });
        let tiers = CONFIGS.iter().flat_map(|config| config.tiers);
        for (tier, to) in tiers.flat_map(|tier| tos.clone().map(move |to| (tier, to))) {
            for level in LEVELS.iter().filter_map(|level| level.lines(0)) {
                let file = write(tier, level, to, dir.path()).unwrap();
                let text = fs::read_to_string(file).unwrap();
                assert!(text.contains(level) && !text.contains("{{"), "{text}");
                let settings = dir.path().join("otel.yml");
                assert!(text.contains(&format!("config \"{}\"", settings.display())));
                let text = fs::read_to_string(settings).unwrap();
                assert!(!text.contains("{{"), "{text}");
                let target = match (to.exporter, to.text) {
                    (Exporter::Otlp | Exporter::Json, _) => "http://127.0.0.1:4318/v1/",
                    (Exporter::Text, TextTo::Nowhere) => "filename: \"/dev/null\"",
                    (Exporter::Text, TextTo::Files) => ".txt\"",
                };
                assert_eq!(text.matches(target).count(), 3, "{text}");
            }
        }
    }
}
