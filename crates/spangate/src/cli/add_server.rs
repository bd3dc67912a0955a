//! Servers that are added and deleted at run time (management guide §9.3).

use config::dynamic;
use config::environment::Environment;
use config::model::Proxy;
use proxy::{AddError, DeleteError};

use super::servers::find_backend;
use super::{Asked, Command, Level, Reply, command, dynamic_cookie, proxies};

pub(super) const COMMANDS: &[Command] = &[
    command(
        "add server",
        "<bk>/<srv>",
        Level::Admin,
        "create a new server",
        add,
    ),
    command(
        "del server",
        "<bk>/<srv>",
        Level::Admin,
        "remove a dynamically added server",
        delete,
    ),
    command(
        "show default-server",
        "[<bk>]",
        Level::User,
        "list the settings that new servers may start from",
        show_defaults,
    ),
];

fn refused(message: &str) -> Reply {
    Reply::Refused(format!("{message}\n"))
}

/// The backend and the server that a command names.
fn target<'a>(asked: &'a Asked<'_>) -> Result<(usize, &'a Proxy, &'a str), Reply> {
    let word = asked.rest.first().copied().unwrap_or_default();
    let (backend, server) = word.split_once('/').unwrap_or((word, ""));
    if server.is_empty() {
        return Err(refused("Require 'backend/server'."));
    }
    let found = find_backend(asked, backend);
    let (place, proxy) = found.ok_or_else(|| refused("No such backend."))?;
    Ok((place, proxy, server))
}

fn add(asked: &Asked<'_>) -> Reply {
    match add_or_refuse(asked) {
        Ok(reply) | Err(reply) => reply,
    }
}

fn add_or_refuse(asked: &Asked<'_>) -> Result<Reply, Reply> {
    let (backend, proxy, name) = target(asked)?;
    dynamic::supports_servers(proxy).map_err(|why| {
        refused(&format!(
            "Backend does not support dynamic servers : {why}."
        ))
    })?;
    let subjects = asked.subjects;
    let words = &asked.bytes[1..];
    refuse_to_track_added(asked, backend)?;
    let line = dynamic::server(
        &subjects.runtime_config.config,
        backend,
        name,
        words,
        &Environment::of_process(),
    )
    .map_err(|messages| refused(&messages.join("\n")))?;
    let added = subjects
        .runtime_config
        .add_server(&subjects.shared, backend, line)
        .map_err(|error| refused(&not_added(&error)))?;
    dynamic_cookie::refresh(asked, backend);
    subjects.workers.wake(&added.wake);
    Ok(Reply::Said("New server registered.\n".to_owned()))
}

/// A new server must not track a server that was added at run time, because such a server may be
/// deleted.
fn refuse_to_track_added(asked: &Asked<'_>, own: usize) -> Result<(), Reply> {
    let mut words = asked.rest.iter().skip_while(|word| **word != "track");
    let Some(written) = words.nth(1) else {
        return Ok(());
    };
    let proxies = &asked.subjects.runtime_config.config.proxies;
    let (backend, server) = match written.split_once('/') {
        None => (Some(own), *written),
        Some((name, server)) => {
            let is = |proxy: &Proxy| proxy.is_backend && !proxy.is_removed && proxy.name == name;
            (proxies.iter().position(is), server)
        }
    };
    let Some(backend) = backend else {
        return Ok(());
    };
    let tables = asked.subjects.shared.server_tables();
    let mut servers = tables.servers(backend);
    if servers.any(|(_, record)| record.name == server && record.is_added()) {
        Err(refused(&format!(
            "unable to use {}/{server} for tracking as it is a dynamic server.",
            proxies[backend].name
        )))
    } else {
        Ok(())
    }
}

fn not_added(error: &AddError) -> String {
    match error {
        AddError::NameTaken => "Already exists a server with the same name in backend.".to_owned(),
        AddError::IdTaken(other) => {
            format!("The id is already used by server '{other}' of the backend.")
        }
        AddError::NoRoom => "The backend cannot have more servers.".to_owned(),
        AddError::Tls(message) => message.clone(),
    }
}

fn delete(asked: &Asked<'_>) -> Reply {
    let (backend, _, name) = match target(asked) {
        Ok(target) => target,
        Err(reply) => return reply,
    };
    let shared = &asked.subjects.shared;
    let tables = shared.server_tables();
    let Some((place, _)) = tables
        .servers(backend)
        .find(|(_, server)| server.name == name)
    else {
        return refused("No such server.");
    };
    match shared.delete_server(backend, place) {
        Ok(wake) => {
            asked.subjects.workers.wake(&wake);
            // The deleted server no longer uses its certificate. Removing a certificate cannot
            // fail.
            let tls = asked.subjects.runtime_config.tls();
            let _ = tls.set_server((backend, place), name, None);
            Reply::Said("Server deleted.\n".to_owned())
        }
        Err(DeleteError::NotFound) => refused("No such server."),
        Err(DeleteError::Named) => refused(
            "This server cannot be removed at runtime due to other configuration elements pointing to it.",
        ),
        Err(DeleteError::NotInMaintenance) => {
            refused("Only servers in maintenance mode can be deleted.")
        }
        Err(DeleteError::InUse) => {
            refused("Server still has connections attached to it, cannot remove it.")
        }
    }
}

/// Marks a backend with a star if its own `default-server` sets something; then one line follows
/// for each name.
fn show_defaults(asked: &Asked<'_>) -> Reply {
    let wanted = asked.rest.first();
    let mut backends = proxies::backends(asked)
        .filter(|proxy| wanted.is_none_or(|name| proxy.name == **name))
        .peekable();
    if wanted.is_some() && backends.peek().is_none() {
        return refused("No such backend.");
    }
    Reply::Dump(backends.map(shown_defaults).collect())
}

fn shown_defaults(proxy: &Proxy) -> String {
    let presets = dynamic::presets(proxy);
    let mut text = String::new();
    if presets.unnamed {
        text.push_str(&format!("* {}\n", proxy.name));
    }
    for name in &presets.names {
        text.push_str(&format!("  {}/{name}\n", proxy.name));
    }
    text
}
