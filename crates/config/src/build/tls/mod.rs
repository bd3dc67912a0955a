//! TLS of `bind` and `server` lines: words → [`crate::model::TlsOptions`] (manual §3.1, §5.1, §5.2,
//! §12.7).
//!
//! The defaults of a line are those of `ssl-default-bind-*` and `ssl-default-server-*`. As in
//! HAProxy, faults in the values are reported only if the line uses TLS.

pub mod added;
pub mod bind;
pub mod certificates;
pub mod ciphers;
pub mod crt_list;
pub mod global;
pub mod groups;
pub mod options;
pub mod server;
pub mod store;

use super::Shared;
use super::line::{Cursor, Fault, Line, Parse};
use crate::diagnostic::Severity;
use crate::keywords::tls::{Known, OPTIONS};
use crate::keywords::{self, Places};
use crate::model::{CertificateSource, TlsOptions, TlsVersion};
use crate::tree::{Span, Statement};
use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;

/// The entries of a list that are available here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chosen {
    /// Their numbers in the order of the list, without duplicates.
    pub numbers: Vec<u16>,
    /// The entries that are not available here.
    pub dropped: Vec<String>,
}

impl Chosen {
    fn push(&mut self, number: u16) {
        if !self.numbers.contains(&number) {
            self.numbers.push(number);
        }
    }
}

/// Parses an option that both sides, certificate lists or `ssl-default-*` may have, after its name
/// was taken.
pub type OptionParser = fn(&mut Words, &mut Cursor<'_>, &mut Shared<'_>) -> Parse;
/// The same for options of `bind` lines only.
pub type BindOptionParser = fn(&mut bind::BindWords, &mut Cursor<'_>, &mut Shared<'_>) -> Parse;
/// The same for options of `server` lines only.
pub type ServerOptionParser =
    fn(&mut server::ServerWords, &mut Cursor<'_>, &mut Shared<'_>) -> Parse;

/// The parser of an option, by the kind of the option.
#[derive(Clone, Copy, Debug)]
pub enum TlsParser {
    /// For [`TlsOptions`].
    Shared(OptionParser),
    /// For `bind`.
    Bind(BindOptionParser),
    /// For `server`.
    Server(ServerOptionParser),
    /// Cancels an option that is off anyway.
    Nothing,
}

/// The options of a line during parsing.
#[derive(Clone, Debug, Default)]
pub struct Words {
    /// The result so far.
    pub options: TlsOptions,
    /// The value of `ecdhe`, which applies if there is no `curves`.
    ecdhe: Option<Vec<u16>>,
    problems: Vec<Problem>,
}

/// A fault in the value of an option.
#[derive(Clone, Debug)]
struct Problem {
    /// The option. Its next use replaces the fault.
    word: String,
    /// The fault matters only if this version is allowed.
    only: Option<TlsVersion>,
    fault: Box<Fault>,
}

impl Words {
    /// Records a fault in the value of the option that the cursor took last. Removes the fault of
    /// its previous value.
    fn note(
        &mut self,
        cursor: &Cursor<'_>,
        word: &str,
        only: Option<TlsVersion>,
        found: Option<(Severity, String)>,
    ) {
        self.problems.retain(|problem| problem.word != word);
        if let Some((severity, message)) = found {
            let mut fault = cursor.fault(message);
            fault.severity = severity;
            let word = word.to_owned();
            self.problems.push(Problem { word, only, fault });
        }
    }

    /// The result for a line that uses TLS. `title` is the line's name in messages, `span` its
    /// place.
    fn finish(mut self, title: &str, span: &Span, shared: &mut Shared<'_>) -> TlsOptions {
        let problems = std::mem::take(&mut self.problems);
        for problem in problems {
            let matters = problem
                .only
                .is_none_or(|version| self.options.versions.allows(version));
            match problem.fault.severity {
                _ if !matters => {}
                Severity::Notice => shared.tls.notices.push(*problem.fault),
                _ => shared.settle(Err(problem.fault)),
            }
        }
        self.options.curves = self.options.curves.or(self.ecdhe);
        options::check_versions(&self.options.versions, title, span, shared);
        self.options
    }

    /// These options with the own options of a certificate applied.
    fn with_own(&self, own: &Statement, shared: &mut Shared<'_>) -> Parse<Words> {
        let mut words = self.clone();
        let mut cursor = Cursor {
            line: Line::new(own),
            at: 0,
        };
        while !cursor.peek().is_empty() {
            let word = cursor.take();
            let Some(keyword) = keywords::find_in(OPTIONS, word, Places::CRT_LIST) else {
                return Err(cursor.fault(format!("unknown ssl keyword {word}.")));
            };
            match shared.use_of(keyword, "certificate", &mut cursor)? {
                Some(TlsParser::Shared(parser)) => parser(&mut words, &mut cursor, shared)?,
                Some(TlsParser::Bind(_) | TlsParser::Server(_) | TlsParser::Nothing) | None => {}
            }
        }
        Ok(words)
    }
}

/// State that all lines share during the build.
#[derive(Debug, Default)]
pub struct TlsShared {
    /// `ssl-default-bind-*`: the defaults of bind lines.
    pub bind: bind::BindWords,
    /// `ssl-default-server-*` and `ssl-server-verify`: the defaults of server lines.
    pub server: server::ServerWords,
    /// Both defaults at the end of each section `global`, in order: the lines of a proxy use those
    /// of the sections before it.
    stages: VecDeque<(bind::BindWords, server::ServerWords)>,
    /// `ca-base`
    pub ca_base: Option<PathBuf>,
    /// `crt-base`
    pub crt_base: Option<PathBuf>,
    /// `key-base`
    pub key_base: Option<PathBuf>,
    /// `ssl-load-extra-files` and `ssl-load-extra-del-ext`.
    pub extra: certificates::Extra,
    /// Certificates in the sections `crt-store`, by the names that lines use.
    pub stores: HashMap<String, CertificateSource>,
    /// Notices that are printed if there are no errors, once per place.
    pub notices: Vec<Fault>,
}

impl TlsShared {
    /// Ends a section `global`.
    pub fn end_global(&mut self) {
        self.stages
            .push_back((self.bind.clone(), self.server.clone()));
    }

    /// Begins the build of the proxies, before any section `global`.
    pub fn begin_proxies(&mut self) {
        self.bind = bind::BindWords::default();
        self.server = server::ServerWords::default();
    }

    /// Passes a section `global` that precedes the next proxies.
    pub fn pass_global(&mut self) {
        if let Some((bind, server)) = self.stages.pop_front() {
            (self.bind, self.server) = (bind, server);
        }
    }
}

impl Shared<'_> {
    /// Prints the notices about TLS. After errors they are not printed, because they would hide the
    /// errors.
    pub fn tell_tls_notices(&mut self) {
        let notices = std::mem::take(&mut self.tls.notices);
        if self.diagnostics.alerts() > 0 {
            return;
        }
        for notice in notices {
            let severity = notice.severity;
            self.diagnostics
                .add_once(severity, &notice.span, notice.message);
        }
    }
}

/// The table's entry of an option in `place`.
pub fn find(word: &str, place: Places) -> Option<&'static Known> {
    keywords::find_in(OPTIONS, word, place)
}
