//! Agent checks: a server's agent replies with a line of words (manual §5.2 agent-check).

use config::dynamic;
use config::model::CheckStatus;
use proxy::{CheckOutcome, ServerChange};

use crate::Control;
use crate::run;
use crate::target::Target;

/// The agent's line without its line end; none while it is incomplete. Text before the end of the
/// connection is a line only if it has a line end.
pub(crate) fn line(input: &[u8], at_end: bool) -> Option<Vec<u8>> {
    let end = input
        .iter()
        .position(|byte| matches!(byte, 0 | b'\r' | b'\n'));
    match end {
        Some(end) => Some(input[..end].to_vec()),
        None if at_end => Some(INCOMPLETE.to_vec()),
        None => None,
    }
}

/// Represents a line without an end; no word of an agent begins like this.
const INCOMPLETE: &[u8] = b"\n";

/// The parsed reply of an agent.
#[derive(Debug, Default, PartialEq, Eq)]
struct Said {
    /// Up or down, and the word that said so.
    health: Option<(bool, String)>,
    admin: Option<Admin>,
    weight: Option<String>,
    maxconn: Option<String>,
    /// The first unknown word.
    unknown: Option<String>,
    /// The text after `#`.
    description: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Admin {
    Ready,
    Drain,
    Maintenance,
}

/// Queries the agent and applies its reply. None if the result no longer counts.
pub(crate) async fn check(control: &Control, target: &Target) -> Option<CheckOutcome> {
    let script = target.script()?;
    let ended = run::script(control, target, script).await;
    if !target.plan(control).runs {
        return None;
    }
    let Some(line) = ended.agent else {
        return Some(ended.outcome);
    };
    let mut outcome = ended.outcome;
    if line == INCOMPLETE {
        let view = control.shared.server_view(target.backend, target.place);
        outcome.status = view.agent.status;
        outcome.description = "Ignoring incomplete line from agent".to_owned();
        return Some(outcome);
    }
    let said = parse(&String::from_utf8_lossy(&line));
    let warning = obey(control, target, &said);
    let (status, description) = tell(&said, warning);
    outcome.status = status;
    outcome.description = description;
    outcome.said = said.health.map(|(up, _)| up);
    Some(outcome)
}

/// Applies the changes that the agent requests; returns what was wrong with the request.
fn obey(control: &Control, target: &Target, said: &Said) -> Option<String> {
    let change = |change| {
        let woken = control
            .shared
            .change_server(target.backend, target.place, change);
        control.wake(&woken);
    };
    match said.admin {
        Some(Admin::Ready) => {
            change(ServerChange::Drain(false));
            change(ServerChange::Maintenance(false));
        }
        Some(Admin::Drain) => {
            change(ServerChange::Drain(true));
            change(ServerChange::Maintenance(false));
        }
        Some(Admin::Maintenance) => {
            change(ServerChange::Maintenance(true));
            change(ServerChange::Drain(false));
        }
        None => {}
    }
    let mut warning = None;
    if let Some(text) = &said.weight {
        let backend = &control.runtime_config.config.proxies[target.backend];
        match dynamic::weight(backend, target.line.weight, text) {
            Ok(weight) => change(ServerChange::Weight(weight)),
            Err(why) => warning = Some(why.to_owned()),
        }
    }
    if let Some(text) = &said.maxconn {
        match text.parse() {
            Ok(maxconn) => change(ServerChange::Maxconn(maxconn)),
            Err(_) => {
                warning.get_or_insert(format!("maxconn string '{text}' is not a number"));
            }
        }
    }
    warning
}

/// Parses a line.
fn parse(line: &str) -> Said {
    let mut said = Said::default();
    let mut rest = line;
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        if let Some(description) = rest.strip_prefix('#') {
            said.description = description.trim_start_matches([' ', '\t']).to_owned();
            return said;
        }
        let end = rest.find([' ', '\t', ',']).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        if word.is_empty() {
            return said;
        }
        rest = after;
        let lower = word.to_ascii_lowercase();
        match lower.as_str() {
            "up" => said.health = Some((true, word.to_owned())),
            "down" | "stopped" | "fail" => said.health = Some((false, word.to_owned())),
            "ready" => said.admin = Some(Admin::Ready),
            "drain" => said.admin = Some(Admin::Drain),
            "maint" => said.admin = Some(Admin::Maintenance),
            _ if word.starts_with(|first: char| first.is_ascii_digit()) && word.contains('%') => {
                said.weight = Some(word.to_owned());
            }
            lower if lower.starts_with("maxconn:") => {
                said.maxconn = Some(word["maxconn:".len()..].to_owned());
            }
            lower if lower.starts_with("weight:") => {
                said.weight = Some(word["weight:".len()..].to_owned());
            }
            _ => {
                said.unknown.get_or_insert(word.to_owned());
            }
        }
    }
}

/// The status and the message for an agent's line.
fn tell(said: &Said, warning: Option<String>) -> (CheckStatus, String) {
    let trouble = said.unknown.clone().or_else(|| warning.clone());
    match &said.health {
        Some((up, word)) => {
            let more = match (said.description.as_str(), *up) {
                ("", _) | (_, true) => trouble.unwrap_or_else(|| said.description.clone()),
                (description, false) => description.to_owned(),
            };
            let more = match more.as_str() {
                "" => String::new(),
                more => format!(" ({more})"),
            };
            let status = match up {
                true => CheckStatus::Layer7Ok,
                false => CheckStatus::Layer7WrongStatus,
            };
            (status, format!("via agent : {word}{more}"))
        }
        None => {
            let text = match (&said.unknown, warning) {
                (Some(word), _) => format!("agent reports an error : {word}"),
                (None, Some(warning)) => format!("agent warns : {warning}"),
                (None, None) => String::new(),
            };
            (CheckStatus::NoChange, text)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read() {
        let said = parse("75%,drain up # all is well");
        assert_eq!(said.weight.as_deref(), Some("75%"));
        assert_eq!(said.admin, Some(Admin::Drain));
        assert_eq!(said.health, Some((true, "up".into())));
        assert_eq!(said.description, "all is well");
        let said = parse("maxconn:30 weight:10 FAIL");
        assert_eq!(said.maxconn.as_deref(), Some("30"));
        assert_eq!(said.weight.as_deref(), Some("10"));
        assert_eq!(said.health, Some((false, "FAIL".into())));
        assert_eq!(parse("odd maint").unknown.as_deref(), Some("odd"));
        assert_eq!(parse(""), Said::default());
    }

    #[test]
    fn a_line_has_an_end() {
        assert_eq!(line(b"up\nmore", false), Some(b"up".to_vec()));
        assert_eq!(line(b"up", false), None);
        assert_eq!(line(b"up", true), Some(INCOMPLETE.to_vec()));
    }

    #[test]
    fn what_is_told_of_lines() {
        let told = |line: &str| tell(&parse(line), None);
        let down = CheckStatus::Layer7WrongStatus;
        assert_eq!(told("down"), (down, "via agent : down".into()));
        assert_eq!(
            told("fail #the disk is full"),
            (down, "via agent : fail (the disk is full)".into())
        );
        assert_eq!(
            told("up odd"),
            (CheckStatus::Layer7Ok, "via agent : up (odd)".into())
        );
        assert_eq!(
            told("odd"),
            (CheckStatus::NoChange, "agent reports an error : odd".into())
        );
        assert_eq!(told("50%"), (CheckStatus::NoChange, String::new()));
    }
}
