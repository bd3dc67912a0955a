//! Configurations that follow each other in one process.

mod kept;
mod places;
mod sequences;

use crate::common::read_after;
use spangate_config::build::previous::Previous;
use spangate_config::diagnostic::Rendering;
use spangate_config::model::{Bind, BindAddress, Config, Proxy};
use std::sync::Arc;

/// A configuration without a previous one.
fn first(text: &str) -> Arc<Config> {
    read(None, text)
}

/// The configuration that follows `previous`, in whose process nothing changed at run time.
fn next(previous: &Arc<Config>, text: &str) -> Arc<Config> {
    after(Previous::of(Arc::clone(previous)), text)
}

fn after(previous: Previous, text: &str) -> Arc<Config> {
    read(Some(Arc::new(previous)), text)
}

fn read(previous: Option<Arc<Previous>>, text: &str) -> Arc<Config> {
    match read_after(previous, text) {
        Ok((config, _)) => Arc::new(config),
        Err(diagnostics) => panic!(
            "refused:\n{}\n{text}",
            diagnostics.render(&Rendering {
                pid: 1,
                diag: true,
                quiet: false,
            })
        ),
    }
}

/// The places of everything: `f:name[ports](servers)` for a frontend, `b:` for a backend, `l:` for a
/// listen; `-` stands before removed ones. Each has its id behind it.
fn layout(config: &Config) -> String {
    let proxies = config.proxies.iter().map(shown);
    proxies.collect::<Vec<_>>().join(" ")
}

fn shown(proxy: &Proxy) -> String {
    let kind = match (proxy.is_frontend, proxy.is_backend) {
        (true, false) => "f",
        (false, true) => "b",
        (true, true) => "l",
        (false, false) => "",
    };
    let binds = proxy.binds.iter().map(|bind| {
        let id = bind.id;
        format!("{}{}#{id}", mark(bind.is_removed), port(bind))
    });
    let servers = proxy.servers.iter().map(|server| {
        let (name, id) = (&server.name, server.id);
        format!("{}{name}#{id}", mark(server.is_removed))
    });
    let listed = |parts: Vec<String>, [open, close]: [char; 2]| match parts.len() {
        0 => String::new(),
        _ => format!("{open}{}{close}", parts.join(" ")),
    };
    format!(
        "{}{kind}:{}#{}{}{}",
        mark(proxy.is_removed),
        proxy.name,
        proxy.id,
        listed(binds.collect(), ['[', ']']),
        listed(servers.collect(), ['(', ')'])
    )
}

fn mark(is_removed: bool) -> &'static str {
    if is_removed { "-" } else { "" }
}

fn port(bind: &Bind) -> String {
    match &bind.address {
        BindAddress::Addr(net::Addr::Inet(addr)) => addr.port().to_string(),
        other => format!("{other:?}"),
    }
}

/// The place of the existing proxy of this name.
fn place(config: &Config, name: &str) -> usize {
    let mut proxies = config.proxies.iter();
    let place = proxies.position(|proxy| !proxy.is_removed && proxy.name == name);
    place.expect("a proxy")
}
