//! `set-var`, `set-var-fmt`, `unset-var`: in rules and as converters (manual §4.4, §7.3.1).

use super::{Entry, VarRef, VarScope, Vars};
use crate::{Expr, LogFormat, Scope, Value};

/// A variable, the conditions for setting it, and its new value.
#[derive(Clone, Debug)]
pub struct Assignment {
    /// The variable.
    pub var: VarRef,
    /// Conditions that must all hold.
    pub when: SetConditions,
    /// Its new value.
    pub source: Source,
}

/// The source of an assignment's value.
#[derive(Clone, Debug)]
pub enum Source {
    /// `set-var`: a sample. Without a sample, the variable does not change.
    Expr(Expr),
    /// `set-var-fmt`: a text.
    Format(LogFormat),
    /// `unset-var`.
    Nothing,
}

/// A change of a variable.
#[derive(Clone, Debug)]
pub enum Change {
    /// The variable does not change.
    Keep,
    /// The variable is unset.
    Unset,
    /// The variable is set to this value.
    Set(Value<'static>),
}

impl Assignment {
    /// The change to make now. `text` is a buffer for a format; it is empty afterwards.
    #[must_use]
    #[inline]
    pub fn eval(&self, scope: &Scope<'_>, text: &mut Vec<u8>) -> Change {
        match &self.source {
            Source::Nothing => Change::Unset,
            Source::Expr(expr) => match expr.eval(scope) {
                Some(value) => self.when.change(scope, self.var, value),
                None => Change::Keep,
            },
            Source::Format(format) => {
                format.render(scope, text);
                let change = self.when.change(scope, self.var, Value::text(&text[..]));
                text.clear();
                change
            }
        }
    }
}

/// Conditions of `set-var(name,cond…)`, which must all hold (manual §7.3.1 set-var).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetConditions(u8);

/// Each condition and its bit.
const CONDITIONS: &[(&str, u8)] = &[
    ("ifexists", IF_EXISTS),
    ("ifnotexists", IF_NOT_EXISTS),
    ("ifempty", IF_EMPTY),
    ("ifnotempty", IF_NOT_EMPTY),
    ("ifset", IF_SET),
    ("ifnotset", IF_NOT_SET),
    ("ifgt", IF_GT),
    ("iflt", IF_LT),
];
const IF_EXISTS: u8 = 1;
const IF_NOT_EXISTS: u8 = 2;
const IF_EMPTY: u8 = 4;
const IF_NOT_EMPTY: u8 = 8;
const IF_SET: u8 = 16;
const IF_NOT_SET: u8 = 32;
const IF_GT: u8 = 64;
const IF_LT: u8 = 128;

impl SetConditions {
    /// Adds a condition by its name.
    ///
    /// # Errors
    /// An unknown name, in HAProxy's words.
    pub fn add(&mut self, name: &str) -> Result<(), String> {
        match CONDITIONS.iter().find(|(known, _)| *known == name) {
            Some((_, bit)) => {
                self.0 |= bit;
                Ok(())
            }
            None => Err(format!("unknown condition \"{name}\"")),
        }
    }

    /// The change for setting a variable to a value: [`Change::Keep`] if a condition does not hold,
    /// the variable's scope does not exist now, or the memory limit is reached.
    #[inline]
    pub(crate) fn change(self, scope: &Scope<'_>, var: VarRef, value: Value<'_>) -> Change {
        let allowed = scope.has(var.scope) && (self.0 == 0 || self.hold(scope, var, &value));
        if !allowed || !scope.has_room(var, &value) {
            return Change::Keep;
        }
        // Integers are common (counters) and need no copy.
        match value {
            Value::Int(number) => Change::Set(Value::Int(number)),
            value => Change::Set(value.detach()),
        }
    }

    fn hold(self, scope: &Scope<'_>, var: VarRef, value: &Value<'_>) -> bool {
        let asks = |bit| self.0 & bit != 0;
        let exists = scope.var_exists(var);
        let current = scope.var(var);
        let text_len = match value {
            Value::Str(text) | Value::Bin(text) => Some(text.len()),
            _ => None,
        };
        let orders = |holds: fn(&i64, &i64) -> bool| match (&current, value) {
            (Some(Value::Int(current)), Value::Int(new)) => holds(current, new),
            _ => true,
        };
        !(asks(IF_EXISTS) && !exists
            || asks(IF_NOT_EXISTS) && exists
            || asks(IF_SET) && current.is_none()
            || asks(IF_NOT_SET) && current.is_some()
            || asks(IF_EMPTY) && text_len != Some(0)
            || asks(IF_NOT_EMPTY) && text_len == Some(0)
            || asks(IF_GT) && !orders(i64::gt)
            || asks(IF_LT) && !orders(i64::lt))
    }
}

impl<'a> Scope<'a> {
    /// The value of a variable; None if it is not set or its scope does not exist now.
    #[must_use]
    #[inline]
    pub fn var(&self, var: VarRef) -> Option<Value<'a>> {
        if let Some(Entry::Set(value)) = self.settled(var.scope).get(var.slot as usize) {
            return Some(value.borrow());
        }
        if var.scope == VarScope::Proc {
            return self.world.proc_var(var.slot);
        }
        let assigned = self.assigned_to(var.scope)?;
        assigned.any().then(|| self.waiting(assigned, var))?
    }

    #[cold]
    fn waiting(&self, assigned: &super::Assigned, var: VarRef) -> Option<Value<'a>> {
        match assigned.get(var) {
            Some(waiting) => waiting,
            None => self.vars(var.scope)?.get(var.slot).map(Value::borrow),
        }
    }

    /// The entries of a scope's variables; empty for the process, and while there are pending
    /// assignments.
    #[inline]
    pub(crate) fn settled(&self, scope: VarScope) -> &'a [Entry] {
        match (self.vars(scope), self.assigned_to(scope)) {
            (Some(vars), Some(assigned)) if !assigned.any() => vars.entries(),
            _ => &[],
        }
    }

    /// The variables of a scope that belongs to a stream or a session.
    pub(crate) fn vars(&self, scope: VarScope) -> Option<&'a Vars> {
        match scope {
            VarScope::Sess => Some(&self.session.vars),
            VarScope::Txn => self.txn.map(|txn| &txn.txn_vars),
            VarScope::Req => self.txn.map(|txn| &txn.req_vars),
            VarScope::Res => self.txn.map(|txn| &txn.res_vars),
            VarScope::Check => self.txn.and_then(|txn| txn.check_vars.as_deref()),
            VarScope::Proc | VarScope::Parent => None,
        }
    }

    /// Whether variables of a scope can be set now. `req` can be set until the connection to a
    /// server, or a response of the proxy itself, begins. After that, `res` can be set.
    #[inline]
    pub(crate) fn has(&self, scope: VarScope) -> bool {
        match scope {
            VarScope::Proc | VarScope::Sess => true,
            VarScope::Txn => self.txn.is_some(),
            VarScope::Req => self.txn.is_some_and(|txn| !txn.responding),
            VarScope::Res => self.txn.is_some_and(|txn| txn.responding),
            VarScope::Check => self.txn.is_some_and(|txn| txn.check_vars.is_some()),
            VarScope::Parent => false,
        }
    }

    fn var_exists(&self, var: VarRef) -> bool {
        // A variable of the process exists from the moment that the configuration names it.
        var.scope == VarScope::Proc
            || self
                .vars(var.scope)
                .is_some_and(|vars| vars.exists(var.slot))
            || self.assigned_to(var.scope).is_some_and(|assigned| {
                assigned.any() && matches!(assigned.get(var), Some(Some(_)))
            })
    }

    fn assigned_to(&self, scope: VarScope) -> Option<&'a super::Assigned> {
        match scope {
            VarScope::Sess => Some(&self.session.assigned),
            VarScope::Txn | VarScope::Req | VarScope::Res | VarScope::Check => {
                self.txn.map(|txn| &txn.assigned)
            }
            VarScope::Proc | VarScope::Parent => None,
        }
    }

    /// Whether the limits `tune.vars` leave room for a value.
    #[inline]
    fn has_room(&self, var: VarRef, value: &Value<'_>) -> bool {
        match self.world.var_limits() {
            None => true,
            Some(limits) => self.fits(limits, var, value),
        }
    }

    fn fits(&self, limits: &super::VarLimits, var: VarRef, value: &Value<'_>) -> bool {
        let old = self.var(var).map_or(0, |value| value.text_len());
        let new = value.text_len()
            + if self.var_exists(var) {
                0
            } else {
                super::VAR_BYTES
            };
        let within = |limit: u32, used: usize| limit == 0 || used + new <= limit as usize + old;
        let of = |scope| self.vars(scope).map_or(0, Vars::bytes);
        let waiting = |scope| self.assigned_to(scope).map_or(0, super::Assigned::bytes);
        let reqres = of(VarScope::Req) + of(VarScope::Res);
        let txn = reqres + of(VarScope::Txn) + waiting(VarScope::Txn);
        let sess = txn + of(VarScope::Sess) + waiting(VarScope::Sess);
        let fits_stream = match var.scope {
            VarScope::Check => within(limits.check, of(VarScope::Check) + waiting(VarScope::Check)),
            VarScope::Req | VarScope::Res => {
                within(limits.reqres, reqres)
                    && within(limits.txn, txn)
                    && within(limits.sess, sess)
            }
            VarScope::Txn => within(limits.txn, txn) && within(limits.sess, sess),
            VarScope::Sess => within(limits.sess, sess),
            _ => true,
        };
        fits_stream && within(limits.process, self.world.var_bytes())
    }

    /// The converter `set-var`. Returns whether the variable was set.
    pub(crate) fn assign(&self, var: VarRef, when: SetConditions, value: &Value<'_>) -> bool {
        match when.change(self, var, value.borrow()) {
            Change::Keep => false,
            change => {
                self.put(var, change);
                true
            }
        }
    }

    /// The converter `unset-var`.
    pub(crate) fn unassign(&self, var: VarRef) {
        if self.has(var.scope) {
            self.put(var, Change::Unset);
        }
    }

    fn put(&self, var: VarRef, change: Change) {
        match self.assigned_to(var.scope) {
            Some(assigned) => assigned.put(var, change),
            None => self.world.change_proc_var(var.slot, change),
        }
    }
}
