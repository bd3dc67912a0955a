//! The rules of a check in the order of the file, and the rules that are implied, which are added
//! when the section ends.

use super::super::Shared;
use super::super::line::{Cursor, Line, Parse};
use super::{Rules, implicit_connect, rules};
use crate::model::{
    CheckAction, CheckExpect, CheckKind, CheckRequest, CheckRule, CheckScript, CheckSend,
    Expectation,
};
use syntax::octets::Octets;

/// The accepted statuses without an `expect` rule.
const EXPECTED_STATUSES: (u32, u32) = (200, 399);

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Draft {
    steps: Vec<Step>,
    disable_on_404: bool,
    send_state: bool,
}

#[derive(Clone, Debug)]
enum Step {
    Rule(CheckRule),
    /// The request of `option httpchk`.
    Option {
        index: u32,
        request: Box<CheckRequest>,
    },
    Comment {
        index: u32,
        text: Octets,
    },
}

impl Step {
    fn index(&self) -> u32 {
        match self {
            Step::Rule(rule) => rule.index,
            Step::Option { index, .. } | Step::Comment { index, .. } => *index,
        }
    }

    /// The kind of the rule, if it connects, sends or expects.
    fn kind(&self) -> Option<Kind> {
        match self {
            Step::Option { .. } => Some(Kind::Option),
            Step::Rule(rule) => match rule.action {
                CheckAction::Connect(_) => Some(Kind::Connect),
                CheckAction::Send(_) => Some(Kind::Send),
                CheckAction::Expect(_) => Some(Kind::Expect),
                CheckAction::Assign(_) => None,
            },
            Step::Comment { .. } => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Connect,
    /// The request of `option httpchk`.
    Option,
    Send,
    Expect,
}

impl Draft {
    /// A draft with the script of a protocol.
    pub fn whole(rules: Vec<CheckAction>) -> Draft {
        let mut draft = Draft::default();
        for action in rules {
            draft.push(action);
        }
        draft
    }

    /// Whether no rule was written.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Adds a rule.
    pub fn push(&mut self, action: CheckAction) {
        let index = self.next_index();
        self.steps.push(Step::Rule(CheckRule {
            index,
            action,
            comment: None,
        }));
    }

    fn next_index(&self) -> u32 {
        match self.steps.last() {
            None | Some(Step::Option { .. }) => 0,
            Some(step) => step.index() + 1,
        }
    }

    /// The indexes and kinds of the rules that connect, send or expect.
    fn kinds(&self) -> impl DoubleEndedIterator<Item = (usize, Kind)> {
        let steps = self.steps.iter().enumerate();
        steps.filter_map(|(place, step)| Some((place, step.kind()?)))
    }

    /// Sets the request of `option httpchk`: it changes the first written request, otherwise it
    /// becomes the first request itself.
    pub fn set_request_of_option(&mut self, request: CheckRequest) {
        let mut kinds = self.kinds();
        let first = match kinds.next() {
            Some((_, Kind::Connect)) => kinds.next(),
            first => first,
        };
        drop(kinds);
        match first {
            Some((place, Kind::Option)) => {
                self.steps.remove(place);
            }
            Some((place, Kind::Send)) => {
                if let Step::Rule(CheckRule {
                    action: CheckAction::Send(CheckSend::Http(written)),
                    ..
                }) = &mut self.steps[place]
                {
                    return overwrite(written, request);
                }
            }
            _ => {}
        }
        let request = Box::new(request);
        self.steps.insert(0, Step::Option { index: 0, request });
    }

    /// Reads a line of `http-check` or `tcp-check`. Returns whether it is a rule. `is_chosen`: the
    /// checks of this proxy use these rules.
    pub fn take_line(
        &mut self,
        shared: &mut Shared<'_>,
        line: &Line<'_>,
        rules: Rules,
        is_chosen: bool,
    ) -> Parse<bool> {
        let mut cursor = Cursor { line: *line, at: 1 };
        let word = cursor.take();
        match (rules, word) {
            (Rules::Http, "disable-on-404") => {
                self.disable_on_404 = true;
                line.at_most_after(1, 0)?;
                return Ok(false);
            }
            (Rules::Http, "send-state") => {
                self.send_state = true;
                line.at_most_after(1, 0)?;
                return Ok(false);
            }
            (_, "comment") => {
                let text = cursor.octets("a string")?;
                line.at_most_after(1, 1)?;
                let index = self.next_index();
                self.steps.push(Step::Comment { index, text });
                return Ok(true);
            }
            _ => {}
        }
        let (action, comment) = rules::parse(shared, &mut cursor, rules)?;
        if rules == Rules::Tcp
            && matches!(action, CheckAction::Connect(_))
            && let Some((_, kind)) = self.kinds().next()
            && kind != Kind::Connect
        {
            return Err(line.fault(1, "'tcp-check connect' : first step MUST also be a 'connect', optionally preceded by a 'set-var', an 'unset-var' or a 'comment', when there is a 'connect' step in the tcp-check ruleset."));
        }
        let index = self.next_index();
        let rule = CheckRule {
            index,
            action,
            comment,
        };
        if rules == Rules::Http && is_chosen {
            self.push_http(line, rule)?
        } else {
            self.steps.push(Step::Rule(rule))
        }
        Ok(true)
    }

    /// Adds a rule of `http-check`, and checks the order of rules.
    fn push_http(&mut self, line: &Line<'_>, mut rule: CheckRule) -> Parse {
        let last = self.kinds().next_back().map(|(_, kind)| kind);
        let missing = match (last, &rule.action) {
            (None | Some(Kind::Option), _) => None,
            (Some(Kind::Send | Kind::Expect), CheckAction::Send(_)) => Some(("send", "connect")),
            (Some(Kind::Connect), CheckAction::Expect(_)) => Some(("expect", "send")),
            (Some(Kind::Connect | Kind::Send), CheckAction::Connect(_)) => {
                Some(("connect", "expect"))
            }
            _ => None,
        };
        if let Some((what, before)) = missing {
            return Err(line.fault(
                1,
                format!(
                    "'http-check {what}' : unable to add http-check {what} rule at step {} (missing {before} rule).",
                    rule.index + 1
                ),
            ));
        }
        if let CheckAction::Send(CheckSend::Http(request)) = &mut rule.action
            && matches!(self.kinds().next(), Some((0, Kind::Option)))
            && let Step::Option {
                request: mut of_option,
                ..
            } = self.steps.remove(0)
        {
            overwrite(&mut of_option, std::mem::take(&mut **request));
            *request = of_option;
        }
        self.steps.push(Step::Rule(rule));
        Ok(())
    }

    /// Builds the script: adds the implied rules, and moves comments to the rules that follow them.
    pub fn finish(self, kind: CheckKind) -> CheckScript {
        let mut steps = self.steps;
        if kind == CheckKind::Http {
            complete_http(&mut steps);
        }
        let first = steps.iter().find_map(Step::kind);
        if first != Some(Kind::Connect) {
            steps.insert(0, Step::Rule(implicit_connect()));
        }
        let mut rules = with_comments(steps);
        if kind == CheckKind::Http {
            name_hosts(&mut rules);
        }
        CheckScript {
            kind,
            rules,
            disable_on_404: self.disable_on_404,
            send_state: self.send_state,
        }
    }
}

/// Replaces the parts of a request that `new` sets.
fn overwrite(old: &mut CheckRequest, new: CheckRequest) {
    let CheckRequest {
        method,
        uri,
        version,
        headers,
        body,
    } = new;
    old.method = method.or(old.method.take());
    old.uri = uri.or(old.uri.take());
    old.version = version.or(old.version.take());
    old.body = body.or(old.body.take());
    if !headers.is_empty() {
        old.headers = headers;
    }
}

/// Moves the request of `option httpchk` after the first connect. If nothing is expected after the
/// last request, expects a good status.
fn complete_http(steps: &mut Vec<Step>) {
    let of_option = |step: &Step| matches!(step, Step::Option { .. });
    if let Some(place) = steps.iter().position(of_option) {
        let next = steps[place + 1..]
            .iter()
            .position(|step| step.kind().is_some());
        let next = next.map(|offset| place + 1 + offset);
        if let Some(next) = next.filter(|next| steps[*next].kind() == Some(Kind::Connect)) {
            let mut moved = steps.remove(place);
            if let Step::Option { index, .. } = &mut moved {
                *index = steps[next - 1].index() + 1;
            }
            steps.insert(next, moved);
        }
    }
    let last = steps.iter().rev().find(|step| step.kind().is_some());
    if let Some(last) = last
        && matches!(last.kind(), Some(Kind::Send | Kind::Option))
    {
        let index = last.index() + 1;
        let expect = rules::expect(Expectation::Status(vec![EXPECTED_STATUSES]));
        steps.push(Step::Rule(CheckRule {
            index,
            action: CheckAction::Expect(Box::new(expect)),
            comment: None,
        }));
    }
}

/// Gives each comment to the following rules of one kind.
fn with_comments(steps: Vec<Step>) -> Vec<CheckRule> {
    let mut rules: Vec<CheckRule> = Vec::new();
    let mut comment: Option<Octets> = None;
    let mut before = None;
    for step in steps {
        let kind = step.kind();
        if before.is_some_and(|before| before != kind) {
            comment = None;
        }
        let mut rule = match step {
            Step::Comment { text, .. } => {
                comment = Some(text);
                before = None;
                continue;
            }
            Step::Option { index, request } => CheckRule {
                index,
                action: CheckAction::Send(CheckSend::Http(request)),
                comment: None,
            },
            Step::Rule(rule) => rule,
        };
        before = Some(kind);
        match kind {
            None => comment = None,
            Some(Kind::Connect) => rule.comment = rule.comment.or(comment.take()),
            Some(_) => rule.comment = rule.comment.or_else(|| comment.clone()),
        }
        rules.push(rule);
    }
    rules
}

/// An implied connect uses the host of the next request.
fn name_hosts(rules: &mut [CheckRule]) {
    let mut place = None;
    for at in 0..rules.len() {
        let host = match &rules[at].action {
            CheckAction::Connect(connect) => {
                if connect.is_implicit {
                    place = Some(at);
                }
                continue;
            }
            CheckAction::Send(CheckSend::Http(request)) => {
                let is_host = |header: &&(Octets, _)| header.0.eq_ignore_ascii_case(b"host");
                request
                    .headers
                    .iter()
                    .find(is_host)
                    .map(|(_, host)| host.clone())
            }
            _ => continue,
        };
        if let Some(place) = place.take()
            && let CheckAction::Connect(connect) = &mut rules[place].action
        {
            connect.host = host;
        }
    }
}

/// A rule that expects this, with default texts.
impl From<Expectation> for CheckExpect {
    fn from(what: Expectation) -> Self {
        rules::expect(what)
    }
}
