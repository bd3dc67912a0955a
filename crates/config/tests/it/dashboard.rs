//! Section `dashboard`.

use crate::common;

use common::{accepted, messages, read, report, under_caret};
use net::Addr;
use spangate_config::diagnostic::Severity;
use spangate_config::model::{BindAddress, Config};

fn addresses(config: &Config) -> Vec<String> {
    let section = config.dashboard.as_ref().expect("a dashboard");
    let shown = section.binds.iter().map(|bind| match &bind.address {
        BindAddress::Addr(Addr::Inet(address)) => address.to_string(),
        other => format!("{other:?}"),
    });
    shown.collect()
}

#[test]
fn the_section_is_read() {
    let config = accepted("dashboard\n");
    assert_eq!(addresses(&config), ["127.0.0.1:8404"]);
    let section = config.dashboard.expect("a dashboard");
    assert!(section.users.is_empty() && !section.admin);
    let text = "dashboard
  bind 127.0.0.1:1
  bind [::1]:2,10.0.0.1:3
  auth ann:a:b
  auth bob:c
  admin
";
    let config = accepted(text);
    assert_eq!(addresses(&config), ["127.0.0.1:1", "[::1]:2", "10.0.0.1:3"]);
    let section = config.dashboard.expect("a dashboard");
    let users = section.users.iter();
    let users: Vec<_> = users
        .map(|(user, password)| (&**user, &**password))
        .collect();
    assert_eq!(users, [(&b"ann"[..], &b"a:b"[..]), (b"bob", b"c")]);
    assert!(section.admin);
    assert!(
        accepted("frontend f\n bind :1\n timeout client 1s\n mode http\n")
            .dashboard
            .is_none()
    );
}

#[test]
fn an_open_address_without_passwords_is_a_warning() {
    let warnings = |text: &str| {
        let (_, found) = read(text).expect("accepted");
        messages(&found, Severity::Warning)
    };
    let open = "the dashboard on [0.0.0.0:8404] is not on a loopback address and has no 'auth': everyone who reaches it can read it";
    assert_eq!(warnings("dashboard\n  bind *:8404\n"), [format!("{open}.")]);
    assert_eq!(
        warnings("dashboard\n  bind *:8404\n  admin\n"),
        [format!("{open} and change servers.")]
    );
    for text in [
        "dashboard\n  bind *:8404\n  auth a:b\n",
        "dashboard\n  bind [::1]:8404\n",
        "dashboard\n  bind /tmp/socket\n",
    ] {
        assert!(warnings(text).is_empty(), "{text}");
    }
}

#[test]
fn faults_have_their_places() {
    let cases = [
        (
            "dashboard main\n",
            "'dashboard' cannot handle unexpected argument 'main'.",
            "main",
        ),
        (
            "dashboard\ndashboard\n",
            "section 'dashboard' is declared a second time, after t.cfg:1.",
            "dashboard",
        ),
        (
            "dashboard\n  bind\n",
            "'bind' expects an address as argument.",
            "",
        ),
        (
            "dashboard\n  bind nonsense\n",
            "'bind' : could not resolve address 'nonsense'",
            "nonsense",
        ),
        (
            "dashboard\n  bind :1 ssl\n",
            "'bind' cannot handle unexpected argument 'ssl'.",
            "ssl",
        ),
        (
            "dashboard\n  auth\n",
            "'auth' needs a user:password account.",
            "",
        ),
        (
            "dashboard\n  auth a:b\n  auth a:c\n",
            "'auth': ignoring duplicated user 'a'.",
            "a:c",
        ),
        (
            "dashboard\n  admin if TRUE\n",
            "'admin' cannot handle unexpected argument 'if'.",
            "if",
        ),
        (
            "dashboard\n  bnd :1\n",
            "unknown keyword 'bnd' in 'dashboard' section; did you mean 'bind' maybe ?",
            "bnd",
        ),
        ("dashbord\n", "Did you mean 'dashboard'?", ""),
    ];
    for (text, message, word) in cases {
        let shown = report(text);
        assert_eq!(shown.matches(message).count(), 1, "{text}: {shown}");
        if !word.is_empty() {
            assert_eq!(
                under_caret(&shown, message).as_deref(),
                Some(word),
                "{shown}"
            );
        }
    }
}
