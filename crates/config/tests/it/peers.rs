//! Sections `peers`, and tables that name one (manual §11.2).

use spangate_config::diagnostic::Severity;
use spangate_config::model::{Config, Peer};

use crate::common::{accepted, messages, read};
use crate::tls::Files;

const TABLE: &str = "backend b\n stick-table type ip size 10 store gpc0 peers p\n";

fn told(text: &str, severity: Severity) -> String {
    let found = match read(text) {
        Ok((_, found)) => found,
        Err(found) => found,
    };
    messages(&found, severity).join("\n")
}

fn section(config: &Config) -> &spangate_config::model::Peers {
    config.peers.first().expect("a section")
}

#[test]
fn the_old_way() {
    let text = format!(
        "global\n localpeer a\npeers p\n peer a 127.0.0.1:1024\n peer b /var/run/b.sock\n peer c [::1]:1024\n{TABLE}"
    );
    let config = accepted(&text);
    let section = section(&config);
    assert!(section.is_active());
    let bind = section.bind.as_ref().expect("a listener");
    assert!(format!("{:?}", bind.address).contains("127.0.0.1:1024"));
    let peers: Vec<_> = section.peers.iter().collect();
    assert_eq!(
        peers
            .iter()
            .map(|peer| (peer.name.as_str(), peer.is_local))
            .collect::<Vec<_>>(),
        [("a", true), ("b", false), ("c", false)]
    );
    let table = config.tables.first().expect("a table");
    assert_eq!(table.definition().peers.as_deref(), Some("p"));
    assert_eq!(table.definition().wire_name, None);
}

/// Options of balancing and checks have no effect. Only those that promise a state of the peer or
/// the lookup of its name are told.
#[test]
fn options_without_effect() {
    let section = |line: &str| {
        format!(
            "global\n localpeer a\npeers p\n bind :1024\n server a\n{line}\n server b 127.0.0.1:1025\n"
        )
    };
    for line in [
        " default-server weight 3 maxconn 5 backup inter 1s",
        " default-server check no-check rise 2 fall 3 check-ssl",
        " server c 127.0.0.1:1 id 7 minconn 1 on-marked-down shutdown-sessions disabled",
    ] {
        let told = told(&section(line), Severity::Warning);
        assert_eq!(told, "", "{line}");
    }
    for line in [
        " default-server check",
        " default-server agent-check agent-port 5",
        " default-server resolvers r",
        " default-server init-addr none",
    ] {
        let text = section(line);
        let told_warnings = told(&text, Severity::Warning);
        assert_eq!(
            told_warnings,
            "'server b' : init_addr, resolvers, check and agent are ignored for peers."
        );
        assert_eq!(told(&text, Severity::Alert), "", "{line}");
    }
    let text = section(" default-server weight 300");
    assert!(told(&text, Severity::Alert).contains("'weight' expects"));
}

#[test]
fn the_new_way() {
    let config = accepted(
        "global
 localpeer a
peers p
 default-bind v4v6
 bind [::]:1024
 default-server shard 1
 server a
 server b 127.0.0.1:1025 shard 2
 server c 127.0.0.1:1026
 shards 2
 table t type string len 10 size 1k expire 1m store gpc0,conn_cur recv-only
 table u type string len 10 size 1k write-to b
backend b
 stick-table type string len 10 size 10 store gpt0
frontend f
 mode http
 timeout client 1s
 bind :8080
 http-request track-sc0 url table p/t
",
    );
    let section = section(&config);
    let bind = section.bind.as_ref().expect("a listener");
    assert!(bind.v4v6);
    let shards: Vec<_> = section.peers.iter().map(|peer| peer.shard).collect();
    assert_eq!((section.shards, shards), (2, vec![0, 2, 1]));
    assert_eq!(section.peers[0].address, None);
    let find = |name: &str| {
        let mut tables = config.tables.iter().map(|table| table.definition());
        tables.find(|table| table.name == name).expect("the table")
    };
    let t = find("p/t");
    assert_eq!(t.wire_name.as_deref(), Some("/t"));
    assert_eq!(t.peers.as_deref(), Some("p"));
    assert!(t.receives_only);
    assert_eq!(find("p/u").write_to.as_deref(), Some("b"));
    assert_eq!(find("b").peers, None);
}

#[test]
fn tls_of_the_listener_and_of_each_peer() {
    let files = Files::new(&["own.pem"]);
    let config = accepted(&files.named_in(
        "global
 localpeer a
peers p
 default-bind ssl crt DIR/own.pem
 default-server ssl verify none verifyhost x
 bind :1024
 server a
 server b 127.0.0.1:1025 ssl-min-ver TLSv1.3
 server c 127.0.0.1:1026 no-ssl shard 1
",
    ));
    let section = section(&config);
    let bind = section.bind.as_ref().and_then(|bind| bind.tls.as_ref());
    let bind = bind.expect("TLS");
    assert_eq!(bind.certificates.len(), 1);
    assert!(bind.certificates[0].is_default);
    let [a, b, c] = &section.peers[..] else {
        panic!("{:?}", section.peers)
    };
    for peer in [a, b] {
        let tls = peer.tls.as_ref().expect("TLS");
        assert!(!tls.verifies());
        assert_eq!(tls.verifyhost.as_deref(), Some("x"));
    }
    let versions = |peer: &Peer| peer.tls.as_ref().and_then(|tls| tls.options.versions.min);
    assert_eq!((versions(a), versions(b)), (None, Some(0x0304)));
    assert!(c.tls.is_none());
}

#[test]
fn a_section_without_this_process_is_left_out() {
    let text = format!("peers p\n peer nobody-here 127.0.0.1:1\n{TABLE}");
    let config = accepted(&text);
    assert!(!section(&config).is_active());
    let warned = told(&text, Severity::Warning);
    assert!(
        warned.starts_with("Removing incomplete section 'peers p' (no peer named '"),
        "{warned}"
    );
    let disabled = accepted(&format!(
        "global\n localpeer a\npeers p\n peer a 127.0.0.1:1\n disabled\n{TABLE}"
    ));
    assert!(!section(&disabled).is_active());
    let enabled = "global\n localpeer a\npeers p\n disabled\n peer a 127.0.0.1:1\n enabled\n";
    assert!(section(&accepted(enabled)).is_active());
}

#[test]
fn faults_have_their_words() {
    let local = |lines: &str| format!("global\n localpeer a\npeers p\n{lines}");
    let cases = [
        ("peers\n".to_owned(), "missing name for peers section."),
        (
            "peers p\npeers p\n".to_owned(),
            "peers section 'p' has the same name as another peers section declared at",
        ),
        (
            local(" bind :1\n peer b :2\n"),
            "mixing \"peer\" and \"bind\" line is forbidden",
        ),
        (
            local(" peer a :1\n bind :1\n"),
            "mixing \"peer\" and \"bind\" line is forbidden",
        ),
        (
            local(" bind :1\n bind :2\n"),
            "One listener per \"peers\" section is authorized but another is already configured at [",
        ),
        (
            local(" bind :1-2\n"),
            "Only one listener per \"peers\" section is authorized.",
        ),
        (
            local(" peer\n"),
            "'peer' expects <name> and <addr>[:<port>] as arguments.",
        ),
        (
            local(" peer a :1\n peer a :2\n"),
            "'peer a' : local peer name already referenced at",
        ),
        (
            local(" peer b :1\n peer b :2\n"),
            "another peer named 'b' was already defined at line",
        ),
        (
            local(" peer b 127.0.0.1\n"),
            "missing port specification in '127.0.0.1'",
        ),
        (
            local(" peer b :1 zzz\n"),
            "'peer b' : unknown keyword 'zzz'",
        ),
        (
            local(" peer b :1 send-proxy\n"),
            "is known but not implemented yet",
        ),
        (
            local(" server b :1 ssl verify none sni str(x)\n"),
            "is known but not implemented yet",
        ),
        (
            local(" server b :1 ssl\n"),
            "'server b' : verify is enabled by default but no CA file specified.",
        ),
        (
            local(" default-bind ssl\n bind :1\n"),
            "no SSL certificate specified for bind ':1' at [t.cfg:5] (use 'crt').",
        ),
        (
            local(" default-server source 127.0.0.1\n"),
            "is known but not implemented yet",
        ),
        (
            local(" bind :1 accept-proxy\n"),
            "is known but not implemented yet",
        ),
        (
            local(" log stdout local0\n"),
            "keyword 'log' is known but not implemented yet",
        ),
        (local(" shards\n"), "'shards' : missing value"),
        (
            local(" shards x\n"),
            "'shards' : expects an integer argument, found 'x'",
        ),
        (
            local(" shards 0\n"),
            "'shards' : expects a strictly positive integer argument",
        ),
        (local(" table t type ip\n"), "table: missing size."),
        (
            local(" table t type ip size 1 peers p\n"),
            "table: unknown argument 'peers'.",
        ),
        (
            local(" table t type ip size 1\n table t type ip size 1\n"),
            "stick-table name 't' conflicts with table declared in peers 'p' at",
        ),
        (
            local(" table t type ip size 1 write-to\n"),
            "table: write-to requires table name.",
        ),
        (
            local(" table t type ip size 1 write-to u\n"),
            "failed to initialize 'p/t' stick-table: write-to: table 'u' doesn't exist.",
        ),
        (
            local(" table t type ip size 1 write-to p/t\n"),
            "write-to: table 'p/t' is already used as a source table",
        ),
        (
            local(" table t type ip size 1 write-to p/u\n table u type ipv6 size 1\n"),
            "write-to: cannot mix table types ('p/u' has 'ipv6' type and 'p/t' has 'ip' type)",
        ),
        (
            local(" table t type string size 1 write-to p/u\n table u type string len 3 size 1\n"),
            "write-to: cannot mix key sizes ('p/u' has '4' key_size and 'p/t' has '32' key_size)",
        ),
        (
            TABLE.to_owned(),
            "Proxy 'b': unable to find sync peers 'p'.",
        ),
        (
            "global\n localpeer\n".to_owned(),
            "'localpeer' expects a name as an argument.",
        ),
    ];
    for (text, expected) in cases {
        let alerts = told(&text, Severity::Alert);
        assert!(alerts.contains(expected), "{text}\n{alerts}");
    }
}

#[test]
fn warnings_have_their_words() {
    let local = |lines: &str| format!("global\n localpeer a\npeers p\n peer a :1\n{lines}");
    let cases = [
        (
            local(" peer b\n"),
            "'peer b' : ignoring invalid peer definition (missing address:port)",
        ),
        (
            "global\n localpeer a\npeers p\n bind :1\n default-server ssl verify none\n server a\n"
                .to_owned(),
            "Peers section 'p': local peer have a non-SSL listener and a SSL server configured at line t.cfg:6.",
        ),
        (
            local(" peer b :1 shard 2\n"),
            "shard ignored for 'b' local peer because 2 shard value is greater than",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(told(&text, Severity::Alert), "");
        let warnings = told(&text, Severity::Warning);
        assert!(warnings.contains(expected), "{text}\n{warnings}");
    }
}
