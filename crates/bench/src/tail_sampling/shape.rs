//! The amount of work, set by the command's options.

use super::arms::{self, ARMS, Arm};
use crate::Failure;
use crate::findings;

/// The parameters of the experiment.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    pub(super) arms: Vec<&'static Arm>,
    pub(super) rounds: u32,
    pub(super) seconds: u32,
    pub(super) rate: u64,
    pub(super) batch: u32,
    pub(super) workers: u32,
    pub(super) send_batch: u32,
    pub(super) wait_s: u32,
    pub(super) threads: u32,
    pub(super) http: bool,
    pub(super) unique: u32,
    pub(super) down_s: u32,
    pub(super) limit_mib: u32,
    pub(super) storage: bool,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            arms: ARMS.iter().collect(),
            rounds: 3,
            seconds: 10,
            rate: 0,
            batch: 512,
            workers: 4,
            send_batch: 100_000,
            wait_s: 2,
            threads: 1,
            http: false,
            unique: 0,
            down_s: 0,
            limit_mib: 0,
            storage: false,
        }
    }
}

impl Shape {
    pub(super) fn take(
        &mut self,
        name: &str,
        parser: &mut lexopt::Parser,
    ) -> Result<bool, Failure> {
        let place = match name {
            "arms" => {
                self.arms = arms::select(&findings::value::<String>(parser)?)?;
                return Ok(true);
            }
            "http" => {
                self.http = true;
                return Ok(true);
            }
            "storage" => {
                self.storage = true;
                return Ok(true);
            }
            "rate" => {
                self.rate = findings::value(parser)?;
                return Ok(true);
            }
            "unique" => &mut self.unique,
            "down" => &mut self.down_s,
            "limit" => &mut self.limit_mib,
            "rounds" => &mut self.rounds,
            "seconds" => &mut self.seconds,
            "batch" => &mut self.batch,
            "workers" => &mut self.workers,
            "send-batch" => &mut self.send_batch,
            "wait" => &mut self.wait_s,
            "threads" => &mut self.threads,
            _ => return Ok(false),
        };
        *place = findings::value(parser)?;
        if *place == 0 && !["unique", "down", "limit"].contains(&name) {
            Err(format!("--{name} must be at least 1").into())
        } else {
            Ok(true)
        }
    }

    pub(super) fn method(&self) -> Vec<String> {
        let rate = match self.rate {
            0 => "as many as the collector accepts".to_owned(),
            rate => format!("{rate} traces per second"),
        };
        vec![
            format!(
                "Medians of {} rounds of {} s, fresh processes in turn. spangate tracegen sends traces of 8 spans, {rate}, over {} with {} requests at the same time of {} \
                 spans each, and repeats refused requests. A collector decides {} s later by four policies (errors, slow, an attribute, 5 %) and sends the kept spans in \
                 requests of up to {} spans over OTLP/HTTP to a receiver in another process, which counts them. Spangate has {} threads, otelcol its default.",
                self.rounds, self.seconds, if self.http { "HTTP" } else { "gRPC" }, self.workers, self.batch, self.wait_s, self.send_batch, self.threads
            ),
            "tail: the processor tail_sampling. grouping: groupbytrace, then policysampling with the same policies. CPU is that of the whole process per \
             accepted span. exported: received from the collector. lost: accepted, but neither exported nor dropped by a decision (according to the collector's \
             account, if it has one). Sender, collector and receiver share the cores of the machine. The plots show the last round."
                .to_owned(),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::Options;

    #[test]
    fn only_some_options_may_be_0() {
        let parse = |words: &[&str]| {
            let parser = lexopt::Parser::from_args(words.iter().copied());
            Options::parse(parser, Shape::default(), |_| (), Shape::take)
        };
        let (_, shape) =
            parse(&["--arms", "grouping", "--down", "0", "--http", "--rate", "5"]).unwrap();
        assert_eq!(
            (shape.arms[0].name, shape.http, shape.rate),
            ("grouping", true, 5)
        );
        assert!(parse(&["--wait", "0"]).is_err() && parse(&["--arms", "x"]).is_err());
    }
}
