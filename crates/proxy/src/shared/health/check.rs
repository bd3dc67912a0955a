//! Checks of servers, of both kinds: what they came to, and when the next one is due.

use std::time::Duration;

use config::model::{CheckResult, CheckStatus};

/// Bytes of a description (HAProxy's `HCHK_DESC_LEN`, less its end).
const DESCRIPTION_BYTES_MAX: usize = 127;

/// Who checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Checker {
    /// `check`
    Health,
    /// `agent-check`
    Agent,
}

impl Checker {
    /// As messages begin.
    pub(super) fn name(self) -> &'static str {
        match self {
            Checker::Health => "Health",
            Checker::Agent => "Agent",
        }
    }
}

/// What a check came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckOutcome {
    /// The status.
    pub status: CheckStatus,
    /// The code that a protocol answered with; 0 for none.
    pub code: i64,
    /// More about it; empty for nothing.
    pub description: String,
    /// How long it took; none where nobody measured it.
    pub duration: Option<Duration>,
    /// What an agent says of the health: up or down at once. None counts by `rise` and `fall`.
    pub said: Option<bool>,
}

/// When a check is due, and whether it may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckPlan {
    /// It is enabled, and the server is not in maintenance.
    pub runs: bool,
    /// The pause before the next one.
    pub interval: Duration,
}

/// What is known of one of a server's checks.
#[derive(Clone, Debug)]
pub(crate) struct CheckState {
    /// The configuration has it.
    pub is_configured: bool,
    /// It was not disabled since.
    pub is_enabled: bool,
    /// The server is in maintenance.
    pub is_paused: bool,
    /// One is under way.
    pub is_running: bool,
    /// The next one comes after `fastinter`.
    pub is_fast: bool,
    pub rise: u32,
    pub fall: u32,
    /// From 0 to `rise + fall - 1`: up from `rise` on.
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

    /// Not enabled, or up: does not keep its server down.
    pub fn permits_up(&self) -> bool {
        !self.is_enabled || self.is_up()
    }

    /// Takes an outcome in; gives whether it is worth a message.
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
                // An agent that cannot be reached takes nobody down.
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

    /// The pause before the next check of a server that is down or not.
    pub fn interval(&self, is_down: bool) -> Duration {
        if !self.is_fast && self.health == self.best() {
            return self.inter;
        }
        if is_down && self.health == 0 {
            return self.downinter.unwrap_or(self.inter);
        }
        self.fastinter.unwrap_or(self.inter)
    }

    /// `, reason: …` and what else is known.
    pub fn append_info(&self, text: &mut String) {
        use std::fmt::Write as _;
        // Writing to a string does not fail.
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

    /// `1/3` and its kin: how far from what it becomes next.
    pub fn progress(&self) -> (u32, u32) {
        match self.is_up() {
            true => (self.health - self.rise + 1, self.fall),
            false => (self.health, self.rise),
        }
    }
}
