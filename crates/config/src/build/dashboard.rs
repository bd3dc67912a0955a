//! Section `dashboard`: web pages about this process.

use super::line::{Line, Parse};
use super::stats_page::account;
use super::{Shared, address, bind, unknown};
use crate::keywords::{self, Keyword, Places, Secret, State};
use crate::model::{Bind, BindAddress, DashboardSection};
use crate::tree::Section;
use net::Addr;

/// The default listening address.
const BIND_DEFAULT: &str = "127.0.0.1:8404";

type Parser = fn(&mut DashboardSection, &Line<'_>, &mut Shared<'_>) -> Parse;
type K = Keyword<Parser>;

const fn k(name: &'static str, parser: Parser, doc: &'static str) -> K {
    Keyword::yes(name, Places::NONE, parser, doc)
}

#[rustfmt::skip]
const KEYWORDS: &[K] = &[
    k("admin", admin, "Permits actions on servers (state, weight, health checks) and reloads in place. Without it the dashboard only reads."),
    k("auth", auth, "`<user>:<password>`: asks for them (HTTP Basic authentication); several lines give several users.").secret(Secret::Account),
    k("bind", bind_line, "Address to listen on (default 127.0.0.1:8404); several lines give several addresses. Plain HTTP. Without `auth`, an address that others can reach is a warning."),
];

/// The keywords of the section.
pub fn keywords() -> &'static [K] {
    KEYWORDS
}

/// Reads the section.
pub fn section(section: &Section, shared: &mut Shared<'_>) {
    let header = Line::new(&section.header);
    let mut made = DashboardSection {
        span: header.span(0),
        binds: Vec::new(),
        users: Vec::new(),
        admin: false,
    };
    let result = only_one(&header, shared);
    shared.settle(result);
    for line in section.statements.iter().map(Line::new) {
        let result = match keywords::find(KEYWORDS, line.keyword()).map(|known| known.state) {
            Some(State::Supported(parser)) => parser(&mut made, &line, shared),
            _ => Err(unknown(&line, "dashboard", KEYWORDS.iter().map(|k| k.name))),
        };
        shared.settle(result);
    }
    let mut lines = section.statements.iter().map(Line::new);
    if !lines.any(|line| line.keyword() == "bind") {
        made.binds = default_binds(&header);
    }
    warn_of_reach(&made, shared);
    shared.dashboard = Some(made);
}

/// The section has no name, and there is at most one.
fn only_one(header: &Line<'_>, shared: &Shared<'_>) -> Parse {
    header.at_most(0)?;
    shared.dashboard.as_ref().map_or(Ok(()), |first| {
        let place = first.span.place();
        let message = format!("section 'dashboard' is declared a second time, after {place}.");
        Err(header.fault(0, message))
    })
}

fn default_binds(header: &Line<'_>) -> Vec<Bind> {
    let address = BIND_DEFAULT.parse().map(Addr::Inet);
    let bind = address.map(|address| Bind {
        address: BindAddress::Addr(address),
        origin: header.span(0).place(),
        ..bind::blank()
    });
    bind.into_iter().collect()
}

/// Without passwords, only the users of this machine should be able to reach it.
fn warn_of_reach(made: &DashboardSection, shared: &mut Shared<'_>) {
    if !made.users.is_empty() {
        return;
    }
    let reachable = |bind: &Bind| match &bind.address {
        BindAddress::Addr(Addr::Inet(address)) => {
            Some(*address).filter(|address| !address.ip().is_loopback())
        }
        BindAddress::Addr(Addr::Unix(_)) | BindAddress::Quic(_) | BindAddress::Fd(_) => None,
    };
    if let Some(address) = made.binds.iter().find_map(reachable) {
        let message = format!(
            "the dashboard on [{address}] is not on a loopback address and has no 'auth': everyone who reaches it can read it{}.",
            if made.admin {
                " and change servers"
            } else {
                ""
            },
        );
        shared.diagnostics.warning(&made.span, message);
    }
}

/// `bind <address>`
fn bind_line(section: &mut DashboardSection, line: &Line<'_>, shared: &mut Shared<'_>) -> Parse {
    line.need(1, || "'bind' expects an address as argument.".into())?;
    line.at_most(1)?;
    let resolved = address::resolved(line, 1, shared, "'bind'")?;
    let addresses = address::binds(&resolved, &shared.unix_prefix)
        .map_err(|message| line.fault(1, format!("'bind' : {message}.")))?;
    section
        .binds
        .extend(addresses.into_iter().map(|listen| Bind {
            address: listen.address,
            origin: line.span(1).place(),
            ..shared.unix_template.clone()
        }));
    Ok(())
}

/// `auth <user>:<password>`
fn auth(section: &mut DashboardSection, line: &Line<'_>, _: &mut Shared<'_>) -> Parse {
    line.need(1, || "'auth' needs a user:password account.".into())?;
    line.at_most(1)?;
    let (user, password) = account(line.bytes(1));
    if section.users.iter().any(|(known, _)| **known == *user) {
        let name = String::from_utf8_lossy(user);
        let message = format!("'auth': ignoring duplicated user '{name}'.");
        return Err(line.fault(1, message).as_warning());
    }
    section.users.push((user.into(), password.into()));
    Ok(())
}

/// `admin`
fn admin(section: &mut DashboardSection, line: &Line<'_>, _: &mut Shared<'_>) -> Parse {
    line.at_most(0)?;
    section.admin = true;
    Ok(())
}
