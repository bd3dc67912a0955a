//! Counters that outlive the process: written to a file, and loaded from it by the permanent
//! identifiers of objects (`guid`).

use std::collections::HashMap;

use stats::file::{Loaded, Side, header, row};
use stats::{Column, Kind};

use super::fill::{BACK, BACK_HTTP, FRONT, FRONT_HTTP};
use super::{Cursor, Selection, View};
use crate::ids::{BindId, ProxyId, ServerId};
use crate::runtime_config::RuntimeConfig;
use crate::shared::{BackCount, FrontCount, HealthCounter, Shared};

/// The object of an identifier.
#[derive(Clone, Copy)]
enum Object {
    Proxy(ProxyId),
    Listener(BindId),
    Server(ServerId),
}

fn objects(runtime_config: &RuntimeConfig) -> HashMap<String, Object> {
    let mut objects = HashMap::new();
    for (place, proxy) in runtime_config.config.proxies.iter().enumerate() {
        let id = ProxyId::at(place);
        if let Some(guid) = &proxy.guid {
            objects.insert(guid.clone(), Object::Proxy(id));
        }
        for (place, bind) in proxy.binds.iter().enumerate() {
            let counts = proxy.options.socket_stats;
            if let Some(guid) = bind.guid.as_ref().filter(|_| counts) {
                let bind = BindId {
                    frontend: id,
                    place,
                };
                objects.insert(guid.clone(), Object::Listener(bind));
            }
        }
        for (place, server) in proxy.servers.iter().enumerate() {
            if let Some(guid) = &server.guid {
                objects.insert(guid.to_string(), Object::Server(ServerId::at(id, place)));
            }
        }
    }
    objects
}

/// The counter of a field. Several fields may belong to one counter; then the first one is used.
fn front(column: Column) -> Option<FrontCount> {
    let mut all = FRONT.iter().chain(FRONT_HTTP);
    let count = all.find(|(of, _)| *of == column)?.1;
    let first = FRONT
        .iter()
        .chain(FRONT_HTTP)
        .find(|(_, of)| *of == count)?;
    (first.0 == column).then_some(count)
}

fn back(column: Column) -> Option<BackCount> {
    let mut all = BACK.iter().chain(BACK_HTTP);
    let count = all.find(|(of, _)| *of == column)?.1;
    let first = BACK.iter().chain(BACK_HTTP).find(|(_, of)| *of == count)?;
    (first.0 == column).then_some(count)
}

/// The counter of a server's health for a field.
fn health(column: Column) -> Option<HealthCounter> {
    match column {
        Column::Chkfail => Some(HealthCounter::FailedChecks),
        Column::Chkdown => Some(HealthCounter::DownTransitions),
        Column::Hanafail => Some(HealthCounter::FailedObservations),
        _ => None,
    }
}

/// Adds the values of a file to the counters. Identifiers that are unknown here, or belong to the
/// other side, are ignored.
pub fn load_file(runtime_config: &RuntimeConfig, shared: &Shared, loaded: &[Loaded<'_>]) {
    let objects = objects(runtime_config);
    for one in loaded {
        let Some(object) = objects.get(one.guid) else {
            continue;
        };
        let tallies = shared.tallies();
        match (one.side, *object) {
            (Side::Front, Object::Proxy(id)) if runtime_config.proxy(id).is_frontend => {
                if let Some(count) = front(one.column) {
                    tallies.front_extra(id).preload(count, one.value);
                }
            }
            (Side::Front, Object::Listener(bind)) => {
                if let Some(count) = front(one.column) {
                    tallies.bind_extra(bind).preload(count, one.value);
                }
            }
            (Side::Back, Object::Proxy(id)) if runtime_config.proxy(id).is_backend => {
                if let Some(count) = back(one.column) {
                    tallies.back_extra(id).preload(count, one.value);
                }
            }
            (Side::Back, Object::Server(server)) => {
                if let Some(counter) = health(one.column) {
                    shared.preload_health(server, counter, one.value);
                }
                if let Some(count) = back(one.column) {
                    shared.server_extra(server).preload(count, one.value);
                }
            }
            _ => {}
        }
    }
}

/// Writes all counters of objects that have a permanent identifier as a file.
#[must_use]
pub fn dump_file(view: &View<'_>) -> String {
    let mut out = String::new();
    let sides = [
        (Side::Front, [Kind::Frontend, Kind::Listener]),
        (Side::Back, [Kind::Backend, Kind::Server]),
    ];
    for (side, kinds) in sides {
        header(side, &mut out);
        let selection = Selection {
            kinds: Some(kinds.to_vec()),
            ..Selection::default()
        };
        let mut cursor = Cursor::default();
        while let Some((place, values)) = cursor.next(view, &selection) {
            let proxy = &view.runtime_config.config.proxies[place];
            let sid = values.number(Column::Sid) as u32;
            let guid = match values.kind {
                Kind::Frontend | Kind::Backend => proxy.guid.clone(),
                Kind::Listener => {
                    let bind = proxy.binds.iter().find(|bind| bind.id == sid);
                    bind.and_then(|bind| bind.guid.clone())
                }
                Kind::Server => {
                    let mut servers = view.servers.servers(place);
                    let server = servers.find(|(_, server)| server.id == sid);
                    let guid = server.and_then(|(_, server)| server.guid.as_ref());
                    guid.map(ToString::to_string)
                }
            };
            if let Some(guid) = guid {
                row(side, &guid, &values, &mut out);
            }
        }
        out.push('\n');
    }
    out
}
