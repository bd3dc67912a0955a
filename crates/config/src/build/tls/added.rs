//! A line that is added to a certificate list at run time (management guide §9.3 `add ssl
//! crt-list`).

use super::super::Shared;
use super::super::line::Line;
use super::bind::lacks_authorities;
use super::certificates::{self, Loads, Place, from_base};
use super::{Words, crt_list};
use crate::build::names::Names;
use crate::diagnostic::{Diagnostics, Severity};
use crate::environment::Environment;
use crate::model::{CertificateSource, CrtListEntry, TlsGlobal, TlsOptions};
use crate::tree::Statement;
use sample::Compiler;

/// The parsed line.
#[derive(Clone, Debug)]
pub struct AddedLine {
    /// The entry for the list; its line has no number yet.
    pub entry: CrtListEntry,
    /// The certificate by its name, with its server names. It has no options yet.
    pub source: CertificateSource,
    own: Option<Statement>,
    global: TlsGlobal,
}

impl AddedLine {
    /// Parses a line.
    ///
    /// # Errors
    /// The fault as text.
    pub fn parse(line: &str, global: &TlsGlobal) -> Result<Option<AddedLine>, String> {
        let text = format!("{line}\n").into_bytes();
        let (entries, faults) = crt_list::parse("CLI", text);
        let mut faults = faults.into_iter();
        if let Some(fault) = faults.find(|fault| fault.severity == Severity::Alert) {
            return Err(fault.message);
        }
        let Some(entry) = entries.into_iter().next() else {
            return Ok(None);
        };
        let loads = with_shared(global, |shared| match &entry.options {
            None => Ok(Loads::default()),
            Some(options) => {
                let place = Place {
                    unknown: |word| format!("unknown ssl keyword {word}."),
                    has_options: true,
                    crt_base: shared.tls.crt_base.as_ref(),
                    key_base: None,
                };
                let loads = certificates::loads(&Line::new(options), 0, &place);
                loads.map_err(|fault| fault.message)
            }
        })?;
        let line = Line::new(&entry.certificate);
        let path = if line.keyword().starts_with('@') {
            line.path(0).to_owned()
        } else {
            from_base(line.path(0), global.crt_base.as_ref())
        };
        let source = CertificateSource {
            name: path.to_string_lossy().into_owned(),
            path,
            filters: entry.filters.clone(),
            is_default: entry.is_default,
            ..loads.source
        };
        Ok(Some(AddedLine {
            entry: CrtListEntry {
                certificate: source.name.clone(),
                line: 0,
                options: entry.option_words(),
                filters: entry.names,
            },
            source,
            own: loads.own,
            global: global.clone(),
        }))
    }

    /// Its TLS options, applied to those of a bind line that uses the list; None if it has no own
    /// options.
    ///
    /// # Errors
    /// The fault as text.
    pub fn options_over(&self, line: &TlsOptions) -> Result<Option<TlsOptions>, String> {
        let Some(own) = &self.own else {
            return Ok(None);
        };
        let base = Words {
            options: line.clone(),
            ..Words::default()
        };
        with_shared(&self.global, |shared| {
            let words = base.with_own(own, shared);
            let words = words.map_err(|fault| fault.message)?;
            let options = words.finish("CLI", own.span(), shared);
            if lacks_authorities(&options) {
                return Err("verify is enabled but no CA file specified.".to_owned());
            }
            Ok(Some(options))
        })
    }
}

/// Runs a parser outside of a configuration. The first fault is the error.
fn with_shared<T>(
    global: &TlsGlobal,
    parse: impl FnOnce(&mut Shared<'_>) -> Result<T, String>,
) -> Result<T, String> {
    let mut diagnostics = Diagnostics::new();
    let environment = Environment::new();
    let mut shared = Shared::new(
        Compiler::new(),
        Names::default(),
        &environment,
        &mut diagnostics,
    );
    shared.tls.ca_base.clone_from(&global.ca_base);
    shared.tls.crt_base.clone_from(&global.crt_base);
    let parsed = parse(&mut shared)?;
    let mut found = diagnostics.iter();
    match found.find(|found| found.severity == Severity::Alert) {
        Some(alert) => Err(alert.message.clone()),
        None => Ok(parsed),
    }
}
