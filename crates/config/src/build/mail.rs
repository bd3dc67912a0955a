//! `email-alert` and sections `mailers` (manual §4.2, §12.4).

use super::address::{self, Parsed, Ports};
use super::line::{Cursor, Line, Parse};
use super::proxy::ProxyBuild;
use super::{Shared, log_line, unknown, values};
use crate::diagnostic::Severity;
use crate::model::{EmailAlert, Mailers};
use crate::tree::Section;
use std::net::SocketAddr;
use std::time::Duration;
use syntax::octets::Octets;

/// The default of `timeout mail`.
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(10);
/// The default of `email-alert level`: alert.
const LEVEL_DEFAULT: u8 = 1;

/// The `email-alert` lines of a proxy so far.
#[derive(Clone, Debug, Default)]
pub struct Pending {
    mailers: Option<String>,
    from: Option<Octets>,
    to: Option<Octets>,
    hostname: Option<Octets>,
    level: Option<u8>,
}

/// `email-alert`
pub fn email_alert(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let word = line.need(1, || "missing argument after 'email-alert'.".to_owned())?;
    let value = || line.need(2, || format!("missing argument after '{word}'."));
    let pending = &mut build.email_alert;
    match word {
        "from" => {
            value()?;
            pending.from = Some(line.octets(2));
        }
        "to" => {
            value()?;
            pending.to = Some(line.octets(2));
        }
        "myhostname" => {
            value()?;
            pending.hostname = Some(line.octets(2));
        }
        "mailers" => pending.mailers = Some(value()?.to_owned()),
        "level" => {
            let text = value()?;
            let level = log_line::LEVELS.iter().position(|level| *level == text);
            let level = level.ok_or_else(|| {
                line.fault(2, format!("unknown log level '{text}' after 'level'."))
            })?;
            pending.level = Some(level as u8);
        }
        _ => {
            return Err(line.fault(1, format!("email-alert: unknown argument '{word}'.")));
        }
    }
    line.at_most_after(1, 1)
}

/// Builds the alerts of a proxy from its lines.
pub fn finish(build: &mut ProxyBuild<'_, '_>) {
    let pending = std::mem::take(&mut build.email_alert);
    let Pending {
        mailers,
        from,
        to,
        hostname,
        level,
    } = pending;
    let any = mailers.is_some() || from.is_some() || to.is_some() || hostname.is_some();
    if !any && level.is_none() {
        return;
    }
    let title = build.title();
    let (Some(mailers), Some(from), Some(to)) = (mailers, from, to) else {
        let message = format!(
            "'email-alert' will be ignored for {title} (the presence any of 'email-alert from', 'email-alert level' \
             'email-alert mailers', 'email-alert myhostname', or 'email-alert to' requires each of 'email-alert from', \
             'email-alert mailers' and 'email-alert to' to be present)."
        );
        build
            .shared
            .diagnostics
            .add(Severity::Warning, None, message);
        return;
    };
    let known = &build.shared.mailers;
    let Some(index) = known.iter().position(|known| known.name == mailers) else {
        let message = format!("{title} : unable to find mailers '{mailers}'.");
        build.shared.diagnostics.add(Severity::Alert, None, message);
        return;
    };
    build.proxy.email_alert = Some(EmailAlert {
        mailers: index,
        from,
        to,
        hostname,
        level: level.unwrap_or(LEVEL_DEFAULT),
    });
}

/// Reads a section `mailers`.
pub fn section(section: &Section, shared: &mut Shared<'_>) {
    let header = Line::new(&section.header);
    let name = match header.need(1, || "missing name for mailers section.".to_owned()) {
        Ok(name) => name.to_owned(),
        Err(fault) => return shared.settle(Err(fault)),
    };
    if shared.mailers.iter().any(|known| known.name == name) {
        let message = format!("mailers section '{name}' already defined.");
        return shared.settle(Err(header.fault(1, message)));
    }
    let mut mailers = Mailers {
        name,
        servers: Vec::new(),
        timeout: TIMEOUT_DEFAULT,
    };
    for line in section.statements.iter().map(Line::new) {
        let result = match line.keyword() {
            "mailer" => mailer(&mut mailers, &line, shared),
            "timeout" => timeout(&mut mailers, &line, shared),
            _ => Err(unknown(&line, "mailers", ["mailer", "timeout"].into_iter())),
        };
        shared.settle(result);
    }
    shared.mailers.push(mailers);
}

/// `mailer <name> <addr>:<port>`
fn mailer(mailers: &mut Mailers, line: &Line<'_>, shared: &mut Shared<'_>) -> Parse {
    let missing = || "'mailer' expects <name> and <addr>[:<port>] as arguments.".to_owned();
    let name = line.need(1, missing)?;
    line.need(2, missing)?;
    let title = format!("'mailer {name}'");
    let text = &*address::resolved(line, 2, shared, &title)?;
    let fault = |why: String| line.fault(2, format!("{title} : {why}."));
    match address::parse(text, address::Names::Resolve).map_err(fault)? {
        Parsed::Inet(ip, Ports::Range(low, high)) if low == high => {
            mailers
                .servers
                .push((name.to_owned(), SocketAddr::new(ip, low)));
            line.at_most(2)
        }
        _ => {
            let text = line.arg(2);
            Err(fault(format!("missing port specification in '{text}'")))
        }
    }
}

/// `timeout mail <time>`
fn timeout(mailers: &mut Mailers, line: &Line<'_>, shared: &mut Shared<'_>) -> Parse {
    let mut cursor = Cursor { line: *line, at: 1 };
    match cursor.take() {
        "mail" => {
            let text = line.need(2, || {
                "'timeout mail' expects <time> as argument.".to_owned()
            })?;
            let time = values::whole_time(text);
            mailers.timeout =
                time.map_err(|bad| line.fault(2, values::time_message(bad, text, "timeout mail")))?;
            shared.note_time(line, 2);
            line.at_most(2)
        }
        word => Err(line.fault(
            1,
            format!("'timeout' expects mail and <time> as arguments (got '{word}')."),
        )),
    }
}
