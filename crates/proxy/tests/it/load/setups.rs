//! The configurations of lives under load.

use std::sync::{Arc, OnceLock};

use spangate_proxy::RuntimeConfig;

use crate::held::Bounds;
use crate::{setups, wire};
use testing::Random;

/// See the module.
#[derive(Debug)]
pub struct Setup {
    pub runtime_config: Arc<RuntimeConfig>,
    pub bounds: Bounds,
    /// Servers speak HTTP/2.
    pub h2_servers: bool,
    /// What clients speak; none: each chooses.
    pub h2_clients: Option<bool>,
    pub tls: bool,
}

/// Windows of connections, bytes.
const RXBUF_BYTES: usize = 200_000;

const TEXT: &str = "
global
    tune.bufsize BUFSIZE
    tune.maxrewrite 1024
    tune.h2.fe.rxbuf RXBUF
    tune.h2.be.rxbuf RXBUF
defaults
    mode http
    timeout client 10s
    timeout server 11s
    timeout connect 2s
    timeout http-request 5s
    timeout http-keep-alive 3s
    timeout queue 5s
    http-reuse always
    log stdout format raw local0
    log-format \"%HP %ST %tsc %B\"
frontend load
    bind 127.0.0.1:80 BIND
    http-request return status 200 if { path /local } { method HEAD }
    use_backend bad if { path_end ! }
    default_backend good
backend good
    LINES
    server one 127.0.0.1:81 SERVER
backend bad
    server two 127.0.0.1:82 SERVER
";

/// The configuration of a life.
pub fn pick(random: &mut Random) -> &'static Setup {
    static ALL: OnceLock<Vec<Setup>> = OnceLock::new();
    let all = ALL.get_or_init(|| {
        let lines = ["", "retry-on all-retryable-errors\n    retries 2"];
        let mut all = Vec::new();
        for h2_servers in [false, true] {
            for (bufsize, lines) in [(4096, lines[0]), (16_384, lines[0]), (4096, lines[1])] {
                all.push(setup(bufsize, lines, h2_servers, None));
            }
            all.extend([false, true].map(|h2| setup(4096, lines[0], h2_servers, Some(h2))));
        }
        all
    });
    // Encryption costs more than all else, and changes little.
    let wants_tls = random.chance(15);
    loop {
        let setup = &all[random.below(all.len())];
        if setup.tls == wants_tls {
            return setup;
        }
    }
}

/// `h2_clients`: where connections are encrypted, what clients speak.
fn setup(bufsize: usize, lines: &str, h2_servers: bool, h2_clients: Option<bool>) -> Setup {
    let tls = h2_clients.is_some();
    let mut bind = String::new();
    let mut server = String::new();
    if tls {
        bind = format!("ssl crt {} ", wire::certificate().display());
        server.push_str("ssl verify none no-ssl-reuse ");
    }
    if h2_clients == Some(true) {
        bind.push_str("proto h2");
    }
    if h2_servers {
        server.push_str("proto h2");
    }
    let text = TEXT
        .replace("BUFSIZE", &bufsize.to_string())
        .replace("RXBUF", &RXBUF_BYTES.to_string())
        .replace("BIND", &bind)
        .replace("SERVER", &server)
        .replace("LINES", lines);
    Setup {
        runtime_config: setups::runtime_config(&text),
        bounds: Bounds {
            bufsize,
            client_window: RXBUF_BYTES,
            server_window: RXBUF_BYTES,
            tls,
        },
        h2_servers,
        h2_clients,
        tls,
    }
}
