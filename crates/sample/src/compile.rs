//! The compiler: words of the configuration → programs. Owns the names of variables, proxies and servers.

use crate::{Acls, Condition, Expr, ExprError, LogFormat, Place, SlotCounts, VarRef};

/// How a log format writes what it writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// A log line: `-` for what is empty, spaces merged, unsafe bytes as `#XX`.
    Log,
    /// Text for a header, a path, a body: nothing for what is empty, bytes that a header may not have as `%XX`.
    Http,
    /// `unique-id-format`: as [`Style::Http`], spaces merged.
    UniqueId,
}

/// Compiles the expressions of one configuration.
#[derive(Debug, Default)]
pub struct Compiler {}

impl Compiler {
    /// A compiler that knows no proxy and no variable yet.
    #[must_use]
    pub fn new() -> Compiler {
        Compiler::default()
    }

    /// Tells the name of a frontend or backend, in the order of their indexes in [`crate::World`]. All must be
    /// declared before an expression that names one (`nbsrv(name)`).
    pub fn declare_proxy(&mut self, _name: &str, _is_frontend: bool, _is_backend: bool) -> u32 {
        unimplemented!()
    }

    /// Tells the name of a server of that proxy, in the order of their indexes.
    pub fn declare_server(&mut self, _proxy: u32, _name: &str) {
        unimplemented!()
    }

    /// The proxy whose section is compiled from now on: what `nbsrv` and `fe_conn` mean without an argument.
    pub fn enter_proxy(&mut self, _proxy: Option<u32>) {
        unimplemented!()
    }

    /// Compiles the expression that the words begin with: a fetch, and converters in the same word or the next ones.
    /// Gives it and the number of words it took.
    ///
    /// # Errors
    /// Unknown names, wrong arguments, types that do not meet, a place where the fetch has nothing to read.
    pub fn expr(&mut self, _words: &[&str], _place: Place) -> Result<(Expr, usize), ExprError> {
        unimplemented!()
    }

    /// Compiles a log format (manual §8.2.6); the style follows from the place: [`Style::Log`] in logs, else [`Style::Http`].
    ///
    /// # Errors
    /// As [`Compiler::expr`], and unknown aliases and flags. The fault's word is 0.
    pub fn log_format(&mut self, text: &str, place: Place) -> Result<LogFormat, ExprError> {
        let style = if place == Place::LOG {
            Style::Log
        } else {
            Style::Http
        };
        self.log_format_styled(text, place, style)
    }

    /// Compiles a log format of a given style.
    ///
    /// # Errors
    /// As [`Compiler::log_format`].
    pub fn log_format_styled(
        &mut self,
        _text: &str,
        _place: Place,
        _style: Style,
    ) -> Result<LogFormat, ExprError> {
        unimplemented!()
    }

    /// Compiles the words after `acl <name>` and adds them to the ACL of that name.
    ///
    /// # Errors
    /// As [`Compiler::expr`], and faults in flags and patterns. Pattern files are read here.
    pub fn acl(
        &mut self,
        _acls: &mut Acls,
        _name: &str,
        _words: &[&str],
        _place: Place,
    ) -> Result<(), ExprError> {
        unimplemented!()
    }

    /// Compiles the words after `if` or `unless`.
    ///
    /// # Errors
    /// As [`Compiler::acl`], and unknown ACL names.
    pub fn condition(
        &mut self,
        _acls: &Acls,
        _words: &[&str],
        _unless: bool,
        _place: Place,
    ) -> Result<Condition, ExprError> {
        unimplemented!()
    }

    /// The slot of a variable (`txn.name`), given on first sight.
    ///
    /// # Errors
    /// A scope or a name that is not one.
    pub fn var(&mut self, _name: &str) -> Result<VarRef, ExprError> {
        unimplemented!()
    }

    /// How many slots each scope has; final when everything is compiled.
    #[must_use]
    pub fn slots(&self) -> SlotCounts {
        unimplemented!()
    }

    /// What was accepted but will not do what its author thinks, since the last call.
    pub fn take_warnings(&mut self) -> Vec<ExprError> {
        unimplemented!()
    }
}
