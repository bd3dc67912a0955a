//! `do-resolve`: a rule waits for the address of a name (manual §4.4).

use std::net::IpAddr;

use config::model::{Family, Resolve};
use sample::vars::Change;
use sample::{RulePlace, Value};

use super::Cx;
use crate::shared::NameTicket;
use crate::stream::{Lookup, LookupState, Stream};

impl Cx<'_> {
    /// Runs the action of the rule at `place`. False: it waits for the answer and runs again. A
    /// name that has no address leaves the variable as it is.
    #[cold]
    pub(super) fn resolve(
        &mut self,
        stream: &mut Stream,
        place: RulePlace,
        rule: &Resolve,
    ) -> bool {
        let known = stream.lookups.iter_mut().find(|known| known.rule == place);
        match known.map(|known| &mut known.state) {
            Some(LookupState::Asked) => false,
            Some(LookupState::Used) => true,
            Some(state @ LookupState::Answered(_)) => {
                if let LookupState::Answered(Some(ip)) = std::mem::replace(state, LookupState::Used)
                {
                    let value = Change::Set(Value::from(ip));
                    self.scene.eval.change(stream, rule.var, value);
                }
                true
            }
            None => {
                let is_asked = self.ask(stream, rule);
                stream.lookups.push(Lookup {
                    rule: place,
                    state: if is_asked {
                        LookupState::Asked
                    } else {
                        LookupState::Used
                    },
                });
                !is_asked
            }
        }
    }

    /// Asks for the address. False: there is no name.
    fn ask(&mut self, stream: &mut Stream, rule: &Resolve) -> bool {
        let eval = &self.scene.eval;
        let mut name = Vec::new();
        if !eval.binary(stream, &rule.expr, &mut name) {
            return false;
        }
        let Ok(name) = String::from_utf8(name) else {
            return false;
        };
        let Some(resolver) = eval.ambient.shared.name_resolver() else {
            return false;
        };
        let ticket = NameTicket(stream.reference(eval.ambient.worker));
        resolver.ask(
            rule.section,
            &name,
            rule.prefer.unwrap_or(Family::V6),
            ticket,
        );
        true
    }
}

impl Stream {
    /// The answer to the lookup that is under way. Whether there is one.
    pub fn name_answered(&mut self, ip: Option<IpAddr>) -> bool {
        let mut lookups = self.lookups.iter_mut();
        let asked = lookups.find(|one| matches!(one.state, LookupState::Asked));
        let is_asked = asked.is_some();
        if let Some(lookup) = asked {
            lookup.state = LookupState::Answered(ip);
        }
        is_asked
    }
}
