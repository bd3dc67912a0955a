//! Health checks of servers: the interval, the target, and the script of rules that a check runs
//! (manual §4.2 `option httpchk`, `http-check`, `tcp-check`; §5.2).

use super::OutlierEjection;
use net::Addr;
use sample::regex::Regex;
use sample::{Assignment, Expr, LogFormat};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use syntax::octets::Octets;

/// The result of a check (manual §9.3 `check_status`), in the order of HAProxy's numbers, which
/// `show servers state` prints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum CheckStatus {
    #[default]
    Unknown = 0,
    Initializing,
    Started,
    NoChange,
    Analyzed,
    SocketError,
    Layer4Ok,
    Layer4Timeout,
    Layer4Error,
    Layer6Ok,
    Layer6Timeout,
    Layer6Invalid,
    Layer7Timeout,
    Layer7Invalid,
    /// A marker, never a result: the variants after it have a code.
    HasCode,
    Layer7Ok,
    Layer7OkConditionally,
    Layer7WrongStatus,
    ProcessError,
    ProcessTimeout,
    ProcessOk,
}

/// The meaning of a status for the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum CheckResult {
    /// There is no result yet.
    #[default]
    Unknown = 0,
    /// The state of the server does not change.
    Neutral,
    /// It failed.
    Failed,
    /// It passed.
    Passed,
    /// It passed, and the server accepts no new sessions (`disable-on-404`).
    PassedConditionally,
}

impl CheckStatus {
    /// Its meaning, its short name and its description.
    const fn facts(self) -> (CheckResult, &'static str, &'static str) {
        use CheckResult::{Failed, Neutral, Passed, PassedConditionally, Unknown};
        match self {
            CheckStatus::Unknown => (Unknown, "UNK", "Unknown"),
            CheckStatus::Initializing => (Unknown, "INI", "Initializing"),
            CheckStatus::Started | CheckStatus::HasCode => (Unknown, "", ""),
            CheckStatus::NoChange => (Neutral, "CHECKED", "No status change"),
            CheckStatus::Analyzed => (Failed, "HANA", "Health analyze"),
            CheckStatus::SocketError => (Failed, "SOCKERR", "Socket error"),
            CheckStatus::Layer4Ok => (Passed, "L4OK", "Layer4 check passed"),
            CheckStatus::Layer4Timeout => (Failed, "L4TOUT", "Layer4 timeout"),
            CheckStatus::Layer4Error => (Failed, "L4CON", "Layer4 connection problem"),
            CheckStatus::Layer6Ok => (Passed, "L6OK", "Layer6 check passed"),
            CheckStatus::Layer6Timeout => (Failed, "L6TOUT", "Layer6 timeout"),
            CheckStatus::Layer6Invalid => (Failed, "L6RSP", "Layer6 invalid response"),
            CheckStatus::Layer7Timeout => (Failed, "L7TOUT", "Layer7 timeout"),
            CheckStatus::Layer7Invalid => (Failed, "L7RSP", "Layer7 invalid response"),
            CheckStatus::Layer7Ok => (Passed, "L7OK", "Layer7 check passed"),
            CheckStatus::Layer7OkConditionally => (
                PassedConditionally,
                "L7OKC",
                "Layer7 check conditionally passed",
            ),
            CheckStatus::Layer7WrongStatus => (Failed, "L7STS", "Layer7 wrong status"),
            CheckStatus::ProcessError => (Failed, "PROCERR", "External check error"),
            CheckStatus::ProcessTimeout => (Failed, "PROCTOUT", "External check timeout"),
            CheckStatus::ProcessOk => (Passed, "PROCOK", "External check passed"),
        }
    }

    /// Its meaning for the server.
    #[must_use]
    pub const fn result(self) -> CheckResult {
        self.facts().0
    }

    /// Its name in statistics, such as `L4OK`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.facts().1
    }

    /// Its description in messages.
    #[must_use]
    pub const fn description(self) -> &'static str {
        self.facts().2
    }

    /// Whether messages include a code.
    #[must_use]
    pub fn has_code(self) -> bool {
        self >= CheckStatus::HasCode
    }
}

/// Settings of health checks and their consequences on a server line.
#[derive(Clone, Debug)]
pub struct ServerChecks {
    /// `check`
    pub enabled: bool,
    /// `inter`
    pub inter: Duration,
    /// `fastinter`
    pub fastinter: Option<Duration>,
    /// `downinter`
    pub downinter: Option<Duration>,
    /// `rise`
    pub rise: u32,
    /// `fall`
    pub fall: u32,
    /// `port`; 0 means none.
    pub port: u16,
    /// `addr` with its port; 0 means no port.
    pub addr: Option<Addr>,
    /// `check-proto`
    pub proto: Option<CheckProto>,
    /// `check-send-proxy`
    pub send_proxy: bool,
    /// `check-via-socks4`
    pub via_socks4: bool,
    /// `healthcheck`: the name of a section.
    pub section: Option<String>,
    /// The script of that section; None: the script of the backend. Set after the whole
    /// configuration was read.
    pub script: Option<Arc<CheckScript>>,
    /// `init-state`
    pub init_state: InitState,
    /// `observe`
    pub observe: Observe,
    /// `error-limit`
    pub error_limit: u32,
    /// `on-error`
    pub on_error: OnError,
    /// `on-marked-down shutdown-sessions`
    pub ends_sessions_when_down: bool,
    /// `on-marked-up shutdown-backup-sessions`
    pub ends_backup_sessions_when_up: bool,
    /// `outlier-ejection`
    pub ejection: Option<OutlierEjection>,
    /// `slowstart`; zero means none.
    pub slowstart: Duration,
    /// `track`: the tracked server, as written.
    pub track: Option<String>,
    /// The indexes of the tracked server's backend and of the server itself. Set after the whole
    /// configuration was read.
    pub tracked: Option<(usize, usize)>,
    /// Agent checks.
    pub agent: AgentChecks,
}

impl Default for ServerChecks {
    fn default() -> Self {
        ServerChecks {
            enabled: false,
            inter: Duration::from_secs(2),
            fastinter: None,
            downinter: None,
            rise: 2,
            fall: 3,
            port: 0,
            addr: None,
            proto: None,
            send_proxy: false,
            via_socks4: false,
            section: None,
            script: None,
            init_state: InitState::Unset,
            observe: Observe::Nothing,
            error_limit: 10,
            on_error: OnError::FailCheck,
            ends_sessions_when_down: false,
            ends_backup_sessions_when_up: false,
            ejection: None,
            slowstart: Duration::ZERO,
            track: None,
            tracked: None,
            agent: AgentChecks::default(),
        }
    }
}

/// `agent-check` and its settings.
#[derive(Clone, Debug)]
pub struct AgentChecks {
    /// `agent-check`
    pub enabled: bool,
    /// `agent-addr`; None: the address of health checks (`addr`), or the server's.
    pub addr: Option<Addr>,
    /// `agent-port`; 0: the server's port.
    pub port: u16,
    /// `agent-inter`
    pub inter: Duration,
    /// `agent-send`: the text that is sent to the agent first.
    pub send: Octets,
}

impl Default for AgentChecks {
    fn default() -> Self {
        AgentChecks {
            enabled: false,
            addr: None,
            port: 0,
            inter: Duration::from_secs(2),
            send: Octets::default(),
        }
    }
}

/// `init-state`: the state of a server when checks begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InitState {
    /// Not configured: up, and one failed check takes it down.
    #[default]
    Unset,
    /// Up; `fall` failures take it down.
    FullyUp,
    /// Up, and one failed check takes it down.
    Up,
    /// Down; one successful check takes it up.
    Down,
    /// Down; `rise` successful checks take it up.
    FullyDown,
}

/// `observe`: the results of traffic that count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Observe {
    /// None.
    #[default]
    Nothing,
    /// Connections.
    Layer4,
    /// Responses.
    Layer7,
}

/// `on-error`: the effect of `error-limit` consecutive errors of traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnError {
    /// The next check is earlier.
    FastInter,
    /// They count as a failed check.
    #[default]
    FailCheck,
    /// They count as a failed check, and the next failure takes the server down.
    SuddenDeath,
    /// The server goes down.
    MarkDown,
}

/// `check-proto`, and `proto` of a connect rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckProto {
    /// Raw bytes.
    None,
    /// HTTP/1.
    H1,
    /// HTTP/2.
    H2,
}

/// `option external-check`: a program that checks servers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExternalCheck {
    /// `external-check command`
    pub command: PathBuf,
    /// `external-check path`: the variable `PATH` of its environment.
    pub path: Option<Octets>,
}

/// How the servers of a backend with `check` are checked.
#[derive(Clone, Debug)]
pub enum BackendCheck {
    /// A script; without any option, its only rule connects.
    Script(Arc<CheckScript>),
    /// A program.
    External(Arc<ExternalCheck>),
}

/// The kind of a script, on which messages depend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckKind {
    /// No option: only connects.
    Connect,
    /// `option tcp-check`
    Tcp,
    /// `option httpchk`
    Http,
    /// The check of a protocol, with a built-in script.
    Protocol,
    /// An agent.
    Agent,
}

/// A check as a list of steps.
#[derive(Clone, Debug)]
pub struct CheckScript {
    /// Its kind.
    pub kind: CheckKind,
    /// The rules in order; the first one connects.
    pub rules: Vec<CheckRule>,
    /// `http-check disable-on-404`
    pub disable_on_404: bool,
    /// `http-check send-state`
    pub send_state: bool,
}

/// One step.
#[derive(Clone, Debug)]
pub struct CheckRule {
    /// Its index among the written rules, from 0.
    pub index: u32,
    /// Its action.
    pub action: CheckAction,
    /// `comment`: its own or the preceding one.
    pub comment: Option<Octets>,
}

/// The action of a step.
#[derive(Clone, Debug)]
pub enum CheckAction {
    /// Opens a connection; closes the previous one.
    Connect(CheckConnect),
    /// Sends data.
    Send(CheckSend),
    /// Waits for a response and checks it.
    Expect(Box<CheckExpect>),
    /// `set-var`, `set-var-fmt`, `unset-var`.
    Assign(Box<Assignment>),
}

/// A rule `connect`.
#[derive(Clone, Debug, Default)]
pub struct CheckConnect {
    /// It was not written, but implied.
    pub is_implicit: bool,
    /// `default`: the options of the server line apply.
    pub is_default: bool,
    /// `addr` with its port; 0 means no port.
    pub addr: Option<Addr>,
    /// `port`
    pub port: Option<CheckPort>,
    /// `proto`
    pub proto: Option<CheckProto>,
    /// `send-proxy`
    pub send_proxy: bool,
    /// `via-socks4`
    pub via_socks4: bool,
    /// `linger`: closed without a reset.
    pub linger: bool,
    /// `ssl`
    pub ssl: bool,
    /// `sni`
    pub sni: Option<String>,
    /// `alpn`
    pub alpn: Option<Vec<Vec<u8>>>,
    /// The value of `Host` in the next request: the default server name for TLS.
    pub host: Option<LogFormat>,
}

/// `port` of a rule `connect`.
#[derive(Clone, Debug)]
pub enum CheckPort {
    /// A number.
    Fixed(u16),
    /// An expression.
    Expr(Expr),
}

/// A rule `send`.
#[derive(Clone, Debug)]
pub enum CheckSend {
    /// Bytes.
    Bytes(Octets),
    /// A text.
    Format(LogFormat),
    /// A text of hexadecimal digits.
    HexFormat(LogFormat),
    /// A request.
    Http(Box<CheckRequest>),
}

/// A request of an HTTP check.
#[derive(Clone, Debug, Default)]
pub struct CheckRequest {
    /// None means OPTIONS.
    pub method: Option<Octets>,
    /// None means `/`.
    pub uri: Option<CheckText>,
    /// None means HTTP/1.0.
    pub version: Option<Octets>,
    /// Header fields; those with an empty value are omitted.
    pub headers: Vec<(Octets, LogFormat)>,
    /// The body.
    pub body: Option<CheckText>,
}

/// A text, fixed or generated for each check.
#[derive(Clone, Debug)]
pub enum CheckText {
    /// As written.
    Fixed(Octets),
    /// Generated.
    Format(LogFormat),
}

/// A rule `expect`.
#[derive(Clone, Debug)]
pub struct CheckExpect {
    /// The expected data.
    pub what: Expectation,
    /// `!`: the data must not occur.
    pub inverse: bool,
    /// `min-recv`: the least bytes to wait for. None: until it matches or no more bytes arrive.
    pub min_recv: Option<u32>,
    /// `ok-status`
    pub ok_status: Option<CheckStatus>,
    /// `error-status`
    pub error_status: Option<CheckStatus>,
    /// `tout-status`
    pub timeout_status: Option<CheckStatus>,
    /// `on-success`
    pub on_success: Option<LogFormat>,
    /// `on-error`
    pub on_error: Option<LogFormat>,
    /// `status-code`
    pub status_code: Option<Expr>,
}

/// The data that an `expect` searches.
#[derive(Clone, Debug)]
pub enum Expectation {
    /// Bytes anywhere: `string`, `binary`. For HTTP, in the body.
    Bytes {
        /// The bytes.
        bytes: Octets,
        /// Written in hexadecimal digits.
        is_binary: bool,
    },
    /// `rstring`, `rbinary`: a binary one searches the hexadecimal digits of the received bytes.
    Regex {
        /// The expression.
        regex: Regex,
        /// See above.
        is_binary: bool,
    },
    /// `string-lf`, `binary-lf`
    Format {
        /// The text.
        format: LogFormat,
        /// Whether the text consists of hexadecimal digits.
        is_binary: bool,
    },
    /// `status`: ranges, including both ends.
    Status(Vec<(u32, u32)>),
    /// `rstatus`
    StatusRegex(Regex),
    /// `hdr`, `fhdr`
    Header(Box<ExpectHeader>),
    /// The response of a protocol.
    Custom(CustomExpect),
}

/// `hdr` and `fhdr`.
#[derive(Clone, Debug)]
pub struct ExpectHeader {
    /// `fhdr`: values are not split at commas.
    pub is_full: bool,
    /// The pattern of the name.
    pub name: HeaderPattern,
    /// The pattern of the value; None for any.
    pub value: Option<HeaderPattern>,
}

/// A pattern of a name or of a value.
#[derive(Clone, Debug)]
pub struct HeaderPattern {
    /// The comparison.
    pub method: HeaderMatch,
    /// The text to compare with; for a regular expression, its source.
    pub text: CheckText,
}

/// `-m`
#[derive(Clone, Debug)]
pub enum HeaderMatch {
    /// `str`
    Whole,
    /// `beg`
    Begin,
    /// `end`
    End,
    /// `sub`
    Inside,
    /// `reg`
    Regex(Regex),
}

/// Responses that functions check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CustomExpect {
    /// The first packet of a MySQL server.
    MysqlHandshake,
    /// The server's response to a login.
    MysqlLogin,
    /// An LDAP bind response.
    LdapBind,
    /// The response of an SPOP agent to HELLO.
    SpopHello,
    /// The line from an agent.
    Agent,
    /// `custom` in a rule: any response.
    Anything,
}

/// Settings of health checks in `global`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChecksTune {
    /// `external-check`: programs may check servers.
    pub external: Option<ExternalEnvironment>,
    /// `spread-checks`: the random part of intervals, in percent.
    pub spread_percent: u32,
    /// `max-spread-checks`: the longest time over which first checks are spread.
    pub max_spread: Option<Duration>,
    /// `pp2-never-send-local`: the PROXY header of a check is one of a proxied connection.
    pub never_local: bool,
    /// `tune.max-checks-per-thread`: most checks at a time; 0 means no limit.
    pub at_once_max: u32,
}

/// The environment of external check programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExternalEnvironment {
    /// Empty.
    #[default]
    Clean,
    /// The environment of this process (`preserve-env`).
    Preserved,
}

/// A section `mailers` (manual §12.4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mailers {
    /// Its name.
    pub name: String,
    /// The servers, with their names.
    pub servers: Vec<(String, std::net::SocketAddr)>,
    /// `timeout mail`
    pub timeout: Duration,
}

/// `email-alert` (manual §4.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmailAlert {
    /// The index in [`super::Config::mailers`].
    pub mailers: usize,
    /// `from`
    pub from: Octets,
    /// `to`
    pub to: Octets,
    /// `myhostname`; None: the system's.
    pub hostname: Option<Octets>,
    /// `level`: the least severe level that is mailed.
    pub level: u8,
}
