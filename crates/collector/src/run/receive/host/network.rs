//! `network`: interfaces (`/proc/net/dev`), TCP connections (`/proc/net/tcp`, `/proc/net/tcp6`) and
//! the table of tracked connections.

use super::files::{Root, number};
use super::filter::Matcher;
use super::points::Points;
use super::{Fault, Probe};
use crate::config::components::receivers::host_metrics::Filter;

/// Metrics that are missing without `/proc/net/dev`, without connections, and without the table.
const COUNTERS: u64 = 4;
const CONNECTIONS: u64 = 1;
const CONNTRACK: u64 = 2;

/// The names of TCP's states by their numbers in the files, which begin at 1
/// (`include/net/tcp_states.h` of Linux). Numbers beyond have no name.
const STATES: [&str; 11] = [
    "ESTABLISHED",
    "SYN_SENT",
    "SYN_RECV",
    "FIN_WAIT1",
    "FIN_WAIT2",
    "TIME_WAIT",
    "CLOSE",
    "CLOSE_WAIT",
    "LAST_ACK",
    "LISTEN",
    "CLOSING",
];

/// States that the Collector always has points of, though Linux has no connections in some of them.
const ALWAYS: [&str; 12] = [
    "CLOSE_WAIT",
    "CLOSE",
    "CLOSING",
    "DELETE",
    "ESTABLISHED",
    "FIN_WAIT_1",
    "FIN_WAIT_2",
    "LAST_ACK",
    "LISTEN",
    "SYN_SENT",
    "SYN_RECV",
    "TIME_WAIT",
];

/// The scraper.
pub(super) struct Network {
    interfaces: Matcher,
}

impl Network {
    /// Of some interfaces.
    ///
    /// # Errors
    /// Why the filter cannot be compiled.
    pub fn new(filter: &Filter) -> Result<Network, String> {
        let interfaces = Matcher::new(filter)?;
        Ok(Network { interfaces })
    }

    fn counters(&self, root: &Root, points: &mut Points<'_>) -> Result<(), String> {
        for line in root.read("proc/net/dev")?.lines() {
            // The lines of the head have no colon; an interface may have one, as an alias.
            let Some((device, counts)) = line.rsplit_once(':') else {
                continue;
            };
            let device = device.trim();
            let fields: Vec<&str> = counts.split_whitespace().collect();
            if device.is_empty() || !self.interfaces.takes(device) {
                continue;
            }
            for (direction, first) in [("transmit", 8_usize), ("receive", 0)] {
                let attributes = [("device", device), ("direction", direction)];
                let mut add = |name: &str, place: usize| {
                    points.int(name, &attributes, number(&fields, first + place));
                };
                add("system.network.io", 0);
                add("system.network.packets", 1);
                add("system.network.errors", 2);
                add("system.network.dropped", 3);
            }
        }
        Ok(())
    }
}

impl Probe for Network {
    fn read(&mut self, root: &Root, points: &mut Points<'_>) -> Vec<Fault> {
        let counters = self.counters(root, points);
        let mut faults = Vec::new();
        faults.extend(counters.map_err(|why| Fault::new(COUNTERS, why)).err());
        if points.wants("system.network.connections") {
            let connections = connections(root, points);
            faults.extend(
                connections
                    .map_err(|why| Fault::new(CONNECTIONS, why))
                    .err(),
            );
        }
        for (name, file) in [
            ("system.network.conntrack.count", "nf_conntrack_count"),
            ("system.network.conntrack.max", "nf_conntrack_max"),
        ] {
            if !points.wants(name) {
                continue;
            }
            match root.number(&format!("proc/sys/net/netfilter/{file}")) {
                Ok(entries) => points.int(name, &[], entries),
                Err(why) => {
                    let why = format!("failed to read conntrack info: {why}");
                    faults.push(Fault::new(CONNTRACK, why));
                    break;
                }
            }
        }
        faults
    }
}

fn connections(root: &Root, points: &mut Points<'_>) -> Result<(), String> {
    let mut counts = [0; STATES.len()];
    let mut count = |line: &str| {
        let state = line.split_whitespace().nth(3);
        let state = state.and_then(|state| usize::from_str_radix(state, 16).ok());
        // The line of the head is no number; a connection that is set up (12) counts as `SYN_RECV`
        // nowhere, as in the Collector.
        if let Some(count) = state.and_then(|state| counts.get_mut(state.checked_sub(1)?)) {
            *count += 1;
        }
    };
    root.lines("proc/net/tcp", &mut count)?;
    // A kernel without IPv6 has no such file.
    let _ = root.lines("proc/net/tcp6", &mut count);
    let named = STATES.into_iter().zip(counts);
    let mut add = |state, count| {
        let attributes = [("protocol", "tcp"), ("state", state)];
        points.int("system.network.connections", &attributes, count);
    };
    for (state, count) in named.clone() {
        if count > 0 || ALWAYS.contains(&state) {
            add(state, count);
        }
    }
    for state in ALWAYS {
        if !STATES.contains(&state) {
            add(state, 0);
        }
    }
    Ok(())
}
