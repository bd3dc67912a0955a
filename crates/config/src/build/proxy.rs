//! The sections `defaults`, `frontend`, `backend` and `listen`: a proxy is folded from the statements of its `defaults` and
//! its own, by the parsers of the keyword table.

use super::line::{Line, Parse};
use super::names::is_proxy;
use super::{Shared, did_you_mean, logging, options as option_parsers, server, unknown, values};
use crate::keywords::{self, Sections, State, options, proxy::KEYWORDS, timeouts};
use crate::model::{Global, Mode, Proxy};
use crate::tree::{Section, Tree, Word};
use sample::{Acls, Place};

/// Parses one keyword of a proxy.
pub type ProxyParser = fn(&mut ProxyBuild<'_, '_>, &Line<'_>) -> Parse;

/// Retries where nothing is said (manual §4.2 `retries`).
const DEFAULT_RETRIES: u32 = 3;
/// HAProxy's own listener of the runtime interface has the first number.
const FIRST_ID: u32 = 2;

/// A proxy while it is built.
pub struct ProxyBuild<'a, 'd> {
    /// What all sections share.
    pub shared: &'a mut Shared<'d>,
    /// Section `global`, for `log global`.
    pub global: &'a Global,
    /// What was built so far.
    pub proxy: Proxy,
    /// The named conditions so far.
    pub acls: Acls,
    /// Names of conditions that were refused.
    pub broken_acls: Vec<String>,
    /// Log formats are compiled when the mode is known.
    pub logging: logging::Pending,
    /// `default-server` so far.
    pub default_server: server::Draft,
    /// What the section is called in its header.
    pub kind: &'static str,
    /// The capabilities of the section.
    pub sections: Sections,
    /// The statements are those of `defaults`, read for a proxy that starts from it.
    inherited: bool,
}

impl ProxyBuild<'_, '_> {
    /// Whether this is the check of a `defaults` section by itself.
    pub fn is_defaults(&self) -> bool {
        self.kind == "defaults"
    }

    /// `frontend 'name'`, as messages call it.
    pub fn title(&self) -> String {
        let kind = if self.kind == "listen" {
            "proxy"
        } else {
            self.kind
        };
        format!("{kind} '{}'", self.proxy.name)
    }

    /// The place of a rule: of the frontend, the backend, or both.
    pub fn place(&self, frontend: Place, backend: Place) -> Place {
        match (self.proxy.is_frontend, self.proxy.is_backend) {
            (true, false) => frontend,
            (false, true) => backend,
            _ => frontend | backend,
        }
    }

    fn capability(&self) -> Sections {
        let frontend = if self.proxy.is_frontend {
            Sections::FRONTEND
        } else {
            Sections::NONE
        };
        let backend = if self.proxy.is_backend {
            Sections::BACKEND
        } else {
            Sections::NONE
        };
        frontend.or(backend)
    }

    /// A warning that a keyword is without effect here, as HAProxy words it; nothing for what `defaults` brought.
    pub fn ignored(
        &self,
        line: &Line<'_>,
        at: usize,
        name: &str,
        sections: Sections,
        hint: &str,
    ) -> Parse {
        if self.inherited {
            return Ok(());
        }
        let missing = match (
            sections.intersects(Sections::FRONTEND),
            sections.intersects(Sections::BACKEND),
        ) {
            (true, true) => "neither frontend nor backend",
            (true, false) => "no frontend",
            _ => "no backend",
        };
        let message = format!(
            "'{name}' ignored because {} has {missing} capability.{hint}",
            self.title()
        );
        Err(line.fault(at, message).as_warning())
    }
}

/// Builds every proxy of the tree, and checks every `defaults`.
pub fn sections(tree: &Tree, global: &Global, shared: &mut Shared<'_>) -> Vec<Proxy> {
    let mut proxies = Vec::new();
    let mut defaults: Vec<Defaults<'_>> = Vec::new();
    for section in &tree.sections {
        if section.kind() == "defaults" {
            open_defaults(section, &mut defaults, global, shared);
        } else if is_proxy(section) {
            shared.compiler.enter_proxy(Some(proxies.len() as u32));
            let chain = inherited(section, &defaults, shared);
            proxies.push(proxy(section, &chain, proxies.len(), global, shared));
        }
    }
    shared.compiler.enter_proxy(None);
    number(&mut proxies);
    proxies
}

/// A `defaults` section with what it starts from, oldest first.
struct Defaults<'t> {
    section: &'t Section,
    parents: Vec<&'t Section>,
}

impl Defaults<'_> {
    fn name(&self) -> &str {
        self.section.name().map_or("", |word| word.text.as_str())
    }
}

fn open_defaults<'t>(
    section: &'t Section,
    defaults: &mut Vec<Defaults<'t>>,
    global: &Global,
    shared: &mut Shared<'_>,
) {
    header(section, shared);
    shared.compiler.enter_proxy(Some(shared.names.stand_in));
    let parents =
        from(section, defaults, shared).map_or_else(Vec::new, |parent| chain_of(&defaults[parent]));
    let mut build = open(section, "defaults", global, shared);
    for parent in &parents {
        inherit(&mut build, parent);
    }
    own(&mut build, section);
    defaults.push(Defaults { section, parents });
}

fn chain_of<'t>(defaults: &Defaults<'t>) -> Vec<&'t Section> {
    let mut chain = defaults.parents.clone();
    chain.push(defaults.section);
    chain
}

/// The `defaults` that a proxy starts from: the one it names, else the last one before it.
fn inherited<'t>(
    section: &Section,
    defaults: &[Defaults<'t>],
    shared: &mut Shared<'_>,
) -> Vec<&'t Section> {
    header(section, shared);
    let index = if word_from(section).is_some() {
        from(section, defaults, shared)
    } else {
        defaults.len().checked_sub(1)
    };
    index.map_or_else(Vec::new, |index| chain_of(&defaults[index]))
}

/// Where the words `from <name>` of a header are; a `defaults` may have no name before them.
fn word_from(section: &Section) -> Option<(usize, &Word)> {
    let at = (1..=2).find(|&at| section.header.arg(at) == "from")?;
    section.header.words.get(at + 1).map(|word| (at + 1, word))
}

fn from(section: &Section, defaults: &[Defaults<'_>], shared: &mut Shared<'_>) -> Option<usize> {
    let (_, word) = word_from(section)?;
    let named: Vec<usize> = (0..defaults.len())
        .filter(|&i| defaults[i].name() == word.text)
        .collect();
    let name = section.name().map_or("", |name| name.text.as_str());
    match named[..] {
        [index] => Some(index),
        [] => {
            let hint = did_you_mean(
                &word.text,
                defaults
                    .iter()
                    .map(Defaults::name)
                    .filter(|name| !name.is_empty()),
            );
            let message = format!(
                "defaults section '{}' not found for {} '{name}'{hint}.",
                word.text,
                section.kind()
            );
            shared.diagnostics.alert(&word.span, message);
            None
        }
        [first, second, ..] => {
            let place = |index: usize| defaults[index].section.header.span().place();
            let message = format!(
                "ambiguous defaults section name '{}' referenced by {} '{name}' exists at least at {} and {}.",
                word.text,
                section.kind(),
                place(first),
                place(second)
            );
            shared.diagnostics.alert(&word.span, message);
            None
        }
    }
}

/// Refuses what else stands in a header.
fn header(section: &Section, shared: &mut Shared<'_>) {
    let line = Line::new(&section.header);
    let end = match (1..=2).find(|&at| line.arg(at) == "from") {
        Some(at) => at + 2,
        None => 2,
    };
    if line.len() > end {
        let message = if end == 2 && section.kind() != "defaults" {
            "please use the 'bind' keyword for listening addresses.".to_owned()
        } else {
            format!(
                "'{}' cannot handle unexpected argument '{}'.",
                section.kind(),
                line.arg(end)
            )
        };
        shared.diagnostics.alert(&line.span(end), message);
    } else if line.len() < end && end > 2 {
        shared.diagnostics.alert(
            &line.span(end),
            "'from' expects the name of a defaults section.".to_owned(),
        );
    }
}

fn open<'a, 'd>(
    section: &Section,
    kind: &'static str,
    global: &'a Global,
    shared: &'a mut Shared<'d>,
) -> ProxyBuild<'a, 'd> {
    let name = section
        .name()
        .map_or("", |word| if word.text == "from" { "" } else { &word.text });
    let sections = match kind {
        "defaults" if name.is_empty() => Sections::DEFAULTS,
        "defaults" => Sections::DEFAULTS.or(Sections::NAMED_DEFAULTS),
        "frontend" => Sections::FRONTEND,
        "backend" => Sections::BACKEND,
        _ => Sections::FRONTEND.or(Sections::BACKEND),
    };
    let proxy = Proxy {
        name: name.to_owned(),
        is_frontend: kind != "backend",
        is_backend: kind != "frontend",
        retries: DEFAULT_RETRIES,
        origin: section.header.span().place(),
        ..Proxy::default()
    };
    ProxyBuild {
        shared,
        global,
        proxy,
        acls: Acls::default(),
        broken_acls: Vec::new(),
        logging: logging::Pending::default(),
        default_server: server::Draft::default(),
        kind,
        sections,
        inherited: false,
    }
}

fn proxy(
    section: &Section,
    chain: &[&Section],
    index: usize,
    global: &Global,
    shared: &mut Shared<'_>,
) -> Proxy {
    let kind = match section.kind() {
        "frontend" => "frontend",
        "backend" => "backend",
        _ => "listen",
    };
    let mut build = open(section, kind, global, shared);
    for parent in chain {
        inherit(&mut build, parent);
    }
    // Log formats and places of expressions depend on the mode, which may be written last.
    set_mode_first(&mut build, section);
    own(&mut build, section);
    logging::finish(&mut build);
    let mut proxy = build.proxy;
    if proxy.is_frontend && proxy.is_backend && proxy.default_backend.is_none() {
        proxy.default_backend = Some(index);
    }
    proxy
}

fn set_mode_first(build: &mut ProxyBuild<'_, '_>, section: &Section) {
    if let Some(last) = section
        .statements
        .iter()
        .rev()
        .find(|s| s.keyword() == "mode")
        && let Some(mode) = mode_named(last.arg(1))
    {
        build.proxy.mode = mode;
    }
}

fn inherit(build: &mut ProxyBuild<'_, '_>, section: &Section) {
    build.inherited = true;
    own(build, section);
    build.inherited = false;
}

fn own(build: &mut ProxyBuild<'_, '_>, section: &Section) {
    for line in section.statements.iter().map(Line::new) {
        let result = statement(build, &line);
        build.shared.settle(result);
    }
}

fn statement(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let name = line.keyword();
    let Some(keyword) = keywords::find(KEYWORDS, name) else {
        return Err(unknown(line, build.kind, KEYWORDS.iter().map(|k| k.name)));
    };
    if let Some(end) = build.misplaced(line, keyword.sections, &keyword.state) {
        return end;
    }
    match super::parser_of(keyword, line, 0, build.shared)? {
        Some(parser) => parser(build, line),
        None => Ok(()),
    }
}

impl ProxyBuild<'_, '_> {
    /// The end of a statement whose keyword does not stand in this section; none when it does.
    fn misplaced<P>(&self, line: &Line<'_>, sections: Sections, state: &State<P>) -> Option<Parse> {
        let name = line.keyword();
        if matches!(state, State::Removed(_)) {
            return None;
        }
        if self.is_defaults() {
            return match (
                sections.intersects(self.sections),
                sections.intersects(Sections::NAMED_DEFAULTS),
            ) {
                (true, _) => None,
                (false, true) => Some(Err(line.fault(
                    0,
                    format!("'{name}' not allowed in anonymous 'defaults' section."),
                ))),
                (false, false) => Some(Err(
                    line.fault(0, format!("'{name}' not allowed in 'defaults' section."))
                )),
            };
        }
        if sections.intersects(self.capability()) {
            return None;
        }
        let hint = match name {
            "maxconn" => " Maybe you want 'fullconn' instead ?",
            "fullconn" => " Maybe you want 'maxconn' instead ?",
            _ => "",
        };
        Some(match (name, self.inherited) {
            (_, true) => Ok(()),
            ("server" | "server-template", _) => Err(line.fault(
                0,
                format!(
                    "'{name}' not allowed because {} has no backend capability.",
                    self.title()
                ),
            )),
            ("log-format" | "log-format-sd" | "error-log-format", _) => Err(line
                .fault(
                    0,
                    format!(
                        "{} : '{name}' directive is ignored in backends.",
                        self.title()
                    ),
                )
                .as_warning()),
            _ => self.ignored(line, 0, name, sections, hint),
        })
    }
}

/// Gives a number to each proxy that has none.
fn number(proxies: &mut [Proxy]) {
    let mut next = FIRST_ID;
    let taken: Vec<u32> = proxies
        .iter()
        .map(|proxy| proxy.id)
        .filter(|&id| id != 0)
        .collect();
    for proxy in proxies.iter_mut().filter(|proxy| proxy.id == 0) {
        while taken.contains(&next) {
            next += 1;
        }
        proxy.id = next;
        next += 1;
    }
}

/// `acl`
pub fn acl(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let name = line.need(1, || {
        "'acl' expects a name and a condition as arguments.".into()
    })?;
    if let Some(bad) = values::bad_name_character(name) {
        return Err(line.fault(
            1,
            format!("character '{bad}' is not permitted in acl name '{name}'."),
        ));
    }
    if name.eq_ignore_ascii_case("or") {
        return Err(line.fault(
            1,
            format!("acl name '{name}' will never match. 'or' is used to express a logical disjunction within a condition."),
        ));
    }
    let context = format!("error detected while parsing ACL '{name}'");
    line.need(2, || format!("{context} : missing fetch method."))?;
    let words = line.texts(2);
    let result = build
        .shared
        .compiler
        .acl(&mut build.acls, name, &words, Place::ALL);
    build.shared.warnings(line, 2);
    result.map_err(|error| {
        build.broken_acls.push(name.to_owned());
        line.expr_fault(2, &error, &context)
    })
}

/// `description`
pub fn description(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    line.need(1, || "'description' expects a string argument.".into())?;
    build.proxy.description = Some(line.texts(1).join(" "));
    Ok(())
}

/// `disabled`
pub fn disabled(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    build.proxy.disabled = true;
    line.at_most(0)
}

/// `enabled`
pub fn enabled(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    build.proxy.disabled = false;
    line.at_most(0)
}

/// `id`
pub fn id(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let text = line.need(1, || "'id' expects an integer argument.".into())?;
    line.at_most(1)?;
    match text.parse() {
        Ok(id @ 1..) => build.proxy.id = id,
        _ => return Err(line.fault(1, "custom id has to be > 0.")),
    }
    Ok(())
}

/// `mode`
pub fn mode(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    line.at_most(1)?;
    match line.arg(1) {
        "health" => Err(line.fault(1, "'mode health' doesn't exist anymore. Please use 'http-request return status 200' instead.")),
        name @ ("log" | "spop" | "haterm") => Err(line.fault(1, super::not_yet(&format!("mode {name}")))),
        name => {
            let hint = did_you_mean(name, ["http", "tcp"].into_iter());
            build.proxy.mode = mode_named(name).ok_or_else(|| line.fault(1, format!("unknown proxy mode '{name}'{hint}.")))?;
            Ok(())
        }
    }
}

fn mode_named(name: &str) -> Option<Mode> {
    match name {
        "http" => Some(Mode::Http),
        "tcp" => Some(Mode::Tcp),
        _ => None,
    }
}

/// `option …`
pub fn option(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let name = line.need(1, || "'option' expects an option name.".into())?;
    let Some(keyword) = keywords::find(options::KEYWORDS, name) else {
        let hint = did_you_mean(name, options::KEYWORDS.iter().map(|k| k.name));
        return Err(line.fault(
            1,
            format!(
                "unknown option '{name}'{}",
                if hint.is_empty() { "." } else { &hint }
            ),
        ));
    };
    if !build.is_defaults()
        && !keyword.sections.intersects(build.capability())
        && !matches!(keyword.state, State::Removed(_))
    {
        if matches!(name, "httplog" | "tcplog" | "httpslog") {
            if build.inherited {
                return Ok(());
            }
            let message = format!(
                "{} : 'option {name}' directive is ignored in backends.",
                build.title()
            );
            return Err(line.fault(1, message).as_warning());
        }
        return build.ignored(line, 1, name, keyword.sections, "");
    }
    if let State::Removed(message) = keyword.state {
        return Err(line.fault(1, format!("option '{message}")));
    }
    match super::parser_of(keyword, line, 1, build.shared)? {
        Some(setter) => option_parsers::set(build, line, setter),
        None => Ok(()),
    }
}

/// `timeout …`
pub fn timeout(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let name = line.arg(1);
    let Some(keyword) = keywords::find(timeouts::KEYWORDS, name) else {
        let hint = did_you_mean(name, timeouts::KEYWORDS.iter().map(|k| k.name));
        return Err(line.fault(
            1,
            format!(
                "'timeout' supports 'client', 'server', 'connect', 'check', 'queue', 'handshake', 'http-keep-alive', \
                 'http-request', 'tunnel', 'tarpit', 'client-fin' and 'server-fin' (got '{name}'){hint}"
            ),
        ));
    };
    let Some(field) = super::parser_of(keyword, line, 1, build.shared)? else {
        return Ok(());
    };
    let text = line.need(2, || {
        format!("'timeout {name}' expects an integer value (in milliseconds).")
    })?;
    let time = values::time(text).map_err(|bad| {
        line.fault(
            2,
            values::time_message(bad, text, &format!("timeout {name}")),
        )
    })?;
    if line.len() > 3 {
        let extra = line.arg(3);
        return Err(line.fault(
            3,
            format!("'timeout {name}' : unexpected extra argument '{extra}' after value '{text}'."),
        ));
    }
    *field(&mut build.proxy.timeout) = (!time.is_zero()).then_some(time);
    if build.is_defaults() || build.inherited || keyword.sections.intersects(build.capability()) {
        return Ok(());
    }
    let missing = if keyword.sections.intersects(Sections::BACKEND) {
        "backend"
    } else {
        "frontend"
    };
    let message = format!(
        "'timeout {name}' will be ignored because {} has no {missing} capability.",
        build.title()
    );
    Err(line.fault(1, message).as_warning())
}
