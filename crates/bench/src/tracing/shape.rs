//! The amount of work, set by the command's options.

use super::cases::{self, CONFIGS, Config, LEVELS, Level};
use super::exporters::{EXPORTERS, Exporter};
use super::{EXACT_REQUESTS, select};
use crate::Failure;
use crate::findings;

/// The parameters of the experiment.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    pub(super) configs: Vec<&'static Config>,
    pub(super) levels: Vec<&'static Level>,
    pub(super) exporters: Vec<&'static Exporter>,
    pub(super) rounds: u32,
    pub(super) seconds: u32,
    pub(super) connections: u32,
    pub(super) workers: u32,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            configs: CONFIGS.iter().collect(),
            levels: LEVELS.iter().collect(),
            exporters: vec![&Exporter::Otlp, &Exporter::Text],
            rounds: 5,
            seconds: 2,
            connections: 64,
            workers: 1,
        }
    }
}

impl Shape {
    /// Reduces the work to one configuration at few levels.
    pub(super) fn quick(&mut self) {
        (self.rounds, self.seconds) = (1, 1);
        self.configs.truncate(1);
        self.levels
            .retain(|level| ["100", "10", cases::OFF].contains(&level.name));
    }

    pub(super) fn take(
        &mut self,
        name: &str,
        parser: &mut lexopt::Parser,
    ) -> Result<bool, Failure> {
        let mut list = || findings::value::<String>(parser);
        let place = match name {
            "configs" => {
                self.configs = select(&list()?, CONFIGS, |one| one.name)?;
                return Ok(true);
            }
            "levels" => {
                self.levels = select(&list()?, LEVELS, |one| one.name)?;
                return Ok(true);
            }
            "exporter" => {
                self.exporters = select(&list()?, EXPORTERS, Exporter::name)?;
                return Ok(true);
            }
            "rounds" => &mut self.rounds,
            "seconds" => &mut self.seconds,
            "connections" => &mut self.connections,
            "workers" => &mut self.workers,
            _ => return Ok(false),
        };
        *place = findings::value(parser)?;
        match *place {
            0 => Err(format!("--{name} must be at least 1").into()),
            _ => Ok(true),
        }
    }

    pub(super) fn method(&self) -> Vec<String> {
        vec![
            format!(
                "Medians of {} rounds of {} s after one second that is not measured; levels in turn, fresh processes for each run. wrk with {} persistent connections \
                 and a browser's headers fetches 50 bytes (closed loop); nbthread {}. CPU is that of the whole process, including the thread of its exporters. A run ends when \
                 no more spans arrive. 'added' and '% slower' are relative to the level 'off' of the same rounds, which is the same proxy without the filter.",
                self.rounds, self.seconds, self.connections, self.workers
            ),
            format!(
                "otlp, json: everything as OTLP over HTTP to a receiver in a separate process, which counts spans; 'lost' spans did not arrive. text: the exporter ostream \
                 to /dev/null, without counts. Before each configuration {EXACT_REQUESTS} single requests are traced: each of their spans and log records must arrive, \
                 for text in a file, or the command fails."
            ),
        ]
    }
}
