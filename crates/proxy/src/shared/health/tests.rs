//! The states of servers by what checks, agents, commands and tracked servers do.

use std::sync::Arc;
use std::time::Duration;

use config::model::{
    Balance, CheckStatus, Config, InitState, OnError, OutlierEjection, Proxy, Server,
    ServerAddress, ServerOptions,
};
use net::Addr;

use super::super::outlier::Verdict;
use super::check::{CheckOutcome, Checker};
use super::ejection::Place;
use super::slow_start::WHOLE;
use super::states::{Admin, Cause, OpState, Seen, States};
use crate::ids::{ProxyId, ServerId};

/// A server with checks.
pub(in crate::shared) fn checked_server(
    name: &str,
    change: impl FnOnce(&mut ServerOptions),
) -> Arc<Server> {
    let mut options = ServerOptions::default();
    options.checks.enabled = true;
    change(&mut options);
    Arc::new(Server {
        is_removed: false,
        words_hash: 0,
        is_named: false,
        name: name.to_owned(),
        address: ServerAddress::Fixed(Addr::Inet("127.0.0.1:1".parse().expect("an address"))),
        takes_datagrams: false,
        is_quic: false,
        unresolved: false,
        fqdn: None,
        resolvers: None,
        options,
        origin: String::new(),
    })
}

fn states(logs: bool, servers: Vec<Arc<Server>>) -> States {
    let mut proxy = Proxy {
        servers,
        ..Proxy::default()
    };
    proxy.options.log_health_checks = logs;
    states_of(proxy)
}

fn states_with(balance: Balance, servers: Vec<Arc<Server>>) -> States {
    states_of(Proxy {
        balance,
        servers,
        ..Proxy::default()
    })
}

fn states_of(proxy: Proxy) -> States {
    let proxy = Proxy {
        name: "be".into(),
        is_backend: true,
        ..proxy
    };
    let config = Config {
        proxies: vec![proxy],
        ..Config::default()
    };
    let mut states = States::new(&config);
    states.begin_at(1000);
    states
}

fn id(place: usize) -> ServerId {
    ServerId::at(ProxyId::at(0), place)
}

fn outcome(status: CheckStatus, text: &str) -> CheckOutcome {
    CheckOutcome {
        status,
        description: text.to_owned(),
        duration: Some(Duration::from_millis(3)),
        ..CheckOutcome::default()
    }
}

fn pass(states: &mut States, place: usize) {
    states.checked(
        id(place),
        Checker::Health,
        outcome(CheckStatus::Layer4Ok, ""),
    );
}

fn fail(states: &mut States, place: usize) {
    let refused = outcome(CheckStatus::Layer4Error, "Connection refused");
    states.checked(id(place), Checker::Health, refused);
}

/// What was said, with numbers as of a server without traffic.
fn told(states: &mut States) -> Vec<String> {
    let mut texts = Vec::new();
    for transition in states.transitions() {
        if let Some(message) = transition.message {
            let mut text = message.text;
            if let Some(numbers) = message.numbers {
                numbers.append(&mut text, 0, 0, 0);
            }
            texts.push(format!("{} {text}.", message.level as u8));
        }
        if transition.backend_is_down {
            texts.push("0 no server".to_owned());
        }
    }
    texts
}

fn status(states: &States, place: usize) -> String {
    states.server_view(id(place)).status
}

#[test]
fn rise_and_fall() {
    let mut states = states(false, vec![checked_server("s", |_| {})]);
    assert_eq!(status(&states, 0), "UP 1/3");
    pass(&mut states, 0);
    assert_eq!(status(&states, 0), "UP");
    assert_eq!(told(&mut states), Vec::<String>::new());
    fail(&mut states, 0);
    assert_eq!(status(&states, 0), "UP 2/3");
    fail(&mut states, 0);
    assert_eq!(status(&states, 0), "UP 1/3");
    assert_eq!(told(&mut states), Vec::<String>::new());
    fail(&mut states, 0);
    assert_eq!(status(&states, 0), "DOWN");
    assert_eq!(
        told(&mut states),
        [
            "1 Server be/s is DOWN, reason: Layer4 connection problem, info: \"Connection refused\", check duration: 3ms. 0 active \
             and 0 backup servers left. 0 sessions active, 0 requeued, 0 remaining in queue.",
            "0 no server"
        ]
    );
    pass(&mut states, 0);
    assert_eq!(status(&states, 0), "DOWN 1/2");
    pass(&mut states, 0);
    assert_eq!(status(&states, 0), "UP");
    assert_eq!(
        told(&mut states),
        [
            "5 Server be/s is UP, reason: Layer4 check passed, check duration: 3ms. 1 active and 0 backup servers online. 0 sessions \
             requeued, 0 total in queue."
        ]
    );
}

#[test]
fn every_result_is_logged_where_that_is_asked_for() {
    let mut states = states(true, vec![checked_server("s", |_| {})]);
    pass(&mut states, 0);
    pass(&mut states, 0);
    fail(&mut states, 0);
    assert_eq!(
        told(&mut states),
        [
            "5 Health check for server be/s succeeded, reason: Layer4 check passed, check duration: 3ms, status: 3/3 UP.",
            "5 Health check for server be/s failed, reason: Layer4 connection problem, info: \"Connection refused\", check \
             duration: 3ms, status: 2/3 UP."
        ]
    );
    fail(&mut states, 0);
    fail(&mut states, 0);
    // The reason was told already.
    let told = told(&mut states);
    assert!(
        told[2].starts_with("1 Server be/s is DOWN. 0 active"),
        "{told:?}"
    );
}

#[test]
fn backups_are_told_of() {
    let servers = vec![
        checked_server("a", |_| {}),
        checked_server("b", |options| options.backup = true),
    ];
    let mut states = states(false, servers);
    fail(&mut states, 0);
    let told_first = told(&mut states);
    assert!(
        told_first[0].ends_with(
            "0 active and 1 backup servers left. Running on backup. 0 sessions active, 0 requeued, 0 remaining in queue."
        ),
        "{told_first:?}"
    );
    fail(&mut states, 1);
    let told = told(&mut states);
    assert!(
        told[0].starts_with("1 Backup Server be/b is DOWN"),
        "{told:?}"
    );
    assert_eq!(told[1], "0 no server");
}

#[test]
fn a_server_that_tracks_goes_with_the_other() {
    let tracker = checked_server("t", |options| {
        options.checks.enabled = false;
        options.checks.tracked = Some((0, 0));
    });
    let mut states = states(false, vec![checked_server("s", |_| {}), tracker]);
    fail(&mut states, 0);
    assert_eq!(
        (status(&states, 0), status(&states, 1)),
        ("DOWN".into(), "DOWN".into())
    );
    let messages = told(&mut states);
    assert!(
        messages[1].starts_with("1 Server be/t is DOWN via be/s."),
        "{messages:?}"
    );
    pass(&mut states, 0);
    pass(&mut states, 0);
    assert!(states.of(id(1)).is_usable());
    let _ = told(&mut states);
    states.set_admin(id(0), Admin::FORCED_MAINTENANCE, "");
    assert!(states.of(id(1)).admin.has(Admin::INHERITED_MAINTENANCE));
    let messages = told(&mut states);
    assert!(
        messages[0].starts_with("1 Server be/s is going DOWN for maintenance."),
        "{messages:?}"
    );
    assert!(
        messages[1].starts_with("1 Server be/t is going DOWN for maintenance via be/s."),
        "{messages:?}"
    );
    states.clear_admin(id(0), Admin::FORCED_MAINTENANCE);
    assert_eq!(
        told(&mut states),
        [
            "5 Server be/s is UP/READY (leaving forced maintenance).",
            "5 Server be/t is UP/READY (leaving maintenance)."
        ]
    );
    assert!(states.of(id(0)).is_usable() && states.of(id(1)).is_usable());
}

#[test]
fn draining_and_maintenance() {
    let mut states = states(false, vec![checked_server("s", |_| {})]);
    states.set_admin(id(0), Admin::FORCED_DRAIN, "");
    assert_eq!(status(&states, 0), "DRAIN 1/3");
    states.clear_admin(id(0), Admin::FORCED_DRAIN);
    states.set_admin(id(0), Admin::UNRESOLVED, "No IP for server");
    assert_eq!(status(&states, 0), "MAINT (resolution)");
    // A failure of a check that was under way changes nothing.
    fail(&mut states, 0);
    states.set_admin(id(0), Admin::FORCED_MAINTENANCE, "");
    states.clear_admin(id(0), Admin::FORCED_MAINTENANCE);
    states.clear_admin(id(0), Admin::UNRESOLVED);
    let told = told(&mut states);
    let wanted = [
        "5 Server be/s enters drain state. 0 active and 0 backup servers online.",
        "0 no server",
        "5 Server be/s is UP (leaving forced drain).",
        "1 Server be/s is going DOWN for maintenance (No IP for server).",
        "0 no server",
        "5 Server be/s is leaving forced maintenance but remains in maintenance.",
        "5 Server be/s is UP/READY (resolves again).",
    ];
    assert_eq!(told.len(), wanted.len(), "{told:#?}");
    for (text, wanted) in told.iter().zip(wanted) {
        assert!(text.starts_with(wanted), "{text} / {wanted}");
    }
}

#[test]
fn a_status_of_404_retires_a_server() {
    let mut states = states(false, vec![checked_server("s", |_| {})]);
    pass(&mut states, 0);
    let not_found = || outcome(CheckStatus::Layer7OkConditionally, "");
    states.checked(id(0), Checker::Health, not_found());
    assert_eq!(states.of(id(0)).state, OpState::Stopping);
    assert_eq!(status(&states, 0), "NOLB");
    assert!(!states.of(id(0)).is_usable());
    fail(&mut states, 0);
    assert_eq!(status(&states, 0), "NOLB 2/3");
    pass(&mut states, 0);
    assert_eq!(status(&states, 0), "UP");
    let told = told(&mut states);
    assert!(
        told[0].starts_with(
            "5 Server be/s is stopping, reason: Layer7 check conditionally passed, code: 0"
        ),
        "{told:?}"
    );
}

#[test]
fn agents_decide_by_what_they_say() {
    let with_agent = |options: &mut ServerOptions| options.checks.agent.enabled = true;
    let mut states = states(false, vec![checked_server("s", with_agent)]);
    pass(&mut states, 0);
    let unreachable = outcome(CheckStatus::Layer4Error, "");
    states.checked(id(0), Checker::Agent, unreachable);
    assert!(states.of(id(0)).is_usable());
    let said = |up: bool, status| CheckOutcome {
        said: Some(up),
        ..outcome(status, "via agent : x")
    };
    states.checked(
        id(0),
        Checker::Agent,
        said(false, CheckStatus::Layer7WrongStatus),
    );
    assert_eq!(status(&states, 0), "DOWN (agent)");
    // Health checks alone do not take it up.
    pass(&mut states, 0);
    assert!(!states.of(id(0)).is_usable());
    states.checked(id(0), Checker::Agent, said(true, CheckStatus::Layer7Ok));
    assert!(states.of(id(0)).is_usable());
}

#[test]
fn init_states() {
    let with = |init: InitState| {
        let server = checked_server("s", |options| options.checks.init_state = init);
        let states = states(false, vec![server]);
        status(&states, 0)
    };
    assert_eq!(with(InitState::FullyUp), "UP");
    assert_eq!(with(InitState::Up), "UP 1/3");
    assert_eq!(with(InitState::Down), "DOWN 1/2");
    assert_eq!(with(InitState::FullyDown), "DOWN");
    let disabled = states(
        false,
        vec![checked_server("s", |options| options.disabled = true)],
    );
    assert_eq!(status(&disabled, 0), "MAINT");
}

#[test]
fn errors_of_traffic_count_as_they_are_told_to() {
    let after = |on_error: OnError| {
        let server = checked_server("s", |options| options.checks.on_error = on_error);
        let mut states = states(false, vec![server]);
        pass(&mut states, 0);
        states.observed(id(0), 10, Seen::NotConnected);
        let view = states.server_view(id(0));
        (
            view.check.health,
            view.state,
            states.plan(id(0), Checker::Health).runs,
        )
    };
    assert_eq!(after(OnError::FastInter), (4, OpState::Running, true));
    assert_eq!(after(OnError::FailCheck), (3, OpState::Running, true));
    assert_eq!(after(OnError::SuddenDeath), (2, OpState::Running, true));
    assert_eq!(after(OnError::MarkDown), (0, OpState::Stopped, true));
    let mut states = states(true, vec![checked_server("s", |_| {})]);
    states.observed(id(0), 10, Seen::ReadTimeout);
    let told = told(&mut states);
    assert!(
        told[0].contains("reason: Health analyze, info: \"Detected 10 consecutive errors, last one was: Read timeout (http)\", status: 0/2 DOWN"),
        "{told:?}"
    );
}

#[test]
fn intervals_follow_the_state() {
    let server = checked_server("s", |options| {
        options.checks.inter = Duration::from_secs(10);
        options.checks.fastinter = Some(Duration::from_secs(2));
        options.checks.downinter = Some(Duration::from_secs(5));
    });
    let mut states = states(false, vec![server]);
    let seconds = |states: &States| states.plan(id(0), Checker::Health).interval.as_secs();
    pass(&mut states, 0);
    assert_eq!(seconds(&states), 10);
    fail(&mut states, 0);
    assert_eq!(seconds(&states), 2);
    fail(&mut states, 0);
    fail(&mut states, 0);
    assert_eq!(seconds(&states), 5);
    pass(&mut states, 0);
    assert_eq!(seconds(&states), 2);
}

#[test]
fn a_slow_start_grows() {
    let slow = |options: &mut ServerOptions| options.checks.slowstart = Duration::from_secs(10);
    let mut states = states(false, vec![checked_server("s", slow)]);
    fail(&mut states, 0);
    pass(&mut states, 0);
    pass(&mut states, 0);
    assert_eq!(states.of(id(0)).state, OpState::Starting);
    assert_eq!(states.share(id(0)), 1);
    states.now_ms += 5000;
    let (starting, next_ms) = states.warm_up();
    assert_eq!((starting.len(), next_ms), (1, Some(1000)));
    assert_eq!(states.share(id(0)), 128);
    states.now_ms += 5000;
    assert_eq!(states.warm_up().1, None);
    assert_eq!(states.of(id(0)).state, OpState::Running);
    assert_eq!(states.share(id(0)), 256);
}

/// A weight that cannot change is whole at once (HAProxy's `server_recalc_eweight`).
#[test]
fn a_slow_start_needs_dynamic_weights() {
    let share = |balance: Balance| {
        let slow = |options: &mut ServerOptions| options.checks.slowstart = Duration::from_secs(10);
        let mut states = states_with(balance, vec![checked_server("s", slow)]);
        fail(&mut states, 0);
        pass(&mut states, 0);
        pass(&mut states, 0);
        assert_eq!(states.of(id(0)).state, OpState::Starting);
        states.share(id(0))
    };
    assert_eq!(
        (share(Balance::LeastLatency), share(Balance::StaticRr)),
        (1, WHOLE)
    );
}

#[test]
fn times_of_absence_are_counted() {
    let mut states = states(false, vec![checked_server("s", |_| {})]);
    fail(&mut states, 0);
    states.now_ms += 4000;
    let view = states.server_view(id(0));
    assert_eq!(view.down_time, Duration::from_secs(4));
    assert_eq!((view.down_transitions, view.failed_checks), (1, 1));
    assert_eq!(
        states.backend_view(ProxyId::at(0)).down_time,
        Duration::from_secs(4)
    );
    states.set_health(id(0), Checker::Health, OpState::Running, Cause::Cli);
    states.now_ms += 4000;
    assert_eq!(states.server_view(id(0)).down_time, Duration::from_secs(4));
    let told = told(&mut states);
    assert!(
        told.iter()
            .any(|text| text.starts_with("5 Server be/s is UP, changed from CLI.")),
        "{told:?}"
    );
}

#[test]
fn what_servers_send_is_shown_harmlessly() {
    let mut states = states(true, vec![checked_server("s", |_| {})]);
    let text = "a \"quote\" <tag>\r\n\u{e9}";
    states.checked(
        id(0),
        Checker::Health,
        outcome(CheckStatus::Layer7Invalid, text),
    );
    let told = told(&mut states);
    assert!(
        told[0].contains("info: \"a <22>quote<22> <3C>tag<3E><0D><0A><C3><A9>\""),
        "{told:?}"
    );
}

fn ejecting(name: &str, max_percent: u32) -> Arc<Server> {
    checked_server(name, |options| {
        options.checks.enabled = false;
        options.checks.ejection = Some(OutlierEjection {
            ejection: Duration::from_secs(10),
            max_percent,
            ..OutlierEjection::default()
        });
    })
}

fn judged(states: &mut States, place: usize) {
    states.judged(id(place), Verdict::Errors(5), Seen::WrongResponse);
}

#[test]
fn an_ejected_server_is_probed_and_comes_back() {
    let mut states = states(false, vec![ejecting("a", 50), ejecting("b", 50)]);
    judged(&mut states, 0);
    assert_eq!(status(&states, 0), "NOLB");
    assert!(!states.of(id(0)).is_usable());
    assert_eq!(
        told(&mut states),
        [
            "1 Server be/a is ejected, reason: 5 consecutive errors, last one was: Wrong http response, for 10000ms. 1 active and \
             0 backup servers online. 0 sessions requeued, 0 total in queue."
        ]
    );
    // Half of the backend may be out, and who is out does not go out again.
    judged(&mut states, 1);
    judged(&mut states, 0);
    assert_eq!(told(&mut states), Vec::<String>::new());
    assert_eq!(states.end_ejections(), Some(10_000));
    states.now_ms += 9_999;
    assert_eq!(states.end_ejections(), Some(1));
    states.now_ms += 1;
    assert_eq!(states.end_ejections(), None);
    assert_eq!(states.place(id(0)), Place::Probed);
    assert_eq!(status(&states, 0), "NOLB");
    states.probed(id(0), true, Seen::GoodResponse);
    assert!(states.of(id(0)).is_usable());
    assert_eq!(status(&states, 0), "no check");
    assert_eq!(
        told(&mut states).last().map(String::as_str),
        Some(
            "5 Server be/a is back, reason: probe succeeded. 2 active and 0 backup servers online. 0 sessions requeued, 0 total in \
             queue."
        )
    );
    assert_eq!(states.server_view(id(0)).ejections, Some(1));
}

#[test]
fn ejections_in_a_row_grow_up_to_a_bound() {
    let mut states = states(false, vec![ejecting("a", 100)]);
    let out_for = |states: &States| match states.place(id(0)) {
        Place::Out { until_ms } => until_ms - states.now_ms,
        other => panic!("{other:?}"),
    };
    judged(&mut states, 0);
    for lengths in 1..=12_u64 {
        assert_eq!(out_for(&states), 10_000 * lengths.min(10));
        states.now_ms += 10_000 * lengths.min(10);
        states.end_ejections();
        states.probed(id(0), false, Seen::Closed);
    }
    assert!(told(&mut states).iter().any(|text| {
        text.contains("is ejected, reason: probe failed: Close from server (http), for 20000ms")
    }));
    states.now_ms += 100_000;
    states.end_ejections();
    states.probed(id(0), true, Seen::GoodResponse);
    // It was back for a shorter time than it was out.
    states.now_ms += 99_999;
    judged(&mut states, 0);
    assert_eq!(out_for(&states), 100_000);
    states.now_ms += 100_000;
    states.end_ejections();
    states.probed(id(0), true, Seen::GoodResponse);
    states.now_ms += 100_000;
    judged(&mut states, 0);
    assert_eq!(out_for(&states), 10_000);
}

#[test]
fn maintenance_ends_an_ejection_and_a_server_that_is_down_has_none() {
    let mut states = states(false, vec![ejecting("a", 100)]);
    judged(&mut states, 0);
    assert_eq!(
        told(&mut states).last().map(String::as_str),
        Some("0 no server")
    );
    states.set_admin(id(0), Admin::FORCED_MAINTENANCE, "");
    states.clear_admin(id(0), Admin::FORCED_MAINTENANCE);
    assert!(states.of(id(0)).is_usable());
    states.stop(id(0), Cause::Cli);
    judged(&mut states, 0);
    states.start(id(0), Cause::Cli);
    assert!(states.of(id(0)).is_usable());
}
