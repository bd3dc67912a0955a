//! The compiler: turns words of the configuration, which are bytes, into programs. It owns the
//! names of variables, proxies and servers.
//!
//! `expression` compiles fetches with their converters, and `arguments` their arguments. The
//! compilers of ACLs and log formats are in the modules that run them.

mod arguments;
pub(crate) mod expression;
mod needs;
pub(crate) mod suggest;

pub(crate) use arguments::mask4 as mask4_of;
pub(crate) use expression::Reading;
pub use needs::Needs;

use crate::names::Names;
use crate::pattern::{References, Source};
use crate::{Acls, Condition, Expr, ExprError, LogFormat, Place, Reference, SlotCounts, VarRef};
use std::path::Path;
use std::sync::Arc;

/// How a log format writes its items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// A log line: `-` for empty items, spaces merged.
    Log,
    /// Text for a header, a path, a body: nothing for empty items; bytes that are invalid in a
    /// header as `%XX`.
    Http,
    /// `unique-id-format`: as [`Style::Http`], spaces merged.
    UniqueId,
    /// Text for a variable, a name, a body: nothing for empty items; bytes unchanged.
    Plain,
}

/// What a configuration takes over from the previous one in the same process.
#[derive(Clone, Copy, Debug)]
pub struct Resumed<'a> {
    /// [`Compiler::slots`]
    pub slots: SlotCounts,
    /// [`Compiler::var_names`]
    pub var_names: &'a crate::vars::VarNames,
    /// [`Compiler::contexts`]
    pub contexts: &'a [String],
    /// [`Compiler::take_references`]
    pub patterns: &'a References,
}

/// Compiles the expressions of one configuration.
#[derive(Debug, Default)]
pub struct Compiler {
    pub(crate) names: Names,
    pub(crate) references: References,
    /// The current place in the configuration.
    pub(crate) source: Source,
    pub(crate) needs: Needs,
    warnings: Vec<ExprError>,
}

impl Compiler {
    /// A compiler without proxies and variables.
    #[must_use]
    pub fn new() -> Compiler {
        Compiler::default()
    }

    /// Prepares the compiler of a configuration that follows another one in the same process:
    /// variables and contexts keep their slots, and pattern sets their contents. Call this first.
    pub fn resume(&mut self, previous: Resumed<'_>) {
        self.names
            .resume(previous.slots, previous.var_names, previous.contexts);
        self.references.follow(previous.patterns);
    }

    /// Declares a frontend or backend, in the order of their indexes in [`crate::World`]. Declare
    /// all of them before an expression that names one (`nbsrv(name)`).
    pub fn declare_proxy(&mut self, name: &str, is_frontend: bool, is_backend: bool) -> u32 {
        self.names.declare_proxy(name, is_frontend, is_backend)
    }

    /// Declares a server of a proxy, in the order of their indexes.
    pub fn declare_server(&mut self, proxy: u32, name: &str) {
        self.names.declare_server(proxy, name);
    }

    /// Declares the users of a `userlist`. Call this before an expression names it
    /// (`http_auth(name)`).
    pub fn declare_userlist(&mut self, name: &str, list: std::sync::Arc<crate::auth::Userlist>) {
        self.names.declare_userlist(name, list);
    }

    /// Declares a stick table. Call this before an expression names it (`src_conn_rate(name)`).
    pub fn declare_table(&mut self, table: Arc<tables::Table>) {
        self.names.declare_table(table);
    }

    /// The stick table of this name, or of the current proxy if the name is empty.
    ///
    /// # Errors
    /// There is no such table.
    pub fn table(&self, name: &str) -> Result<Arc<tables::Table>, String> {
        self.names.table(name)
    }

    /// Sets the place of the following expressions, and the folder to which names of pattern files
    /// are relative.
    pub fn enter_line(&mut self, file: &str, line: usize, directory: &Path) {
        if self.source.file != file {
            file.clone_into(&mut self.source.file);
        }
        if self.source.directory != directory {
            self.source.directory = directory.to_owned();
        }
        self.source.line = line;
    }

    /// The pattern set of this name (manual §2.7), for an action that edits it. Expressions that
    /// are compiled later may read it.
    pub fn reference(&mut self, name: &str) -> Arc<Reference> {
        self.references.named(name)
    }

    /// The pattern sets of the configuration, after everything is compiled, and the names of those
    /// that are edited but never read.
    pub fn take_references(&mut self) -> (References, Vec<String>) {
        let mut references = std::mem::take(&mut self.references);
        let unread = references.finish();
        (references, unread)
    }

    /// Sets the proxy of the following expressions: the default argument of `nbsrv` and `fe_conn`,
    /// and the owner of the ACLs that `acl()` names. Those are taken from the last
    /// [`Compiler::acl`] or [`Compiler::condition`] of the section.
    pub fn enter_proxy(&mut self, proxy: Option<u32>) {
        self.names.current = proxy;
        self.names.acls = Acls::default();
    }

    /// Declares that proxy `to` evaluates the expressions of `from`, which are all compiled
    /// already.
    pub fn inherit_needs(&mut self, from: u32, to: u32) {
        self.needs.inherit(from, to);
    }

    /// Compiles the expression at the beginning of the words: a fetch, and converters in the same
    /// word or the next ones. Returns the expression and the number of words that it consumed.
    ///
    /// # Errors
    /// Unknown names, wrong arguments, incompatible types, a place where the fetch's data does not
    /// exist.
    pub fn expr<W: AsRef<[u8]>>(
        &mut self,
        words: &[W],
        place: Place,
    ) -> Result<(Expr, usize), ExprError> {
        let compiled = self.expression(&bytes_of(words), place, Reading::Words)?;
        Ok((compiled.expr, compiled.words))
    }

    /// Compiles the converters of `balance log-hash`. The expression reads the message from
    /// [`crate::Scope::request_data`].
    ///
    /// # Errors
    /// As for [`Compiler::expr`]; and a result that has no bytes.
    pub fn message_key(&mut self, converters: &[u8]) -> Result<Expr, ExprError> {
        let text = [b",", converters].concat();
        let compiled = self.call(&[&text], &crate::fetch::MESSAGE, 0, Reading::Word);
        let expr = compiled
            .map_err(|mut error| {
                error.start = error.start.saturating_sub(1);
                error.end = error.end.saturating_sub(1);
                error
            })?
            .expr;
        match crate::cast::cast_of(expr.kind(), crate::Kind::Bin) {
            crate::cast::Cast::Never => Err(ExprError::at(
                0,
                0,
                converters.len(),
                "invalid output type at the end of converter list for \"balance log-hash\" directive",
            )),
            _ => Ok(expr),
        }
    }

    /// Compiles a log format (manual §8.2.6). The place determines the style: [`Style::Log`] in
    /// logs, otherwise [`Style::Http`].
    ///
    /// # Errors
    /// As for [`Compiler::expr`], and unknown aliases and flags. The fault's word is 0.
    pub fn log_format(
        &mut self,
        text: impl AsRef<[u8]>,
        place: Place,
    ) -> Result<LogFormat, ExprError> {
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
    /// As for [`Compiler::log_format`].
    pub fn log_format_styled(
        &mut self,
        text: impl AsRef<[u8]>,
        place: Place,
        style: Style,
    ) -> Result<LogFormat, ExprError> {
        crate::logformat::compile::compile(self, text.as_ref(), place, style)
    }

    /// Compiles the words after `acl <name>` and adds them to the ACL of that name.
    ///
    /// The place is not checked here, but where the ACL is used: [`Compiler::condition`].
    ///
    /// # Errors
    /// As for [`Compiler::expr`], and faults in flags and patterns. Pattern files are read here.
    /// Word 0 is the first of `words`.
    pub fn acl<W: AsRef<[u8]>>(
        &mut self,
        acls: &mut Acls,
        name: &str,
        words: &[W],
        _place: Place,
    ) -> Result<(), ExprError> {
        self.names.acls = acls.clone();
        crate::acl::compile::named(self, acls, name, &bytes_of(words))?;
        self.names.acls = acls.clone();
        Ok(())
    }

    /// Compiles the words after `if` or `unless`.
    ///
    /// # Errors
    /// As for [`Compiler::acl`], and unknown ACL names.
    pub fn condition<W: AsRef<[u8]>>(
        &mut self,
        acls: &Acls,
        words: &[W],
        unless: bool,
        place: Place,
    ) -> Result<Condition, ExprError> {
        self.names.acls = acls.clone();
        crate::acl::compile::condition(self, acls, &bytes_of(words), unless, place)
    }

    /// The slot of a variable (`txn.name`). A new name gets a new slot.
    ///
    /// # Errors
    /// An invalid scope or name.
    pub fn var(&mut self, name: &str) -> Result<VarRef, ExprError> {
        self.names
            .var(name)
            .map_err(|message| ExprError::at(0, 0, name.len(), message))
    }

    /// The number of slots of each scope; final after everything is compiled.
    #[must_use]
    pub fn slots(&self) -> SlotCounts {
        self.names.counts()
    }

    /// The indexes of the backends that expressions name, possibly with duplicates.
    #[must_use]
    pub fn named_backends(&self) -> &[u32] {
        &self.names.named_backends
    }

    /// The servers that the expressions compiled so far name, each by the indexes of its proxy and
    /// of itself.
    #[must_use]
    pub fn named_servers(&self) -> &[(u32, u32)] {
        &self.names.named_servers
    }

    /// The data that the expressions compiled so far need.
    #[must_use]
    pub fn needs(&self) -> Needs {
        self.needs.clone()
    }

    /// The names of all variables; final after everything is compiled.
    #[must_use]
    pub fn var_names(&self) -> crate::vars::VarNames {
        self.names.var_names.clone()
    }

    /// The contexts that `otel.context` asks for, by their slots in [`crate::ContextFacts`]. Those
    /// of previous configurations are among them, see [`Compiler::resume`].
    #[must_use]
    pub fn contexts(&self) -> Vec<String> {
        self.names.contexts.clone()
    }

    /// The contexts that this configuration asks for.
    pub fn asked_contexts(&self) -> impl Iterator<Item = &str> {
        let asked = self.names.contexts.iter().zip(&self.names.reads_context);
        asked
            .filter(|(_, is_read)| **is_read)
            .map(|(name, _)| name.as_str())
    }

    /// The warnings since the last call: expressions that are accepted but do not do what their
    /// author expects.
    pub fn take_warnings(&mut self) -> Vec<ExprError> {
        std::mem::take(&mut self.warnings)
    }

    pub(crate) fn warn(&mut self, warning: ExprError) {
        self.warnings.push(warning);
    }
}

fn bytes_of<W: AsRef<[u8]>>(words: &[W]) -> Vec<&[u8]> {
    words.iter().map(AsRef::as_ref).collect()
}

/// A name that was checked to be ASCII, as text.
pub(crate) fn ascii(name: &[u8]) -> &str {
    std::str::from_utf8(name).unwrap_or_default()
}

#[cfg(test)]
mod tests;
