//! Sets variables of scope `proc` by expressions outside of streams: `set-var` of section `global`,
//! and the command `set var`.

use std::sync::Arc;

use net::{Addr, Now, WorkerId};
use sample::vars::{SetConditions, Source};
use sample::{Assignment, Compiler, Place, Scope, Session, VarRef, VarScope};

use super::{Ambient, View};
use crate::runtime_config::RuntimeConfig;
use crate::shared::Shared;

/// Why a variable was not set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AssignError {
    /// The configuration does not name it, so nothing could read it.
    Unnamed,
    /// The expression or the format is invalid; the message.
    Expression(String),
}

impl RuntimeConfig {
    /// Sets the variable `name` (`proc.…`) to the present value of an expression or a log format.
    ///
    /// # Errors
    /// See [`AssignError`].
    pub fn assign_proc_var(
        &self,
        shared: &Arc<Shared>,
        name: &str,
        (is_format, text): (bool, &[u8]),
        now: Now,
    ) -> Result<(), AssignError> {
        let mut compiler = Compiler::new();
        for proxy in &self.config.proxies {
            // Nothing refers to a removed proxy by name.
            let name = if proxy.is_removed { "" } else { &proxy.name };
            let index = compiler.declare_proxy(name, proxy.is_frontend, proxy.is_backend);
            for server in &proxy.servers {
                compiler.declare_server(index, &server.name);
            }
        }
        let var = self.proc_vars_of(&mut compiler, name)?;
        let wrong = |error: sample::ExprError| AssignError::Expression(error.message);
        let source = if is_format {
            Source::Format(
                compiler
                    .log_format_styled(text, Place::CLI, sample::Style::Plain)
                    .map_err(wrong)?,
            )
        } else {
            let (expr, used) = compiler.expr(&[text], Place::CLI).map_err(wrong)?;
            debug_assert_eq!(used, 1);
            Source::Expr(expr)
        };
        // The slots of new variables do not exist in this configuration.
        if compiler.slots().proc > self.config.slots.proc {
            return Err(AssignError::Expression(
                "it names a variable of the process that the configuration does not name".into(),
            ));
        }
        let assignment = Assignment {
            var,
            when: SetConditions::default(),
            source,
        };
        let ambient = Ambient::new(Arc::clone(shared), WorkerId(0), now.wall_ns);
        self.assign(&assignment, &ambient, now);
        Ok(())
    }

    /// Declares all variables of the process in their slots. Returns the variable with this name.
    fn proc_vars_of(&self, compiler: &mut Compiler, name: &str) -> Result<VarRef, AssignError> {
        let mut names: Vec<(u32, &str)> = self.config.var_names.of(VarScope::Proc).collect();
        names.sort_unstable();
        let mut found = None;
        for (slot, known) in names {
            let known = format!("proc.{known}");
            let var = compiler.var(&known).ok().filter(|var| var.slot == slot);
            let var = var.ok_or(AssignError::Unnamed)?;
            if known == name {
                found = Some(var);
            }
        }
        found.ok_or(AssignError::Unnamed)
    }

    /// Executes an assignment to a variable of the process.
    pub(super) fn assign(&self, assignment: &Assignment, ambient: &Ambient, now: Now) {
        let nobody = Addr::Unix(Vec::new().into());
        let session = Session::new(now, nobody.clone(), nobody, u32::MAX, 0);
        let servers = ambient.shared.server_tables();
        let view = View::without_stream(self, &servers, ambient, now);
        let scope = Scope::without_stream(now, &view, &session);
        let change = assignment.eval(&scope, &mut Vec::new());
        let (before, after) = self.proc_vars.change(assignment.var.slot, change);
        ambient.shared.var_bytes_change(before, after);
    }
}
