//! The moments of a stream at which a frontend writes a log line. They are determined when the
//! configuration is loaded.

use config::model::{LogProfile, Mode, Proxy};
use sample::{Compiler, LogFormat, LogOrigin, Place, logformat};

/// The log moments of a frontend.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// The moments.
    pub moments: Moments,
    /// There are no log targets: not even errors are logged.
    pub is_silent: bool,
    /// Each moment writes a line (`log-steps`); otherwise only the first one does.
    pub repeats: bool,
    /// Without a log format: the line that reports the client (manual §8.2.1).
    pub connect: Option<Connect>,
}

/// The line of a frontend without a log format.
#[derive(Debug)]
pub(crate) struct Connect {
    pub inet: LogFormat,
    pub unix: LogFormat,
}

impl Plan {
    /// The plan of a proxy.
    pub fn new(proxy: &Proxy, profiles: &[LogProfile]) -> Plan {
        if proxy.log.is_empty() || !proxy.is_frontend {
            return Plan {
                is_silent: proxy.log.is_empty(),
                ..Plan::default()
            };
        }
        if let Some(steps) = &proxy.log_steps {
            return Plan {
                moments: Moments::of(steps),
                repeats: true,
                ..Plan::default()
            };
        }
        let Some(format) = &proxy.log_format else {
            return Plan {
                moments: Moments::of(&[LogOrigin::Accept]),
                connect: connect(proxy.mode),
                ..Plan::default()
            };
        };
        let named = proxy.log.iter().filter_map(|target| target.profile);
        let mut formats = named
            .flat_map(|profile| profiles[profile].formats())
            .chain(proxy.log_format_sd.as_ref())
            .chain([format]);
        // As soon as all values are known (manual §4.2 option logasap).
        let early = proxy.options.logasap || !formats.any(LogFormat::needs_end);
        let first = match proxy.mode {
            Mode::Http => LogOrigin::Response,
            Mode::Tcp | Mode::Log => LogOrigin::Connect,
        };
        Plan {
            moments: if early {
                Moments::of(&[first, LogOrigin::Close])
            } else {
                Moments::of(&[LogOrigin::Close])
            },
            ..Plan::default()
        }
    }
}

/// A set of moments: a bit for each [`LogOrigin`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Moments(u32);

impl Moments {
    fn of(origins: &[LogOrigin]) -> Moments {
        let bits = origins.iter().map(|origin| 1 << *origin as u32);
        Moments(bits.fold(0, |all, bit| all | bit))
    }

    /// Whether a line is due at a moment.
    #[inline]
    pub fn has(self, at: LogOrigin) -> bool {
        self.0 & (1 << at as u32) != 0
    }
}

fn connect(mode: Mode) -> Option<Connect> {
    let (inet, unix) = match mode {
        Mode::Http => (logformat::CONNECT_HTTP, "Connect to unix:%fp (%f/HTTP)"),
        Mode::Tcp | Mode::Log => (logformat::CONNECT, "Connect to unix:%fp (%f/TCP)"),
    };
    let mut compiler = Compiler::new();
    Some(Connect {
        inet: compiler.log_format(inet, Place::LOG).ok()?,
        unix: compiler.log_format(unix, Place::LOG).ok()?,
    })
}
