//! Health checks and agent checks of servers: their results, and when the next check is due.

use std::time::Duration;

use config::model::{CheckResult, CheckStatus};

/// The largest description, bytes (HAProxy's `HCHK_DESC_LEN` without the terminator).
const DESCRIPTION_BYTES_MAX: usize = 127;

/// The kind of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Checker {
    /// `check`
    Health,
    /// `agent-check`
    Agent,
}

impl Checker {
    /// The beginning of messages about such a check.
    pub(super) fn name(self) -> &'static str {
        match self {
            Checker::Health => "Health",
            Checker::Agent => "Agent",
        }
    }
}

/// The result of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckOutcome {
    /// The status.
    pub status: CheckStatus,
    /// The code of the protocol's response; 0 for none.
    pub code: i64,
    /// Details; empty for none.
    pub description: String,
    /// The duration; none where it was not measured.
    pub duration: Option<Duration>,
    /// The health that an agent reports: up or down at once. None counts by `rise` and `fall`.
    pub said: Option<bool>,
}

/// When a check is due, and whether it may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckPlan {
    /// The check is enabled, and the server is not in maintenance.
    pub runs: bool,
    /// The pause before the next check.
    pub interval: Duration,
}

/// The state of one of a server's checks.
#[derive(Clone, Debug)]
pub(crate) struct CheckState {
    /// The configuration has this check.
    pub is_configured: bool,
    /// The check is enabled.
    pub is_enabled: bool,
    /// The server is in maintenance.
    pub is_paused: bool,
    /// The check is running.
    pub is_running: bool,
    /// The next check comes after `fastinter`.
    pub is_fast: bool,
    pub rise: u32,
    pub fall: u32,
    /// From 0 to `rise + fall - 1`; the server is up from `rise` on.
    pub health: u32,
    pub status: CheckStatus,
    pub result: CheckResult,
    pub code: i64,
    pub description: String,
    pub duration: Option<Duration>,
    pub inter: Duration,
    pub fastinter: Option<Duration>,
    pub downinter: Option<Duration>,
}

impl CheckState {
    pub fn new(rise: u32, fall: u32, inter: Duration) -> CheckState {
        CheckState {
            is_configured: false,
            is_enabled: false,
            is_paused: false,
            is_running: false,
            is_fast: false,
            rise,
            fall,
            health: rise,
            status: CheckStatus::Unknown,
            result: CheckResult::Unknown,
            code: 0,
            description: String::new(),
            duration: None,
            inter,
            fastinter: None,
            downinter: None,
        }
    }

    /// The highest health.
    pub fn best(&self) -> u32 {
        self.rise + self.fall - 1
    }

    pub fn is_up(&self) -> bool {
        self.health >= self.rise
    }

    /// Whether the check allows its server to be up: it is disabled, or its result is up.
    pub fn permits_up(&self) -> bool {
        !self.is_enabled || self.is_up()
    }

    /// Applies an outcome. Returns whether it is worth a message.
    pub fn take(&mut self, checker: Checker, outcome: CheckOutcome) -> bool {
        let mut is_news = outcome.status != self.status;
        if let Some(up) = outcome.said {
            self.health = if up { self.best() } else { 0 };
        }
        self.status = outcome.status;
        self.code = outcome.code;
        self.description = outcome.description;
        if self.description.len() > DESCRIPTION_BYTES_MAX {
            let end = self.description.floor_char_boundary(DESCRIPTION_BYTES_MAX);
            self.description.truncate(end);
        }
        self.duration = outcome.duration;
        if outcome.status.result() != CheckResult::Unknown {
            self.result = outcome.status.result();
        }
        match self.result {
            CheckResult::Unknown => {}
            CheckResult::Neutral => return false,
            CheckResult::Failed => {
                // An unreachable agent does not take its server down.
                let counts = checker == Checker::Health || self.status.has_code();
                if counts && self.health > 0 {
                    is_news = true;
                    self.health -= 1;
                    if self.health < self.rise {
                        self.health = 0;
                    }
                }
            }
            CheckResult::Passed | CheckResult::PassedConditionally => {
                if self.health < self.best() {
                    is_news = true;
                    self.health += 1;
                    if self.health >= self.rise {
                        self.health = self.best();
                    }
                }
            }
        }
        is_news
    }

    /// The pause before the next check. `is_down`: the server is down.
    pub fn interval(&self, is_down: bool) -> Duration {
        if !self.is_fast && self.health == self.best() {
            return self.inter;
        }
        if is_down && self.health == 0 {
            return self.downinter.unwrap_or(self.inter);
        }
        self.fastinter.unwrap_or(self.inter)
    }

    /// Appends `, reason: …` and the known details.
    pub fn append_info(&self, text: &mut String) {
        use std::fmt::Write as _;
        // Writing to a string cannot fail.
        let _ = write!(text, ", reason: {}", self.status.description());
        if self.status.has_code() {
            let _ = write!(text, ", code: {}", self.code);
        }
        if !self.description.is_empty() {
            text.push_str(", info: \"");
            for each in self.description.chars() {
                match each {
                    ' '..='~' if !matches!(each, '"' | '<' | '>') => text.push(each),
                    _ => {
                        let mut bytes = [0; 4];
                        for byte in each.encode_utf8(&mut bytes).bytes() {
                            let _ = write!(text, "<{byte:02X}>");
                        }
                    }
                }
            }
            text.push('"');
        }
        if let Some(duration) = self.duration {
            let _ = write!(text, ", check duration: {}ms", duration.as_millis());
        }
    }

    /// The two numbers of `1/3` in the status: the progress towards the next state.
    pub fn progress(&self) -> (u32, u32) {
        if self.is_up() {
            (self.health - self.rise + 1, self.fall)
        } else {
            (self.health, self.rise)
        }
    }
}
