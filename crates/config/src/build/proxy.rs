//! A proxy during its build, and the keywords that every kind of proxy section accepts. After the
//! proxy has started from its `defaults` ([`super::inherit`]), the parsers of the keyword table
//! read its statements.

use super::http_rules::MissingCapture;
use super::line::{Fault, Line, Parse};
use super::server::Preset;
use super::{
    Shared, bandwidth, check, did_you_mean, filter, health, logging, mail,
    options as option_parsers, order, otel, tls, unknown, values,
};
use crate::keywords::{
    self, Elsewhere, Keyword, Places, State, options, proxy::KEYWORDS, timeouts,
};
use crate::model::{Global, Mode, Proxy, ServerOptions, StateFrom};
use sample::{Acls, Place};
use std::collections::HashMap;

/// Parses one keyword of a proxy.
pub type ProxyParser = fn(&mut ProxyBuild<'_, '_>, &Line<'_>) -> Parse;

/// A proxy during its build.
pub struct ProxyBuild<'a, 'd> {
    /// State that all sections share.
    pub shared: &'a mut Shared<'d>,
    /// Section `global`, for `log global`.
    pub global: &'a Global,
    /// The result so far.
    pub proxy: Proxy,
    /// The named conditions so far.
    pub acls: Acls,
    /// Names of conditions that were refused, and why.
    pub broken_acls: Vec<(String, Box<Fault>)>,
    /// Its servers so far, by name.
    pub server_names: HashMap<String, usize>,
    /// Own rule sets so far.
    pub seen: order::Seen,
    /// The number of rules of `http-request`, `http-response` and `http-after-response` from
    /// `defaults`.
    pub inherited_rules: [usize; 3],
    /// The `default_backend` of `defaults` does not exist: a fault only in a section that uses it.
    pub missing_backend: Option<Box<Fault>>,
    /// Faults for capture slots that rules of a `defaults` use and that it does not have.
    pub missing_captures: Vec<MissingCapture>,
    /// Log formats, which are compiled when the mode is known.
    pub logging: logging::Pending,
    /// `default-server` so far.
    pub default_server: ServerOptions,
    /// `default-server` for TLS; None before the first such line.
    pub default_tls: Option<tls::server::ServerWords>,
    /// Each `default-server name` so far.
    pub named_defaults: HashMap<String, Preset>,
    /// The results of server lines, for `from`.
    pub server_presets: HashMap<String, Preset>,
    /// The certificates of its `ssl-f-use` lines.
    pub ssl_f_use: Vec<tls::bind::Pending>,
    /// Its statistics page comes from its `defaults`.
    pub stats_inherited: bool,
    /// The keyword in the section's header.
    pub kind: &'static str,
    /// The capabilities of the section.
    pub sections: Places,
    /// The compiler's number of the section.
    pub number: u32,
    /// `option tracing`
    pub tracing: Option<otel::tracing::Tracing>,
    /// Settings of health checks in its options and rules so far.
    pub checks: health::Pending,
    /// `email-alert` so far.
    pub email_alert: mail::Pending,
    /// State that its filters `opentelemetry` share.
    pub otel_seen: otel::check::Seen,
    /// Its declared filters.
    pub filters: Vec<otel::Declared>,
    /// Its bandwidth limits, in order.
    pub bandwidth_limits: Vec<bandwidth::Declared>,
    /// The order of its filters.
    pub filter_order: filter::FilterOrder,
}

impl ProxyBuild<'_, '_> {
    /// Whether this is the separate check of a `defaults` section.
    pub fn is_defaults(&self) -> bool {
        self.kind == "defaults"
    }

    /// `frontend 'name'`, as messages name the proxy.
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

    fn capability(&self) -> Places {
        let frontend = if self.proxy.is_frontend {
            Places::FRONTEND
        } else {
            Places::NONE
        };
        let backend = if self.proxy.is_backend {
            Places::BACKEND
        } else {
            Places::NONE
        };
        frontend.or(backend)
    }

    /// A warning that a keyword has no effect here, in HAProxy's words.
    pub fn ignored(
        &self,
        line: &Line<'_>,
        at: usize,
        name: &str,
        sections: Places,
        hint: &str,
    ) -> Parse {
        let missing = match (
            sections.intersects(Places::FRONTEND),
            sections.intersects(Places::BACKEND),
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

/// Reads one line.
pub fn statement(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    build.shared.enter_line(line);
    let name = line.keyword();
    let Some(keyword) = keywords::find(KEYWORDS, name) else {
        return Err(unknown(line, build.kind, KEYWORDS.iter().map(|k| k.name)));
    };
    if let Some(end) = build.misplaced(line, keyword) {
        return end;
    }
    match super::parser_of(keyword, line, 0, build.shared)? {
        Some(parser) => parser(build, line),
        None => Ok(()),
    }
}

impl ProxyBuild<'_, '_> {
    /// The result for a keyword that is not valid in this section; None if it is valid.
    fn misplaced<P>(&self, line: &Line<'_>, keyword: &Keyword<P>) -> Option<Parse> {
        let (name, sections) = (line.keyword(), keyword.places);
        if matches!(keyword.state, State::Removed(_)) {
            return None;
        }
        if self.is_defaults() {
            return match (
                sections.intersects(self.sections),
                sections.intersects(Places::NAMED_DEFAULTS),
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
        Some(self.in_another_section(line, 0, keyword))
    }

    /// The result for a keyword or option for which the section lacks the capability: a fault.
    fn in_another_section<P>(&self, line: &Line<'_>, at: usize, keyword: &Keyword<P>) -> Parse {
        let statement = line.texts(0)[..=at].join(" ");
        let name = line.arg(at);
        let fault = match keyword.elsewhere {
            Elsewhere::Ignored(hint) => return self.ignored(line, at, name, keyword.places, hint),
            Elsewhere::IgnoredFormat => {
                let title = self.title();
                let message = format!("{title} : '{statement}' directive is ignored in backends.");
                line.fault(at, message).as_warning()
            }
            Elsewhere::Refused => {
                let title = self.title();
                let message =
                    format!("'{name}' not allowed because {title} has no backend capability.");
                line.fault(at, message)
            }
            Elsewhere::OnlyIn(sections) => line.fault(
                at,
                format!("'{name}' only available in {sections} section."),
            ),
        };
        Err(fault)
    }
}

/// `acl`
pub fn acl(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let result = named_acl(build.shared, &mut build.acls, line);
    result.inspect_err(|fault| {
        if !line.arg(2).is_empty() {
            build
                .broken_acls
                .push((line.arg(1).to_owned(), fault.clone()));
        }
    })
}

/// An `acl` line of any section, into the conditions of that section.
pub fn named_acl(shared: &mut Shared<'_>, acls: &mut Acls, line: &Line<'_>) -> Parse {
    let name = line.need(1, || {
        "'acl' expects a name and a condition as arguments.".into()
    })?;
    if let Some(bad) = values::bad_name_character(line.bytes(1)) {
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
    let words = line.bytes_from(2);
    let result = shared.compiler.acl(acls, name, &words, Place::ALL);
    shared.warnings(line, 2);
    result.map_err(|error| line.expr_fault(2, &error, &context))
}

/// `load-server-state-from-file`
pub fn state_from(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    build.proxy.state_from = match line.arg(1) {
        "global" => StateFrom::Global,
        "local" => StateFrom::Local,
        "none" => StateFrom::Nowhere,
        other => {
            return Err(line.fault(
                1,
                format!(
                    "'{}' expects 'global', 'local' or 'none'. Got '{other}'",
                    line.keyword()
                ),
            ));
        }
    };
    Ok(())
}

/// `server-state-file-name`
pub fn state_file_name(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    line.at_most(1)?;
    build.proxy.state_file_name = match line.arg(1) {
        "" | "use-backend-name" => None,
        _ => Some(line.path(1).to_owned()),
    };
    Ok(())
}

/// `description`
pub fn description(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    line.need(1, || "'description' expects a string argument.".into())?;
    build.proxy.description = Some(line.joined(1));
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

/// `guid`
pub fn guid(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let mut cursor = super::line::Cursor { line: *line, at: 1 };
    let guid = values::guid(&mut cursor)?;
    line.at_most(1)?;
    build.proxy.guid = Some(guid);
    Ok(())
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
        "log" if !build.is_defaults() && build.proxy.is_frontend => {
            Err(line.fault(1, check::log_frontend(build.proxy.is_backend)))
        }
        name @ ("spop" | "haterm") => Err(line.fault(1, super::not_yet(&format!("mode {name}")))),
        name => {
            let hint = did_you_mean(name, ["http", "tcp", "log"].into_iter());
            build.proxy.mode = mode_named(name).ok_or_else(|| line.fault(1, format!("unknown proxy mode '{name}'{hint}.")))?;
            Ok(())
        }
    }
}

/// The mode with this name, if it is implemented.
pub fn mode_named(name: &str) -> Option<Mode> {
    match name {
        "http" => Some(Mode::Http),
        "tcp" => Some(Mode::Tcp),
        "log" => Some(Mode::Log),
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
        && !keyword.places.intersects(build.capability())
        && !matches!(keyword.state, State::Removed(_))
    {
        return build.in_another_section(line, 1, keyword);
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
    let keyword = keywords::find(timeouts::KEYWORDS, name).ok_or_else(|| {
        // `timeout contimeout` and related names get the message for `contimeout`.
        let removed = keywords::find(KEYWORDS, name).map(|keyword| keyword.state);
        if let Some(State::Removed(message)) = removed
            && name.ends_with("timeout")
        {
            return line.fault(1, message);
        }
        let hint = did_you_mean(name, timeouts::KEYWORDS.iter().map(|k| k.name));
        line.fault(
            1,
            format!(
                "'timeout' supports 'client', 'server', 'connect', 'check', 'queue', 'handshake', 'http-keep-alive', \
                 'http-request', 'tunnel', 'tarpit', 'client-fin' and 'server-fin' (got '{name}'){hint}"
            ),
        )
    })?;
    let field = super::parser_of(keyword, line, 1, build.shared)?;
    let text = line.arg(2);
    if values::is_suspicious_time(text) {
        let message = format!(
            "'timeout {name} {text}' in {} is suspiciously small for a value in milliseconds. Please use an explicit unit \
             ('{text}ms') if that was the intent.",
            build.title()
        );
        let fault = line.fault(2, message).as_warning();
        build.shared.settle(Err(fault));
    }
    let Some(field) = field else {
        return Ok(());
    };
    let text = line.need(2, || {
        format!("'timeout {name}' expects an integer value (in milliseconds).")
    })?;
    let time = build.shared.time(line, 2, &format!("timeout {name}"))?;
    if line.count() > 3 {
        let extra = line.arg(3);
        return Err(line.fault(
            3,
            format!("'timeout {name}' : unexpected extra argument '{extra}' after value '{text}'."),
        ));
    }
    *field(&mut build.proxy.timeout) = (!time.is_zero()).then_some(time);
    if build.is_defaults() || keyword.places.intersects(build.capability()) {
        return Ok(());
    }
    let missing = if keyword.places.intersects(Places::BACKEND) {
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
