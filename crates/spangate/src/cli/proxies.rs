//! Commands on frontends, backends and the limits of the process.

use config::build::reserve::RESERVE_BACKENDS_MAX;
use config::build::values::bad_name_character;
use config::model::{Mode, Proxy};
use proxy::{FrontendState, Order, RateLimit};

use super::servers::{find_backend, number};
use super::{Asked, Command, Level, Reply, command};

#[rustfmt::skip]
pub(super) const COMMANDS: &[Command] = &[
    command("add backend", "<backend> from <defaults> [mode <mode>]", Level::Admin, "add a backend, which is unpublished and has no servers", add_backend),
    command("del backend", "<backend>", Level::Admin, "remove a backend that is unpublished and has no servers", delete_backend),
    command("disable frontend", "<frontend>", Level::Admin, "stop accepting connections for now", disable_frontend),
    command("enable frontend", "<frontend>", Level::Admin, "accept connections again", enable_frontend),
    command("publish backend", "<backend>", Level::Admin, "let rules choose a backend", |asked| publish(asked, true)),
    command("set maxconn frontend", "<frontend> <value>", Level::Admin, "change a frontend's maxconn", set_frontend_maxconn),
    command("set maxconn global", "<value>", Level::Admin, "change the maxconn of the process", set_maxconn),
    command("set rate-limit", "<setting> <value>", Level::Admin, "change a rate limit", set_rate_limit),
    command("show backend", "", Level::User, "show the names of the backends", show_backends),
    command("show defaults", "", Level::User, "show the names of the sections 'defaults'", show_defaults),
    command("shutdown frontend", "<frontend>", Level::Admin, "close a frontend permanently", shutdown_frontend),
    command("unpublish backend", "<backend>", Level::Admin, "stop rules from choosing a backend", |asked| publish(asked, false)),
];

fn refused(text: &str) -> Reply {
    Reply::Refused(text.to_owned())
}

fn noted(text: &str) -> Reply {
    Reply::Noted(text.to_owned())
}

/// The backends without those that were deleted.
pub(super) fn backends<'a>(asked: &Asked<'a>) -> impl Iterator<Item = &'a Proxy> {
    let subjects = asked.subjects;
    let all = subjects.runtime_config.config.proxies.iter().enumerate();
    let is_there =
        |(place, proxy): &(usize, &Proxy)| proxy.is_backend && !subjects.shared.is_deleted(*place);
    all.filter(is_there).map(|(_, proxy)| proxy)
}

fn show_backends(asked: &Asked<'_>) -> Reply {
    let names = backends(asked).map(|proxy| format!("{}\n", proxy.name));
    let names: String = names.collect();
    Reply::Dump(format!("# name\n{names}"))
}

fn show_defaults(asked: &Asked<'_>) -> Reply {
    let names = asked.subjects.runtime_config.config.defaults.iter();
    Reply::Dump(names.map(|each| format!("{}\n", each.name)).collect())
}

const ADD_USAGE: &str = "Usage: add backend <name> from <defproxy> [mode <px_mode>].\n";

fn add_backend(asked: &Asked<'_>) -> Reply {
    let (name, defaults, mode) = match asked.rest {
        [] => return refused("Require backend name.\n"),
        [name, "from", defaults] => (name, defaults, None),
        [name, "from", defaults, "mode", mode] => (name, defaults, Some(*mode)),
        _ => return refused(ADD_USAGE),
    };
    if let Some(bad) = bad_name_character(name.as_bytes()) {
        return refused(&format!("Invalid character '{bad}' in backend name.\n"));
    }
    let mode = match mode {
        None => None,
        Some("http") => Some(Mode::Http),
        Some("tcp") => Some(Mode::Tcp),
        Some("log" | "syslog" | "spop" | "haterm") => {
            return refused("Dynamic backends are compatible with only TCP or HTTP mode.\n");
        }
        Some(_) => return refused("Unknown proxy mode.\n"),
    };
    let subjects = asked.subjects;
    let config = &subjects.runtime_config.config;
    let mut known = config.defaults.iter();
    let Some(from) = known.position(|each| each.name == *defaults) else {
        return refused(&format!("Cannot find default proxy '{defaults}'.\n"));
    };
    let Some(mode) = mode.or(config.defaults[from].mode) else {
        return refused(&format!(
            "Mode is required as '{defaults}' default proxy does not explicitly defines it.\n"
        ));
    };
    let mut proxies = config.proxies.iter().enumerate();
    if proxies.any(|(place, proxy)| proxy.name == *name && !subjects.shared.is_deleted(place)) {
        return refused(&format!("A proxy named '{name}' exists already.\n"));
    }
    match subjects
        .runtime_config
        .add_backend(&subjects.shared, name, from, mode)
    {
        Some(_) => Reply::Said("New backend registered.\n".to_owned()),
        None => refused(&format!(
            "No place is left for a backend of this mode from '{defaults}': there are at most {RESERVE_BACKENDS_MAX} until the next reload.\n"
        )),
    }
}

/// The frontend that a command names.
fn find_frontend<'a>(asked: &Asked<'a>) -> Result<(usize, &'a Proxy), Reply> {
    let Some(name) = asked.rest.first() else {
        return Err(refused("A frontend name is expected.\n"));
    };
    let mut proxies = asked
        .subjects
        .runtime_config
        .config
        .proxies
        .iter()
        .enumerate();
    let found = proxies.find(|(_, proxy)| proxy.is_frontend && proxy.name == *name);
    found.ok_or_else(|| refused("No such frontend.\n"))
}

fn disable_frontend(asked: &Asked<'_>) -> Reply {
    let (place, _) = match find_frontend(asked) {
        Ok(found) => found,
        Err(reply) => return reply,
    };
    match asked.subjects.shared.frontend_state(place) {
        FrontendState::Closed => noted("Frontend was previously shut down, cannot disable.\n"),
        FrontendState::Paused => noted("All sockets are already disabled.\n"),
        FrontendState::Open => match asked
            .subjects
            .frontends
            .pause(place, &asked.subjects.shared)
        {
            Ok(()) => {
                asked.subjects.crier.tell_of_listening(place, "Paused");
                Reply::Done
            }
            Err(_) => refused("Failed to pause frontend, check logs for precise cause.\n"),
        },
    }
}

fn enable_frontend(asked: &Asked<'_>) -> Reply {
    let (place, _) = match find_frontend(asked) {
        Ok(found) => found,
        Err(reply) => return reply,
    };
    let subjects = asked.subjects;
    match subjects.shared.frontend_state(place) {
        FrontendState::Closed => refused("Frontend was previously shut down, cannot enable.\n"),
        FrontendState::Open => noted("All sockets are already enabled.\n"),
        FrontendState::Paused => match subjects.frontends.resume(place, &subjects.shared) {
            Ok(()) => {
                subjects.workers.wake_all();
                subjects.crier.tell_of_listening(place, "Resumed");
                Reply::Done
            }
            Err(_) => refused(
                "Failed to resume frontend, check logs for precise cause (port conflict?).\n",
            ),
        },
    }
}

fn shutdown_frontend(asked: &Asked<'_>) -> Reply {
    let (place, proxy) = match find_frontend(asked) {
        Ok(found) => found,
        Err(reply) => return reply,
    };
    let subjects = asked.subjects;
    if subjects.shared.frontend_state(place) == FrontendState::Closed {
        return noted("Frontend was already shut down.\n");
    }
    subjects
        .frontends
        .close(place, &subjects.shared, &subjects.exposed);
    subjects.workers.tell(&Order::CloseFrontend(place));
    let (front, back) = subjects.shared.cumulated(place);
    let name = &proxy.name;
    let text = format!("Proxy {name} stopped (cumulated conns: FE: {front}, BE: {back}).");
    subjects.crier.tell_of_proxy(place, &text);
    Reply::Done
}

fn publish(asked: &Asked<'_>, published: bool) -> Reply {
    let found = asked.rest.first().map(|name| find_backend(asked, name));
    match found {
        Some(Some((_, proxy))) if proxy.disabled => refused("No effect on a disabled backend.\n"),
        Some(Some((place, _))) => {
            asked.subjects.shared.publish_backend(place, published);
            Reply::Said(if published {
                "Backend published.\n".to_owned()
            } else {
                "Backend unpublished.\n".to_owned()
            })
        }
        _ => refused("No such backend.\n"),
    }
}

/// Whether a backend can be deleted now; if not, the reason.
///
/// # Errors
/// The reason why it can never be deleted.
pub(super) fn removable(
    asked: &Asked<'_>,
    name: &str,
) -> Result<Option<&'static str>, &'static str> {
    let (place, backend) = find_backend(asked, name).ok_or("No such backend.")?;
    let shared = &asked.subjects.shared;
    if backend.is_frontend {
        return Err("Cannot delete a listen section.");
    }
    if backend.is_named {
        return Err(
            "This proxy cannot be removed at runtime due to other configuration elements pointing to it.",
        );
    }
    if backend.mode == Mode::Log {
        return Err("Only TCP or HTTP proxies can be removed at runtime.");
    }
    if !shared.is_backend_unpublished(place) {
        return Err("Backend must be unpublished prior to its deletion.");
    }
    if shared.server_tables().servers(place).next().is_some() {
        return Err("Only a backend without server can be deleted.");
    }
    let is_used = shared.current(place).1 > 0;
    Ok(is_used.then_some("Backend still has attached streams on it."))
}

fn delete_backend(asked: &Asked<'_>) -> Reply {
    let [name] = asked.rest else {
        return refused("Usage: del backend <name>.\n");
    };
    match removable(asked, name) {
        Ok(None) => {}
        Ok(Some(why)) | Err(why) => return Reply::Refused(format!("{why}\n")),
    }
    if let Some((place, _)) = find_backend(asked, name) {
        asked.subjects.shared.delete_backend(place);
    }
    noted("Backend deleted.\n")
}

fn set_frontend_maxconn(asked: &Asked<'_>) -> Reply {
    let (place, _) = match find_frontend(asked) {
        Ok(found) => found,
        Err(reply) => return reply,
    };
    let Some(value) = asked.rest.get(1) else {
        return refused("Integer value expected.\n");
    };
    let Ok(value) = u32::try_from(number(value)) else {
        return refused("Value out of range.\n");
    };
    asked.subjects.shared.set_frontend_maxconn(place, value);
    asked.subjects.workers.wake_all();
    Reply::Done
}

fn set_maxconn(asked: &Asked<'_>) -> Reply {
    let Some(value) = asked.rest.first() else {
        return refused("Expects an integer value.\n");
    };
    let most = asked
        .subjects
        .runtime_config
        .config
        .global
        .maxconn
        .unwrap_or(0);
    let value = number(value);
    if most > 0 && value > i64::from(most) {
        return refused("Value out of range.\n");
    }
    let value = u32::try_from(value).ok().filter(|value| *value > 0);
    asked.subjects.shared.set_maxconn(value.unwrap_or(most));
    asked.subjects.workers.wake_all();
    Reply::Done
}

const RATE_LIMIT_USAGE: &str = "'set rate-limit' only supports :
   - 'connections global' to set the per-process maximum connection rate
   - 'sessions global' to set the per-process maximum session rate
   - 'ssl-sessions global' to set the per-process maximum SSL session rate
";

fn set_rate_limit(asked: &Asked<'_>) -> Reply {
    let (limit, value) = match asked.rest {
        ["connections", "global", value @ ..] => (RateLimit::Connections, value),
        ["sessions", "global", value @ ..] => (RateLimit::Sessions, value),
        ["ssl-sessions", "global", value @ ..] => (RateLimit::TlsSessions, value),
        _ => return refused(RATE_LIMIT_USAGE),
    };
    let Some(value) = value.first() else {
        return refused("Expects an integer value.\n");
    };
    let Ok(value) = u32::try_from(number(value)) else {
        return refused("Value out of range.\n");
    };
    asked.subjects.shared.set_rate_limit(limit, value);
    asked.subjects.workers.wake_all();
    Reply::Done
}
