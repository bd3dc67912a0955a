//! Runs rule sets one rule at a time, and reports each rule.

use std::sync::Arc;

use config::model::{HttpAction, StatsPage, TcpRule};
use sample::Condition;
use telemetry::program::Direction;

use super::{Ended, Walk};
use crate::ids::{ProxyId, RuleId};
use crate::phases::is_for_page;
use crate::rules::{End, Fate, RuleSet, reply_of};

/// What follows after a rule.
enum Go {
    On,
    NextSet,
}

/// The data for reporting a rule.
pub(super) struct Told<'c> {
    pub matches: bool,
    pub result: String,
    pub condition: Option<&'c Condition>,
}

impl<'c> Told<'c> {
    /// A line without a condition.
    pub fn always(result: impl Into<String>) -> Told<'c> {
        Told {
            matches: true,
            result: result.into(),
            condition: None,
        }
    }

    fn of(fate: Fate, condition: Option<&'c Condition>, action: Option<&HttpAction>) -> Told<'c> {
        let result = match fate {
            Fate::Skipped => "does not match",
            Fate::Next => match action {
                Some(HttpAction::Redirect(_)) => "matches, and gives no redirect",
                _ => "is carried out",
            },
            Fate::Stop => "is carried out; the rest of the set is passed over",
            Fate::Waits => "waits here; explained as if the wait were over",
            Fate::Ends(End::Close | End::Vanished) | Fate::Closes => "closes the connection",
            Fate::Ends(_) => "the proxy answers here",
            Fate::Failed(_) => "cannot be carried out",
        };
        Told {
            matches: !matches!(fate, Fate::Skipped),
            result: result.to_owned(),
            condition,
        }
    }
}

impl Walk<'_> {
    /// Runs `tcp-request connection` or `tcp-request session`.
    pub(super) fn bare_rules(
        &mut self,
        frontend: ProxyId,
        keyword: &'static str,
        rules: &[Arc<TcpRule>],
    ) -> Result<(), Ended> {
        let connection = keyword == "tcp-request connection";
        for rule in rules {
            let fate = self.with_rules(|cx, _| cx.bare_rule_alone(frontend, rule, connection));
            let told = Told::of(fate, rule.condition.as_ref(), None);
            self.tell(frontend, keyword, Some(rule.place), told);
            match self.after(fate, None)? {
                Go::On => {}
                Go::NextSet => break,
            }
        }
        Ok(())
    }

    /// Runs `tcp-request content` or `tcp-response content`.
    pub(super) fn content_rules(
        &mut self,
        proxy: ProxyId,
        direction: Direction,
    ) -> Result<(), Ended> {
        let lines = self.proxy(proxy);
        let (keyword, rules) = match direction {
            Direction::Request | Direction::Neither => {
                ("tcp-request content", &lines.tcp_request_content)
            }
            Direction::Response => ("tcp-response content", &lines.tcp_response_content),
        };
        for rule in rules {
            let of = (proxy, direction);
            let fate = self.with_rules(|cx, stream| cx.content_rule_alone(stream, of, rule));
            let told = Told::of(fate, rule.condition.as_ref(), None);
            self.tell(proxy, keyword, Some(rule.place), told);
            match self.after(fate, None)? {
                Go::On => {}
                Go::NextSet => break,
            }
        }
        Ok(())
    }

    /// Runs `http-request`, answers with the statistics page, or runs `redirect`.
    pub(super) fn request_rules(&mut self, proxy: ProxyId) -> Result<(), Ended> {
        self.rule_set(proxy, "http-request", RuleSet::Request)?;
        let page = self.proxy(proxy).stats.as_deref();
        if let Some(page) = page.filter(|page| is_for_page(page, &self.stream)) {
            return self.statistics(proxy, page);
        }
        self.rule_set(proxy, "redirect", RuleSet::Redirect)
    }

    fn statistics(&mut self, proxy: ProxyId, page: &StatsPage) -> Result<(), Ended> {
        self.rule_set(proxy, "stats http-request", RuleSet::Statistics)?;
        let result = if page.users.is_empty() {
            "answers with the statistics page"
        } else {
            "answers with the statistics page, or asks for user and password"
        };
        self.tell(proxy, "stats", page.place, Told::always(result));
        self.told.outcome = "The proxy answers by itself: the statistics page.".to_owned();
        self.answer_with(200);
        Err(Ended)
    }

    /// Runs one set of HTTP rules of a proxy.
    pub(super) fn rule_set(
        &mut self,
        proxy: ProxyId,
        keyword: &'static str,
        set: RuleSet,
    ) -> Result<(), Ended> {
        self.stream.soft_rewrites = false;
        for (place, rule) in set.rules(self.proxy(proxy)).iter().enumerate() {
            let id = RuleId { proxy, place };
            let fate = self.with_rules(|cx, stream| cx.http_rule_alone(stream, (set, id)));
            let told = Told::of(fate, rule.condition.as_ref(), Some(&rule.action));
            self.tell(proxy, keyword, Some(rule.place), told);
            match self.after(fate, Some((set, id)))? {
                Go::On => {}
                Go::NextSet => break,
            }
        }
        Ok(())
    }

    /// Continues after a rule.
    fn after(&mut self, fate: Fate, rule: Option<(RuleSet, RuleId)>) -> Result<Go, Ended> {
        let outcome = match fate {
            Fate::Skipped | Fate::Next | Fate::Waits => return Ok(Go::On),
            Fate::Stop => return Ok(Go::NextSet),
            Fate::Closes => "The connection is closed.".to_owned(),
            Fate::Failed(status) => {
                self.answer_with(status);
                format!("The rule fails: the client gets {status}.")
            }
            Fate::Ends(end) => self.end(end, rule),
        };
        self.told.outcome = outcome;
        Err(Ended)
    }

    /// A rule ends the exchange: puts the proxy's response into the stream, and returns the
    /// outcome.
    fn end(&mut self, end: End, rule: Option<(RuleSet, RuleId)>) -> String {
        let reply = rule.and_then(|(set, id)| reply_of(self.runtime_config, set, id));
        let status = reply.map_or(0, |reply| reply.status);
        match (end, reply) {
            (End::Answer(..) | End::Tarpit(_), Some(reply)) => self.answer_as(reply),
            (End::Challenge(..), _) if self.stream.txn.is_proxied => self.answer_with(407),
            (End::Challenge(..), _) => self.answer_with(401),
            (End::Service(_), _) => self.answer_with(200),
            (End::Fail(status), _) => self.answer_with(status),
            (End::Redirect, _) => self.is_answered = true,
            (End::Answer(..) | End::Tarpit(_) | End::Close | End::Vanished, _) => {}
        }
        match end {
            End::Answer(..) => format!("The proxy answers with {status}."),
            End::Tarpit(_) => format!("The proxy answers with {status} after the tarpit's time."),
            End::Redirect => {
                let response = &self.stream.response;
                let location = response.find(b"location").next().map(|(_, value)| value);
                let location = String::from_utf8_lossy(location.unwrap_or_default());
                format!(
                    "The proxy redirects with {} to {location}",
                    response.status()
                )
            }
            End::Challenge(..) => "The proxy asks for user and password (401 or 407).".to_owned(),
            End::Service(_) => "A service of the proxy answers.".to_owned(),
            End::Close | End::Vanished => "The connection is closed without an answer.".to_owned(),
            End::Fail(status) => format!("The client gets {status}."),
        }
    }
}
