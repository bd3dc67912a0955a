//! Proxies, listeners and servers: names, ids, counters (manual §7.3.2).

use super::{BACKEND, Cursor, FRONTEND, Fetch, INTERNAL, SERVER, fetch};
use crate::args::ArgKind::{Backend, Frontend, Server};
use crate::args::{Arg, NONE, spec};
use crate::facts::{BindFacts, ProxyFacts, ServerFacts};
use crate::{Kind, Scope, Value};

pub(crate) const FETCHES: &[Fetch] = &[
    fetch(
        "fe_id",
        NONE,
        Kind::Int,
        &FRONTEND,
        "the frontend's id",
        |_, scope, _| {
            let id = scope.world.proxy_id(scope.session.frontend)?;
            Some(Value::Int(id.into()))
        },
    ),
    fetch(
        "fe_name",
        NONE,
        Kind::Str,
        &FRONTEND,
        "the frontend's name",
        |_, scope, _| named(scope.world.proxy_name(scope.session.frontend)),
    ),
    fetch(
        "fe_defbe",
        NONE,
        Kind::Str,
        &FRONTEND,
        "the frontend's default backend",
        |_, scope, _| {
            Some(scope.world.proxy(scope.session.frontend)?.default_backend)
                .filter(|name| !name.is_empty())
                .map(Value::text)
        },
    ),
    fetch(
        "so_id",
        NONE,
        Kind::Int,
        &FRONTEND,
        "the listening socket's id",
        |_, scope, _| Some(Value::Int(bind(scope)?.id.into())),
    ),
    fetch(
        "so_name",
        NONE,
        Kind::Str,
        &FRONTEND,
        "the listening socket's name",
        |_, scope, _| {
            Some(bind(scope)?.name)
                .filter(|name| !name.is_empty())
                .map(Value::text)
        },
    ),
    fetch(
        "dst_conn",
        NONE,
        Kind::Int,
        &FRONTEND,
        "connections on the listening socket",
        |_, scope, _| Some(Value::Int(bind(scope)?.connections.into())),
    ),
    fetch(
        "fe_conn",
        spec(1, &[Frontend]),
        Kind::Int,
        &INTERNAL,
        "a frontend's connections",
        |args, scope, _| Some(Value::Int(proxy(args, scope)?.frontend_connections.into())),
    ),
    fetch(
        "be_conn",
        spec(1, &[Backend]),
        Kind::Int,
        &INTERNAL,
        "a backend's connections",
        |args, scope, _| Some(Value::Int(proxy(args, scope)?.backend_connections.into())),
    ),
    fetch(
        "nbsrv",
        spec(1, &[Backend]),
        Kind::Int,
        &INTERNAL,
        "a backend's usable servers",
        |args, scope, _| Some(Value::Int(proxy(args, scope)?.usable_servers.into())),
    ),
    fetch(
        "queue",
        spec(1, &[Backend]),
        Kind::Int,
        &INTERNAL,
        "requests in all queues of a backend",
        |args, scope, _| Some(Value::Int(proxy(args, scope)?.queue.into())),
    ),
    fetch(
        "avg_queue",
        spec(1, &[Backend]),
        Kind::Int,
        &INTERNAL,
        "requests in all queues of a backend for each usable server",
        |args, scope, _| {
            let backend = proxy(args, scope)?;
            Some(Value::Int(match backend.usable_servers {
                0 => i64::from(backend.queue) * 2,
                servers => backend.queue.div_ceil(servers).into(),
            }))
        },
    ),
    fetch(
        "be_conn_free",
        spec(1, &[Backend]),
        Kind::Int,
        &INTERNAL,
        "free connections of a backend's usable servers",
        conn_free,
    ),
    fetch(
        "connslots",
        spec(1, &[Backend]),
        Kind::Int,
        &INTERNAL,
        "free connection and queue slots",
        connslots,
    ),
    fetch(
        "be_id",
        NONE,
        Kind::Int,
        &BACKEND,
        "the backend's id",
        |_, scope, _| {
            let id = scope.world.proxy_id(backend(scope));
            Some(Value::Int(id.unwrap_or_default().into()))
        },
    ),
    fetch(
        "be_name",
        NONE,
        Kind::Str,
        &BACKEND,
        "the backend's name",
        |_, scope, _| named(scope.world.proxy_name(backend(scope))),
    ),
    fetch(
        "srv_id",
        NONE,
        Kind::Int,
        &SERVER,
        "the server's id",
        |_, scope, _| Some(Value::Int(server(scope)?.id.into())),
    ),
    fetch(
        "srv_name",
        NONE,
        Kind::Str,
        &SERVER,
        "the server's name",
        |_, scope, _| Some(Value::text(server(scope)?.name)),
    ),
    fetch(
        "srv_conn",
        spec(1, &[Server]),
        Kind::Int,
        &INTERNAL,
        "a server's connections",
        |args, scope, _| Some(Value::Int(named_server(args, scope)?.connections.into())),
    ),
    fetch(
        "srv_conn_free",
        spec(1, &[Server]),
        Kind::Int,
        &INTERNAL,
        "a server's free connections",
        |args, scope, _| {
            let server = named_server(args, scope)?;
            Some(Value::Int(match server.maxconn {
                0 => -1,
                max => max.saturating_sub(server.connections).into(),
            }))
        },
    ),
    fetch(
        "srv_is_up",
        spec(1, &[Server]),
        Kind::Bool,
        &INTERNAL,
        "whether a server is up",
        |args, scope, _| Some(Value::Bool(named_server(args, scope)?.is_up)),
    ),
    fetch(
        "srv_queue",
        spec(1, &[Server]),
        Kind::Int,
        &INTERNAL,
        "requests in a server's queue",
        |args, scope, _| Some(Value::Int(named_server(args, scope)?.queue.into())),
    ),
    fetch(
        "srv_weight",
        spec(1, &[Server]),
        Kind::Int,
        &INTERNAL,
        "a server's current weight",
        |args, scope, _| Some(Value::Int(named_server(args, scope)?.weight.into())),
    ),
    fetch(
        "srv_uweight",
        spec(1, &[Server]),
        Kind::Int,
        &INTERNAL,
        "a server's weight as its user set it",
        |args, scope, _| Some(Value::Int(named_server(args, scope)?.user_weight.into())),
    ),
    fetch(
        "srv_iweight",
        spec(1, &[Server]),
        Kind::Int,
        &INTERNAL,
        "a server's configured weight",
        |args, scope, _| Some(Value::Int(named_server(args, scope)?.initial_weight.into())),
    ),
];

/// A proxy's name. The world returns an empty one for a proxy that does not exist.
fn named(name: &str) -> Option<Value<'_>> {
    (!name.is_empty()).then(|| Value::text(name))
}

fn bind<'a>(scope: &Scope<'a>) -> Option<BindFacts<'a>> {
    scope.world.bind(scope.session.frontend, scope.session.bind)
}

fn proxy<'a>(args: &[Arg], scope: &Scope<'a>) -> Option<ProxyFacts<'a>> {
    match args.first() {
        Some(Arg::Proxy(index)) => scope.world.proxy(*index),
        _ => None,
    }
}

/// The stream's backend; before it is chosen, the frontend, as in HAProxy.
pub(crate) fn backend(scope: &Scope<'_>) -> u32 {
    scope
        .txn
        .and_then(|txn| txn.backend)
        .unwrap_or(scope.session.frontend)
}

pub(crate) fn server<'a>(scope: &Scope<'a>) -> Option<ServerFacts<'a>> {
    scope.world.server(backend(scope), scope.txn?.server?)
}

fn named_server<'a>(args: &[Arg], scope: &Scope<'a>) -> Option<ServerFacts<'a>> {
    match args.first() {
        Some(Arg::Server { backend, server }) => scope.world.server(*backend, *server),
        _ => None,
    }
}

/// -1 if one of the servers that get traffic has no limit.
fn conn_free<'a>(args: &'a [Arg], scope: &Scope<'a>, _: &mut Cursor) -> Option<Value<'a>> {
    let Some(Arg::Proxy(backend)) = args.first() else {
        return None;
    };
    let mut free = 0_i64;
    for index in 0..scope.world.proxy(*backend)?.servers {
        let server = scope.world.server(*backend, index);
        let Some(server) = server.filter(|server| server.takes_traffic) else {
            continue;
        };
        if server.maxconn == 0 {
            return Some(Value::Int(-1));
        }
        free += i64::from(server.maxconn.saturating_sub(server.connections));
    }
    Some(Value::Int(free))
}

fn connslots<'a>(args: &'a [Arg], scope: &Scope<'a>, _: &mut Cursor) -> Option<Value<'a>> {
    let Some(Arg::Proxy(backend)) = args.first() else {
        return None;
    };
    let mut slots = 0_i64;
    for index in 0..scope.world.proxy(*backend)?.servers {
        let Some(server) = scope
            .world
            .server(*backend, index)
            .filter(|server| server.is_up)
        else {
            continue;
        };
        if server.maxconn == 0 || server.maxqueue == 0 {
            return Some(Value::Int(-1));
        }
        slots += i64::from(server.maxconn) - i64::from(server.connections);
        slots += i64::from(server.maxqueue) - i64::from(server.queue);
    }
    Some(Value::Int(slots))
}
