//! Variables of streams, sessions and the process: who changes them when (manual §2.8).

use net::{ConnId, Driver};
use sample::vars::{Assignment, Change};
use sample::{Bytes, Value, VarRef, VarScope};

use crate::engine::{Core, Cx};
use crate::stream::Stream;

impl Core {
    /// `set-var` and its kin in a rule of a stream. `answer`: as in [`Core::with_answer_scope`].
    pub fn assign<D: Driver>(
        &mut self,
        cx: &Cx<'_, D>,
        stream: &mut Stream,
        assignment: &Assignment,
        answer: Option<&[u8]>,
    ) {
        let mut text = std::mem::take(&mut self.text);
        let change = self.with_answer_scope(cx, stream, true, answer, |scope| {
            assignment.eval(scope, &mut text)
        });
        self.text = text;
        self.change(cx, stream, assignment.var, change);
    }

    /// The same before there is a stream.
    pub fn assign_in_session<D: Driver>(
        &mut self,
        cx: &Cx<'_, D>,
        conn: ConnId,
        assignment: &Assignment,
    ) {
        let mut text = std::mem::take(&mut self.text);
        let change = self.with_session(cx, conn, |scope| assignment.eval(scope, &mut text));
        self.text = text;
        let var = assignment.var;
        match (change, var.scope) {
            (Some(change), VarScope::Sess) => self.change_session(cx, conn, var.slot, change),
            (Some(change), VarScope::Proc) => {
                sample::World::change_proc_var(&self.view(cx), var.slot, change);
            }
            _ => {}
        }
    }

    /// Changes a variable that a stream can reach.
    pub fn change<D: Driver>(
        &mut self,
        cx: &Cx<'_, D>,
        stream: &mut Stream,
        var: VarRef,
        change: Option<Change>,
    ) {
        let Some(change) = change else { return };
        if stream.txn.assigned.any() {
            self.settle_vars(cx, stream);
        }
        let before = self.ledger_start(cx, stream);
        match var.scope {
            VarScope::Txn => stream.txn.txn_vars.change(var.slot, change),
            VarScope::Req => stream.txn.req_vars.change(var.slot, change),
            VarScope::Res => stream.txn.res_vars.change(var.slot, change),
            VarScope::Sess => {
                if let Some(client) = stream.client {
                    self.change_session(cx, client, var.slot, change);
                }
            }
            VarScope::Proc => sample::World::change_proc_var(&self.view(cx), var.slot, change),
            VarScope::Check | VarScope::Parent => {}
        }
        self.ledger_end(stream, before);
    }

    /// Sets or unsets variables of scope `txn` together: an empty text unsets one.
    pub fn change_txn_vars<D: Driver>(
        &mut self,
        cx: &Cx<'_, D>,
        stream: &mut Stream,
        changes: [(VarRef, &[u8]); 3],
    ) {
        if stream.txn.assigned.any() {
            self.settle_vars(cx, stream);
        }
        let before = self.ledger_start(cx, stream);
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

    fn change_session<D: Driver>(
        &mut self,
        cx: &Cx<'_, D>,
        conn: ConnId,
        slot: u32,
        change: Change,
    ) {
        let counts = cx.running.config.global.var_limits.process > 0;
        let Some(client) = self.conns.client(conn) else {
            return;
        };
        let session = &mut client.session;
        session.settle();
        let before = session.vars.bytes();
        session.vars.change(slot, change);
        if counts {
            let after = session.vars.bytes();
            self.shared.var_bytes_change(before, after);
        }
    }

    /// Moves what converters assigned to where it belongs.
    pub fn settle_vars<D: Driver>(&mut self, cx: &Cx<'_, D>, stream: &mut Stream) {
        let before = self.ledger_start(cx, stream);
        stream.txn.settle();
        self.ledger_end(stream, before);
    }

    /// The request is done with: its variables end, those of the response begin.
    #[inline]
    pub fn respond<D: Driver>(&mut self, cx: &Cx<'_, D>, stream: &mut Stream) {
        let txn = &mut stream.txn;
        if std::mem::replace(&mut txn.responding, true)
            || (txn.req_vars.is_empty() && !txn.assigned.any())
        {
            return;
        }
        self.end_request_vars(cx, stream);
    }

    #[cold]
    fn end_request_vars<D: Driver>(&mut self, cx: &Cx<'_, D>, stream: &mut Stream) {
        let before = self.ledger_start(cx, stream);
        stream.txn.end_request_vars();
        self.ledger_end(stream, before);
    }

    /// The variables of a stream that ends are counted out.
    pub fn forget_vars<D: Driver>(&mut self, cx: &Cx<'_, D>, stream: &Stream) {
        if cx.running.config.global.var_limits.process > 0 {
            self.shared.var_bytes_change(stream.txn.var_bytes(), 0);
        }
    }

    /// What a stream's variables count before a change; none where no limit of the process asks.
    fn ledger_start<D: Driver>(&self, cx: &Cx<'_, D>, stream: &Stream) -> Option<usize> {
        (cx.running.config.global.var_limits.process > 0).then(|| stream.txn.var_bytes())
    }

    fn ledger_end(&self, stream: &Stream, before: Option<usize>) {
        if let Some(before) = before {
            self.shared.var_bytes_change(before, stream.txn.var_bytes());
        }
    }
}
