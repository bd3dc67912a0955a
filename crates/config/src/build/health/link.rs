//! Resolves the references of servers to other sections: the servers that they track, and the
//! `healthcheck` sections that they use. Makes the checks that need a complete server line.

use super::super::Shared;
use crate::diagnostic::Severity;
use crate::model::{
    BackendCheck, CheckAction, CheckKind, CheckPort, CheckProto, CheckScript, InitState, Proxy,
    Server, ServerAddress,
};
use std::sync::Arc;

/// Resolves the references of servers.
pub fn link(proxies: &mut [Proxy], shared: &mut Shared<'_>) {
    for proxy in proxies.iter_mut().filter(|proxy| proxy.is_backend) {
        let name = proxy.name.clone();
        // Servers are not shared before the proxies are complete, so every `get_mut` succeeds.
        for server in proxy.servers.iter_mut().filter_map(Arc::get_mut) {
            script(server, shared);
            let of_backend = match &proxy.check {
                Some(BackendCheck::Script(script)) => Some(script),
                Some(BackendCheck::External(_)) | None => None,
            };
            let own = server.options.checks.script.clone();
            if let Some(script) = own.as_ref().or(of_backend) {
                check(server, script, &name, shared);
            }
        }
    }
    for backend in 0..proxies.len() {
        for place in 0..proxies[backend].servers.len() {
            if let Some(written) = &proxies[backend].servers[place].options.checks.track {
                match tracked(proxies, (backend, place), written) {
                    Ok(target) => {
                        if let Some(server) = Arc::get_mut(&mut proxies[backend].servers[place]) {
                            server.options.checks.tracked = Some(target);
                        }
                    }
                    Err(message) => {
                        let origin = &proxies[backend].servers[place].origin;
                        let message = format!("[{origin}] : {message}.");
                        shared.diagnostics.add(Severity::Alert, None, message);
                    }
                }
            }
        }
    }
}

/// The script of the section that a server names.
fn script(server: &mut Server, shared: &mut Shared<'_>) {
    let Some(section) = &server.options.checks.section else {
        return;
    };
    match shared.check_scripts.get(section) {
        Some(script) => server.options.checks.script = Some(Arc::clone(script)),
        None => {
            let message = format!(
                "parsing [{}]: healthcheck section '{section}' not found for server '{}'.",
                server.origin, server.name
            );
            shared.diagnostics.add(Severity::Alert, None, message);
        }
    }
}

/// Checks the health check settings of a server.
fn check(server: &Server, script: &CheckScript, backend: &str, shared: &mut Shared<'_>) {
    let checks = &server.checks;
    if !checks.enabled {
        return;
    }
    let name = &server.name;
    let mut alert = |what: String| {
        let message = format!("config: backend '{backend}': server '{name}' {what}.");
        shared.diagnostics.add(Severity::Alert, None, message);
    };
    let is_http = script.kind == CheckKind::Http;
    let fits = match checks.proto {
        None => true,
        Some(CheckProto::None) => !is_http,
        Some(CheckProto::H1 | CheckProto::H2) => is_http,
    };
    if !fits {
        return alert("uses an incompatible MUX protocol for the selected check type".into());
    }
    let has_port = match (&server.address, &checks.addr) {
        _ if checks.port > 0 => true,
        (_, Some(net::Addr::Inet(addr))) if addr.port() > 0 => true,
        (_, Some(net::Addr::Unix(_))) => true,
        (ServerAddress::Fixed(net::Addr::Inet(addr)), _) => addr.port() > 0,
        (ServerAddress::Fixed(net::Addr::Unix(_)), addr) => addr.is_none(),
        // As in HAProxy, an unspecified address needs no port.
        (ServerAddress::PortOffset { ip, .. }, None) => ip.is_unspecified(),
        (ServerAddress::PortOffset { .. }, Some(_)) => false,
    };
    if has_port {
        return;
    }
    let mut connects = script.rules.iter().filter_map(|rule| match &rule.action {
        CheckAction::Connect(connect) => Some(connect),
        _ => None,
    });
    let names_port = |connect: &crate::model::CheckConnect| {
        matches!(connect.port, Some(CheckPort::Fixed(_)))
            || matches!(&connect.addr, Some(net::Addr::Inet(addr)) if addr.port() > 0)
    };
    if script.kind == CheckKind::Connect {
        alert("has neither service port nor check port".into());
    } else if !connects.next().is_some_and(names_port) {
        alert("has neither service port nor check port nor tcp_check rule 'connect' with port information".into());
    } else if !connects.all(names_port) {
        alert("has neither service port nor check port, and a tcp_check rule 'connect' with no port information".into());
    }
}

/// The server that another server names after `track`.
fn tracked(proxies: &[Proxy], of: (usize, usize), written: &str) -> Result<(usize, usize), String> {
    let own = &proxies[of.0].servers[of.1];
    if own.checks.enabled {
        return Err("unable to enable checks and tracking at the same time!".into());
    }
    if own.checks.init_state != InitState::Unset {
        return Err("unable to set init-state and tracking at the same time!".into());
    }
    let (backend, name) = match written.rsplit_once('/') {
        Some((proxy, server)) => {
            let is = |other: &Proxy| other.is_backend && !other.is_removed && other.name == proxy;
            let found = proxies
                .iter()
                .position(is)
                .ok_or_else(|| format!("unable to find required proxy '{proxy}' for tracking"))?;
            (found, server)
        }
        None => (of.0, written),
    };
    let place = proxies[backend]
        .server_named(name)
        .ok_or_else(|| format!("unable to find required server '{name}' for tracking"))?;
    let target = (backend, place);
    let title = |(backend, place): (usize, usize)| {
        let proxy: &Proxy = &proxies[backend];
        format!("{}/{}", proxy.name, proxy.servers[place].name)
    };
    let checks = &proxies[backend].servers[place].checks;
    if !checks.enabled && !checks.agent.enabled && checks.track.is_none() {
        return Err(format!(
            "unable to use {} for tracking as it does not have any check nor agent enabled",
            title(target)
        ));
    }
    let mut next = Some(target);
    while let Some(at) = next {
        if at == of {
            return Err(format!(
                "unable to track {} as it belongs to a tracking chain looping back to {}",
                title(target),
                title(of)
            ));
        }
        next = proxies[at.0].servers[at.1].checks.tracked;
    }
    let disables = |proxy: &Proxy| matches!(&proxy.check, Some(BackendCheck::Script(script)) if script.disable_on_404);
    if backend != of.0 && disables(&proxies[of.0]) != disables(&proxies[backend]) {
        return Err(format!(
            "unable to use {} fortracking: disable-on-404 option inconsistency",
            title(target)
        ));
    }
    Ok(target)
}
