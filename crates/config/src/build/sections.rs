//! The proxies of a tree: which `defaults` each starts from, and the fold of their statements.

use super::inherit::Rules;
use super::line::Line;
use super::names::is_proxy;
use super::proxy::{ProxyBuild, mode_named, statement};
use super::{Shared, cookie, did_you_mean, logging, order, otel, server};
use crate::keywords::Sections;
use crate::model::{Global, Proxy};
use crate::tree::{Section, Tree, Word};
use sample::Acls;

/// Retries where nothing is said (manual §4.2 `retries`).
const DEFAULT_RETRIES: u32 = 3;
/// HAProxy's own listener of the runtime interface has the first number.
const FIRST_ID: u32 = 2;

/// Builds every proxy of the tree, and checks every `defaults`.
pub fn sections(tree: &Tree, global: &Global, shared: &mut Shared<'_>) -> Vec<Proxy> {
    let mut proxies = Vec::new();
    let mut defaults: Vec<Defaults<'_>> = Vec::new();
    for section in &tree.sections {
        if section.kind() == "defaults" {
            open_defaults(section, &mut defaults, global, shared);
        } else if is_proxy(section) {
            shared.compiler.enter_proxy(Some(proxies.len() as u32));
            let chain = inherited(section, &mut defaults, shared);
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
    rules: Rules,
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
    let parents = from(section, defaults, shared).map_or_else(Vec::new, |parent| {
        chain_for(section, &mut defaults[parent], shared)
    });
    let mut build = open(section, "defaults", global, shared);
    for parent in &parents {
        inherit(&mut build, parent);
    }
    own(&mut build, section);
    let rules = Rules::of(&build.proxy);
    defaults.push(Defaults {
        section,
        parents,
        rules,
    });
}

/// The chain that a section starts from, its newest part being `defaults`.
fn chain_for<'t>(
    section: &Section,
    defaults: &mut Defaults<'t>,
    shared: &mut Shared<'_>,
) -> Vec<&'t Section> {
    defaults.rules.used_by(section, defaults.section, shared);
    chain_of(defaults)
}

fn chain_of<'t>(defaults: &Defaults<'t>) -> Vec<&'t Section> {
    let mut chain = defaults.parents.clone();
    chain.push(defaults.section);
    chain
}

/// The `defaults` that a proxy starts from: the one it names, else the last one before it.
fn inherited<'t>(
    section: &Section,
    defaults: &mut [Defaults<'t>],
    shared: &mut Shared<'_>,
) -> Vec<&'t Section> {
    header(section, shared);
    let index = if word_from(section).is_some() {
        from(section, defaults, shared)
    } else {
        defaults.len().checked_sub(1)
    };
    index.map_or_else(Vec::new, |index| {
        chain_for(section, &mut defaults[index], shared)
    })
}

/// Where the words `from <name>` of a header are; a `defaults` may have no name before them.
fn word_from(section: &Section) -> Option<(usize, &Word)> {
    let at = (1..=2).find(|&at| section.header.arg(at) == "from")?;
    section.header.words.get(at + 1).map(|word| (at + 1, word))
}

fn from(section: &Section, defaults: &[Defaults<'_>], shared: &mut Shared<'_>) -> Option<usize> {
    let (_, word) = word_from(section)?;
    let named: Vec<usize> = (0..defaults.len())
        .filter(|&i| word.text == *defaults[i].name())
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
    if line.count() > end {
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
    } else if line.count() < end && end > 2 {
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
        seen: order::Seen::default(),
        inherited_rules: [0; 3],
        logging: logging::Pending::default(),
        default_server: server::Draft::default(),
        kind,
        sections,
        inherited: false,
        otel_seen: otel::check::Seen::default(),
        filters: Vec::new(),
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
    let sections = chain.iter().copied().chain([section]);
    build.open_filters(sections.flat_map(|section| &section.statements));
    for parent in chain {
        inherit(&mut build, parent);
    }
    // Log formats and places of expressions depend on the mode, which may be written last.
    set_mode_first(&mut build, section);
    own(&mut build, section);
    logging::finish(&mut build);
    finish_filters(&mut build, index);
    let mut proxy = build.proxy;
    if proxy.cookie.as_ref().is_some_and(|cookie| cookie.dynamic)
        && let Some(key) = &proxy.dynamic_cookie_key
    {
        cookie::give_dynamic_values(&mut proxy.servers, key);
    }
    if proxy.is_frontend && proxy.is_backend && proxy.default_backend.is_none() {
        proxy.default_backend = Some(index);
    }
    proxy
}

/// Compiles the filters of a proxy: all of its conditions are known.
fn finish_filters(build: &mut ProxyBuild<'_, '_>, proxy: usize) {
    for declared in std::mem::take(&mut build.filters) {
        let mut filter = otel::compile(build, &declared).unwrap_or_default();
        filter.proxy = proxy;
        build.proxy.otel.push(build.shared.otel.len());
        build.shared.otel.push(filter);
    }
    // Behind those that were declared, whose places rules name.
    if let Some(mut tracing) = build.proxy.tracing.take() {
        tracing.proxy = proxy;
        build.proxy.otel.push(build.shared.otel.len());
        build.shared.otel.push(*tracing);
    }
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
    let proxy = &build.proxy;
    build.inherited_rules = [
        proxy.http_request.len(),
        proxy.http_response.len(),
        proxy.http_after_response.len(),
    ];
}

fn own(build: &mut ProxyBuild<'_, '_>, section: &Section) {
    for line in section.statements.iter().map(Line::new) {
        let result = statement(build, &line);
        build.shared.settle(result);
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
