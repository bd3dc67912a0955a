//! The typed build: [`Tree`] → [`Config`]. Reports every error of the tree; a configuration with
//! errors is not used.
//!
//! The order: the names of proxies and servers (expressions name them), `global`, `http-errors`,
//! then each proxy. A proxy consists of the result of its `defaults`, which is built once, and of
//! its own statements. There is one parser per keyword, and values are not merged.

pub mod address;
pub mod arguments;
pub mod backend;
pub mod bandwidth;
pub mod bind;
pub mod capabilities;
pub mod check;
pub mod collector;
pub mod compression;
pub mod cookie;
pub mod dashboard;
pub mod expressions;
pub mod filter;
pub mod frontend;
pub mod global;
pub mod h1_case;
pub mod h2;
pub mod haproxy_traces;
pub mod health;
pub mod http_rules;
pub mod inherit;
pub mod legacy;
pub mod limits;
pub mod line;
pub mod log_forward;
pub mod log_line;
pub mod log_profile;
pub mod log_server;
pub mod logging;
pub mod mail;
pub mod master;
pub mod names;
pub mod no_effect;
pub mod options;
pub mod order;
pub mod otel;
pub mod pages;
pub mod patterns;
pub mod peers;
pub mod persist;
pub mod previous;
pub mod proxy;
pub mod quic;
pub mod quic_rules;
pub mod reply;
pub mod reserve;
pub mod resilience;
pub mod resolvers;
pub mod ring;
pub mod sections;
pub mod server;
pub mod share;
pub mod stats_page;
pub mod stream_actions;
pub mod tables;
pub mod tcp;
pub mod tcp_rules;
pub mod threads;
pub mod tls;
pub mod userlist;
pub mod values;

use crate::diagnostic::{Diagnostics, Severity};
use crate::environment::Environment;
use crate::keywords::{self, Keyword, State, other};
use crate::model::{
    Bind, CheckScript, CollectorSection, Config, DashboardSection, ErrorPage, Global, Mailers,
    OtelFilter,
};
use crate::suggest::closest;
use crate::tree::{Section, Span, Tree};
use line::{Cursor, Fault, Line, Parse};
use names::Names;
use sample::Compiler;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use syntax::octets::Octets;

/// Facts about the machine and the command line that the build needs.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Usable cores, for a remark about `nbthread`.
    pub cores: u16,
    /// `-dr`: a server whose name does not resolve is disabled instead of being an error.
    pub ignores_resolution_failures: bool,
    /// The lines are those of a server that is added at run time: sections that they name are not
    /// among them.
    pub is_added_server: bool,
    /// The process will serve without a master (`-W`), so settings for a master are errors.
    pub lacks_master: bool,
    /// `-dI`: like `insecure-fork-wanted`.
    pub allows_forks: bool,
    /// `-L`: the command line has the name of this process among its peers.
    pub has_local_peer: bool,
    /// The configuration that this one will follow in the running process.
    pub previous: Option<Arc<previous::Previous>>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            cores: std::thread::available_parallelism()
                .map_or(1, |n| u16::try_from(n.get()).unwrap_or(u16::MAX)),
            ignores_resolution_failures: false,
            is_added_server: false,
            lacks_master: false,
            allows_forks: false,
            has_local_peer: false,
            previous: None,
        }
    }
}

/// State that all sections share during the build.
pub struct Shared<'a> {
    /// Collects the faults.
    pub diagnostics: &'a mut Diagnostics,
    /// Compiles every expression of the configuration.
    pub compiler: Compiler,
    /// Proxies by name.
    pub names: Names,
    /// The environment after the files were read; addresses name its variables.
    pub environment: &'a Environment,
    /// Facts about the machine.
    pub settings: Settings,
    /// `unix-bind prefix`.
    pub unix_prefix: Octets,
    /// The other options of `unix-bind`: the defaults of every bind line.
    pub unix_template: Bind,
    /// The base of relative file names.
    pub default_path: pages::DefaultPath,
    /// `tune.bufsize`: the largest page or body that is read from a file.
    pub bufsize_bytes: usize,
    /// Error pages of the `http-errors` sections.
    pub http_errors: HashMap<String, Vec<(u16, ErrorPage)>>,
    /// The names of the `userlist` sections.
    pub userlists: Vec<String>,
    /// Names of the `log-profile` sections.
    pub log_profiles: Vec<String>,
    /// `expose-experimental-directives` and related lines seen so far.
    pub flags: Vec<String>,
    /// The stick tables.
    pub tables: Vec<Arc<::tables::Table>>,
    /// Pattern sets that actions edit, each with the place of the action.
    pub edited_patterns: Vec<(String, Span)>,
    /// The files that contain rules.
    pub files: Vec<String>,
    /// For each place of a proxy, the number of rules of `http-request`, `http-response` and
    /// `http-after-response` from its `defaults`.
    pub inherited_rules: Vec<[usize; 3]>,
    /// The number of rewrites with a regular expression.
    pub rewrites: usize,
    /// The content of the filters' files.
    pub filter_files: otel::Files,
    /// Names of the `collector` sections, and those sections that were read so far.
    pub collector_names: Vec<String>,
    /// See above.
    pub collectors: Vec<CollectorSection>,
    /// Section `dashboard`.
    pub dashboard: Option<DashboardSection>,
    /// The filters of all proxies so far.
    pub otel: Vec<OtelFilter>,
    /// Accepted keywords without an effect.
    pub no_effect: no_effect::NoEffect,
    /// TLS settings in `global` and the certificate stores.
    pub tls: tls::TlsShared,
    /// Sections `healthcheck` so far, by name.
    pub check_scripts: HashMap<String, Arc<CheckScript>>,
    /// Sections `mailers` so far.
    pub mailers: Vec<Mailers>,
    /// Sections `resolvers` so far.
    pub resolvers: Vec<crate::model::Resolvers>,
    /// Sections `peers` so far.
    pub peers: Vec<crate::model::Peers>,
    /// The tables of those sections so far.
    pub peer_tables: Vec<String>,
    /// The names of all rings, and those sections `ring` that were read so far.
    pub ring_names: Vec<String>,
    /// See above.
    pub rings: Vec<crate::model::Ring>,
    /// The ids of filters, and the place where each was first used.
    pub filter_ids: Vec<(String, crate::tree::Span)>,
}

/// The line of `global` that allows keywords that may still change.
const EXPERIMENTAL: &str = "expose-experimental-directives";

impl<'a> Shared<'a> {
    /// What is wrong with `what`, if it is experimental and `global` does not allow such keywords.
    pub fn refuses_experimental(&self, what: &str) -> Option<String> {
        let is_allowed = self.is_allowed(EXPERIMENTAL);
        (!is_allowed).then(|| format!("{what}, must be allowed via a global '{EXPERIMENTAL}'."))
    }

    /// Whether `global` has this `expose-…-directives` line.
    pub fn is_allowed(&self, flag: &str) -> bool {
        self.flags.iter().any(|seen| seen == flag)
    }

    /// The state before anything was read.
    fn new(
        compiler: Compiler,
        names: Names,
        environment: &'a Environment,
        diagnostics: &'a mut Diagnostics,
    ) -> Shared<'a> {
        let places = names.places.count;
        Shared {
            diagnostics,
            compiler,
            names,
            environment,
            settings: Settings::default(),
            unix_prefix: Octets::default(),
            unix_template: bind::blank(),
            default_path: pages::DefaultPath::default(),
            bufsize_bytes: crate::model::Tune::default().bufsize_bytes,
            http_errors: HashMap::new(),
            userlists: Vec::new(),
            log_profiles: Vec::new(),
            flags: Vec::new(),
            tables: Vec::new(),
            edited_patterns: Vec::new(),
            files: Vec::new(),
            inherited_rules: vec![[0; 3]; places],
            rewrites: 0,
            filter_files: otel::Files::default(),
            collector_names: Vec::new(),
            collectors: Vec::new(),
            dashboard: None,
            otel: Vec::new(),
            no_effect: no_effect::NoEffect::default(),
            tls: tls::TlsShared::default(),
            check_scripts: HashMap::new(),
            mailers: Vec::new(),
            resolvers: Vec::new(),
            peers: Vec::new(),
            peer_tables: Vec::new(),
            ring_names: Vec::new(),
            rings: vec![ring::built_in()],
            filter_ids: Vec::new(),
        }
    }
}

/// Builds the typed configuration. It is complete only if `diagnostics` has no alert.
pub fn build(
    tree: &Tree,
    settings: Settings,
    filter_files: otel::Files,
    environment: &Environment,
    diagnostics: &mut Diagnostics,
) -> Config {
    let mut compiler = Compiler::new();
    let previous = settings.previous.as_deref();
    if let Some(previous) = previous {
        compiler.resume(previous.resumed());
    }
    let names = names::collect(tree, previous, &mut compiler, diagnostics);
    let known: &[Arc<::tables::Table>] = previous.map_or(&[], |previous| &previous.config.tables);
    let tables = tables::collect(tree, known, &mut compiler);
    let mut shared = Shared {
        tables,
        log_profiles: log_profile::names(tree),
        ring_names: ring::names(tree),
        collector_names: collector::names(tree),
        settings,
        filter_files,
        ..Shared::new(compiler, names, environment, diagnostics)
    };
    let mut global = global_sections(tree, &mut shared);
    shared.bufsize_bytes = global.tune.bufsize_bytes;
    for section in &tree.sections {
        other_section(section, &mut shared);
    }
    resolvers::add_default(&mut shared);
    let for_jwt = shared
        .tls
        .stores
        .values()
        .filter(|source| source.is_for_jwt);
    global.tls.for_jwt = for_jwt.cloned().map(Arc::new).collect();
    let log_profiles = log_profile::build(tree, &mut shared);
    let mut proxies = sections::sections(tree, &global, &mut shared);
    let log_forwards = log_forward::build(tree, &global, &mut shared);
    health::link::link(&mut proxies, &mut shared);
    server::mark_named(&mut proxies, shared.compiler.named_servers());
    backend::mark_named(&mut proxies, shared.compiler.named_backends());
    let slots = shared.compiler.slots();
    let needs = shared.compiler.needs();
    let var_names = shared.compiler.var_names();
    let contexts = shared.compiler.contexts();
    let mut config = Config {
        global,
        proxies,
        defaults: reserve::named_defaults(tree),
        log_profiles,
        slots,
        patterns: patterns::finish(&mut shared),
        needs,
        var_names,
        contexts,
        files: std::mem::take(&mut shared.files),
        otel: std::mem::take(&mut shared.otel),
        tables: std::mem::take(&mut shared.tables),
        collectors: std::mem::take(&mut shared.collectors),
        dashboard: shared.dashboard.take(),
        mailers: std::mem::take(&mut shared.mailers),
        resolvers: std::mem::take(&mut shared.resolvers),
        peers: std::mem::take(&mut shared.peers),
        rings: std::mem::take(&mut shared.rings),
        log_forwards,
    };
    settle_rings(&mut config);
    peers::check_tables(&config, &mut shared);
    check::whole(&config, &mut shared);
    shared.tell_no_effect();
    shared.tell_tls_notices();
    config
}

/// Sets the format of messages for rings.
fn settle_rings(config: &mut Config) {
    let proxies = config.proxies.iter_mut().flat_map(|proxy| &mut proxy.log);
    let filters = config.otel.iter_mut().flat_map(|filter| &mut filter.log);
    let forwards = config.log_forwards.iter_mut();
    let forwards = forwards.flat_map(|forward| &mut forward.log);
    let all = config.global.log.iter_mut().chain(proxies).chain(filters);
    for target in all.chain(forwards) {
        ring::settle(target, &config.rings);
    }
}

fn global_sections(tree: &Tree, shared: &mut Shared<'_>) -> Global {
    let mut build = global::GlobalBuild::new(shared);
    for section in tree
        .sections
        .iter()
        .filter(|section| section.kind() == "global")
    {
        for statement in &section.statements {
            let line = Line::new(statement);
            build.shared.enter_line(&line);
            let result = global::statement(&mut build, &line);
            build.shared.settle(result);
        }
        build.shared.tls.end_global();
    }
    build.finish()
}

/// Handles sections that are not implemented: checks each keyword, and refuses the section once.
fn other_section(section: &Section, shared: &mut Shared<'_>) {
    let kind = section.kind();
    if matches!(
        kind,
        "global" | "defaults" | "frontend" | "backend" | "listen" | "log-forward" | "log-profile"
    ) {
        return;
    }
    if kind == "http-errors" {
        return pages::http_errors_section(section, shared);
    }
    if kind == "collector" {
        return collector::section(section, shared);
    }
    if kind == "dashboard" {
        return dashboard::section(section, shared);
    }
    if kind == "userlist" {
        return userlist::section(section, shared);
    }
    if kind == "healthcheck" {
        return health::section::section(section, shared);
    }
    if kind == "mailers" {
        return mail::section(section, shared);
    }
    if kind == "ring" {
        return ring::section(section, shared);
    }
    if kind == "resolvers" {
        return resolvers::section(section, shared);
    }
    if kind == "peers" {
        return peers::section(section, shared);
    }
    if kind == "crt-store" {
        return tls::store::section(section, other::CRT_STORE, shared);
    }
    let header = Line::new(&section.header);
    let Some(known) = keywords::find(other::SECTIONS, kind) else {
        return;
    };
    let result = parser_of(known, &header, 0, shared).map(drop);
    shared.settle(result.map_err(|fault| match known.state {
        State::NotYet => header.fault(
            0,
            format!("section '{kind}' is known but not implemented yet by this version."),
        ),
        _ => fault,
    }));
    let Some(table) = other::table(kind) else {
        return;
    };
    for line in section.statements.iter().map(Line::new) {
        let result = match keywords::find(table, line.keyword()) {
            None => Err(unknown(&line, kind, table.iter().map(|k| k.name))),
            // The section was refused already.
            Some(keyword) if matches!(keyword.state, State::NotYet) => Ok(()),
            Some(keyword) => parser_of(keyword, &line, 0, shared).map(drop),
        };
        shared.settle(result);
    }
}

/// HAProxy's message for an unknown keyword.
pub fn unknown<'a>(
    line: &Line<'_>,
    section: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Box<Fault> {
    let word = line.keyword();
    line.fault(
        0,
        format!(
            "unknown keyword '{word}' in '{section}' section{}",
            did_you_mean(word, candidates)
        ),
    )
}

/// `; did you mean 'x' maybe ?`, or an empty text.
pub fn did_you_mean<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> String {
    closest(word, candidates.map(|name| name.trim_end_matches('*')))
        .map_or_else(String::new, |best| {
            format!("; did you mean '{best}' maybe ?")
        })
}

/// Evaluates the state of the keyword at word `at`: returns its parser, None if there is nothing to
/// do, or a fault.
pub fn parser_of<P: Copy>(
    keyword: &Keyword<P>,
    line: &Line<'_>,
    at: usize,
    shared: &mut Shared<'_>,
) -> Parse<Option<P>> {
    if let Some(parser) = keyword.state.parser() {
        return Ok(Some(parser));
    }
    let mut cursor = Cursor {
        line: *line,
        at: at + 1,
    };
    without_parser(keyword, &mut cursor, shared)?;
    line.at_most_after(at, cursor.at - at - 1)?;
    Ok(None)
}

/// Handles the use of a keyword without a parser; the words up to the last one taken are its name.
/// Either it is a fault, or its arguments are consumed and it has no effect.
pub fn without_parser<P: Copy>(
    keyword: &Keyword<P>,
    cursor: &mut Cursor<'_>,
    shared: &mut Shared<'_>,
) -> Parse {
    let (line, at) = (cursor.line, cursor.at - 1);
    let name = line.texts(0)[..=at].join(" ");
    match keyword.state {
        State::Supported(_) | State::Partly(..) => Ok(()),
        State::NotYet => Err(line.fault(at, not_yet(&name))),
        State::Removed(instead) => Err(line.fault(
            at,
            match keyword.instead.and_then(|write| write(&line.texts(at + 1))) {
                Some(line) => format!("{instead} Here that is: {line}"),
                None => instead.to_owned(),
            },
        )),
        State::NoEffect(why) => {
            keyword.args.check(cursor, &name, shared)?;
            shared.has_no_effect(&name, &line.span(at), why);
            Ok(())
        }
    }
}

/// Handles a word without a parser in a line of options. `kind` is the name of such lines in
/// messages.
pub fn option_without_parser<P: Copy>(
    keyword: &Keyword<P>,
    kind: &str,
    cursor: &mut Cursor<'_>,
    shared: &mut Shared<'_>,
) -> Parse {
    let word = cursor.last();
    let span = cursor.line.span(cursor.at - 1);
    match keyword.state {
        State::Supported(_) | State::Partly(..) => Ok(()),
        State::Removed(message) => Err(cursor.fault(message)),
        State::NotYet => {
            let fault = cursor.fault(not_yet(&format!("{kind} … {word}")));
            shared.settle(Err(fault));
            keyword.args.check(cursor, word, shared)
        }
        State::NoEffect(why) => {
            keyword.args.check(cursor, word, shared)?;
            shared.has_no_effect(&format!("{kind} … {word}"), &span, why);
            Ok(())
        }
    }
}

/// The message for a known keyword that is not implemented.
pub fn not_yet(word: &str) -> String {
    format!("keyword '{word}' is known but not implemented yet by this version.")
}

impl Shared<'_> {
    /// The parser of the option that the cursor took last; None if its arguments were consumed
    /// here. `kind` is the name of such lines in messages.
    pub fn use_of<P: Copy>(
        &mut self,
        keyword: &Keyword<P>,
        kind: &str,
        cursor: &mut Cursor<'_>,
    ) -> Parse<Option<P>> {
        let parser = keyword.state.parser();
        if parser.is_none() {
            option_without_parser(keyword, kind, cursor, self)?;
        }
        Ok(parser)
    }

    /// The time in word `index`, as the argument of `name`.
    pub fn time(&mut self, line: &Line<'_>, index: usize, name: &str) -> Parse<Duration> {
        let text = line.arg(index);
        let time = values::time(text)
            .map_err(|bad| line.fault(index, values::time_message(bad, text, name)))?;
        self.note_time(line, index);
        Ok(time)
    }

    /// Warns of a time with extra characters, which HAProxy ignores.
    pub fn note_time(&mut self, line: &Line<'_>, index: usize) {
        let text = line.arg(index);
        if let Some(extra) = values::after_time(text) {
            let message = format!(
                "unexpected character '{extra}' after the timer value '{text}', only (us=microseconds,ms=milliseconds,s=seconds,\
                 m=minutes,h=hours,d=days) are supported. This will be reported as an error in next versions."
            );
            self.settle(Err(line.fault(index, message).as_warning()));
        }
    }

    /// The place of a rule.
    pub fn rule_place(&mut self, line: &Line<'_>) -> sample::RulePlace {
        let span = line.span(0);
        let name = &span.source.name;
        let known = self.files.iter().position(|file| file == name);
        let file = known.unwrap_or_else(|| {
            self.files.push(name.clone());
            self.files.len() - 1
        });
        sample::RulePlace {
            file: file as u32,
            line: span.line,
        }
    }

    /// Records a parser's fault, unless the same line already has it. A log format in `defaults` is
    /// compiled for every frontend, and all uses of a broken condition have its fault.
    pub fn settle(&mut self, result: Parse) {
        if let Err(fault) = result {
            let is_new = self
                .diagnostics
                .add_once(fault.severity, &fault.span, fault.message);
            if is_new
                && fault.severity == Severity::Alert
                && let Some(variable) = fault.span.unquoted_variable()
            {
                self.diagnostics.help(format!(
                    "Outside double quotes, environment variables are read in addresses only: write \"{variable}\"."
                ));
            }
        }
    }
}
