//! Sections `resolvers`, and servers that name one (manual §5.2, §5.3).

use std::time::Duration;

use spangate_config::model::{Family, Hold, HttpAction, ServerAddress};

use crate::common::{accepted, refused};

const PROXIES: &str = "defaults
 mode http
 timeout client 1s
 timeout server 1s
 timeout connect 1s
";

/// The times of `hold`, in seconds.
fn seconds(hold: Hold) -> [u64; 6] {
    let times = [
        hold.nx,
        hold.other,
        hold.refused,
        hold.timeout,
        hold.valid,
        hold.obsolete,
    ];
    times.map(|time| time.as_secs())
}

#[test]
fn a_whole_section() {
    let config = accepted(
        "resolvers mydns
 nameserver one 10.0.0.1:53
 nameserver two tcp@[::1]:5353
 parse-resolv-conf
 resolve_retries 5
 timeout resolve 2s
 timeout retry 300ms
 hold nx 1s
 hold other 2s
 hold refused 3s
 hold timeout 4s
 hold valid 5s
 hold obsolete 6s
 accepted_payload_size 8192
",
    );
    let found = config.resolvers.iter().find(|one| one.name == "mydns");
    let found = found.expect("the section");
    let of = |name: &str| found.nameservers.iter().find(|one| one.name == name);
    let one = of("one").expect("a name server");
    assert_eq!(
        (one.address.to_string().as_str(), one.is_stream),
        ("10.0.0.1:53", false)
    );
    let two = of("two").expect("a name server");
    assert_eq!(
        (two.address.to_string().as_str(), two.is_stream),
        ("[::1]:5353", true)
    );
    assert_eq!((found.retries, found.payload_bytes_max), (5, 8192));
    assert_eq!(found.timeout_resolve, Duration::from_secs(2));
    assert_eq!(found.timeout_retry, Duration::from_millis(300));
    assert_eq!(seconds(found.hold), [1, 2, 3, 4, 5, 6]);
}

#[test]
fn defaults_are_those_of_haproxy() {
    let config = accepted("resolvers r\n nameserver a 127.0.0.1:53\n");
    let found = &config.resolvers[0];
    assert_eq!((found.retries, found.payload_bytes_max), (3, 512));
    let (resolve, retry) = (found.timeout_resolve, found.timeout_retry);
    assert_eq!((resolve.as_millis(), retry.as_millis()), (1000, 1000));
    assert_eq!(seconds(found.hold), [30, 30, 30, 30, 10, 0]);
}

#[test]
fn wrong_sections() {
    let cases = [
        ("resolvers\n", "missing name"),
        (
            "resolvers a/b\n nameserver a 1.1.1.1:53\n",
            "is not permitted in 'resolvers' name",
        ),
        (
            "resolvers r\n nameserver a 1.1.1.1:53\nresolvers r\n",
            "has same name as another resolvers",
        ),
        ("resolvers r\n nameserver a\n", "expects <name> and <addr>"),
        (
            "resolvers r\n nameserver a 1.1.1.1\n",
            "missing port specification",
        ),
        (
            "resolvers r\n nameserver a 1.1.1.1:53\n nameserver a 1.1.1.1:53\n",
            "same name",
        ),
        (
            "resolvers r\n nameserver a /run/dns.sock\n",
            "is no address of a network",
        ),
        (
            "resolvers r\n nameserver a tcp@1.1.1.1:53 ssl\n",
            "not implemented yet",
        ),
        ("resolvers r\n hold never 1s\n", "unknown <event>"),
        ("resolvers r\n hold nx\n", "expects an <event> and a <time>"),
        ("resolvers r\n hold nx 1x\n", "unexpected character"),
        (
            "resolvers r\n timeout connect 1s\n",
            "expects 'retry' or 'resolve'",
        ),
        (
            "resolvers r\n accepted_payload_size 11\n",
            "must be between 12 and 65535",
        ),
        (
            "resolvers r\n accepted_payload_size 65536\n",
            "must be between 12 and 65535",
        ),
        (
            "resolvers r\n resolution_pool_size 4\n",
            "not supported anymore",
        ),
        (
            "resolvers r\n nameservr a 1.1.1.1:53\n",
            "did you mean 'nameserver'",
        ),
    ];
    for (text, part) in cases {
        let found = refused(text);
        assert!(found.contains(part), "{text}: {found}");
    }
}

#[test]
fn servers_with_names() {
    let config = accepted(&format!(
        "resolvers r
 nameserver a 127.0.0.1:53
{PROXIES}backend b
 server host app.invalid:80 resolvers r init-addr none resolve-prefer ipv4 resolve-opts allow-dup-ip,ignore-weight resolve-net 10.0.0.0/8,192.168.0.1
 server-template web 2 _http._tcp.app.invalid resolvers r
 server plain 127.0.0.1:80 resolvers r
 server once localhost:80
"
    ));
    let servers = &config.proxies[0].servers;
    let names: Vec<_> = servers.iter().map(|one| one.fqdn.as_deref()).collect();
    let service = Some("_http._tcp.app.invalid");
    assert_eq!(
        names,
        [
            Some("app.invalid"),
            service,
            service,
            None,
            Some("localhost")
        ]
    );
    let unresolved: Vec<bool> = servers.iter().map(|one| one.unresolved).collect();
    assert_eq!(unresolved, [true, true, true, false, false]);
    let sections: Vec<_> = servers.iter().map(|one| one.resolvers).collect();
    assert_eq!(sections, [Some(0), Some(0), Some(0), Some(0), None]);
    let resolve = &servers[0].options.resolve;
    assert_eq!(resolve.prefer, Some(Family::V4));
    assert!(resolve.allows_duplicates && resolve.ignores_weight);
    let lengths: Vec<u8> = resolve.networks.iter().map(|(_, length)| *length).collect();
    assert_eq!(lengths, [8, 32]);
    assert!(matches!(
        servers[1].address,
        ServerAddress::PortOffset { offset: 0, .. }
    ));
}

#[test]
fn wrong_servers() {
    let file = |options: &str| {
        format!(
            "resolvers r\n nameserver a 127.0.0.1:53\n{PROXIES}backend b\n server s app.invalid:80 {options}\n"
        )
    };
    let cases = [
        (
            "resolvers q",
            "backend 'b', server 's': unable to find required resolvers 'q'",
        ),
        ("resolvers r init-addr libc", "could not resolve address"),
        (
            "resolvers r resolve-prefer v4",
            "expects either ipv4 or ipv6",
        ),
        (
            "resolvers r resolve-opts x",
            "unknown resolve-opts option 'x'",
        ),
        (
            "resolvers r resolve-net 10.0.0.0/8,x",
            "invalid network 'x'",
        ),
        (
            "resolvers r resolve-net 1.0.0.1,1.0.0.2,1.0.0.3,1.0.0.4,1.0.0.5,1.0.0.6",
            "exceed 5",
        ),
    ];
    for (options, part) in cases {
        let found = refused(&file(options));
        assert!(found.contains(part), "{options}: {found}");
    }
    // A service is found by resolvers only.
    let lone = format!("{PROXIES}backend b\n server s _http._tcp.app.invalid\n");
    assert!(refused(&lone).contains("no method found to resolve address"));
}

#[test]
fn rules_that_resolve() {
    let file = |rule: &str| {
        format!(
            "resolvers r\n nameserver a 127.0.0.1:53\n{PROXIES}frontend f\n bind 127.0.0.1:1\n {rule}\n"
        )
    };
    let config = accepted(&file(
        "http-request do-resolve(txn.ip,r,ipv4) req.hdr(host),host_only if { path / }\n \
         tcp-request content do-resolve(sess.ip,r) str(a.b)",
    ));
    let proxy = config.proxies.iter().find(|proxy| proxy.name == *"f");
    let proxy = proxy.expect("the frontend");
    assert!(proxy.resolves_names());
    let HttpAction::Resolve(rule) = &proxy.http_request[0].action else {
        panic!("{:?}", proxy.http_request[0]);
    };
    assert_eq!((rule.section, rule.prefer), (0, Some(Family::V4)));
    let cases = [
        (
            "http-request do-resolve(txn.ip) str(a)",
            "Expects 'do-resolve(<varname>,<resolvers>",
        ),
        (
            "http-request do-resolve(txn.ip,r,ipv5) str(a)",
            "Available options are 'ipv4' and 'ipv6'",
        ),
        (
            "http-request do-resolve(txn.ip,q) str(a)",
            "Can't find resolvers section 'q'",
        ),
        (
            "http-request do-resolve(nowhere.ip,r) str(a)",
            "Can't parse",
        ),
        ("http-request do-resolve(txn.ip,r)", "missing fetch method"),
        (
            "http-response do-resolve(txn.ip,r) str(a)",
            "'http-response'",
        ),
    ];
    for (rule, part) in cases {
        let found = refused(&file(rule));
        assert!(found.contains(part), "{rule}: {found}");
    }
}

/// With `-dr` in HAProxy, a name that cannot be one disables the server.
#[test]
fn a_name_that_cannot_be_one_has_no_address() {
    let config = accepted(&format!(
        "{PROXIES}backend b\n server s <node-ip>:80 init-addr none\n"
    ));
    assert!(config.proxies[0].servers[0].unresolved);
}
