//! Sections `healthcheck`: a check with a name, which servers can use (manual §12.9).

use super::super::Shared;
use super::super::line::{Line, Parse};
use super::draft::Draft;
use super::{Rules, protocols, request_of_option};
use crate::model::{CheckKind, CheckScript};
use crate::tree::Section;
use std::sync::Arc;

/// Reads a section.
pub fn section(section: &Section, shared: &mut Shared<'_>) {
    let header = Line::new(&section.header);
    let name = match header.need(1, || "missing name for healthcheck section.".to_owned()) {
        Ok(name) => name.to_owned(),
        Err(fault) => return shared.settle(Err(fault)),
    };
    if shared.check_scripts.contains_key(&name) {
        let message = format!("healthcheck section '{name}' already defined.");
        return shared.settle(Err(header.fault(1, message)));
    }
    let mut build = Build::default();
    for line in section.statements.iter().map(Line::new) {
        shared.enter_line(&line);
        let result = build.line(shared, &line);
        shared.settle(result);
    }
    let kind = build.kind.unwrap_or(CheckKind::Tcp);
    let script: CheckScript = build.draft.finish(kind);
    shared.check_scripts.insert(name, Arc::new(script));
}

#[derive(Default)]
struct Build {
    /// `type`
    kind: Option<CheckKind>,
    /// The word of `type`.
    named: String,
    /// The kind of the rules that were written.
    rules: Option<Rules>,
    draft: Draft,
}

impl Build {
    fn line(&mut self, shared: &mut Shared<'_>, line: &Line<'_>) -> Parse {
        let keyword = line.keyword();
        let rules = match keyword {
            "type" => return self.kind(shared, line),
            "http-check" => Rules::Http,
            "tcp-check" => Rules::Tcp,
            _ => {
                let names = ["type", "http-check", "tcp-check"];
                return Err(super::super::unknown(
                    line,
                    "healthcheck",
                    names.into_iter(),
                ));
            }
        };
        let fits = match self.kind {
            None => true,
            Some(CheckKind::Http) => rules == Rules::Http,
            Some(CheckKind::Tcp) => rules == Rules::Tcp,
            Some(_) => false,
        };
        if !fits {
            let named = &self.named;
            return Err(line.fault(
                0,
                format!("unable to configure '{keyword}' rule for '{named}' healthcheck."),
            ));
        }
        if self.rules.is_some_and(|before| before != rules) {
            return Err(line.fault(0, "cannot mix 'tcp-check' and 'http-check' rules."));
        }
        self.rules = Some(rules);
        let is_chosen = self.kind.is_some();
        self.draft
            .take_line(shared, line, rules, is_chosen)
            .map(drop)
    }

    /// Refuses a type that is incompatible with the rules before it.
    fn fits(&self, line: &Line<'_>, own: Option<Rules>) -> Parse {
        let (word, other) = (line.arg(1), self.rules.filter(|rules| Some(*rules) != own));
        let rules = match other {
            None => return Ok(()),
            Some(Rules::Http) => "http-check",
            Some(Rules::Tcp) => "tcp-check",
        };
        Err(line.fault(1, format!("cannot set '{word}' type with '{rules}' rules.")))
    }

    fn kind(&mut self, shared: &mut Shared<'_>, line: &Line<'_>) -> Parse {
        let missing = || "'type' expects a healthcheck type.".to_owned();
        let word = line.need(1, missing)?;
        if self.kind.is_some() {
            return Err(line.fault(0, "healthcheck type already defined."));
        }
        self.named = word.to_owned();
        match word {
            "httpchk" => {
                line.at_most(5)?;
                self.fits(line, Some(Rules::Http))?;
                self.kind = Some(CheckKind::Http);
                let request = request_of_option(shared, line, 2)?;
                self.draft.set_request_of_option(request);
            }
            "tcp-check" => {
                line.at_most(1)?;
                self.fits(line, Some(Rules::Tcp))?;
                self.kind = Some(CheckKind::Tcp);
            }
            word => {
                let Some(protocol) = protocols::find(word) else {
                    let names = ["tcp-check", "httpchk"].into_iter();
                    let names = names.chain(protocols::names());
                    let names: Vec<String> = names.map(|name| format!("'{name}'")).collect();
                    let names = names.join(", ");
                    let message = format!("unknown healthcheck type '{word}' (expects {names}).");
                    return Err(line.fault(1, message));
                };
                line.at_most_after(1, protocol.words_max)?;
                self.fits(line, None)?;
                self.kind = Some(CheckKind::Protocol);
                self.draft = Draft::whole((protocol.rules)(shared, line, 2)?);
            }
        }
        Ok(())
    }
}
