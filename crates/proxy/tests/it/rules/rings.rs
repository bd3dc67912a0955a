//! `hash-type consistent`: keys lead to the servers that HAProxy 3.5 chooses.

use super::script::{DEFAULTS, Play};
use crate::setups::runtime_config;

const BACKENDS: &str = "
backend id
    balance uri
    hash-type consistent
    server s1 127.0.0.1:1
    server s2 127.0.0.1:2 weight 3
    server s3 127.0.0.1:3 id 77
backend id32
    balance uri
    hash-type consistent djb2
    server s1 127.0.0.1:1 hash-key id32
    server s2 127.0.0.1:2 weight 3 hash-key id32
    server s3 127.0.0.1:3 hash-key guid guid g1
backend addr
    balance uri
    hash-type consistent wt6 avalanche
    server s1 127.0.0.1:1 hash-key addr
    server s2 127.0.0.2:2 weight 3 hash-key addr
    server s3 [::1]:2 hash-key addr
backend addrport
    balance uri
    hash-type consistent crc32
    server s1 127.0.0.1:1 hash-key addr-port
    server s2 127.0.0.1:2 weight 3 hash-key addr-port
    server s3 [::1]:2 hash-key addr-port
    server s4 127.0.0.1:3 hash-key addr-port backup
";

/// By backend: the servers that HAProxy 3.5 sends `/<backend>/0`, `/<backend>/1` … to.
const CHOSEN: [(&str, &str); 4] = [
    ("id", "223223222223231323222123121222131211232212122322"),
    ("id32", "222222222222222222222222222222222222222222222222"),
    ("addr", "223222223223122232222221323221322212213223223112"),
    (
        "addrport",
        "223222222211122232122122232222213121322222122311",
    ),
];

fn done(play: &mut Play, line: &str) {
    play.line(line)
        .unwrap_or_else(|error| panic!("{line}: {error}"));
    play.settle();
}

#[test]
fn keys_lead_to_the_servers_that_haproxy_chooses() {
    let text = format!("{DEFAULTS}    use_backend %[path,field(2,/)]\n{BACKENDS}");
    let runtime_config = runtime_config(&text);
    for (backend, chosen) in CHOSEN {
        let servers = runtime_config.config.proxies.iter();
        let servers = servers.filter(|proxy| proxy.name == backend);
        let servers: Vec<_> = servers.flat_map(|proxy| &proxy.servers).collect();
        for (number, expected) in chosen.bytes().enumerate() {
            let mut play = Play::new(&runtime_config);
            done(
                &mut play,
                &format!("c1 > GET /{backend}/{number} HTTP/1.1|host: a||"),
            );
            let server = &servers[usize::from(expected - b'1')];
            let config::model::ServerAddress::Fixed(to) = &server.address else {
                panic!("{}", server.name);
            };
            done(&mut play, &format!("s1 to {to}"));
        }
    }
}

#[test]
fn a_full_server_is_passed_over_where_affinity_ends_with_it() {
    let ask = |play: &mut Play, client: u32| {
        done(play, &format!("c{client} > GET /same HTTP/1.1|host: a||"));
    };
    let lines = |affinity: &str| {
        format!(
            "{DEFAULTS}    balance uri\n    hash-type consistent\n    hash-preserve-affinity {affinity}\n    server a 127.0.0.1:1 maxconn 1 maxqueue 1\n    server b 127.0.0.1:2 maxconn 1 maxqueue 1\n"
        )
    };
    // The first request has the first server's only slot.
    let mut play = Play::new(&runtime_config(&lines("always")));
    ask(&mut play, 1);
    ask(&mut play, 2);
    done(&mut play, "s2 none");
    let mut play = Play::new(&runtime_config(&lines("maxconn")));
    ask(&mut play, 1);
    ask(&mut play, 2);
    done(&mut play, "s2 open");
    // The second waits, the third finds the queue full.
    let mut play = Play::new(&runtime_config(&lines("maxqueue")));
    ask(&mut play, 1);
    ask(&mut play, 2);
    done(&mut play, "s2 none");
    ask(&mut play, 3);
    done(&mut play, "s2 open");
}

#[test]
fn no_server_has_much_more_load_than_its_share() {
    let text = format!(
        "{DEFAULTS}    balance uri\n    hash-type consistent\n    hash-balance-factor 150\n    server a 127.0.0.1:1\n    server b 127.0.0.1:2\n    server c 127.0.0.1:3\n"
    );
    let mut play = Play::new(&runtime_config(&text));
    for client in 1..=12 {
        done(
            &mut play,
            &format!("c{client} > GET /same HTTP/1.1|host: a||"),
        );
    }
    let mut load = [0_u32; 3];
    for pipe in &play.driver.pipes {
        if let Some(net::Addr::Inet(to)) = &pipe.to {
            load[usize::from(to.port()) - 1] += 1;
        }
    }
    assert_eq!(load.iter().sum::<u32>(), 12);
    assert!(
        load.iter().all(|load| *load <= 6),
        "1.5 times the average: {load:?}"
    );
    assert!(
        load.contains(&6),
        "the hash decides as far as it may: {load:?}"
    );
}
