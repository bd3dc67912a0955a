//! Health checks of servers: how often, where to, and the script of rules that a check runs (manual §4.2 `option httpchk`,
//! `http-check`, `tcp-check`; §5.2).

use super::OutlierEjection;
use net::Addr;
use sample::regex::Regex;
use sample::{Assignment, Expr, LogFormat};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use syntax::octets::Octets;

/// What a check came to (manual §9.3 `check_status`), in the order of HAProxy's numbers, which `show servers state` prints.
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
    /// Never a result: those after it have a code.
    HasCode,
    Layer7Ok,
    Layer7OkConditionally,
    Layer7WrongStatus,
    ProcessError,
    ProcessTimeout,
    ProcessOk,
}

/// What a status means for the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum CheckResult {
    /// There is none yet.
    #[default]
    Unknown = 0,
    /// Nothing changes.
    Neutral,
    /// It failed.
    Failed,
    /// It passed.
    Passed,
    /// It passed, and the server wants no new sessions (`disable-on-404`).
    PassedConditionally,
}

impl CheckStatus {
    /// Its meaning, its short name and its description in messages.
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

    /// What it means for the server.
    #[must_use]
    pub const fn result(self) -> CheckResult {
        self.facts().0
    }

    /// Its name in statistics, as `L4OK`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.facts().1
    }

    /// Its description in messages.
    #[must_use]
    pub const fn description(self) -> &'static str {
        self.facts().2
    }

    /// Whether messages tell a code beside it.
    #[must_use]
    pub fn has_code(self) -> bool {
        self >= CheckStatus::HasCode
    }
}

/// What a server line says of health checks and of what follows from them.
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
    /// `port`; 0 is none.
    pub port: u16,
    /// `addr`, with its port, 0 for none.
    pub addr: Option<Addr>,
    /// `check-proto`
    pub proto: Option<CheckProto>,
    /// `check-send-proxy`
    pub send_proxy: bool,
    /// `check-via-socks4`
    pub via_socks4: bool,
    /// `healthcheck`: the name of a section.
    pub section: Option<String>,
    /// The script of that section; none is the backend's. Known once the whole configuration is.
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
    /// `slowstart`; zero is none.
    pub slowstart: Duration,
    /// `track`: the server that it follows, as written.
    pub track: Option<String>,
    /// The same as the places of its backend and its own. Known once the whole configuration is.
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

/// `agent-check` and what tunes it.
#[derive(Clone, Debug)]
pub struct AgentChecks {
    /// `agent-check`
    pub enabled: bool,
    /// `agent-addr`; none is that of health checks (`addr`), or the server's.
    pub addr: Option<Addr>,
    /// `agent-port`; 0 is the server's.
    pub port: u16,
    /// `agent-inter`
    pub inter: Duration,
    /// `agent-send`: what the agent is sent first.
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

/// `init-state`: what a server is when checks begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InitState {
    /// Nothing is said: up, and one failed check takes it down.
    #[default]
    Unset,
    /// Up, and it takes `fall` failures to go down.
    FullyUp,
    /// Up, and one failed check takes it down.
    Up,
    /// Down, and one check that passes takes it up.
    Down,
    /// Down, and it takes `rise` checks that pass to go up.
    FullyDown,
}

/// `observe`: which outcomes of traffic count.
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

/// `on-error`: what `error-limit` consecutive errors of traffic do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnError {
    /// The next check comes sooner.
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
    /// Bytes.
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

/// What checks the servers of a backend that have `check`.
#[derive(Clone, Debug)]
pub enum BackendCheck {
    /// A script; without any option its only rule connects.
    Script(Arc<CheckScript>),
    /// A program.
    External(Arc<ExternalCheck>),
}

/// What kind of check a script is: messages differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckKind {
    /// No option: connects.
    Connect,
    /// `option tcp-check`
    Tcp,
    /// `option httpchk`
    Http,
    /// The check of a protocol, whose script is built in.
    Protocol,
    /// An agent.
    Agent,
}

/// A check as a list of steps.
#[derive(Clone, Debug)]
pub struct CheckScript {
    /// Its kind.
    pub kind: CheckKind,
    /// In order; the first one connects.
    pub rules: Vec<CheckRule>,
    /// `http-check disable-on-404`
    pub disable_on_404: bool,
    /// `http-check send-state`
    pub send_state: bool,
}

/// One step.
#[derive(Clone, Debug)]
pub struct CheckRule {
    /// Its place among the written ones, from 0.
    pub index: u32,
    /// What it does.
    pub action: CheckAction,
    /// `comment`, its own or the one before it.
    pub comment: Option<Octets>,
}

/// What a step does.
#[derive(Clone, Debug)]
pub enum CheckAction {
    /// Opens a connection; closes the one before.
    Connect(CheckConnect),
    /// Sends.
    Send(CheckSend),
    /// Waits for an answer and looks at it.
    Expect(Box<CheckExpect>),
    /// `set-var`, `set-var-fmt`, `unset-var`.
    Assign(Box<Assignment>),
}

/// A rule `connect`.
#[derive(Clone, Debug, Default)]
pub struct CheckConnect {
    /// It was not written.
    pub is_implicit: bool,
    /// `default`: the options of the server line count.
    pub is_default: bool,
    /// `addr`, with its port, 0 for none.
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
    /// The value of `Host` of the request that follows: the name to ask for where none is given.
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
    /// None is OPTIONS.
    pub method: Option<Octets>,
    /// None is `/`.
    pub uri: Option<CheckText>,
    /// None is HTTP/1.0.
    pub version: Option<Octets>,
    /// Fields; those whose value is empty are left out.
    pub headers: Vec<(Octets, LogFormat)>,
    /// The body.
    pub body: Option<CheckText>,
}

/// A text, fixed or made for each check.
#[derive(Clone, Debug)]
pub enum CheckText {
    /// As written.
    Fixed(Octets),
    /// Made.
    Format(LogFormat),
}

/// A rule `expect`.
#[derive(Clone, Debug)]
pub struct CheckExpect {
    /// What is looked for.
    pub what: Expectation,
    /// `!`: it must not be there.
    pub inverse: bool,
    /// `min-recv`: bytes that are waited for. None: until it matches or no more come.
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

/// What an `expect` looks for.
#[derive(Clone, Debug)]
pub enum Expectation {
    /// Bytes anywhere: `string`, `binary`. In HTTP, in the body.
    Bytes {
        /// The bytes.
        bytes: Octets,
        /// Written in hexadecimal digits.
        is_binary: bool,
    },
    /// `rstring`, `rbinary`: a binary one looks at hexadecimal digits of what came.
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
        /// It is one of hexadecimal digits.
        is_binary: bool,
    },
    /// `status`: ranges, both ends included.
    Status(Vec<(u32, u32)>),
    /// `rstatus`
    StatusRegex(Regex),
    /// `hdr`, `fhdr`
    Header(Box<ExpectHeader>),
    /// What a protocol says.
    Custom(CustomExpect),
}

/// `hdr` and `fhdr`.
#[derive(Clone, Debug)]
pub struct ExpectHeader {
    /// `fhdr`: values are not split at commas.
    pub is_full: bool,
    /// What the name is.
    pub name: HeaderPattern,
    /// What the value is; none for any.
    pub value: Option<HeaderPattern>,
}

/// A pattern of a name or of a value.
#[derive(Clone, Debug)]
pub struct HeaderPattern {
    /// How it compares.
    pub method: HeaderMatch,
    /// What with; of a regular expression its text.
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

/// Answers that functions look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CustomExpect {
    /// The first packet of a MySQL server.
    MysqlHandshake,
    /// Its answer to a login.
    MysqlLogin,
    /// An LDAP bind response.
    LdapBind,
    /// The answer of an SPOP agent to HELLO.
    SpopHello,
    /// The line of an agent.
    Agent,
    /// `custom` of a rule: anything.
    Anything,
}

/// What `global` says of health checks.
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
    /// `tune.max-checks-per-thread`: checks at once; 0 is any number.
    pub at_once_max: u32,
}

/// What of our environment the programs of external checks get.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExternalEnvironment {
    /// Nothing.
    #[default]
    Clean,
    /// All of it (`preserve-env`).
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
    /// `myhostname`; none is the system's.
    pub hostname: Option<Octets>,
    /// `level`: the least severe messages that are mailed.
    pub level: u8,
}
