//! Variables of streams, sessions and the process: how rules change them (manual §2.8).

use sample::vars::{Assignment, Change};
use sample::{Bytes, Value, VarRef, VarScope};

use super::Eval;
use crate::stream::Stream;

impl Eval<'_> {
    /// `set-var`, `unset-var` and `set-var-fmt` in a rule of a stream.
    pub fn assign(&mut self, stream: &mut Stream, assignment: &Assignment) {
        let mut text = std::mem::take(self.text);
        let change = self.with_scope(stream, true, |scope| assignment.eval(scope, &mut text));
        *self.text = text;
        self.change(stream, assignment.var, change);
    }

    /// The same in a rule before there is a stream.
    pub fn assign_in_session(&mut self, assignment: &Assignment) {
        let mut text = std::mem::take(self.text);
        let change = self.with_session(|scope| assignment.eval(scope, &mut text));
        *self.text = text;
        let var = assignment.var;
        match var.scope {
            VarScope::Sess => self.change_session(var.slot, change),
            VarScope::Proc => sample::World::change_proc_var(&self.view(), var.slot, change),
            VarScope::Txn | VarScope::Req | VarScope::Res | VarScope::Check | VarScope::Parent => {}
        }
    }

    /// Changes a variable of any scope that a stream can reach.
    pub fn change(&mut self, stream: &mut Stream, var: VarRef, change: Change) {
        if stream.txn.assigned.any() {
            self.settle_vars(stream);
        }
        let before = self.ledger_start(stream);
        match var.scope {
            VarScope::Txn => stream.txn.txn_vars.change(var.slot, change),
            VarScope::Req => stream.txn.req_vars.change(var.slot, change),
            VarScope::Res => stream.txn.res_vars.change(var.slot, change),
            VarScope::Sess => self.change_session(var.slot, change),
            VarScope::Proc => sample::World::change_proc_var(&self.view(), var.slot, change),
            VarScope::Check | VarScope::Parent => {}
        }
        self.ledger_end(stream, before);
    }

    /// Sets or unsets several variables of scope `txn`; an empty text unsets one.
    pub fn change_txn_vars(&mut self, stream: &mut Stream, changes: [(VarRef, &[u8]); 3]) {
        if stream.txn.assigned.any() {
            self.settle_vars(stream);
        }
        let before = self.ledger_start(stream);
        let vars = &mut stream.txn.txn_vars;
        for (var, text) in changes {
            debug_assert_eq!(var.scope, VarScope::Txn);
            if !text.is_empty() {
                let mut buffer = Bytes::buffer();
                buffer.extend(text);
                vars.set(var.slot, Value::Str(Bytes::Owned(buffer)));
            } else if vars.get(var.slot).is_some() {
                vars.unset(var.slot);
            }
        }
        self.ledger_end(stream, before);
    }

    fn change_session(&mut self, slot: u32, change: Change) {
        let session = &mut *self.session;
        session.settle();
        let before = session.vars.bytes();
        session.vars.change(slot, change);
        let after = session.vars.bytes();
        if self.counts_vars() {
            self.ambient.shared.var_bytes_change(before, after);
        }
    }

    /// Stores the assignments of converters in their variables.
    pub fn settle_vars(&mut self, stream: &mut Stream) {
        let before = self.ledger_start(stream);
        stream.txn.settle();
        self.ledger_end(stream, before);
    }

    /// Drops the request's variables; the response's follow.
    pub fn end_request_vars(&mut self, stream: &mut Stream) {
        let before = self.ledger_start(stream);
        stream.txn.end_request_vars();
        self.ledger_end(stream, before);
    }

    /// Whether the size of all variables is limited.
    fn counts_vars(&self) -> bool {
        self.runtime_config.config.global.var_limits.process > 0
    }

    /// The size of a stream's variables before a change; none without a limit for the process.
    fn ledger_start(&self, stream: &Stream) -> Option<usize> {
        self.counts_vars().then(|| stream.txn.var_bytes())
    }

    fn ledger_end(&self, stream: &Stream, before: Option<usize>) {
        if let Some(before) = before {
            let after = stream.txn.var_bytes();
            self.ambient.shared.var_bytes_change(before, after);
        }
    }
}
