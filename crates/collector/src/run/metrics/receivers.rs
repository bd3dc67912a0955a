//! The metrics of receivers, and the account of what they took.

use super::sheet::Kind;
use super::{Sheet, items, records};
use crate::config::Signal;
use crate::run::receive::Entrance;
use crate::run::start::View;

pub(super) fn write(view: &View, page: &mut Sheet) {
    for signal in Signal::ALL {
        entrances(view, signal, page);
    }
    for signal in Signal::ALL {
        account(view, signal, page);
    }
}

/// What came in, by receivers and their transports.
fn entrances(view: &View, signal: Signal, page: &mut Sheet) {
    type Count = fn(&Entrance, Signal) -> u64;
    let counts: [(&str, &str, Count); 3] = [
        ("accepted", "taken", Entrance::accepted),
        ("refused", "not taken", Entrance::refused),
        ("failed", "lost to a fault of a component", Entrance::failed),
    ];
    let what = records(signal);
    for (name, help, count) in counts {
        let name = format!("otelcol_receiver_{name}_{what}");
        page.about(
            Kind::Counter,
            &name,
            items(signal),
            &format!("{what} {help}"),
        );
        for entrance in &view.entrances {
            // Of what a receiver was never sent the Collector tells nothing.
            if counts
                .iter()
                .all(|(.., count)| count(entrance, signal) == 0)
            {
                continue;
            }
            let labels = [
                ("receiver", entrance.receiver.as_str()),
                ("transport", entrance.transport),
            ];
            page.point(&labels, count(entrance, signal));
        }
    }
}

/// Where all records are that were taken, under names of our own.
fn account(view: &View, signal: Signal, page: &mut Sheet) {
    let balance = view.accounts[signal as usize].balance();
    let (what, unit) = (records(signal), items(signal));
    let help = "accepted = exported + dropped + failed + rejected + shutdown + held";
    page.about(Kind::Gauge, &format!("otelcol_account_{what}"), unit, help);
    let states = [
        ("accepted", balance.accepted),
        ("exported", balance.exported),
        ("dropped", balance.dropped),
        ("failed", balance.failed),
        ("rejected", balance.rejected),
        ("shutdown", balance.shutdown),
        ("held", balance.held()),
        ("refused", balance.refused),
    ];
    for (state, count) in states {
        page.point(&[("state", state)], count);
    }
    let counters = [
        (
            "recovered",
            unit,
            "records that an earlier process had taken, among those accepted",
            balance.recovered,
        ),
        (
            "malformed_requests",
            "{requests}",
            "requests that were not understood",
            balance.malformed,
        ),
        (
            "panics",
            "{requests}",
            "requests that a component panicked on",
            balance.panics,
        ),
    ];
    for (name, unit, help, count) in counters {
        let name = format!("otelcol_receiver_{name}_{what}");
        page.about(Kind::Counter, &name, unit, help);
        page.point(&[], count);
    }
}
