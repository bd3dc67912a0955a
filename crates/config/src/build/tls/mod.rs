//! TLS of `bind` and `server` lines: words → [`crate::model::TlsOptions`] (manual §3.1, §5.1, §5.2, §12.7).
//!
//! A line starts from what `ssl-default-bind-*` and `ssl-default-server-*` say. What is wrong with the value of a word is told
//! only when the line turns out to use TLS, as in HAProxy.

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
    /// Their numbers in the list's order, each once.
    pub numbers: Vec<u16>,
    /// What of the list is not available.
    pub dropped: Vec<String>,
}

impl Chosen {
    fn push(&mut self, number: u16) {
        if !self.numbers.contains(&number) {
            self.numbers.push(number);
        }
    }
}

/// Parses one option that both sides, lists of certificates or `ssl-default-*` may have; its name was just taken.
pub type OptionParser = fn(&mut Words, &mut Cursor<'_>, &mut Shared<'_>) -> Parse;
/// The same of `bind` lines only.
pub type BindOptionParser = fn(&mut bind::BindWords, &mut Cursor<'_>, &mut Shared<'_>) -> Parse;
/// The same of `server` lines only.
pub type ServerOptionParser =
    fn(&mut server::ServerWords, &mut Cursor<'_>, &mut Shared<'_>) -> Parse;

/// What parses an option, by what it is an option of.
#[derive(Clone, Copy, Debug)]
pub enum TlsParser {
    /// Of [`TlsOptions`].
    Shared(OptionParser),
    /// Of `bind`.
    Bind(BindOptionParser),
    /// Of `server`.
    Server(ServerOptionParser),
    /// It cancels what is never set.
    Nothing,
}

/// The options of a line while it is read.
#[derive(Clone, Debug, Default)]
pub struct Words {
    /// What they come to.
    pub options: TlsOptions,
    /// What `ecdhe` says, which counts without `curves`.
    ecdhe: Option<Vec<u16>>,
    problems: Vec<Problem>,
}

/// Something wrong with the value of an option.
#[derive(Clone, Debug)]
struct Problem {
    /// The option: the next use of it replaces the problem.
    word: String,
    /// It matters only where this version may be used.
    only: Option<TlsVersion>,
    fault: Box<Fault>,
}

impl Words {
    /// Notes what is wrong with the value of the option that the cursor took last, and forgets what was wrong with its last value.
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

    /// What they come to on a line that uses TLS. `title` is what messages call the line, which is at `span`.
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

    /// The options of a certificate of its own, over these.
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

/// What all lines share while a configuration is built.
#[derive(Debug, Default)]
pub struct TlsShared {
    /// `ssl-default-bind-*`: what bind lines start from.
    pub bind: bind::BindWords,
    /// `ssl-default-server-*` and `ssl-server-verify`: what server lines start from.
    pub server: server::ServerWords,
    /// What the two came to at the end of each section `global`, in order: a proxy's lines start from what stands before them.
    stages: VecDeque<(bind::BindWords, server::ServerWords)>,
    /// `ca-base`
    pub ca_base: Option<PathBuf>,
    /// `crt-base`
    pub crt_base: Option<PathBuf>,
    /// `key-base`
    pub key_base: Option<PathBuf>,
    /// `ssl-load-extra-files` and `ssl-load-extra-del-ext`.
    pub extra: certificates::Extra,
    /// Certificates of the sections `crt-store`, by the names that lines call them.
    pub stores: HashMap<String, CertificateSource>,
    /// What is told of a configuration without errors, once a place.
    pub notices: Vec<Fault>,
}

impl TlsShared {
    /// A section `global` ends.
    pub fn end_global(&mut self) {
        self.stages
            .push_back((self.bind.clone(), self.server.clone()));
    }

    /// The proxies are built now; they begin without any section `global`.
    pub fn begin_proxies(&mut self) {
        self.bind = bind::BindWords::default();
        self.server = server::ServerWords::default();
    }

    /// A section `global` stands before the proxies that are built next.
    pub fn pass_global(&mut self) {
        if let Some((bind, server)) = self.stages.pop_front() {
            (self.bind, self.server) = (bind, server);
        }
    }
}

impl Shared<'_> {
    /// Tells what was noted about TLS. Behind errors it would only hide them.
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
