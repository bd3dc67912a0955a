//! `tune.h2.*` and related keywords.

use crate::common::{accepted, messages, read, report};
use spangate_config::diagnostic::Severity;
use spangate_config::model::{H2Side, H2Tune};

fn tune(lines: &str) -> H2Tune {
    accepted(&format!("global\n {lines}\n")).global.h2
}

/// The result of each line.
#[test]
fn words() {
    let default = H2Tune::default;
    let side = H2Side::default;
    let clients = |clients: H2Side| H2Tune {
        clients,
        ..default()
    };
    let servers = |servers: H2Side| H2Tune {
        servers,
        ..default()
    };
    let both = |both: H2Side| H2Tune { both, ..default() };
    let streams = |number| H2Side {
        streams_max: Some(number),
        ..side()
    };
    let window = |bytes| H2Side {
        window_bytes: Some(bytes),
        ..side()
    };
    let glitches = |most| H2Side {
        glitches_max: Some(most),
        ..side()
    };
    let rxbuf = |bytes| H2Side {
        rxbuf_bytes: Some(bytes),
        ..side()
    };
    let table = [
        ("nbthread 1", default()),
        ("tune.h2.fe.max-concurrent-streams 7", clients(streams(7))),
        ("tune.h2.fe.max-concurrent-streams 0", default()),
        ("tune.h2.fe.max-concurrent-streams", default()),
        (
            "tune.h2.fe.max-concurrent-streams 7 rq-load auto min 3",
            clients(streams(7)),
        ),
        ("tune.h2.be.max-concurrent-streams 7", servers(streams(7))),
        ("tune.h2.max-concurrent-streams 7", both(streams(7))),
        (
            "tune.h2.max-concurrent-streams 0",
            both(streams((1 << 31) - 1)),
        ),
        (
            "tune.h2.fe.initial-window-size 70000",
            clients(window(70_000)),
        ),
        (
            "tune.h2.be.initial-window-size 70000",
            servers(window(70_000)),
        ),
        ("tune.h2.initial-window-size 70000", both(window(70_000))),
        ("tune.h2.fe.glitches-threshold 5", clients(glitches(5))),
        ("tune.h2.be.glitches-threshold 5", servers(glitches(5))),
        ("tune.h2.be.glitches-threshold 0", default()),
        ("tune.h2.fe.rxbuf 2m", clients(rxbuf(2 << 20))),
        ("tune.h2.be.rxbuf 2m", servers(rxbuf(2 << 20))),
        (
            "tune.h2.fe.max-total-streams 9",
            H2Tune {
                total_streams_max: Some(9),
                ..default()
            },
        ),
        ("tune.h2.fe.max-total-streams 0", default()),
        (
            "tune.h2.header-table-size 8192",
            H2Tune {
                table_bytes: 8192,
                ..default()
            },
        ),
        (
            "tune.h2.max-frame-size 20000",
            H2Tune {
                frame_bytes_max: Some(20_000),
                ..default()
            },
        ),
        (
            "h2-workaround-bogus-websocket-clients",
            H2Tune {
                announces_websocket: false,
                ..default()
            },
        ),
        (
            "h2-workaround-bogus-websocket-clients\n no h2-workaround-bogus-websocket-clients",
            default(),
        ),
    ];
    for (lines, expected) in table {
        assert_eq!(tune(lines), expected, "{lines}");
    }
}

#[test]
fn bad_words_are_refused() {
    for line in [
        "tune.h2.fe.max-concurrent-streams -1",
        "tune.h2.fe.max-concurrent-streams x",
        "tune.h2.fe.max-concurrent-streams 7 foo",
        "tune.h2.fe.max-concurrent-streams 7 rq-load",
        "tune.h2.fe.max-concurrent-streams 7 min 0",
        "tune.h2.be.max-concurrent-streams 7 8",
        "tune.h2.initial-window-size 2147483648",
        "tune.h2.header-table-size 4095",
        "tune.h2.header-table-size 65537",
        "tune.h2.header-table-size",
        "tune.h2.max-frame-size 16383",
        "tune.h2.max-frame-size 16777216",
        "tune.h2.fe.rxbuf x",
        "tune.h2.fe.max-total-streams -1",
        "h2-workaround-bogus-websocket-clients on",
    ] {
        let text = format!("global\n {line}\n");
        let Err(diagnostics) = read(&text) else {
            panic!("{line} is accepted:\n{}", report(&text));
        };
        let found = messages(&diagnostics, Severity::Alert);
        assert_eq!(found.len(), 1, "{line}: {found:?}");
    }
}

/// A keyword without a counterpart here is reported to have no effect.
#[test]
fn words_without_an_effect() {
    let text = "global
 tune.h2.fe.max-concurrent-streams 7 rq-load 5 min 3
 tune.h2.fe.max-frames-at-once 5
 tune.h2.be.max-frames-at-once 5
 tune.h2.fe.max-rst-at-once 5
 tune.h2.log-errors none
 tune.h2.zero-copy-fwd-send off
";
    let (_, diagnostics) = read(text).expect("accepted");
    assert_eq!(
        messages(&diagnostics, Severity::Notice),
        [
            "no effect of tune.h2.fe.max-concurrent-streams … rq-load, tune.h2.fe.max-concurrent-streams … min, \
             tune.h2.fe.max-frames-at-once, tune.h2.be.max-frames-at-once, tune.h2.fe.max-rst-at-once, tune.h2.log-errors, \
             tune.h2.zero-copy-fwd-send at t.cfg:2 and 6 more places : they have no meaning here."
        ]
    );
}
