//! Health checks of a backend: the kind that its options select, and the script from its rules
//! (manual §4.2 `option httpchk`, `http-check`, `option tcp-check`, `tcp-check`, §12.9 sections
//! `healthcheck`).
//!
//! Every kind is a script ([`CheckScript`]). The scripts of protocols are built in ([`protocols`]).

mod draft;
pub mod link;
mod matching;
pub mod protocols;
mod rules;
pub mod section;
pub mod server;

use super::Shared;
use super::line::{Cursor, Line, Parse};
use super::proxy::ProxyBuild;
use crate::diagnostic::Severity;
use crate::model::{
    BackendCheck, CheckAction, CheckConnect, CheckKind, CheckRequest, CheckRule, CheckScript,
    CheckSend, CheckText, ExternalCheck,
};
use crate::tree::Prefix;
use draft::Draft;
use sample::Place;
use std::path::PathBuf;
use std::sync::Arc;

/// A kind of rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rules {
    /// `http-check`
    Http,
    /// `tcp-check`
    Tcp,
}

/// The checks of a proxy during the build.
#[derive(Clone, Debug, Default)]
pub struct Pending {
    chosen: Chosen,
    /// The section's own `http-check` rules.
    http: Option<Draft>,
    /// The section's own `tcp-check` rules.
    tcp: Option<Draft>,
    /// `external-check command` and `path`
    external: ExternalCheck,
    has_command: bool,
}

/// The selection by the last option.
#[derive(Clone, Debug, Default)]
enum Chosen {
    /// No option: only connect.
    #[default]
    Nothing,
    /// The rules of the section itself.
    Own(Rules),
    /// The rules of the section's `defaults`.
    Inherited(Rules, Draft),
    /// The check of a protocol.
    Protocol(Draft),
    /// A program.
    External,
}

impl Pending {
    /// The initial state of a section that starts from this `defaults`.
    pub fn for_section(&self) -> Pending {
        let draft = |own: &Option<Draft>| own.clone().unwrap_or_default();
        let chosen = match &self.chosen {
            Chosen::Own(Rules::Http) => Chosen::Inherited(Rules::Http, draft(&self.http)),
            Chosen::Own(Rules::Tcp) => Chosen::Inherited(Rules::Tcp, draft(&self.tcp)),
            other => other.clone(),
        };
        Pending {
            chosen,
            http: None,
            tcp: None,
            external: self.external.clone(),
            has_command: self.has_command,
        }
    }

    fn has_chosen(&self, rules: Rules) -> bool {
        matches!(&self.chosen, Chosen::Own(own) | Chosen::Inherited(own, _) if *own == rules)
    }
}

/// Applies `option httpchk` or another kind. Each replaces the previous selection.
fn choose(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>, chosen: Chosen) {
    build.checks.chosen = match line.prefix() {
        Prefix::None => chosen,
        Prefix::No | Prefix::Default => Chosen::Nothing,
    };
}

/// HAProxy accepts no `no` before these options.
fn no_prefix(line: &Line<'_>) -> Parse {
    match line.prefix() {
        Prefix::None => Ok(()),
        _ => Err(line.fault(
            1,
            format!(
                "negation/default is not supported for option '{}'.",
                line.arg(1)
            ),
        )),
    }
}

/// `option httpchk [[<method>] <uri> [<version> [<host>]]]`
pub fn http_option(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    no_prefix(line)?;
    line.at_most_after(1, 4)?;
    let request = request_of_option(build.shared, line, 2)?;
    let draft = build.checks.http.get_or_insert_with(Draft::default);
    draft.set_request_of_option(request);
    choose(build, line, Chosen::Own(Rules::Http));
    Ok(())
}

/// The request in the words of `option httpchk` from `at` on.
fn request_of_option(shared: &mut Shared<'_>, line: &Line<'_>, at: usize) -> Parse<CheckRequest> {
    if line.arg(at + 2).contains("\r\n") {
        return Err(line.fault(at + 2, "'option httpchk' : hiding headers or body at the end of the version string is unsupported.Use 'http-check send' directive instead."));
    }
    let given = |index: usize| (!line.arg(index).is_empty()).then(|| line.octets(index));
    let (method, uri) = match given(at + 1) {
        Some(uri) => (given(at), Some(uri)),
        None => (None, given(at)),
    };
    let headers = match given(at + 3) {
        Some(_) => vec![(
            b"host".into(),
            shared.plain_format(line, at + 3, Place::CHECK)?,
        )],
        None => Vec::new(),
    };
    Ok(CheckRequest {
        method,
        uri: uri.map(CheckText::Fixed),
        version: given(at + 2),
        headers,
        body: None,
    })
}

/// `option tcp-check`
pub fn tcp_option(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    no_prefix(line)?;
    line.at_most_after(1, 0)?;
    build.checks.tcp.get_or_insert_with(Draft::default);
    choose(build, line, Chosen::Own(Rules::Tcp));
    Ok(())
}

/// `option external-check`
pub fn external_option(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    no_prefix(line)?;
    line.at_most_after(1, 0)?;
    choose(build, line, Chosen::External);
    Ok(())
}

/// `option <protocol>-check …`
pub fn protocol_option(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    no_prefix(line)?;
    let Some(protocol) = protocols::find(line.arg(1)) else {
        return Ok(());
    };
    line.at_most_after(1, protocol.words_max)?;
    let draft = Draft::whole((protocol.rules)(build.shared, line, 2)?);
    choose(build, line, Chosen::Protocol(draft));
    Ok(())
}

/// `http-check …`
pub fn http_check(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    rule(build, line, Rules::Http)
}

/// `tcp-check …`
pub fn tcp_check(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    rule(build, line, Rules::Tcp)
}

fn rule(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>, rules: Rules) -> Parse {
    let is_chosen = build.checks.has_chosen(rules);
    let checks = &mut build.checks;
    let draft = match rules {
        Rules::Http => &mut checks.http,
        Rules::Tcp => &mut checks.tcp,
    };
    let draft = draft.get_or_insert_with(Draft::default);
    if draft.take_line(build.shared, line, rules, is_chosen)? && is_chosen {
        checks.chosen = Chosen::Own(rules);
    }
    Ok(())
}

/// `external-check command <command>`, `external-check path <path>`
pub fn external_check(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let mut cursor = Cursor { line: *line, at: 1 };
    let external = &mut build.checks.external;
    match cursor.take() {
        "command" => {
            line.need(2, || "missing argument after 'command'.".to_owned())?;
            external.command = PathBuf::from(line.path(2));
            build.checks.has_command = true;
        }
        "path" => {
            line.need(2, || "missing argument after 'path'.".to_owned())?;
            external.path = Some(line.octets(2));
        }
        "" => {
            return Err(line.fault(1, "missing argument after 'external-check'."));
        }
        word => {
            return Err(line.fault(1, format!("external-check: unknown argument '{word}'.")));
        }
    }
    line.at_most_after(1, 1)
}

/// Builds the checks of a proxy after all of its lines were read.
pub fn finish(build: &mut ProxyBuild<'_, '_>) {
    let checks = std::mem::take(&mut build.checks);
    if !build.proxy.is_backend {
        return;
    }
    let own_http_is_used = matches!(checks.chosen, Chosen::Own(Rules::Http));
    let own_tcp_is_used = matches!(checks.chosen, Chosen::Own(Rules::Tcp));
    let title = build.title();
    let has_rules = |draft: &Option<Draft>| draft.as_ref().is_some_and(|draft| !draft.is_empty());
    for (is_unused, rules, option) in [
        (
            has_rules(&checks.http) && !own_http_is_used,
            "http-check",
            "httpchk",
        ),
        (
            has_rules(&checks.tcp) && !own_tcp_is_used,
            "tcp-check",
            "tcp-check",
        ),
    ] {
        if is_unused {
            let message = format!(
                "{title} uses {rules} rules without 'option {option}', so the rules are ignored."
            );
            let diagnostics = &mut build.shared.diagnostics;
            diagnostics.add(Severity::Warning, None, message);
        }
    }
    let script = |kind, draft: Draft| BackendCheck::Script(Arc::new(draft.finish(kind)));
    let own = |draft: Option<Draft>| draft.unwrap_or_default();
    let check = match checks.chosen {
        Chosen::Nothing => script(CheckKind::Connect, Draft::default()),
        Chosen::Own(Rules::Http) => script(CheckKind::Http, own(checks.http)),
        Chosen::Own(Rules::Tcp) => script(CheckKind::Tcp, own(checks.tcp)),
        Chosen::Inherited(Rules::Http, draft) => script(CheckKind::Http, draft),
        Chosen::Inherited(Rules::Tcp, draft) => script(CheckKind::Tcp, draft),
        Chosen::Protocol(draft) => script(CheckKind::Protocol, draft),
        Chosen::External => {
            external(build, &checks.external, checks.has_command);
            BackendCheck::External(Arc::new(checks.external))
        }
    };
    build.proxy.check = Some(check);
}

/// Checks the other settings that `option external-check` needs.
fn external(build: &mut ProxyBuild<'_, '_>, external: &ExternalCheck, has_command: bool) {
    let name = build.proxy.name.clone();
    let mut say = |severity, message| {
        build.shared.diagnostics.add(severity, None, message);
    };
    if build.global.checks.external.is_none() {
        let message = format!(
            "Proxy '{name}' : 'option external-check' unable to find required 'global.external-check'."
        );
        say(Severity::Alert, message);
    }
    if !has_command {
        let message = format!(
            "Proxy '{name}' : 'option external-check' unable to find required 'external-check command'."
        );
        say(Severity::Alert, message);
    } else if external.command.is_relative() && external.path.is_none() {
        let message = format!(
            "Proxy '{name}': 'external-check command' does not have a leading '/' and 'external-check path' is not set."
        );
        say(Severity::Alert, message);
    }
    if !build.global.allows_forks && !build.shared.settings.allows_forks {
        let message = format!(
            "Proxy '{name}' : 'insecure-fork-wanted' not enabled in the global section, 'option external-check' will likely fail."
        );
        build
            .shared
            .diagnostics
            .add(Severity::Warning, None, message);
    }
}

/// A connect rule that was not written.
fn implicit_connect() -> CheckRule {
    CheckRule {
        index: 0,
        action: CheckAction::Connect(CheckConnect {
            is_implicit: true,
            is_default: true,
            ..CheckConnect::default()
        }),
        comment: None,
    }
}

/// The script for agents: sends the server's text for the agent, then reads one line.
pub fn agent_script(text: &[u8]) -> CheckScript {
    let mut draft = Draft::default();
    if !text.is_empty() {
        draft.push(CheckAction::Send(CheckSend::Bytes(text.into())));
    }
    draft.push(protocols::custom(crate::model::CustomExpect::Agent));
    draft.finish(CheckKind::Agent)
}
