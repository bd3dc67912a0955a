//! Sections `ring` and `log-forward`, and the targets that name rings (manual §12.5, §12.6).

use std::time::Duration;

use net::ring::Framing;
use spangate_config::model::{HostStrategy, LogSink, LogWire};

use crate::common::{accepted, read, refused};

#[test]
fn a_whole_ring() {
    let config = accepted(
        "global
 log ring@r len 2000 format raw local0
ring r
 description \"of logs\"
 format rfc5424
 maxlen 1200
 size 32764
 timeout connect 5s
 timeout server 0
 server a 127.0.0.1:6514 log-proto octet-count
 server b tcp@[::1]:514 log-proto legacy
 server c 127.0.0.1:514 ssl verify none
ring defaults-only
",
    );
    let [buf0, ring, plain] = &*config.rings else {
        panic!("{:?}", config.rings);
    };
    let of_buf0 = (buf0.name.as_str(), buf0.format, buf0.bytes_max);
    assert_eq!(of_buf0, ("buf0", LogWire::Timed, 1 << 20));
    assert_eq!((&*ring.name, &*ring.description), ("r", "of logs"));
    assert_eq!(ring.format, LogWire::Rfc5424);
    assert_eq!(
        (ring.message_bytes_max, ring.bytes_max),
        (Some(1200), 32764)
    );
    let timeouts = (ring.timeout_connect, ring.timeout_server);
    assert_eq!(timeouts, (Some(Duration::from_secs(5)), None));
    let servers: Vec<(&str, String, Framing)> = ring
        .servers
        .iter()
        .map(|server| (&*server.name, server.address.to_string(), server.framing))
        .collect();
    let expected = [
        ("a", "127.0.0.1:6514".to_owned(), Framing::OctetCount),
        ("b", "[::1]:514".to_owned(), Framing::LineFeed),
        ("c", "127.0.0.1:514".to_owned(), Framing::LineFeed),
    ];
    assert_eq!(servers, expected);
    let tls = ring.servers.iter().map(|server| server.tls.is_some());
    assert_eq!(tls.collect::<Vec<_>>(), [false, false, true]);
    let defaults = (plain.format, plain.message_bytes_max, plain.bytes_max);
    assert_eq!(defaults, (LogWire::Raw, None, 16384));
    // The format and the length of the ring take precedence.
    let target = &config.global.log[0];
    let of_target = (&target.to, target.format, target.len);
    assert_eq!(of_target, (&LogSink::Ring(1), LogWire::Rfc5424, 1201));
}

#[test]
fn faults_of_rings() {
    let cases = [
        ("ring\n", "missing ring name."),
        (
            "ring a!\n",
            "invalid ring name 'a!' (character '!' is not permitted).",
        ),
        ("ring buf0\n", "sink named 'buf0' already exists."),
        ("ring stderr\n", "sink named 'stderr' already exists."),
        ("ring r\nring r\n", "sink named 'r' already exists."),
        ("ring r\n format x\n", "unknown format 'x'."),
        ("ring r\n size 0\n", "invalid size '0' for new sink buffer."),
        (
            "ring r\n maxlen x\n",
            "invalid size 'x' for new sink buffer.",
        ),
        ("ring r\n description\n", "missing ring description text."),
        (
            "ring r\n timeout connect\n",
            "'timeout connect' expects <time> as argument.",
        ),
        (
            "ring r\n timeout client 1s\n",
            "'timeout' expects 'connect' or 'server' as argument (got 'client').",
        ),
        (
            "ring r\n backing-file\n",
            "'backing-file' expects <path> as argument.",
        ),
        (
            "ring r\n backing-file /x\n backing-file /y\n",
            "'backing-file' already specified for ring 'r' (was '/x').",
        ),
        (
            "ring r\n backing-file /x\nring s\n backing-file /x\n",
            "'/x' is the backing-file of ring 'r' already.",
        ),
        (
            "ring r\n backing-file /x\n size 5k\n",
            "cannot resize an already mapped file, please specify 'size' before 'backing-file'.",
        ),
        (
            "ring r\n nonsense\n",
            "unknown keyword 'nonsense' in 'ring' section",
        ),
        (
            "ring r\n server s 127.0.0.1\n",
            "'server r/s' : missing port number.",
        ),
        (
            "ring r\n server s 127.0.0.1:1 weight 3\n",
            "keyword 'server … weight of a ring' is known but not implemented yet by this version.",
        ),
        (
            "ring r\n server s 127.0.0.1:1 ssl verify none sni str(x)\n",
            "keyword 'server … sni of a ring' is known but not implemented yet by this version.",
        ),
        (
            "ring r\n server s 127.0.0.1:1 ssl\n",
            "'server r/s' : verify is enabled by default but no CA file specified.",
        ),
        (
            "ring r\n server s 127.0.0.1:1 log-proto x\n",
            "'log-proto' expects one of 'legacy' or 'octet-count' but got 'x'.",
        ),
        (
            "ring r\n server s 127.0.0.1:1 nonsense\n",
            "'server r/s' : unknown keyword 'nonsense'.",
        ),
        (
            "ring r\n server s 127.0.0.1:1\n server s 127.0.0.1:2\n",
            "server 's' has the same name as another server.",
        ),
        (
            "global\n log ring@rong local0\nring ring\n",
            "log : uses unknown ring named 'rong'; did you mean 'ring' maybe ?.",
        ),
    ];
    for (text, expected) in cases {
        let found = refused(text);
        assert!(found.contains(expected), "{text}: {found}");
    }
    let (_, told) = read("ring r\n size 100\n maxlen 200\n").expect("a warning only");
    let mut told = told.iter().map(|one| one.message.as_str());
    let expected = "ring 'r' event max length '200' exceeds max payload size, forced to '96'.";
    assert!(told.any(|message| message == expected));
}

#[test]
fn a_whole_log_forward() {
    let config = accepted(
        "global
 log stderr format iso local7
log-forward relay
 dgram-bind 127.0.0.1:1514,udp@[::1]:1515 name datagrams interface lo
 dgram-bind 127.0.0.1:1516 name other
 bind 127.0.0.1:1514 interface lo
 backlog 7
 maxconn 20
 timeout client 5s
 option dont-parse-log
 option assume-rfc6587-ntf
 option host append
 log global
 log ring@r local0
 log 127.0.0.1:10001 sample 1:4 local0
 log udp@[::1]:514 local0
 log backend@b format raw local0
log-forward plain
 option host keep
 no option host keep
ring r
backend b
 mode log
 server s udp@127.0.0.1:514
",
    );
    let [relay, plain] = &*config.log_forwards else {
        panic!("{:?}", config.log_forwards);
    };
    assert_eq!((relay.dgram_binds.len(), relay.binds.len()), (3, 1));
    let interfaces = relay.dgram_binds.iter();
    let interfaces: Vec<_> = interfaces.map(|bind| bind.interface.as_deref()).collect();
    assert_eq!(interfaces, [Some("lo"), Some("lo"), None]);
    assert_eq!((relay.backlog, relay.maxconn), (Some(7), 20));
    assert_eq!(relay.timeout_client, Some(Duration::from_secs(5)));
    assert!(relay.dont_parse && relay.assume_lines);
    assert_eq!(relay.host, HostStrategy::Append);
    let targets: Vec<&LogSink> = relay.log.iter().map(|target| &target.to).collect();
    assert!(
        matches!(
            *targets,
            [
                LogSink::Fd(2),
                LogSink::Ring(1),
                LogSink::Udp(_),
                LogSink::Udp(_),
                LogSink::Backend(0)
            ]
        ),
        "{targets:?}"
    );
    assert_eq!(relay.log[1].format, LogWire::Raw);
    assert_eq!((plain.maxconn, plain.timeout_client), (10, None));
    assert_eq!(plain.host, HostStrategy::Fill);
    assert!(!plain.dont_parse && !plain.assume_lines);
}

#[test]
fn faults_of_log_forwards() {
    let cases = [
        ("log-forward\n", "missing name for log-forward section."),
        (
            "log-forward f\nlog-forward f\n",
            "log-forward section 'f' has the same name as another log-forward section declared at ",
        ),
        (
            "log-forward f\nfrontend f\n",
            "log forward section 'f' has the same name as a proxy declared at ",
        ),
        (
            "log-forward f\n bind :1 ssl\n",
            "Proxy 'f': no SSL certificate specified for bind ':1' at [t.cfg:2] (use 'crt').",
        ),
        (
            "log-forward f\n option x\n",
            "unknown option 'x' in log-forward section",
        ),
        (
            "log-forward f\n option host x\n",
            "option 'host' expects {replace|fill|keep|append}.",
        ),
        (
            "log-forward f\n timeout server 1s\n",
            "unknown keyword 'timeout server' in log-forward section.",
        ),
        (
            "log-forward f\n timeout client\n",
            "missing timeout client value.",
        ),
        (
            "log-forward f\n maxconn\n",
            "'maxconn' expects an integer argument.",
        ),
        (
            "log-forward f\n dgram-bind :1 tfo\n",
            "keyword 'dgram-bind … tfo' is known but",
        ),
        (
            "log-forward f\n dgram-bind :1 name\n",
            "'name' expects <name> as argument.",
        ),
        (
            "log-forward f\n dgram-bind :1 name x y\n",
            "unknown keyword 'y' in 'log-forward' section",
        ),
        (
            "log-forward f\n dgram-bind :1 x\n",
            "unknown keyword 'x' in 'log-forward' section",
        ),
        (
            "log-forward f\n dgram-bind 127.0.0.1\n",
            "'dgram-bind' : missing port number.",
        ),
        (
            "log-forward f\n bind :1 accept-proxy\n",
            "keyword 'bind … accept-proxy of a log-forward' is known but not implemented yet by this version.",
        ),
        (
            "log-profile p\nlog-forward f\n log 127.0.0.1:1 profile p local0\n",
            "keyword 'log … profile of a log-forward' is known but not implemented yet by this version.",
        ),
        (
            "log-forward f\n log backend@b local0\nbackend b\n",
            "a log directive uses incompatible log backend 'b'.",
        ),
    ];
    for (text, expected) in cases {
        let found = refused(text);
        assert!(found.contains(expected), "{text}: {found}");
    }
}
