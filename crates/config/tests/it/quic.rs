//! `bind` lines with QUIC.

use spangate_config::model::BindAddress;

use crate::common::{self, accepted};

fn addresses(line: &str) -> Vec<String> {
    let config = accepted(&format!(
        "frontend f\n mode http\n bind {line} strict-sni\n"
    ));
    let binds = config.proxies[0].binds.iter();
    let shown = binds.map(|bind| match &bind.address {
        BindAddress::Quic(address) => format!("quic {address}"),
        BindAddress::Addr(address) => address.to_string(),
        BindAddress::Fd(number) => number.to_string(),
    });
    shown.collect()
}

#[test]
fn a_prefix_asks_for_quic() {
    for (line, wanted) in [
        ("quic4@:443 ssl", &["quic 0.0.0.0:443"][..]),
        ("quic6@[::1]:443 ssl", &["quic [::1]:443"]),
        ("quic+ipv4@127.0.0.1:443 ssl", &["quic 127.0.0.1:443"]),
        (
            "127.0.0.1:443,quic4@127.0.0.1:443-444 ssl",
            &["127.0.0.1:443", "quic 127.0.0.1:443", "quic 127.0.0.1:444"],
        ),
    ] {
        assert_eq!(addresses(line), wanted, "{line}");
    }
}

#[test]
fn quic_enables_tls() {
    let text = "frontend f\n mode http\n bind quic4@:443 strict-sni\n";
    assert!(accepted(text).proxies[0].binds[0].tls.is_some());
    let shown = common::report(text);
    assert!(
        shown.contains("QUIC protocol detected, enabling ssl"),
        "{shown}"
    );
}

#[test]
fn what_quic_cannot_have_is_refused() {
    for (text, wanted) in [
        (
            "frontend f\n mode http\n bind quic4@:443 ssl strict-sni accept-proxy\n",
            "'accept-proxy' option cannot be used with a QUIC listener",
        ),
        (
            "frontend f\n mode tcp\n bind quic4@:443 ssl strict-sni\n",
            "MUX protocol 'quic' is not usable",
        ),
        (
            "frontend f\n mode http\n bind quic4@:443 ssl strict-sni proto h2\n",
            "MUX protocol 'h2' is not usable",
        ),
        (
            "frontend f\n mode http\n bind quic+fd@3 ssl strict-sni\n",
            "QUIC needs an IP address",
        ),
        (
            "global\n stats socket quic4@:443\n",
            "there is no QUIC here",
        ),
        (
            "peers p\n bind quic4@:443\n server a\n",
            "there is no QUIC here",
        ),
    ] {
        let shown = common::report(text);
        assert!(shown.contains(wanted), "{text}: {shown}");
    }
}
