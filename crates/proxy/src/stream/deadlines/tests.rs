//! A table: one row per phase and state of the channels, with the deadlines that run.

use config::model::TimeoutKind;
use net::slots::Key;

use super::*;
use crate::ids::{ConnId, ProxyId, RuleId};
use crate::runtime_config::for_tests::{from_text, proxy_named};
use crate::shared::Ticket;
use crate::statistics::Selection;
use crate::statistics::generated_body::{Dump, Form, GeneratedBody, Maker};
use crate::stream::{Inspection, Page, Queue, RuleWait, Rules, ServerEnd, Tarpit};

/// The end of the phase's wait in all rows, milliseconds.
const UNTIL_MS: u64 = 5000;

/// A configuration with a different value for each timeout.
fn running(option: &str) -> RuntimeConfig {
    from_text(&format!(
        "defaults\n timeout connect 1\n {option}\n\
         frontend f\n mode tcp\n bind :80\n default_backend b\n\
         timeout client 100\n timeout client-fin 10\n\
         backend b\n mode tcp\n server s 127.0.0.1:81\n\
         timeout server 200\n timeout server-fin 20\n timeout tunnel 400\n"
    ))
}

/// An HTTP stream with a server. Its request is complete. The client sent at 1000 ms and accepted
/// bytes at 1500 ms, the server sent at 2000 ms and accepted bytes at 2500 ms.
fn stream(runtime_config: &RuntimeConfig, phase: Phase) -> Stream {
    let mut stream = Stream::lone();
    stream.frontend = proxy_named(runtime_config, "f");
    stream.backend = proxy_named(runtime_config, "b");
    stream.phase = phase;
    stream.txn.is_http = true;
    stream.server = ServerEnd::Link(ConnId::of(Key::new(0, 0)).only_exchange());
    stream.activity.client = Side {
        sent_ms: 1000,
        took_ms: 1500,
    };
    stream.activity.server = Side {
        sent_ms: 2000,
        took_ms: 2500,
    };
    (stream.up.is_open, stream.up.came, stream.up.done) = (true, true, true);
    stream
}

/// The phase of a row; one that waits does so until [`UNTIL_MS`].
fn phase(word: &str) -> Phase {
    let until_ms = UNTIL_MS;
    let until = Until(until_ms);
    let rule = RuleId {
        proxy: ProxyId::default(),
        place: 0,
    };
    let inspection = Inspection {
        until_ms: Some(until_ms),
    };
    let waiting = |wait| Rules {
        waits: Some((rule, wait)),
    };
    let ticket = Ticket::default();
    let tunnel = Tunnel::default();
    match word {
        "request-head" => Phase::RequestHead(until),
        "frontend-content" => Phase::FrontendContent(inspection),
        "frontend-body" => Phase::FrontendBody(until),
        "frontend-body-endless" => Phase::FrontendBody(Until::default()),
        "frontend-rules-body" => Phase::FrontendRequest(waiting(RuleWait::Body { until_ms })),
        "frontend-rules-pause" => Phase::FrontendRequest(waiting(RuleWait::Pause { until_ms })),
        "frontend-handshake" => Phase::FrontendRequest(waiting(RuleWait::Handshake { until_ms })),
        "backend-content" => Phase::BackendContent(inspection),
        "backend-body" => Phase::BackendBody(until),
        "backend-rules-pause" => Phase::BackendRequest(waiting(RuleWait::Pause { until_ms })),
        "queue" => Phase::Queue(Queue { ticket, until }),
        "turn-around" => Phase::TurnAround(until),
        "connect" => Phase::Connect(until),
        "take-over" => Phase::TakeOver(until),
        "tarpit" => Phase::Tarpit(Tarpit { rule, until }),
        "response-head" => Phase::ResponseHead,
        "response-rules-body" => Phase::BackendResponse(waiting(RuleWait::Body { until_ms })),
        "response-rules-pause" => Phase::BackendResponse(waiting(RuleWait::Pause { until_ms })),
        "transfer" => Phase::Transfer,
        "tunnel" => Phase::Tunnel(tunnel),
        "half-tunnel" => Phase::Tunnel(Tunnel {
            client_ended: true,
            ..tunnel
        }),
        "inspected-tunnel" => Phase::Tunnel(Tunnel {
            inspection: Some(inspection),
            ..tunnel
        }),
        word => panic!("phase {word}"),
    }
}

/// What else happened to the stream of a row.
fn apply(fact: &str, stream: &mut Stream) {
    match fact {
        // The request's body is not complete.
        "upload" => (stream.up.came, stream.up.done) = (false, false),
        // The server takes no more of it.
        "refused" => stream.up.is_open = false,
        "server-full" => stream.up.is_blocked = true,
        "client-full" => stream.down.is_blocked = true,
        "up-delayed" => stream.up.delayed_until_ms = 3001,
        "down-delayed" => stream.down.delayed_until_ms = 3002,
        "response-came" => stream.down.came = true,
        "response-done" => (stream.down.came, stream.down.done) = (true, true),
        // A TCP session, whose client has not ended and which has no server yet.
        "tcp" => {
            stream.txn.is_http = false;
            (stream.up.is_open, stream.up.came, stream.up.done) = (false, false, false);
            stream.server = ServerEnd::Nobody;
        }
        "server-heard" => stream.activity.server.sent_ms = 2600,
        "client-ended" => stream.up.came = true,
        "buffer-full" => stream.up.waiting = vec![0; 1 << 20],
        // In a tunnel of a TCP session.
        "client-spoke" => {
            stream.txn.is_http = false;
            stream.txn.bytes_in = 1;
        }
        "server-spoke" => stream.txn.bytes_out = 1,
        "page" => {
            let body = [1].into();
            stream.server = ServerEnd::Page(Page { body, sent: 0 });
        }
        "generated" => {
            let (selection, links) = (Selection::default(), stats::page::Links::default());
            let dump = Dump::new(Form::Csv, selection, stream.backend, links);
            let body = GeneratedBody::new(Maker::Dump(Box::new(dump)));
            stream.server = ServerEnd::Generated(Box::new(body));
        }
        "set-client-7" => stream.set_timeout(TimeoutKind::Client, 7),
        "set-server-7" => stream.set_timeout(TimeoutKind::Server, 7),
        "set-server-0" => stream.set_timeout(TimeoutKind::Server, 0),
        "set-tunnel-7" => stream.set_timeout(TimeoutKind::Tunnel, 7),
        fact => panic!("fact {fact}"),
    }
}

/// The deadlines of a row, all others do not run.
fn due(words: &str) -> Deadlines {
    let mut due = Deadlines {
        client_ms: NEVER_MS,
        server_ms: NEVER_MS,
        wait_ms: NEVER_MS,
        pace_ms: NEVER_MS,
    };
    let mut words = words.split_whitespace();
    while let Some(word) = words.next() {
        let mut at_ms = || words.next().expect("a time").parse().expect("milliseconds");
        match word {
            "wait" => due.wait_ms = UNTIL_MS,
            "client" => due.client_ms = at_ms(),
            "server" => due.server_ms = at_ms(),
            "pace" => due.pace_ms = at_ms(),
            word => panic!("deadline {word}"),
        }
    }
    due
}

/// Checks rows with a line of configuration: `phase | facts | deadlines`.
fn check(option: &str, table: &str) {
    let runtime_config = running(option);
    for row in table.lines().map(str::trim).filter(|row| !row.is_empty()) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [name, facts, wanted] = cells[..] else {
            panic!("{row}: not three cells");
        };
        let mut stream = stream(&runtime_config, phase(name));
        for fact in facts.split_whitespace() {
            apply(fact, &mut stream);
        }
        let wanted = due(wanted);
        assert_eq!(stream.deadlines(&runtime_config), wanted, "{row}");
        let first_ms = stream.stopped(&runtime_config, 3000);
        assert_eq!(first_ms, wanted.first_ms(), "{row}");
        assert_eq!(stream.deadlines(&runtime_config), wanted, "{row}: stopped");
    }
}

#[test]
fn each_phase_and_state_has_its_deadlines() {
    check(
        "",
        "
        request-head          |                                | wait
        frontend-content      |                                | wait
        frontend-body         | upload                         | wait
        frontend-body-endless | upload                         |
        frontend-rules-body   | upload                         | wait
        frontend-rules-pause  | upload                         | wait
        frontend-handshake    | upload                         | wait
        backend-content       |                                | wait
        backend-body          | upload                         | wait
        backend-rules-pause   | upload                         | wait
        queue                 | upload                         | wait
        turn-around           | upload                         | wait
        connect               | upload                         | wait
        take-over             | upload                         | wait
        tarpit                | upload                         | wait

        frontend-content      | tcp                            | client 1600 wait
        backend-content       | tcp                            | client 1600 wait
        queue                 | tcp                            | client 1600 wait
        queue                 | tcp client-ended               | wait
        turn-around           | tcp                            | client 1600 wait
        connect               | tcp                            | client 1600 wait
        connect               | tcp client-ended               | wait
        connect               | tcp buffer-full                | wait

        response-head         |                                | server 2700
        response-head         | server-heard                   | server 2800
        response-head         | upload                         | client 1600
        response-head         | upload server-heard            | client 1600
        response-head         | upload server-full             | server 2700
        response-head         | upload refused                 | server 2700
        response-head         | client-full                    | client 1600
        response-head         | upload client-full             | client 1600
        response-head         | upload client-full server-full | client 1600 server 2700
        response-rules-body   |                                | server 2700 wait
        response-rules-body   | upload                         | client 1600 wait
        response-rules-pause  |                                | wait
        response-rules-pause  | upload                         | client 1600 wait
        response-rules-pause  | upload server-full             | server 2700 wait

        transfer              |                                | server 2700
        transfer              | upload                         | client 1600
        transfer              | server-heard                   | server 2800
        transfer              | server-heard server-full       | server 2700
        transfer              | server-heard set-server-7      | server 2607
        transfer              | server-heard set-server-0      |
        transfer              | server-heard up-delayed        | server 2800 pace 3001
        transfer              | server-heard down-delayed      | pace 3002
        transfer              | client-full                    | client 1600
        transfer              | client-full server-heard       | client 1600
        transfer              | response-came                  |
        transfer              | response-came server-heard     |
        transfer              | response-came client-full      | client 1600
        transfer              | response-done upload           | client 1600
        transfer              | response-done server-full      | server 2700
        transfer              | upload up-delayed              | pace 3001
        transfer              | upload down-delayed            | client 1600 pace 3002
        transfer              | up-delayed down-delayed        | pace 3001
        transfer              | upload page                    |
        transfer              | upload page client-full        | client 1600
        transfer              | generated down-delayed         | pace 3002
        transfer              | generated client-full          | client 1600

        tunnel                |                                | client 1900 server 2900
        tunnel                | client-spoke                   | client 1900 server 2900
        tunnel                | client-spoke server-spoke      | client 1900 server 2900
        tunnel                | server-full                    | server 2900
        tunnel                | client-full                    | client 1900
        tunnel                | up-delayed                     | server 2900 pace 3001
        tunnel                | down-delayed                   | client 1900 pace 3002
        half-tunnel           |                                | server 2900
        half-tunnel           | client-spoke                   | server 2520
        half-tunnel           | client-spoke client-full       | client 1900
        inspected-tunnel      | client-spoke                   | client 1600 server 2700 wait

        response-head         | upload set-client-7            | client 1507
        response-head         | set-server-7                   | server 2507
        response-head         | set-server-0                   |
        tunnel                | set-tunnel-7                   | client 1507 server 2507
        ",
    );
}

/// Bytes that a side accepts are no sign that it will send some; a side that has to accept bytes is
/// limited all the same.
#[test]
fn with_independent_streams_received_bytes_count() {
    check(
        "option independent-streams",
        "
        queue                 | tcp                            | client 1100 wait
        response-head         | upload                         | client 1100
        response-head         | server-heard                   | server 2800
        response-head         | upload server-full             | server 2700
        transfer              | client-full                    | client 1600
        transfer              | response-done server-full      | server 2700
        tunnel                | client-spoke                   | client 1400 server 2400
        tunnel                | client-full                    | client 1400
        ",
    );
}

/// The server's timeout stands still while the client does not accept bytes, and starts anew then.
#[test]
fn the_time_of_a_side_begins_when_the_stream_begins_to_wait_for_it() {
    let runtime_config = running("");
    let mut stream = stream(&runtime_config, Phase::SelectServer);
    assert_eq!(stream.stopped(&runtime_config, 10_000), NEVER_MS);
    stream.phase = Phase::ResponseHead;
    assert_eq!(stream.stopped(&runtime_config, 10_000), 10_200);
    assert_eq!(stream.stopped(&runtime_config, 10_100), 10_200);
    stream.activity.server.restart();
    assert_eq!(stream.stopped(&runtime_config, 10_150), 10_350);
    let Stream { activity, down, .. } = &mut stream;
    activity.client.took(down, true, 10_300);
    assert_eq!(stream.stopped(&runtime_config, 10_300), 10_400);
    let Stream { activity, down, .. } = &mut stream;
    activity.client.took(down, true, 10_399);
    assert_eq!(stream.stopped(&runtime_config, 10_399), 10_499);
    let Stream { activity, down, .. } = &mut stream;
    activity.client.took(down, false, 10_450);
    assert_eq!(stream.stopped(&runtime_config, 10_450), 10_650);
}

#[test]
fn of_several_deadlines_a_delay_ends_first_then_the_phase() {
    let all = due("client 10 server 10 pace 10 wait");
    assert_eq!(all.due(9), None);
    assert_eq!(all.due(10), Some(Due::Pace));
    assert_eq!(due("client 10 wait").due(UNTIL_MS), Some(Due::Wait));
    assert_eq!(due("client 10 server 10").due(10), Some(Due::Client));
    assert_eq!(due("client 10 server 9").due(10), Some(Due::Server));
    assert_eq!(due("client 10 server 9").due(8), None);
    assert_eq!(all.first_ms(), 10);
}
