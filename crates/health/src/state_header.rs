//! The field `X-Haproxy-Server-State` (manual §4.2 http-check send-state).

use net::Addr;
use proxy::{OpState, ServerView};

use crate::Control;
use crate::target::Target;

/// The current value of the field.
pub(crate) fn value(control: &Control, target: &Target) -> String {
    let shared = &control.shared;
    let view = shared.server_view(target.backend, target.place);
    let (address, port) = match target.server_addr() {
        Addr::Inet(addr) => (addr.ip().to_string(), addr.port().to_string()),
        Addr::Unix(_) => ("unix".to_owned(), String::new()),
    };
    let config = &control.runtime_config.config;
    let proxy = &config.proxies[target.backend];
    let node = config.global.node.as_deref();
    let node = node.unwrap_or(&control.runtime_config.process.hostname);
    let (sessions, of_backend, queued) = shared.sessions(target.backend, target.place);
    let tables = shared.server_tables();
    let weights = tables.servers(target.backend).map(|(place, _)| {
        let view = shared.server_view(target.backend, place);
        if view.is_usable { view.weight } else { 0 }
    });
    let total: u32 = weights.sum();
    let mut text = format!(
        "{}; address={address}; port={port}; name={}/{}; node={node}; weight={}/{total}; scur={sessions}/{of_backend}; \
         qcur={queued}",
        state(&view),
        proxy.name,
        target.line.name,
        view.weight,
    );
    if view.state == OpState::Starting {
        let percent = view.throttle_percent.max(1);
        text.push_str(&format!("; throttle={percent}%"));
    }
    text
}

fn state(view: &ServerView) -> String {
    let check = &view.check;
    let is_steady = check.health + 1 == check.rise + check.fall;
    let going_down = (check.health + 1).saturating_sub(check.rise);
    match view.state {
        _ if !check.is_enabled => "no check".to_owned(),
        OpState::Stopped if check.health > 0 => format!("DOWN {}/{}", check.health, check.rise),
        OpState::Stopped => "DOWN".to_owned(),
        OpState::Stopping if is_steady => "NOLB".to_owned(),
        OpState::Stopping => format!("NOLB {going_down}/{}", check.fall),
        OpState::Starting | OpState::Running if is_steady => "UP".to_owned(),
        OpState::Starting | OpState::Running => format!("UP {going_down}/{}", check.fall),
    }
}
