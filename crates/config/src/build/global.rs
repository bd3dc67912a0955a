//! Section `global` (manual §3). Several sections merge.

use super::line::{Cursor, Line, Parse, leading_integer};
use super::{Shared, bind, log_line, pages, unknown, values};
use crate::keywords::{self, global::KEYWORDS};
use crate::model::{Families, Global, StatusSet};
use crate::tree::Prefix;
use sample::vars::{SetConditions, Source};
use sample::{Assignment, Place};
use std::time::Duration;
use syntax::octets::Octets;

/// Parses one keyword of `global`.
pub type GlobalParser = fn(&mut GlobalBuild<'_, '_>, &Line<'_>) -> Parse;

/// `global` while it is built.
pub struct GlobalBuild<'a, 'd> {
    /// State that all sections share.
    pub shared: &'a mut Shared<'d>,
    pub(super) global: Global,
    maxrewrite_set: bool,
}

impl<'a, 'd> GlobalBuild<'a, 'd> {
    /// A section without settings.
    pub fn new(shared: &'a mut Shared<'d>) -> Self {
        GlobalBuild {
            shared,
            global: Global::default(),
            maxrewrite_set: false,
        }
    }

    /// The merged section.
    pub fn finish(self) -> Global {
        let mut global = self.global;
        let half = global.tune.bufsize_bytes / 2;
        if !self.maxrewrite_set && global.tune.maxrewrite_bytes > half {
            global.tune.maxrewrite_bytes = half;
        }
        let tls = &self.shared.tls;
        global.tls.ca_base.clone_from(&tls.ca_base);
        global.tls.crt_base.clone_from(&tls.crt_base);
        global.tls.takes_off_crt = tls.extra.takes_off_crt;
        super::tls::bind::finish_proxy("", &mut global.stats_sockets, &[], self.shared);
        for (index, bind) in global.stats_sockets.iter_mut().enumerate() {
            bind.id = index as u32 + 1;
        }
        global
    }
}

/// Reads one line.
pub fn statement(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let Some(keyword) = keywords::find(KEYWORDS, line.keyword()) else {
        return Err(unknown(line, "global", KEYWORDS.iter().map(|k| k.name)));
    };
    match super::parser_of(keyword, line, 0, build.shared)? {
        Some(parser) => parser(build, line)?,
        None => return Ok(()),
    }
    if concerns_servers(line.keyword()) {
        let words = line.bytes_from(0).into_iter();
        build
            .global
            .server_lines
            .push(words.map(Octets::from).collect());
    }
    Ok(())
}

/// Whether a line changes the defaults of server lines.
fn concerns_servers(keyword: &str) -> bool {
    keyword.starts_with("ssl-default-server-")
        || matches!(keyword, "ssl-server-verify" | "ca-base" | "crt-base")
}

/// `http-err-codes`, `http-fail-codes`: `[+-]<low>[-<high>][,…] […]`
pub fn counted_statuses(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let name = line.keyword();
    line.need(1, || format!("Missing status codes range for '{name}'."))?;
    let counted = &mut build.global.counted_statuses;
    let set = match name {
        "http-err-codes" => &mut counted.errors,
        _ => &mut counted.failures,
    };
    for at in 1..line.count() {
        let word = line.arg(at);
        let list = word.strip_prefix(['+', '-']).unwrap_or(word);
        if list.len() == word.len() {
            *set = StatusSet::default();
        }
        for part in list.split(',') {
            let (low, high) = part.split_once('-').unwrap_or((part, part));
            let status = |text: &str| {
                let status = text.parse::<u16>().ok();
                status.filter(|status| (100..=599).contains(status))
            };
            let (Some(low), Some(high)) = (status(low), status(high)) else {
                let message = format!("Invalid status codes range '{word}' in '{name}'.");
                return Err(line.fault(at, message));
            };
            set.put(low, high, !word.starts_with('-'));
        }
    }
    Ok(())
}

/// `tune.idle-pool.shared`
pub fn idle_pool_shared(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    build.global.tune.idle_pool_shared = match line.arg(1) {
        "on" | "full" => true,
        "off" => false,
        _ => {
            return Err(line.fault(
                1,
                "'tune.idle-pool.shared' expects 'auto', 'on', 'full' or 'off'.",
            ));
        }
    };
    line.at_most(1)
}

/// Sets `field` unless it is set already: for these keywords, HAProxy keeps the first value.
fn set_once<T>(field: &mut Option<T>, line: &Line<'_>, value: T) -> Parse {
    if field.is_some() {
        return Err(line
            .fault(
                0,
                format!("'{}' already specified. Continuing.", line.keyword()),
            )
            .as_warning());
    }
    *field = Some(value);
    Ok(())
}

fn one<'a>(line: &Line<'a>, what: &str) -> Parse<&'a str> {
    let value = line.need(1, || {
        format!("'{}' expects {what} as argument.", line.keyword())
    })?;
    line.at_most(1)?;
    Ok(value)
}

fn number<T: std::str::FromStr>(line: &Line<'_>) -> Parse<T> {
    let text = one(line, "an integer")?;
    text.parse().map_err(|_| {
        line.fault(
            1,
            format!(
                "'{}' expects an integer argument, got '{text}'.",
                line.keyword()
            ),
        )
    })
}

fn duration(shared: &mut Shared<'_>, line: &Line<'_>) -> Parse<Duration> {
    one(line, "a time in milliseconds")?;
    shared.time(line, 1, line.keyword())
}

/// `chroot`
pub fn chroot(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    one(line, "a directory")?;
    set_once(&mut build.global.chroot, line, line.path(1).to_owned())
}

/// `external-check [preserve-env]`
pub fn external_check(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    use crate::model::ExternalEnvironment::{Clean, Preserved};
    build.global.checks.external = Some(match line.arg(1) {
        "" => Clean,
        "preserve-env" => Preserved,
        word => {
            return Err(line.fault(
                1,
                format!(
                    "'external-check' only supports 'preserve-env' as an argument, found '{word}'."
                ),
            ));
        }
    });
    line.at_most(1)
}

/// `spread-checks`
pub fn spread_checks(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let mut cursor = Cursor { line: *line, at: 1 };
    let percent = super::arguments::number(&mut cursor, "spread-checks", 0, 50)?;
    build.global.checks.spread_percent = percent as u32;
    line.at_most(1)
}

/// `max-spread-checks`
pub fn max_spread_checks(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let time = duration(build.shared, line)?;
    build.global.checks.max_spread = (!time.is_zero()).then_some(time);
    Ok(())
}

/// `tune.max-checks-per-thread`
pub fn max_checks(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let mut cursor = Cursor { line: *line, at: 1 };
    if !cursor.peek().is_empty() {
        let name = "tune.max-checks-per-thread";
        let count = super::arguments::number(&mut cursor, name, i64::MIN, i64::MAX)?;
        build.global.checks.at_once_max = u32::try_from(count).unwrap_or(0);
    }
    line.at_most(1)
}

/// `pp2-never-send-local`
pub fn never_local(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    build.global.checks.never_local = true;
    line.at_most(0)
}

/// `daemon`
pub fn daemon(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    build.global.daemon = true;
    line.at_most(0)
}

/// `anonkey <key>`
pub fn anonkey(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    // HAProxy accepts another word.
    line.at_most(2)?;
    let number = leading_integer(line.arg(1)).parse::<i64>().ok();
    let key = number.and_then(|number| u32::try_from(number).ok());
    build.global.anon_key = key.ok_or_else(|| {
        line.fault(
            1,
            "'anonkey' expects an integer value between 0 and 4294967295.",
        )
    })?;
    Ok(())
}

/// `default-path`
pub fn default_path(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    build.shared.default_path = pages::DefaultPath::parse(line)?;
    Ok(())
}

/// `description`
pub fn description(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    line.need(1, || "'description' expects a string as argument.".into())?;
    build.global.description = Some(line.joined(1));
    Ok(())
}

/// `[no] strict-limits`
pub fn strict_limits(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    line.at_most(0)?;
    build.global.tolerates_low_limits = line.prefix() == Prefix::No;
    Ok(())
}

/// `insecure-fork-wanted`, `insecure-setuid-wanted`
pub fn insecure(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    line.at_most(0)?;
    let is_on = line.prefix() != Prefix::No;
    match line.keyword() {
        "insecure-fork-wanted" => build.global.allows_forks = is_on,
        _ => build.global.allows_setuid = is_on,
    }
    Ok(())
}

/// `zero-warning`, `expose-*-directives`
pub fn flag_only(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    line.at_most(0)?;
    match line.keyword() {
        "zero-warning" => build.global.zero_warning = true,
        name => build.shared.flags.push(name.to_owned()),
    }
    Ok(())
}

/// `setenv` and related keywords: the reader has already executed them.
pub fn environment(_build: &mut GlobalBuild<'_, '_>, _line: &Line<'_>) -> Parse {
    Ok(())
}

/// `fd-hard-limit`
pub fn fd_hard_limit(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    build.global.fd_hard_limit = Some(number(line)?);
    Ok(())
}

/// `ulimit-n`
pub fn ulimit_n(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let limit = number(line)?;
    set_once(&mut build.global.ulimit_n, line, limit)
}

/// `harden.reject-privileged-ports.tcp on|off`
pub fn harden(_build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    match line.arg(1) {
        "off" => Ok(()),
        "on" => Err(line.fault(1, super::not_yet(&format!("{} on", line.keyword())))),
        word => Err(line.fault(
            1,
            format!(
                "'{}' expects either 'on' or 'off' but got '{word}'.",
                line.keyword()
            ),
        )),
    }
}

/// `dns-accept-family auto|ipv4|ipv6[,…]`: the address families for resolvers. `auto` means both.
pub fn dns_accept_family(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let name = line.keyword();
    let list = line.arg(1);
    line.at_most(1)?;
    let mut families = Families::NONE;
    for word in list.split(',') {
        match word {
            "auto" => families = Families::default(),
            "ipv4" => families.v4 = true,
            "ipv6" => families.v6 = true,
            _ => {
                let message = format!(
                    "'{name}' expects a comma-delimited list of 'ipv4' and 'ipv6' but got '{list}'."
                );
                return Err(line.fault(1, message));
            }
        }
    }
    build.global.dns_families = families;
    Ok(())
}

/// `tune.h1.*.glitches-threshold`: 0 means no threshold.
pub fn glitches(_build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let name = line.keyword();
    let text = line.arg(1);
    line.at_most(1)?;
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    match text[..digits].parse::<u32>() {
        Ok(0) => Ok(()),
        Ok(_) => Err(line.fault(1, super::not_yet(&format!("{name} {text}")))),
        Err(_) if text.is_empty() => Ok(()),
        Err(_) => Err(line.fault(
            1,
            format!("'{name}' expects a positive numeric value, got '{text}'."),
        )),
    }
}

/// `grace`
pub fn grace(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    build.global.grace = Some(duration(build.shared, line)?);
    Ok(())
}

/// `hard-stop-after`
pub fn hard_stop_after(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    build.global.hard_stop_after = Some(duration(build.shared, line)?);
    Ok(())
}

/// `user`
pub fn user(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let name = one(line, "a user name")?;
    let id = values::user_id(name)
        .ok_or_else(|| line.fault(1, format!("cannot find user id for '{name}'.")))?;
    set_once(&mut build.global.uid, line, id).map_err(|_| taken(line, "user/uid"))
}

/// `uid`
pub fn uid(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let id = number(line)?;
    set_once(&mut build.global.uid, line, id).map_err(|_| taken(line, "user/uid"))
}

/// `group`
pub fn group(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let name = one(line, "a group name")?;
    let id = values::group_id(name)
        .ok_or_else(|| line.fault(1, format!("cannot find group id for '{name}'.")))?;
    set_once(&mut build.global.gid, line, id).map_err(|_| taken(line, "group/gid"))
}

/// `gid`
pub fn gid(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let id = number(line)?;
    set_once(&mut build.global.gid, line, id).map_err(|_| taken(line, "group/gid"))
}

fn taken(line: &Line<'_>, what: &str) -> Box<super::line::Fault> {
    line.fault(0, format!("{what} already specified. Continuing."))
        .as_warning()
}

/// `log`
pub fn log(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    if line.prefix() != Prefix::None {
        line.at_most(0)
            .map_err(|_| line.fault(1, "'no log' does not expect arguments."))?;
        build.global.log.clear();
        return Ok(());
    }
    if line.arg(1) == "global" && line.count() == 2 {
        return Err(line.fault(
            1,
            "log : 'global' is not supported for a global syslog server.",
        ));
    }
    let target = log_line::target(line, build.shared)?;
    build.global.log.push(target);
    Ok(())
}

/// `log-send-hostname`
pub fn log_send_hostname(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    line.at_most(1)?;
    build.global.log_send_hostname = Some(line.octets(1));
    Ok(())
}

/// `log-tag`
pub fn log_tag(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    line.need(1, || "'log-tag' expects a tag for use in syslog.".into())?;
    line.at_most(1)?;
    build.global.log_tag = Some(line.octets(1));
    Ok(())
}

/// `maxconn`
pub fn maxconn(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let value = number(line)?;
    set_once(&mut build.global.maxconn, line, value)
}

/// `maxconnrate` and `maxsessrate`
pub fn rate(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let value: u32 = number(line)?;
    let field = match line.keyword() {
        "maxconnrate" => &mut build.global.maxconnrate,
        _ => &mut build.global.maxsessrate,
    };
    // 0 means no limit.
    match value {
        0 => Ok(()),
        value => set_once(field, line, value),
    }
}

/// `nbthread`
pub fn nbthread(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    /// HAProxy's limit.
    const MAX_THREADS: u16 = 4096;
    let threads: u16 = number(line)?;
    if !(1..=MAX_THREADS).contains(&threads) {
        return Err(line.fault(
            1,
            format!("'nbthread' value must be between 1 and {MAX_THREADS} (was {threads})."),
        ));
    }
    let cores = build.shared.settings.cores;
    if threads > cores {
        let message =
            format!("'nbthread' asks for {threads} threads where {cores} cores may be used.");
        build.shared.diagnostics.diag(&line.span(1), message);
    }
    build.global.nbthread = Some(threads);
    Ok(())
}

/// `node`
pub fn node(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let name = one(line, "a name")?;
    if !name
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
    {
        return Err(line.fault(1, "'node' valid node names are strings with digits(0-9), letters(A-Z, a-z), hyphen(-) or underscore(_)."));
    }
    build.global.node = Some(name.to_owned());
    Ok(())
}

/// `pidfile`
pub fn pidfile(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    line.need(1, || "'pidfile' expects a file name as an argument.".into())?;
    line.at_most(1)?;
    set_once(&mut build.global.pidfile, line, line.path(1).to_owned())
}

/// `server-state-base`
pub fn server_state_base(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    line.need(1, || {
        "'server-state-base' expects one argument: a directory path.".into()
    })?;
    let path = line.path(1).to_owned();
    set_once(&mut build.global.server_state_base, line, path)
}

/// `server-state-file`
pub fn server_state_file(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    line.need(1, || {
        "'server-state-file' expect one argument: a file path.".into()
    })?;
    let path = line.path(1).to_owned();
    set_once(&mut build.global.server_state_file, line, path)
}

/// `set-var`
pub fn set_var(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let var = proc_variable(build, line)?;
    let (expr, next) = build.shared.expr(line, 2, Place::CONFIG)?;
    line.at_most(next - 1)?;
    build.global.set_var.push(Assignment {
        var,
        when: SetConditions::default(),
        source: Source::Expr(expr),
    });
    Ok(())
}

/// `set-var-fmt`
pub fn set_var_fmt(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let var = proc_variable(build, line)?;
    line.need(2, || "'set-var-fmt' expects a format as argument.".into())?;
    line.at_most(2)?;
    let format = build.shared.plain_format(line, 2, Place::CONFIG)?;
    build.global.set_var.push(Assignment {
        var,
        when: SetConditions::default(),
        source: Source::Format(format),
    });
    Ok(())
}

fn proc_variable(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse<sample::VarRef> {
    let name = line.need(1, || {
        format!("'{}' expects a process-wide variable.", line.keyword())
    })?;
    if !name.starts_with("proc.") {
        return Err(line.fault(
            1,
            format!(
                "'{}': variable '{name}' must be of scope 'proc'.",
                line.keyword()
            ),
        ));
    }
    build
        .shared
        .compiler
        .var(name)
        .map_err(|error| line.fault(1, format!("'{}': {}.", line.keyword(), error.message)))
}

/// `stats socket|timeout|maxconn`
pub fn stats(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    match line.arg(1) {
        "socket" => {
            line.need(2, || {
                "'stats socket' in global section expects an address or a path to a UNIX socket."
                    .into()
            })?;
            let binds = bind::line(line, 2, build.shared)?;
            build.global.stats_sockets.extend(binds);
            Ok(())
        }
        "timeout" => {
            line.need(2, || "'stats timeout' expects a positive value.".into())?;
            let timeout = build.shared.time(line, 2, "stats timeout")?;
            build.global.stats_timeout = Some(timeout);
            line.at_most_after(1, 1)
        }
        "maxconn" => {
            let mut cursor = Cursor { line: *line, at: 2 };
            build.global.stats_maxconn = Some(cursor.number(1..=u32::MAX)?);
            line.at_most_after(1, 1)
        }
        "otlp" => super::otel::statistics::stats_otlp(build, line),
        "bind-process" => Err(line.fault(1, "'stats bind-process' is not supported anymore.")),
        word => Err(line.fault(
            1,
            format!(
                "'stats' only supports 'socket', 'maxconn', 'timeout' and 'otlp' (got '{word}')."
            ),
        )),
    }
}

/// `stats-file`
pub fn stats_file(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    line.need(1, || "'stats-file' expects a file path.".into())?;
    line.at_most(1)?;
    build.global.stats_file = Some(line.path(1).to_path_buf());
    Ok(())
}

/// `unix-bind`
pub fn unix_bind(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let mut cursor = Cursor { line: *line, at: 1 };
    while !cursor.peek().is_empty() {
        match cursor.take() {
            "prefix" => build.shared.unix_prefix = cursor.octets("a path")?,
            "mode" => bind::mode(&mut build.shared.unix_template, &mut cursor)?,
            "user" => bind::user(&mut build.shared.unix_template, &mut cursor)?,
            "uid" => bind::uid(&mut build.shared.unix_template, &mut cursor)?,
            "group" => bind::group(&mut build.shared.unix_template, &mut cursor)?,
            "gid" => bind::gid(&mut build.shared.unix_template, &mut cursor)?,
            word => {
                return Err(cursor.fault(format!(
                    "'unix-bind' only supports the 'prefix', 'mode', 'uid', 'gid', 'user' and 'group' options (got '{word}')."
                )));
            }
        }
    }
    Ok(())
}

/// `tune.vars.*-max-size`: bytes, 0 for no limit.
pub fn tune_vars(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let limits = &mut build.global.var_limits;
    let text = line.arg(1);
    let bytes: u32 = match text {
        "" => 0,
        text => text.parse().map_err(|_| {
            line.fault(
                1,
                format!("{}: '{text}' is an invalid size", line.keyword()),
            )
        })?,
    };
    let lower = |known: u32| match known {
        0 => bytes,
        known if bytes == 0 => known,
        known => known.min(bytes),
    };
    match line.keyword() {
        "tune.vars.sess-max-size" => limits.sess = bytes,
        "tune.vars.txn-max-size" => limits.txn = bytes,
        "tune.vars.reqres-max-size" => limits.reqres = bytes,
        "tune.vars.check-max-size" => limits.check = bytes,
        // Scope `proc` includes all others, so both keywords have the same meaning.
        _ => limits.process = lower(limits.process),
    }
    line.at_most(1)
}

/// `maxzlibmem`
pub fn maxzlibmem(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let text = one(line, "an integer")?;
    // As in HAProxy, characters after the number are ignored.
    build.global.maxzlibmem_mib = leading_integer(text).parse().ok();
    Ok(())
}

/// The `tune.*` keywords that have an effect here.
pub fn tune(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let tune = &mut build.global.tune;
    match line.keyword() {
        // Rounded up like in HAProxy, so that limits are equal.
        "tune.bufsize" => tune.bufsize_bytes = size(line, 16)?.next_multiple_of(16),
        "tune.maxrewrite" => {
            tune.maxrewrite_bytes = number(line)?;
            build.maxrewrite_set = true;
        }
        "tune.comp.maxlevel" => {
            let level: u32 = number(line)?;
            if !(1..=9).contains(&level) {
                return Err(line.fault(1, "'tune.comp.maxlevel' expects a number from 1 to 9."));
            }
            tune.comp_level = level;
        }
        "tune.http.maxhdr" => {
            let text = one(line, "an integer")?;
            tune.http_maxhdr = match text.parse() {
                Ok(number @ 1..=32767) => number,
                _ => {
                    return Err(line.fault(
                        1,
                        "'tune.http.maxhdr' expects a numeric value between 1 and 32767.",
                    ));
                }
            };
        }
        "tune.http.cookielen" => tune.http_cookielen_bytes = number(line)?,
        "tune.http.logurilen" => tune.http_logurilen_bytes = number(line)?,
        "tune.maxaccept" => {
            let value: i64 = number(line)?;
            tune.maxaccept = u32::try_from(value).ok();
        }
        "tune.rcvbuf.client" => tune.rcvbuf_client_bytes = Some(size(line, 1)?),
        "tune.rcvbuf.server" => tune.rcvbuf_server_bytes = Some(size(line, 1)?),
        "tune.rcvbuf.frontend" => tune.rcvbuf_frontend_bytes = Some(size(line, 1)?),
        "tune.rcvbuf.backend" => tune.rcvbuf_backend_bytes = Some(size(line, 1)?),
        "tune.sndbuf.frontend" => tune.sndbuf_frontend_bytes = Some(size(line, 1)?),
        "tune.sndbuf.backend" => tune.sndbuf_backend_bytes = Some(size(line, 1)?),
        "tune.stick-counters" => {
            let text = line.arg(1);
            let bad = |what: &str| line.fault(1, format!("tune.stick-counters: {what}"));
            let counters: i64 = match text {
                "" => 0,
                _ => text
                    .parse()
                    .map_err(|_| bad(&format!("'{text}' is an invalid number")))?,
            };
            tune.stick_counters = match u16::try_from(counters) {
                Ok(counters @ ..=100) => counters,
                _ => {
                    return Err(bad(&format!(
                        "the number of stick-counters must be between 1 and 100 (was {counters})"
                    )));
                }
            };
        }
        "tune.cli.max-payload-size" => tune.cli_payload_bytes = size(line, 0)?,
        "tune.sndbuf.client" => tune.sndbuf_client_bytes = Some(size(line, 1)?),
        "tune.sndbuf.server" => tune.sndbuf_server_bytes = Some(size(line, 1)?),
        name => unreachable!("the table gives {name} to another parser"),
    }
    Ok(())
}

fn size(line: &Line<'_>, least: usize) -> Parse<usize> {
    let text = one(line, "a size in bytes")?;
    let size = values::size(text)
        .map_err(|bad| line.fault(1, values::size_message(bad, text, line.keyword())))?;
    if size < least || size > i32::MAX as usize {
        Err(line.fault(
            1,
            format!(
                "'{}' expects a size in bytes from {least} to {}.",
                line.keyword(),
                i32::MAX
            ),
        ))
    } else {
        Ok(size)
    }
}

/// `jwt.decrypt_alg_list`, `jwt.decrypt_enc_list`
pub fn token_algorithms(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    line.at_most(1)?;
    let taken = &mut build.global.token_algorithms;
    let set = match line.keyword() {
        "jwt.decrypt_alg_list" => taken.set_algorithms(line.arg(1)),
        _ => taken.set_encryptions(line.arg(1)),
    };
    set.map_err(|name| {
        let keyword = line.keyword();
        line.fault(
            1,
            format!("'{keyword}' : Unknown algorithm/encoding {name}."),
        )
    })
}
