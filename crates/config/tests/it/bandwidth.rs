//! `filter bwlim-in`, `filter bwlim-out` and `set-bandwidth-limit`.

use config::model::{BandwidthRate, Direction, FilterPlace};
use spangate_config as config;

use crate::common::{accepted, report, under_caret};

const TABLE: &str =
    "backend t\n stick-table type ip size 10 store bytes_out_rate(2s),bytes_in_cnt\n";
const FRONT: &str = "defaults\n mode http\n timeout client 1s\nfrontend f\n bind :80\n";

#[test]
fn limits_are_read() {
    let config = accepted(&format!(
        "{TABLE}{FRONT} http-request set-bandwidth-limit down limit 1k period 2s
 filter bwlim-in up default-limit 2m default-period 500 min-size 100
 filter bwlim-out down default-period 1s default-limit 10
 filter bwlim-out shared limit 5k key src table t\n"
    ));
    let proxy = config
        .proxies
        .iter()
        .find(|proxy| proxy.name == "f")
        .unwrap();
    let [up, down, shared] = &proxy.bandwidth_limits[..] else {
        panic!("{:?}", proxy.bandwidth_limits)
    };
    assert_eq!(
        (up.name.as_str(), up.direction, up.min_bytes),
        ("up", Direction::Up, 100)
    );
    assert!(matches!(
        up.rate,
        BandwidthRate::Stream {
            bytes: 2_097_152,
            period_ms: 500
        }
    ));
    assert_eq!((down.direction, down.min_bytes), (Direction::Down, 0));
    assert!(matches!(
        down.rate,
        BandwidthRate::Stream {
            bytes: 10,
            period_ms: 1000
        }
    ));
    let BandwidthRate::Shared {
        bytes: 5120, table, ..
    } = &shared.rate
    else {
        panic!("{:?}", shared.rate)
    };
    assert_eq!(table.definition().name, "t");
}

/// The places of the limits of a frontend with these lines, in the order of the lines.
fn places(lines: &str) -> Vec<FilterPlace> {
    let config = accepted(&format!("{FRONT}{lines}\n"));
    let proxy = config.proxies.iter().find(|proxy| proxy.name == "f");
    let limits = proxy.expect("a proxy").bandwidth_limits.iter();
    limits.map(|limit| limit.place).collect()
}

#[test]
fn limits_have_their_place_among_the_filters() {
    use FilterPlace::{AfterCompression, First, LeftOut};
    let lines = " filter bwlim-in a default-limit 1 default-period 1s
 filter compression
 filter bwlim-out b default-limit 1 default-period 1s
 filter bwlim-in c default-limit 1 default-period 1s
 filter bwlim-out d default-limit 1 default-period 1s
 compression algo gzip\n";
    for (sequences, expected) in [
        (
            "",
            [First, AfterCompression, AfterCompression, AfterCompression],
        ),
        (
            " filter-sequence request comp-req,bwlim-in",
            [
                AfterCompression,
                AfterCompression,
                LeftOut,
                AfterCompression,
            ],
        ),
        (
            " filter-sequence response bwlim-out,comp-res",
            [First, First, AfterCompression, LeftOut],
        ),
        (
            " filter-sequence response bwlim-out",
            [First, First, AfterCompression, LeftOut],
        ),
    ] {
        assert_eq!(
            places(&format!("{lines}{sequences}")),
            expected,
            "{sequences}"
        );
    }
}

#[test]
fn faults_of_sequences() {
    for (line, message) in [
        (
            "filter-sequence",
            "missing argument for 'filter-sequence' in frontend 'f'.",
        ),
        (
            "filter-sequence up a",
            "expected either 'request' or 'response' for 'filter-sequence' in frontend 'f'.",
        ),
        (
            "filter-sequence request",
            "missing filter list for 'filter-sequence' in frontend 'f'.",
        ),
        (
            "filter-sequence response compression",
            "f: error while postparsing response filter-sequence 'compression' : invalid filter name: 'compression' is \
             not defined on the proxy",
        ),
        (
            "filter-sequence request comp-req,,comp-res",
            "f: error while postparsing request filter-sequence '' : invalid filter name: '' is not defined on the proxy",
        ),
        (
            "filter-sequence request comp-req x",
            "'filter-sequence' cannot handle unexpected argument 'x'.",
        ),
    ] {
        let shown = report(&format!("{FRONT} filter compression\n {line}\n"));
        assert_eq!(shown.matches(message).count(), 1, "{line}: {shown}");
    }
    let shown = report("defaults\n filter-sequence request a\n");
    let message = "'filter-sequence' not allowed in 'defaults' section.";
    assert!(shown.contains(message), "{shown}");
}

#[test]
fn faults_name_the_word() {
    let own = "filter bwlim-out a default-limit 1 default-period 1s";
    for (lines, message, caret) in [
        (
            "filter bwlim-in",
            "'bwlim-in' : a name is expected as argument.",
            "",
        ),
        (
            "filter bwlim-in a default-limit 1",
            "'bwlim-in' : <default-period> option is missing.",
            "",
        ),
        (
            "filter bwlim-in a default-period 1s",
            "'bwlim-in' : <default-limit> option is missing.",
            "",
        ),
        (
            "filter bwlim-in a default-limit 0 default-period 1s",
            "'bwlim-in' : <default-limit> option is missing.",
            "",
        ),
        (
            "filter bwlim-in a limit 5",
            "'bwlim-in' : <key> option is missing.",
            "",
        ),
        (
            "filter bwlim-in a key src table t",
            "'bwlim-in' : <limit> option is missing.",
            "",
        ),
        (
            "filter bwlim-in a key src default-limit 1",
            "'bwlim-in' : cannot mix per-stream and shared parameter.",
            "key",
        ),
        (
            "filter bwlim-in a foo",
            "'bwlim-in' : unknown argument 'foo'.",
            "foo",
        ),
        (
            "filter bwlim-out a limit 1 key src",
            "Proxy f : unable to find table 'f' referenced by bwlim filter 'a'.",
            "a",
        ),
        (
            "filter bwlim-in a limit 1 key src table t",
            "stick-table 't' uses a data type incompatible with bwlim filter 'a'. It must be 'bytes_in_rate'.",
            "a",
        ),
        (
            "filter bwlim-out a limit 1 key always_true table t",
            "stick-table 't' uses a key type incompatible with bwlim filter 'a'.",
            "always_true",
        ),
        (
            "http-request set-bandwidth-limit b",
            "unable to find bwlim filter 'b' referenced by set-bandwidth-limit rule.",
            "b",
        ),
    ] {
        let shown = report(&format!("{TABLE}{FRONT} {lines}\n"));
        assert!(shown.contains(message), "{lines}: {shown}");
        assert_eq!(
            under_caret(&shown, message).as_deref(),
            Some(caret),
            "{lines}: {shown}"
        );
    }
    let twice = report(&format!("{TABLE}{FRONT} {own}\n {own}\n"));
    assert!(
        twice.contains("bwlim filter 'a' already declared for proxy 'f'."),
        "{twice}"
    );
    let shared = report(&format!(
        "{TABLE}{FRONT} filter bwlim-out a limit 1 key src table t\n http-request set-bandwidth-limit a limit 5\n"
    ));
    let message = "set-bandwidth-limit rule cannot define a limit for a shared bwlim filter.";
    assert!(shared.contains(message), "{shared}");
    let defaults = report(&format!("defaults\n {own}\n"));
    assert!(
        defaults.contains("'bwlim-out' : not allowed in 'defaults' section."),
        "{defaults}"
    );
}
