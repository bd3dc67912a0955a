use super::*;

const TEXT: &str = "
global
    ca-base /nowhere
defaults
    default-server weight 7
backend app
    mode http
    default-server maxconn 3
    default-server name other weight 5
    server one 127.0.0.1:1 check
backend still
    balance uri
    server one 127.0.0.1:1
backend ring
    balance uri
    hash-type consistent
";

fn config() -> Config {
    config_of(TEXT)
}

fn config_of(text: &str) -> Config {
    let input = Input {
        name: "dynamic.cfg".into(),
        text: text.into(),
    };
    let options = LoadOptions {
        build: &BuildInfo::default(),
        settings: Settings::default(),
        zero_warning: false,
    };
    let loaded = load::load(&[input], options, &mut Environment::new());
    loaded.expect("a configuration").0
}

fn read(line: &str) -> Result<Server, Vec<String>> {
    let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
    let mut environment = Environment::new();
    environment.set("PORT", "81");
    server(&config(), 0, "new", &words, &environment)
}

fn refused(line: &str) -> String {
    read(line).expect_err(line).join("\n")
}

#[test]
fn variables_stand_in_addresses_alone() {
    let server = read("127.0.0.1:${PORT} cookie ${PORT}").expect("a server");
    assert_eq!(
        server.address,
        read("127.0.0.1:81").expect("a server").address
    );
    assert_eq!(server.cookie.as_deref(), Some(&b"${PORT}"[..]));
}

#[test]
fn a_line_starts_from_what_it_names() {
    let plain = read("127.0.0.1:80 cookie it's").expect("a server");
    assert_eq!(
        (plain.name.as_str(), plain.id, plain.weight, plain.maxconn),
        ("new", 0, 1, 0)
    );
    assert_eq!(plain.cookie.as_deref(), Some(&b"it's"[..]));
    let own = read("127.0.0.1:80 from be: id 9").expect("a server");
    assert_eq!((own.id, own.weight, own.maxconn), (9, 7, 3));
    let named = read("127.0.0.1:80 from srv:other").expect("a server");
    assert_eq!((named.weight, named.maxconn), (5, 0));
}

#[test]
fn what_servers_may_start_from_is_listed() {
    let config = config();
    let found = presets(&config.proxies[0]);
    assert_eq!(
        (found.unnamed, found.names),
        (true, vec!["other".to_owned()])
    );
}

#[test]
fn names_are_not_resolved() {
    assert!(read("host.invalid:80").expect("a server").unresolved);
}

#[test]
fn a_server_follows_one_that_is_checked() {
    let server = read("127.0.0.1:80 track app/one weight 3").expect("a server");
    assert_eq!((server.checks.tracked, server.weight), (Some((0, 0)), 3));
    assert!(refused("127.0.0.1:80 track still/one").contains("does not have any check nor agent"));
    assert!(refused("127.0.0.1:80 track no").contains("unable to find required server 'no'"));
}

#[test]
fn what_cannot_be_is_told() {
    assert!(refused("127.0.0.1:80 resolvers x").contains("not accepted for dynamic server"));
    assert!(refused("127.0.0.1:80 wieght 3").contains("unknown keyword 'wieght'"));
    assert!(refused("127.0.0.1:80 proto none").contains("MUX protocol is not usable"));
    assert!(refused("127.0.0.1:80 ssl verify none sni var(txn.x)").contains("variables"));
    assert!(refused("127.0.0.1:80 from srv:none").contains("unable to find server 'none'"));
    let none = server(&config(), 0, "new", &[], &Environment::new()).expect_err("no address");
    assert!(none[0].contains("expects <name> and <addr>"), "{none:?}");
    // A line feed in a word does not begin a new line.
    assert!(read("127.0.0.1:80\nbind\n:1").is_err());
}

#[test]
fn backends_whose_balancing_is_fixed_take_no_servers() {
    let config = config();
    let supports = |place: usize| supports_servers(&config.proxies[place]);
    assert_eq!(supports(0), Ok(()));
    assert_eq!(supports(2), Ok(()));
    let why = supports(1).expect_err("map-based");
    assert_eq!(
        why,
        "backend 'still' uses a non dynamic load balancing method"
    );
}

/// As in HAProxy: weights are fixed only where a map of the servers is computed from them.
#[test]
fn weights_change_except_in_maps() {
    let fixed = [
        "static-rr",
        "source",
        "uri",
        "url_param id",
        "hdr(Host)",
        "rdp-cookie",
        "hash path",
    ];
    let dynamic = [
        "roundrobin",
        "leastconn",
        "least-latency",
        "first",
        "random",
    ];
    let proxy = |balance: &str, hash_type: &str| {
        let text = format!("backend b\n mode http\n balance {balance}\n hash-type {hash_type}\n");
        config_of(&text).proxies.remove(0)
    };
    let is_fixed =
        Err("Backend is using a static LB algorithm and only accepts weights '0%' and '100%'.\n");
    for balance in fixed {
        let proxy = proxy(balance, "map-based");
        assert_eq!(weight(&proxy, 10, "50%"), is_fixed, "{balance}");
        assert_eq!(weight(&proxy, 10, "100%"), Ok(10), "{balance}");
        assert_eq!(weight(&proxy, 10, "0"), Ok(0), "{balance}");
        assert!(supports_servers(&proxy).is_err(), "{balance}");
    }
    let consistent = fixed.iter().filter(|balance| **balance != "static-rr");
    for balance in consistent {
        let proxy = proxy(balance, "consistent");
        assert_eq!(weight(&proxy, 10, "50%"), Ok(5), "{balance}");
        assert_eq!(supports_servers(&proxy), Ok(()), "{balance}");
    }
    for balance in dynamic {
        let proxy = proxy(balance, "map-based");
        assert_eq!(weight(&proxy, 10, "50%"), Ok(5), "{balance}");
        assert_eq!(supports_servers(&proxy), Ok(()), "{balance}");
    }
}

#[test]
fn weights_are_numbers_or_percentages() {
    let proxy = Proxy::default();
    for (text, expected) in [
        ("5", 5),
        ("0", 0),
        ("256", 256),
        ("50%", 10),
        ("0%", 0),
        ("1%", 0),
    ] {
        assert_eq!(weight(&proxy, 20, text), Ok(expected), "{text}");
    }
    assert_eq!(weight(&proxy, 20, "99999999999%"), Ok(256));
    for text in [
        "",
        "x",
        "x%",
        "-1",
        "257",
        "5x",
        "-5%",
        "5%x",
        "99999999999999999999",
    ] {
        assert!(weight(&proxy, 20, text).is_err(), "{text}");
    }
}
