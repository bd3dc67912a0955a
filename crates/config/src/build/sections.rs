//! The proxies of a tree: the `defaults` of each, and its own statements.

use super::inherit::Template;
use super::line::Line;
use super::names::is_proxy;
use super::proxy::{ProxyBuild, mode_named, statement};
use super::{Shared, cookie, did_you_mean, filter, logging, order, otel, previous, reserve, tls};
use crate::keywords::Places;
use crate::model::{Global, Proxy, ProxyName, ServerOptions};
use crate::tree::{Section, Tree, Word};
use sample::Acls;
use std::collections::{HashMap, HashSet};

/// The default number of retries (manual §4.2 `retries`).
const DEFAULT_RETRIES: u32 = 3;
/// The default number of idle connections that a client keeps (manual §4.2
/// `max-session-srv-conns`).
const DEFAULT_SESSION_SRV_CONNS: u32 = 5;
/// The first id of a proxy: HAProxy uses number 1 for its listener of the runtime interface.
const FIRST_ID: u32 = 2;

/// Builds every `defaults` once, and every proxy on top of one of them. Returns the proxies by
/// place.
pub fn sections(tree: &Tree, global: &Global, shared: &mut Shared<'_>) -> Vec<Proxy> {
    let mut proxies: Vec<Option<Proxy>> = Vec::new();
    proxies.resize_with(shared.names.places.count, || None);
    let mut places = shared.names.places.sections.clone().into_iter();
    let mut defaults: Vec<Defaults<'_>> = Vec::new();
    shared.tls.begin_proxies();
    for section in &tree.sections {
        if section.kind() == "global" {
            shared.tls.pass_global();
        } else if section.kind() == "defaults" {
            open_defaults(section, &mut defaults, global, shared);
        } else if is_proxy(section) {
            // There is a place for each section.
            let place = places.next().unwrap_or_default();
            let number = place as u32;
            shared.compiler.enter_proxy(Some(number));
            let parent = inherited(section, &mut defaults, shared);
            let template = parent.map(|parent| &defaults[parent].template);
            proxies[place] = Some(proxy(section, template, number, global, shared));
        }
    }
    let places = shared.names.places.reserved.clone();
    for (reserve, place) in reserve::places(tree).into_iter().zip(places) {
        let mut own = defaults.iter();
        let parent = own.find(|each| std::ptr::eq(each.section, reserve.section));
        proxies[place] =
            parent.map(|parent| reserved(&reserve, &parent.template, place as u32, global, shared));
    }
    shared.compiler.enter_proxy(None);
    for defaults in defaults {
        defaults.template.finish(shared);
    }
    let previous = shared.settings.previous.as_deref();
    let proxies = proxies.into_iter().enumerate();
    let removed = |place| previous.map_or_else(Proxy::default, |previous| previous.removed(place));
    let proxies = proxies.map(|(place, proxy)| proxy.unwrap_or_else(|| removed(place)));
    let mut proxies: Vec<Proxy> = proxies.collect();
    number(&mut proxies, shared);
    proxies
}

/// A `defaults` section and the settings for its users.
struct Defaults<'t> {
    section: &'t Section,
    template: Template,
    /// A section names it after `from`.
    is_named: bool,
    /// A proxy starts from it without naming it.
    is_implied: bool,
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
    let stand_in = shared.names.stand_ins[defaults.len()];
    shared.compiler.enter_proxy(Some(stand_in));
    let parent = from(section, defaults, shared);
    if let Some(parent) = parent {
        defaults[parent].used_by(section, shared);
        defaults[parent].is_named = true;
    }
    redeclared(section, defaults, shared);
    let mut build = open(section, "defaults", stand_in, global, shared);
    if let Some(parent) = parent {
        build.start_from(&defaults[parent].template);
    }
    build.open_filters(&section.statements);
    own(&mut build, section);
    let template = Template::new(build, stand_in);
    defaults.push(Defaults {
        section,
        template,
        is_named: false,
        is_implied: false,
    });
}

/// Refuses a `defaults` name that is used twice and was referred to.
fn redeclared(section: &Section, defaults: &[Defaults<'_>], shared: &mut Shared<'_>) {
    let Some(name) = section.name().filter(|name| name.text != "from") else {
        return;
    };
    let mut twins = defaults.iter().filter(|known| name.text == *known.name());
    if let Some(twin) = twins.find(|twin| twin.is_named) {
        let message = format!(
            "defaults '{}' has the same name as another defaults section declared at {} which was explicitly referenced hence \
             cannot be replaced. Please remove or rename one of the offending defaults section.",
            name.text,
            twin.section.header.span().place()
        );
        shared.diagnostics.alert(&name.span, message);
    }
}

impl Defaults<'_> {
    fn used_by(&mut self, section: &Section, shared: &mut Shared<'_>) {
        self.template.used_by(section, self.section, shared);
    }
}

/// The `defaults` of a proxy: the one that it names, otherwise the last one before it.
fn inherited(
    section: &Section,
    defaults: &mut [Defaults<'_>],
    shared: &mut Shared<'_>,
) -> Option<usize> {
    header(section, shared);
    let named = word_from(section).is_some();
    let index = if named {
        from(section, defaults, shared)?
    } else {
        defaults.len().checked_sub(1)?
    };
    let parent = &mut defaults[index];
    parent.used_by(section, shared);
    if named {
        parent.is_named = true
    } else {
        parent.is_implied = true
    }
    if parent.is_named && parent.is_implied {
        let message = format!(
            "defaults section '{}' (declared at {}) is explicitly referenced by another proxy and implicitly used here. \
             To avoid any ambiguity don't mix both usage. Add a last defaults section not explicitly used or always use \
             explicit references.",
            parent.name(),
            parent.section.header.span().place()
        );
        shared.diagnostics.warning(section.header.span(), message);
    }
    Some(index)
}

/// The place of the words `from <name>` in a header; a `defaults` may have no name before them.
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

/// Refuses other words in a header.
fn header(section: &Section, shared: &mut Shared<'_>) {
    let line = Line::new(&section.header);
    let end = match (1..=2).find(|&at| line.arg(at) == "from") {
        Some(at) => at + 2,
        None => 2,
    };
    // HAProxy ignores further words behind the name of a `defaults`.
    if line.count() > end && section.kind() != "defaults" {
        let message = if end == 2 {
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
    number: u32,
    global: &'a Global,
    shared: &'a mut Shared<'d>,
) -> ProxyBuild<'a, 'd> {
    let name = section
        .name()
        .map_or("", |word| if word.text == "from" { "" } else { &word.text });
    let sections = match kind {
        "defaults" if name.is_empty() => Places::DEFAULTS,
        "defaults" => Places::DEFAULTS.or(Places::NAMED_DEFAULTS),
        "frontend" => Places::FRONTEND,
        "backend" => Places::BACKEND,
        _ => Places::FRONTEND.or(Places::BACKEND),
    };
    let proxy = Proxy {
        name: name.into(),
        is_frontend: kind != "backend",
        is_backend: kind != "frontend",
        retries: DEFAULT_RETRIES,
        session_srv_conns_max: DEFAULT_SESSION_SRV_CONNS,
        origin: section.header.span().place(),
        ..Proxy::default()
    };
    ProxyBuild {
        shared,
        global,
        proxy,
        acls: Acls::default(),
        broken_acls: Vec::new(),
        server_names: HashMap::new(),
        seen: order::Seen::default(),
        inherited_rules: [0; 3],
        missing_backend: None,
        missing_captures: Vec::new(),
        logging: logging::Pending::default(),
        default_server: ServerOptions::default(),
        default_tls: None,
        named_defaults: HashMap::new(),
        server_presets: HashMap::new(),
        ssl_f_use: Vec::new(),
        stats_inherited: false,
        kind,
        sections,
        number,
        tracing: None,
        checks: super::health::Pending::default(),
        email_alert: super::mail::Pending::default(),
        otel_seen: otel::check::Seen::default(),
        filters: Vec::new(),
        bandwidth_limits: Vec::new(),
        filter_order: filter::FilterOrder::default(),
    }
}

fn proxy(
    section: &Section,
    template: Option<&Template>,
    number: u32,
    global: &Global,
    shared: &mut Shared<'_>,
) -> Proxy {
    let kind = match section.kind() {
        "frontend" => "frontend",
        "backend" => "backend",
        _ => "listen",
    };
    let mut build = open(section, kind, number, global, shared);
    if let Some(template) = template {
        build.start_from(template);
    }
    build.open_filters(&section.statements);
    // Log formats and the places of expressions depend on the mode, which may be written last.
    set_mode_first(&mut build, section);
    own(&mut build, section);
    finish(build, number as usize)
}

/// A reserved place for a backend that is added at run time. Its faults are those of its
/// `defaults`, which were reported. It has no filters, because their exporters are created when the
/// process starts.
fn reserved(
    place: &reserve::Place<'_>,
    template: &Template,
    number: u32,
    global: &Global,
    shared: &mut Shared<'_>,
) -> Proxy {
    let told = std::mem::take(shared.diagnostics);
    shared.compiler.enter_proxy(Some(number));
    let mut build = open(place.section, "backend", number, global, shared);
    build.start_from(template);
    build.proxy.mode = place.mode;
    build.proxy.unpublished = true;
    build.proxy.reserve_of = Some(place.defaults);
    build.filters.clear();
    build.tracing = None;
    let mut proxy = finish(build, number as usize);
    proxy.name = ProxyName::default();
    *shared.diagnostics = told;
    proxy
}

/// Completes a proxy after all of its statements were read.
fn finish(mut build: ProxyBuild<'_, '_>, index: usize) -> Proxy {
    if let Some(fault) = build.missing_backend.take() {
        build.shared.settle(Err(fault));
    }
    let missing = std::mem::take(&mut build.missing_captures).into_iter();
    for fault in missing.filter_map(|missing| missing.fault(&build.proxy)) {
        build.shared.settle(Err(fault.into()));
    }
    logging::finish(&mut build);
    super::health::finish(&mut build);
    super::mail::finish(&mut build);
    finish_filters(&mut build, index);
    let (name, binds) = (build.proxy.name.to_string(), &mut build.proxy.binds);
    tls::bind::finish_proxy(&name, binds, &build.ssl_f_use, build.shared);
    super::bind::check_quic(&build.proxy, build.shared);
    super::quic::check_servers(&build.proxy, build.shared);
    build.shared.inherited_rules[index] = build.inherited_rules;
    let mut proxy = build.proxy;
    if proxy.cookie.as_ref().is_some_and(|cookie| cookie.dynamic)
        && let Some(key) = &proxy.dynamic_cookie_key
    {
        cookie::give_dynamic_values(&mut proxy.servers, key);
    }
    if proxy.is_frontend && proxy.is_backend && proxy.default_backend.is_none() {
        proxy.default_backend = Some(index);
    }
    previous::place_parts(&mut proxy, index, build.shared);
    proxy
}

/// Compiles the filters of a proxy, after all of its conditions are known.
fn finish_filters(build: &mut ProxyBuild<'_, '_>, proxy: usize) {
    let first = build.shared.otel.len();
    for declared in std::mem::take(&mut build.filters) {
        let mut filter = otel::compile(build, &declared).unwrap_or_default();
        filter.proxy = proxy;
        build.proxy.otel.push(build.shared.otel.len());
        build.shared.otel.push(filter);
    }
    build.order_filters(first);
    // It comes after the declared filters, whose indexes rules use.
    if let Some(tracing) = build.tracing.take() {
        build.proxy.otel.push(build.shared.otel.len());
        build.shared.otel.push(tracing.filter(proxy));
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

fn own(build: &mut ProxyBuild<'_, '_>, section: &Section) {
    for line in section.statements.iter().map(Line::new) {
        let result = statement(build, &line);
        build.shared.settle(result);
    }
}

/// Gives an id to each proxy without one: that of the previous configuration if it is still free,
/// otherwise the next one that no proxy has. The ids of removed proxies are used only if a line asks
/// for them, because such a proxy may return.
fn number(proxies: &mut [Proxy], shared: &Shared<'_>) {
    let live = proxies.iter().filter(|proxy| !proxy.is_removed);
    let mut taken: HashSet<u32> = live.map(|proxy| proxy.id).filter(|&id| id != 0).collect();
    if let Some(previous) = &shared.settings.previous {
        for (place, proxy) in proxies.iter_mut().enumerate() {
            if proxy.id == 0
                && shared.names.places.is_kept(place)
                && let Some(before) = previous.config.proxies.get(place)
                && taken.insert(before.id)
            {
                proxy.id = before.id;
            }
        }
        let removed = proxies.iter().filter(|proxy| proxy.is_removed);
        let removed = removed.filter(|proxy| !proxy.name.is_empty());
        taken.extend(removed.map(|proxy| proxy.id));
    }
    let mut next = FIRST_ID;
    let live = proxies.iter_mut().filter(|proxy| !proxy.is_removed);
    for proxy in live.filter(|proxy| proxy.id == 0) {
        while taken.contains(&next) {
            next += 1;
        }
        proxy.id = next;
        next += 1;
    }
}
