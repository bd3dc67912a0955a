//! `show peers` (management guide §9.3).

use std::fmt::Write as _;

use peers::{PeerView, SectionView, TableView};

use super::{Asked, Command, Level, Reply, command};

#[rustfmt::skip]
pub(super) const COMMANDS: &[Command] = &[
    command("show peers", "[dict|-] [section]", Level::User, "show the peers, or those of one section (dict: with dictionaries of names)", show),
];

/// Names of a dictionary on a line.
const NAMES_A_LINE: usize = 4;

fn show(asked: &Asked<'_>) -> Reply {
    let (has_names, rest) = match asked.rest {
        ["dict", rest @ ..] => (true, rest),
        ["-", rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    let sections = asked.subjects.peers.as_ref();
    let sections = sections.map_or_else(Vec::new, crate::peers::View::sections);
    // HAProxy lists the last section first.
    let wanted = rest.first();
    let found: Vec<&SectionView> = sections
        .iter()
        .rev()
        .filter(|section| wanted.is_none_or(|wanted| section.name == **wanted))
        .collect();
    match (found.is_empty(), wanted) {
        (true, Some(_)) => return Reply::Refused("No such peers\n".to_owned()),
        (true, None) => return Reply::Done,
        (false, _) => {}
    }
    let mut out = String::new();
    for (place, section) in found.into_iter().enumerate() {
        if place > 0 {
            out.push('\n');
        }
        // Writing to memory does not fail.
        let _ = write_section(section, has_names, &mut out);
    }
    Reply::Dump(out)
}

/// A time in HAProxy's form; one that is over is `<PAST>`.
fn time(ms: Option<i64>) -> String {
    match ms {
        None => "<NEVER>".to_owned(),
        Some(..=0) => "<PAST>".to_owned(),
        Some(ms) => {
            let seconds = ms / 1000;
            match (seconds / 60, seconds / 3600, seconds / 86_400) {
                (0, ..) => format!("{seconds}s"),
                (minutes, 0, _) => format!("{minutes}m{}s", seconds % 60),
                (minutes, hours, 0) => format!("{hours}h{}m", minutes % 60),
                (_, hours, days) => format!("{days}d{}h", hours % 24),
            }
        }
    }
}

fn write_section(section: &SectionView, has_names: bool, out: &mut String) -> std::fmt::Result {
    writeln!(
        out,
        "id={} disabled=0 flags=0x{:x} resync_timeout={}",
        section.name,
        section.flags,
        time(section.resync_in_ms)
    )?;
    for peer in section.peers.iter().rev() {
        write_peer(peer, has_names, out)?;
    }
    Ok(())
}

fn write_peer(peer: &PeerView, has_names: bool, out: &mut String) -> std::fmt::Result {
    let handshake = peer.handshake_ago_ms.map(|ms| (ms as i64).max(1));
    writeln!(
        out,
        "  id={}({},{}) addr={} app_state={} learn_state={} last_status={} last_hdshk={}",
        peer.name,
        if peer.is_local { "local" } else { "remote" },
        if peer.is_active { "active" } else { "inactive" },
        peer.address,
        if peer.is_connected {
            "RUNNING"
        } else {
            "STOPPED"
        },
        peer.learning,
        peer.status,
        time(handshake),
    )?;
    let counters = &peer.counters;
    writeln!(
        out,
        "        reconnect={} heartbeat={} confirm={} tx_hbt={} rx_hbt={} no_hbt={} new_conn={} proto_err={} coll={}",
        time(peer.reconnect_in_ms),
        time(peer.heartbeat_in_ms),
        peer.confirms,
        counters.heartbeats_sent,
        counters.heartbeats_received,
        counters.silences,
        counters.connections,
        counters.protocol_errors,
        counters.collisions,
    )?;
    writeln!(out, "        flags=0x{:x}", peer.flags)?;
    if !peer.tables.is_empty() {
        writeln!(out, "        shared tables:")?;
    }
    for table in &peer.tables {
        write_table(table, out)?;
    }
    if has_names {
        let sent = peer.sent_names.iter().map(|name| Some(&**name));
        write_names("TX", sent, out)?;
        let received = peer.received_names.iter().map(Option::as_deref);
        write_names("RX", received, out)
    } else {
        writeln!(
            out,
            "        Dictionary cache not dumped (use \"show peers dict\")"
        )
    }
}

fn write_table(table: &TableView, out: &mut String) -> std::fmt::Result {
    writeln!(
        out,
        "          local_id={} remote_id={} remote_data=0x{:x}",
        table.local_id, table.remote_id, table.remote_data
    )?;
    writeln!(
        out,
        "              last_acked={} last_pushed={} last_get={} update={}",
        table.last_acked, table.last_pushed, table.last_got, table.update
    )?;
    writeln!(
        out,
        "              table: id={} update={}",
        table.name, table.last_update
    )
}

fn write_names<'a>(
    direction: &str,
    names: impl Iterator<Item = Option<&'a str>>,
    out: &mut String,
) -> std::fmt::Result {
    write!(out, "        {direction} dictionary cache:")?;
    for (number, name) in names.enumerate() {
        if number % NAMES_A_LINE == 0 {
            write!(out, "\n        ")?;
        }
        write!(out, "  {number:3} -> {}", name.unwrap_or("-"))?;
    }
    writeln!(out)
}
