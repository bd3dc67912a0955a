//! The lines about proxies and their servers that a process writes on SIGHUP (management guide §4).

use config::model::Proxy;
use proxy::{OpState, Shared};

/// The lines of a proxy: about its servers, then about itself.
pub(crate) fn of_proxy(shared: &Shared, place: usize, proxy: &Proxy) -> Vec<String> {
    let name = &proxy.name;
    let tables = shared.server_tables();
    let mut lines = Vec::new();
    let (mut waiting, mut has_servers) = (0, false);
    for (server, record) in tables.servers(place) {
        has_servers = true;
        let load = shared.server_load(place, server);
        waiting += load.queued;
        let state = match shared.server_view(place, server).state {
            OpState::Stopped => "DOWN",
            OpState::Starting | OpState::Running | OpState::Stopping => "UP",
        };
        lines.push(format!(
            "SIGHUP: Server {name}/{} is {state}. Conn: {} act, {} pend, {} tot.",
            record.name,
            load.sessions,
            load.queued,
            shared.server_streams(place, server),
        ));
    }
    let view = shared.backend_view(place);
    let is = match (has_servers, view.active, view.backup) {
        (false, ..) => "has no servers.".to_owned(),
        (true, 0, 0) => "has no server available !".to_owned(),
        (true, 0, _) => "is running on backup servers !".to_owned(),
        (true, active, backup) => {
            format!("has {active} active servers and {backup} backup servers available.")
        }
    };
    let (front, back) = shared.current(place);
    let unassigned = shared.unassigned(place);
    let (front_total, back_total) = shared.cumulated(place);
    lines.push(format!(
        "SIGHUP: Proxy {name} {is} Conn: act(FE+BE): {front}+{back}, {} pend ({unassigned} unass), tot(FE+BE): {front_total}+{back_total}.",
        waiting + unassigned,
    ));
    lines
}
