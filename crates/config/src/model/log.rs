//! Log targets (manual §4.2 log) and log profiles (manual §8.3.5).

use net::Addr;
use net::ring::Framing;
use sample::{LogFormat, LogOrigin};
use std::net::SocketAddr;
use syntax::octets::Octets;

/// A `log` line.
#[derive(Clone, Debug, PartialEq)]
pub struct LogTarget {
    /// The target.
    pub to: LogSink,
    /// Longest line in bytes.
    pub len: usize,
    /// The format of a message.
    pub format: LogWire,
    /// Syslog facility.
    pub facility: u8,
    /// The least severe level that is sent (7 is debug).
    pub level_max: u8,
    /// More severe levels are sent as this one.
    pub level_min: u8,
    /// `sample <ranges>:<size>`
    pub sample: Option<LogSample>,
    /// `profile <name>`: the index in [`super::Config::log_profiles`].
    pub profile: Option<usize>,
}

/// The messages of a window that are sent.
#[derive(Clone, Debug, PartialEq)]
pub struct LogSample {
    /// First and last message, counted from 1.
    pub ranges: Vec<(u32, u32)>,
    /// Length of the window.
    pub size: u32,
}

/// The options of a log server over TCP (manual §5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogStreamOptions {
    /// `log-proto`: how messages are separated.
    pub framing: Framing,
    /// `log-bufsize`: bytes of messages that may wait for it; none: the engine's default.
    pub bytes_max: Option<usize>,
}

impl Default for LogStreamOptions {
    fn default() -> Self {
        LogStreamOptions {
            framing: Framing::LineFeed,
            bytes_max: None,
        }
    }
}

/// The target of logs.
#[derive(Clone, Debug, PartialEq)]
pub enum LogSink {
    /// A datagram socket, UDP or UNIX.
    Udp(Addr),
    /// A server over TCP.
    Tcp {
        /// Its address.
        address: SocketAddr,
        /// Its options.
        options: LogStreamOptions,
    },
    /// A descriptor.
    Fd(i32),
    /// A ring: its index in [`super::Config::rings`].
    Ring(usize),
    /// A server of a backend in `mode log`: its index in [`super::Config::proxies`].
    Backend(usize),
}

/// The format of a log message (manual §4.2, `log … format`).
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogWire {
    /// The default: like `Rfc3164`, with a host name only if `log-send-hostname` sets one.
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
    /// The name as written.
    pub name: String,
    /// `log-tag`
    pub tag: Option<Octets>,
    /// For each [`LogOrigin`], the index in `steps` that `on` set.
    by_origin: [Option<u8>; LogOrigin::COUNT],
    any: Option<u8>,
    steps: Vec<ProfileStep>,
}

/// The settings of a profile for a step.
#[derive(Clone, Debug, Default)]
pub struct ProfileStep {
    /// No line is written.
    pub drop: bool,
    /// Replaces `log-format` and `error-log-format`.
    pub format: Option<LogFormat>,
    /// Replaces `log-format-sd`.
    pub sd: Option<LogFormat>,
}

/// The steps that the word after `on` names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepName {
    /// One step.
    At(LogOrigin),
    /// `error`
    Error,
    /// `any`: the steps without settings of their own.
    Any,
}

impl LogProfile {
    /// The settings for a line; None if there are none.
    #[must_use]
    pub fn step(&self, origin: LogOrigin) -> Option<&ProfileStep> {
        let index = self.by_origin[origin as usize].or(self.any)?;
        self.steps.get(usize::from(index))
    }

    /// The settings of this step, for changes; created if they do not exist.
    pub fn step_mut(&mut self, name: StepName) -> &mut ProfileStep {
        // There are fewer names than a `u8` has values.
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

    /// The formats that replace that of the proxy.
    pub fn formats(&self) -> impl Iterator<Item = &LogFormat> {
        self.steps.iter().filter_map(|step| step.format.as_ref())
    }
}
