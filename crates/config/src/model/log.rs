//! Log targets (manual §4.2 log).

use net::Addr;

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
    /// A descriptor.
    Fd(i32),
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
