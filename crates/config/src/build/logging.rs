//! Logs of a proxy: targets, formats, tags. Formats are compiled at the end, when the proxy's mode
//! is known.

use super::line::{Line, Parse};
use super::proxy::ProxyBuild;
use super::{did_you_mean, log_line, log_profile};
use crate::model::Mode;
use crate::tree::{Prefix, Statement};
use sample::{LogOrigin, Place, Style};
use std::sync::Arc;

/// The formats of options (manual §8.2), byte for byte as log parsers expect them.
const HTTP: &str = "%ci:%cp [%tr] %ft %b/%s %TR/%Tw/%Tc/%Tr/%Ta %ST %B %CC %CS %tsc %ac/%fc/%bc/%sc/%rc %sq/%bq %hr %hs %{+Q}r";
const HTTPS: &str = "%ci:%cp [%tr] %ft %b/%s %TR/%Tw/%Tc/%Tr/%Ta %ST %B %CC %CS %tsc %ac/%fc/%bc/%sc/%rc %sq/%bq %hr %hs %{+Q}r \
%[fc_err]/%[ssl_fc_err,hex]/%[ssl_c_err]/%[ssl_c_ca_err]/%[ssl_fc_is_resumed] %[ssl_fc_sni]/%sslv/%sslc";
const HTTP_CLF: &str = "%{+Q}o %{-Q}ci - - [%trg] %r %ST %B \"\" \"\" %cp %ms %ft %b %s %TR %Tw %Tc %Tr %Ta %tsc \
%ac %fc %bc %sc %rc %sq %bq %CC %CS %hrl %hsl";
const TCP: &str = "%ci:%cp [%t] %ft %b/%s %Tw/%Tc/%Tt %B %ts %ac/%fc/%bc/%sc/%rc %sq/%bq";
const TCP_CLF: &str = "%{+Q}o %{-Q}ci - - [%T] \"TCP \" 000 %B \"\" \"\" %cp %ms %ft %b %s %Th %Tw %Tc %Tt %U %ts-- \
%ac %fc %bc %sc %rc %sq %bq \"\" \"\" ";

/// The source of a log format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// `option httplog`
    Http,
    /// `option httplog clf`
    HttpClf,
    /// `option httpslog`
    Https,
    /// `option tcplog`
    Tcp,
    /// `option tcplog clf`
    TcpClf,
    /// `log-format`; its text is word 1 of the line.
    Written,
}

/// Formats that are compiled when the proxy is complete.
#[derive(Clone, Debug, Default)]
pub struct Pending {
    format: Option<(Source, Arc<Statement>)>,
    /// `log-format-sd`
    sd: Option<Arc<Statement>>,
    error_format: Option<Arc<Statement>>,
    unique_id: Option<Arc<Statement>>,
    /// `log global` was read: a second one adds nothing.
    took_global: bool,
}

impl Pending {
    /// The formats that a section inherits from this one. Only frontends have log formats.
    pub fn for_section(&self, is_frontend: bool) -> Pending {
        if is_frontend {
            self.clone()
        } else {
            Pending {
                unique_id: self.unique_id.clone(),
                took_global: self.took_global,
                ..Pending::default()
            }
        }
    }
}

impl Source {
    /// The statement with this format, as messages name it.
    const fn statement(self) -> &'static str {
        match self {
            Source::Http => "option httplog",
            Source::HttpClf => "option httplog clf",
            Source::Https => "option httpslog",
            Source::Tcp => "option tcplog",
            Source::TcpClf => "option tcplog clf",
            Source::Written => "log-format",
        }
    }
}

/// Sets a log format. The last one wins. As in HAProxy, a `defaults` with two gets a warning.
pub fn set_format(build: &mut ProxyBuild<'_, '_>, source: Source, line: &Line<'_>) {
    let before = build.logging.format.replace((source, keep(line)));
    if let Some((before, _)) = before
        && build.is_defaults()
    {
        let message = format!(
            "'{}' overrides previous '{}' in 'defaults' section.",
            source.statement(),
            before.statement()
        );
        build
            .shared
            .settle(Err(line.fault(0, message).as_warning()));
    }
}

fn keep(line: &Line<'_>) -> Arc<Statement> {
    Arc::new(Statement {
        words: line.words().to_vec(),
        prefix: line.prefix(),
    })
}

fn only_argument(line: &Line<'_>) -> Parse {
    let name = line.keyword();
    line.need(1, || format!("{name} expects an argument."))?;
    match line.count() {
        2 => Ok(()),
        _ => Err(line.fault(
            2,
            format!("{name} expects only one argument, don't forget to escape spaces!"),
        )),
    }
}

/// `log global`, `log <target> …`, `no log`
pub fn log(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    if line.prefix() != Prefix::None {
        line.at_most(0)
            .map_err(|_| line.fault(1, "'no log' does not expect arguments."))?;
        build.proxy.log.clear();
        build.logging.took_global = false;
        return Ok(());
    }
    if line.arg(1) == "global" && line.count() == 2 {
        if !std::mem::replace(&mut build.logging.took_global, true) {
            build.proxy.log.extend(build.global.log.iter().cloned());
        }
        return Ok(());
    }
    let target = log_line::target(line, build.shared)?;
    build.proxy.log.push(target);
    Ok(())
}

/// `log-tag`
pub fn log_tag(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    line.need(1, || "'log-tag' expects a tag for use in syslog.".into())?;
    line.at_most(1)?;
    build.proxy.log_tag = Some(line.octets(1));
    Ok(())
}

/// `log-format`
pub fn log_format(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    only_argument(line)?;
    set_format(build, Source::Written, line);
    Ok(())
}

/// `log-format-sd`
pub fn log_format_sd(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    only_argument(line)?;
    build.logging.sd = Some(keep(line));
    Ok(())
}

/// `log-steps all|<step>[,…]`
pub fn log_steps(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let names = line.need(1, || {
        "log-steps: expects 'all' or a list of logging steps separated by commas.".into()
    })?;
    line.at_most(1)?;
    let steps = build.proxy.log_steps.get_or_insert_default();
    if names == "all" {
        steps.extend(LogOrigin::STEPS.iter().map(|(_, origin)| *origin));
        return Ok(());
    }
    for name in names.split(',') {
        let known = || LogOrigin::STEPS.iter().map(|(name, _)| *name);
        steps.push(log_profile::step(name).ok_or_else(|| {
            let hint = did_you_mean(name, known());
            let known: Vec<&str> = known().collect();
            line.fault(
                1,
                format!(
                    "invalid log step name ({name}). Expected values are: {}{hint}",
                    known.join(", ")
                ),
            )
        })?);
    }
    Ok(())
}

/// `error-log-format`
pub fn error_log_format(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    only_argument(line)?;
    build.logging.error_format = Some(keep(line));
    Ok(())
}

/// `unique-id-format`
pub fn unique_id_format(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    only_argument(line)?;
    build.logging.unique_id = Some(keep(line));
    Ok(())
}

/// `unique-id-header`
pub fn unique_id_header(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    line.need(1, || "unique-id-header expects an argument.".into())?;
    line.at_most(1)?;
    build.proxy.unique_id_header = Some(line.octets(1));
    Ok(())
}

/// Compiles the formats that were left for the end.
pub fn finish(build: &mut ProxyBuild<'_, '_>) {
    // HAProxy compiles the log formats of frontends only.
    if build.proxy.is_frontend {
        if let Some((source, statement)) = build.logging.format.take() {
            let line = Line::new(&statement);
            // An empty format counts as none, as in HAProxy.
            build.proxy.log_format =
                format(build, source, &line).filter(|format| !format.is_empty());
        }
        if let Some(statement) = build.logging.sd.take() {
            build.proxy.log_format_sd = compile(build, &statement, Place::LOG, Style::Log);
        }
        if let Some(statement) = build.logging.error_format.take() {
            build.proxy.error_log_format = compile(build, &statement, Place::LOG, Style::Log);
        }
    }
    if let Some(statement) = build.logging.unique_id.take() {
        // The id is made when a request is complete, whoever reads it first. A backend needs the
        // format for its health checks.
        let place = if build.proxy.is_frontend {
            Place::FE_HTTP_REQUEST
        } else {
            Place::BE_HTTP_REQUEST
        };
        build.proxy.unique_id_format = compile(build, &statement, place, Style::UniqueId);
    }
}

fn compile(
    build: &mut ProxyBuild<'_, '_>,
    statement: &Statement,
    place: Place,
    style: Style,
) -> Option<sample::LogFormat> {
    let line = Line::new(statement);
    let result = build.shared.styled(&line, 1, line.bytes(1), place, style);
    result.map_err(|fault| build.shared.settle(Err(fault))).ok()
}

fn format(
    build: &mut ProxyBuild<'_, '_>,
    source: Source,
    line: &Line<'_>,
) -> Option<sample::LogFormat> {
    let is_http = build.proxy.mode == Mode::Http;
    let (text, fallback) = match source {
        Source::Written => (line.bytes(1), None),
        Source::Tcp => (TCP.as_bytes(), None),
        Source::TcpClf => (TCP_CLF.as_bytes(), None),
        Source::Http if is_http => (HTTP.as_bytes(), None),
        Source::HttpClf if is_http => (HTTP_CLF.as_bytes(), None),
        Source::Https if is_http => (HTTPS.as_bytes(), None),
        Source::Http => (TCP.as_bytes(), Some(("httplog", "tcplog"))),
        Source::Https => (TCP.as_bytes(), Some(("httpslog", "tcplog"))),
        Source::HttpClf => (TCP_CLF.as_bytes(), Some(("httplog clf", "tcplog clf"))),
    };
    if let Some((wanted, taken)) = fallback {
        let message = format!(
            "'option {wanted}' not usable with {} (needs 'mode http'). Falling back to 'option {taken}'.",
            build.title()
        );
        build
            .shared
            .settle(Err(line.fault(1, message).as_warning()));
    }
    let result = build.shared.styled(line, 1, text, Place::LOG, Style::Log);
    result.map_err(|fault| build.shared.settle(Err(fault))).ok()
}
