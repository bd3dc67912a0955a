//! `bind` lines with QUIC.

use std::time::Duration;

use spangate_config::model::{
    BindAddress, QuicBind, QuicCongestion, QuicServer, QuicSide, QuicTune,
};

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
            "frontend f\n mode http\n bind quic+unix@/x ssl strict-sni\n",
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

fn tuned(lines: &str) -> QuicTune {
    accepted(&format!("global\n{lines}\n")).global.quic
}

#[test]
fn quic_is_tuned() {
    assert_eq!(tuned(" limited-quic"), QuicTune::default());
    let found = tuned(
        " cluster-secret s\n tune.quic.listen off\n harden.reject-privileged-ports.quic off\n \
        tune.quic.fe.max-idle-timeout 5s\n tune.quic.fe.stream.max-concurrent 7\n \
        tune.quic.fe.stream.max-total 9\n tune.quic.fe.stream.rxbuf 2m\n \
        tune.quic.fe.stream.data-ratio 50\n tune.quic.fe.cc.max-win-size 1m\n \
        tune.quic.fe.sec.retry-threshold 3\n tune.quic.fe.sec.glitches-threshold 11\n \
        tune.quic.fe.tx.udp-gso off\n tune.quic.be.max-idle-timeout 6s\n \
        tune.quic.be.stream.rxbuf 3m\n tune.quic.be.stream.data-ratio 60\n \
        tune.quic.be.cc.max-win-size 2m\n tune.quic.be.sec.glitches-threshold 12\n \
        tune.quic.be.tx.udp-gso off",
    );
    let wanted = QuicTune {
        secret: Some("s".into()),
        listens: false,
        rejects_privileged: false,
        clients: QuicSide {
            idle: Some(Duration::from_secs(5)),
            rxbuf_bytes: Some(2 << 20),
            data_percent: Some(50),
            window_bytes: Some(1 << 20),
            glitches_max: Some(11),
            joins_datagrams: false,
        },
        servers: QuicSide {
            idle: Some(Duration::from_secs(6)),
            rxbuf_bytes: Some(3 << 20),
            data_percent: Some(60),
            window_bytes: Some(2 << 20),
            glitches_max: Some(12),
            joins_datagrams: false,
        },
        streams_max: Some(7),
        total_streams_max: Some(9),
        retry_threshold: Some(3),
    };
    assert_eq!(found, wanted);
    for line in [
        "tune.quic.fe.cc.max-win-size 10239",
        "tune.quic.fe.stream.max-concurrent 0",
        "tune.quic.fe.stream.data-ratio 101",
        "tune.quic.fe.max-idle-timeout x",
        "tune.quic.listen maybe",
        "cluster-secret",
    ] {
        common::refused(&format!("global\n {line}\n"));
    }
}

#[test]
fn lines_have_options_of_quic() {
    let of = |options: &str| {
        let line = format!("bind quic4@:443 ssl strict-sni {options}");
        accepted(&format!("frontend f\n mode http\n {line}\n")).proxies[0].binds[0].quic
    };
    let with = |congestion, window_bytes| QuicBind {
        congestion,
        window_bytes,
        ..QuicBind::default()
    };
    for (options, wanted) in [
        ("", QuicBind::default()),
        ("quic-cc-algo newreno", with(QuicCongestion::NewReno, None)),
        (
            "quic-cc-algo bbr(1m)",
            with(QuicCongestion::Bbr, Some(1 << 20)),
        ),
        (
            "quic-cc-algo nocc(64k)",
            with(QuicCongestion::None, Some(64 << 10)),
        ),
        ("quic-cc-algo cubic()", QuicBind::default()),
        (
            "proto quic",
            QuicBind {
                is_required: true,
                ..QuicBind::default()
            },
        ),
        (
            "quic-force-retry",
            QuicBind {
                forces_retry: true,
                ..QuicBind::default()
            },
        ),
    ] {
        assert_eq!(of(options), wanted, "{options}");
    }
    for options in [
        "quic-cc-algo vegas",
        "quic-cc-algo cubic(9k)",
        "quic-cc-algo cubic(10m,1)",
        "proto h2",
        "quic-cc-algo",
    ] {
        let line = format!("bind quic4@:443 ssl strict-sni {options}");
        common::refused(&format!("frontend f\n mode http\n {line}\n"));
    }
}

#[test]
fn servers_speak_quic() {
    let file = |options: &str| {
        format!(
            "global\n expose-experimental-directives\nbackend b\n mode http\n \
             server s quic4@127.0.0.1:443 {options}\n"
        )
    };
    let server = accepted(&file("ssl verify none quic-cc-algo bbr(1m)"));
    let server = &server.proxies[0].servers[0];
    assert!(server.is_quic);
    let control = QuicServer {
        congestion: QuicCongestion::Bbr,
        window_bytes: Some(1 << 20),
        is_required: false,
    };
    assert_eq!(server.options.quic, control);
    let words = server.options.tls().expect("TLS");
    assert_eq!(words.options.alpn, Some(vec![b"h3".to_vec()]));
    let presets = "default-server ssl verify none alpn h2 proto quic no-check-ssl\n server";
    let preset = file("").replace("server", presets);
    let server = accepted(&preset);
    let words = server.proxies[0].servers[0].options.tls().expect("TLS");
    assert_eq!(words.options.alpn, Some(vec![b"h3".to_vec()]));
    let told = common::report(&preset);
    assert!(told.contains("QUIC has HTTP/3 only"), "{told}");
    for (options, text) in [
        ("ssl verify none proto h2", "cannot have this 'proto'"),
        (
            "ssl verify none check no-check-ssl",
            "cannot have checks with 'no-check-ssl'",
        ),
        (
            "ssl verify none check check-send-proxy",
            "cannot have checks with 'check-send-proxy'",
        ),
        ("ssl verify none send-proxy", "cannot have 'send-proxy'"),
        (
            "ssl verify none socks4 127.0.0.1:1080",
            "cannot have 'socks4'",
        ),
        (
            "ssl verify none quic-cc-algo vegas",
            "unknown control congestion",
        ),
        ("ssl", "no CA file"),
    ] {
        let told = common::refused(&file(options));
        assert!(told.contains(text), "{options}: {told}");
    }
    common::refused(&file("ssl verify none proto quic").replace("quic4@", ""));
    let of = |server: &str, mode: &str, global: &str| {
        format!("{global}\nbackend b\n mode {mode}\n server s {server} ssl verify none\n")
    };
    let allowed = "global\n expose-experimental-directives";
    for (file, text) in [
        (
            of("quic4@127.0.0.1:443", "http", ""),
            "QUIC is experimental",
        ),
        (
            of("quic4@127.0.0.1:443", "tcp", allowed),
            "needs 'mode http'",
        ),
        (
            of("quic+unix@/tmp/s", "http", allowed),
            "needs an IP address",
        ),
    ] {
        let told = common::refused(&file);
        assert!(told.contains(text), "{told}");
    }
}
