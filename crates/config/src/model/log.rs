//! Log targets (manual §4.2 log) and log profiles (manual §8.3.5).

use net::Addr;
use sample::{LogFormat, LogOrigin};
use std::net::SocketAddr;
use syntax::octets::Octets;

/// A `log` line.
#[derive(Clone, Debug, PartialEq)]
pub struct LogTarget {
    /// Where to.
    pub to: LogSink,
    /// Longest line in bytes.
    pub len: usize,
    /// How a message is wrapped.
    pub format: LogWire,
    /// Syslog facility.
    pub facility: u8,
    /// Least severe level that is sent (7 is debug).
    pub level_max: u8,
    /// Levels more severe than this are sent as this.
    pub level_min: u8,
    /// `sample <ranges>:<size>`
    pub sample: Option<LogSample>,
    /// `profile <name>`: the index in [`super::Config::log_profiles`].
    pub profile: Option<usize>,
}

/// Which messages of a window are sent.
#[derive(Clone, Debug, PartialEq)]
pub struct LogSample {
    /// First and last, counted from 1.
    pub ranges: Vec<(u32, u32)>,
    /// Length of the window.
    pub size: u32,
}

/// Where logs go.
#[derive(Clone, Debug, PartialEq)]
pub enum LogSink {
    /// A datagram socket, UDP or UNIX.
    Udp(Addr),
    /// A server over TCP.
    Tcp(SocketAddr),
    /// A descriptor.
    Fd(i32),
    /// A server of a backend in `mode log`: its index in [`super::Config::proxies`].
    Backend(usize),
}

/// How a log message is wrapped (manual §4.2, `log … format`).
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogWire {
    /// Where nothing is said: as `Rfc3164`, with a host name only where `log-send-hostname` asks for one.
    Default,
    Rfc3164,
    Rfc5424,
    Local,
    Priority,
    Short,
    Timed,
    Iso,
    Raw,
}

/// A section `log-profile`.
#[derive(Debug, Default)]
pub struct LogProfile {
    /// As written.
    pub name: String,
    /// `log-tag`
    pub tag: Option<Octets>,
    /// By [`LogOrigin`]: the entry of `steps` that `on` gave for it.
    by_origin: [Option<u8>; LogOrigin::COUNT],
    any: Option<u8>,
    steps: Vec<ProfileStep>,
}

/// What a profile does at a step.
#[derive(Clone, Debug, Default)]
pub struct ProfileStep {
    /// No line.
    pub drop: bool,
    /// Instead of `log-format` and `error-log-format`.
    pub format: Option<LogFormat>,
    /// Instead of `log-format-sd`.
    pub sd: Option<LogFormat>,
}

/// What the word after `on` names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepName {
    /// One step.
    At(LogOrigin),
    /// `error`
    Error,
    /// `any`: the steps that have none of their own.
    Any,
}

impl LogProfile {
    /// What it says of a line; none where nothing is.
    #[must_use]
    pub fn step(&self, origin: LogOrigin) -> Option<&ProfileStep> {
        let index = self.by_origin[origin as usize].or(self.any)?;
        self.steps.get(usize::from(index))
    }

    /// The step of that name, to be changed; a new one on first sight.
    pub fn step_mut(&mut self, name: StepName) -> &mut ProfileStep {
        // There are fewer names than numbers.
        let next = self.steps.len() as u8;
        let index = match name {
            StepName::At(origin) => *self.by_origin[origin as usize].get_or_insert(next),
            StepName::Error => {
                self.by_origin[LogOrigin::SessionKilled as usize].get_or_insert(next);
                *self.by_origin[LogOrigin::SessionError as usize].get_or_insert(next)
            }
            StepName::Any => *self.any.get_or_insert(next),
        };
        if index == next {
            self.steps.push(ProfileStep::default());
        }
        &mut self.steps[usize::from(index)]
    }

    /// Whether the line of this step may have another format than the proxy's.
    pub fn formats(&self) -> impl Iterator<Item = &LogFormat> {
        self.steps.iter().filter_map(|step| step.format.as_ref())
    }
}
