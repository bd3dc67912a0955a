//! `show info`: values of the process, as lines, typed lines or JSON (management guide §9.2, §9.3).

use proxy::statistics::View;
use stats::process::Fact;

use super::{Asked, Command, Level, Reply, command};
use crate::collectors::panics;

pub(super) const COMMANDS: &[Command] = &[command(
    "show info",
    "[desc|json|typed|float]*",
    Level::User,
    "show information about the process",
    show,
)];

/// `show info [typed|json] [desc] [float]`; other words are ignored, as in HAProxy.
fn show(asked: &Asked<'_>) -> Reply {
    let wants = |word| asked.rest.contains(&word);
    let subjects = asked.subjects;
    let view = View {
        runtime_config: &subjects.runtime_config,
        shared: &subjects.shared,
        servers: &subjects.shared.server_tables(),
        now: net::sys::now(),
        legends: false,
    };
    let mut facts = view.process();
    facts.set(Fact::Version, crate::build::info().version);
    facts.set(Fact::ReleaseDate, crate::build::RELEASE_DATE);
    let of_collectors: u64 = subjects.collectors.iter().map(panics).sum();
    facts.set(Fact::Panics, subjects.shared.panics() + of_collectors);
    if let Some(peers) = &subjects.peers {
        let sections = peers.sections();
        let count = |is: fn(&peers::PeerView) -> bool| {
            let peers = sections.iter().flat_map(|section| &section.peers);
            peers.filter(|peer| is(peer)).count() as u32
        };
        facts.set(Fact::ActivePeers, count(|peer| peer.is_active));
        facts.set(Fact::ConnectedPeers, count(|peer| peer.is_connected));
    }
    if !wants("float") {
        facts = facts.whole();
    }
    Reply::Dump(if wants("json") {
        facts.json()
    } else {
        facts.lines(wants("typed"), wants("desc"))
    })
}
