//! HTTP/1 and HTTP/2, with and without TLS, on both sides: curl and h2load as clients, nginx as the
//! origin.

use crate::common;

use std::net::{SocketAddr, TcpListener};

use common::tls::{Authority, Fetched, Nginx, at, curl, has, program};
use common::{DEFAULTS, Folder, Proxy, address, listener};

/// A proxy between clients and nginx. The first part of the path selects the protocol to nginx.
struct Between {
    proxy: Proxy,
    nginx: Nginx,
    clear: SocketAddr,
    tls: SocketAddr,
    body: Vec<u8>,
    upload: String,
}

/// How curl speaks to the proxy.
#[derive(Clone, Copy, Debug)]
struct Client {
    scheme: &'static str,
    option: &'static str,
    /// The version that curl reports.
    version: &'static str,
}

const CLIENTS: [Client; 4] = [
    Client {
        scheme: "http",
        option: "--http1.1",
        version: "1.1",
    },
    Client {
        scheme: "http",
        option: "--http2-prior-knowledge",
        version: "2",
    },
    Client {
        scheme: "https",
        option: "--http1.1",
        version: "1.1",
    },
    Client {
        scheme: "https",
        option: "--http2",
        version: "2",
    },
];
const SERVERS: [(&str, &str); 4] = [("h1", "1.1"), ("h1s", "1.1"), ("h2", "2.0"), ("h2s", "2.0")];

impl Between {
    fn start(more: &str) -> Between {
        let (authority, folder) = (Authority::new("root"), Folder::new());
        let crt = folder.write("one.pem", authority.issue(&["one.test"]));
        let body = common::pattern(1_500_000);
        let upload = folder.write("upload", &body);
        let files = Folder::new();
        files.write("www/big", &body);
        let all: Vec<TcpListener> = SERVERS.iter().map(|_| listener()).collect();
        let mut http = format!("ssl_certificate {crt}; ssl_certificate_key {crt};\n");
        for (each, words) in all.iter().zip(["", "ssl", "http2", "ssl http2"]) {
            http.push_str(&format!(
                "server {{ listen {} {words}; default_type text/plain;
    rewrite ^/h[12]s?/(.*)$ /$1 last;
    location = /tell {{ return 200 \"$server_protocol $request_method $http_cookie n=$connection_requests c=$connection h=$host\"; }}
    location = /empty {{ return 204; }}
    location = /small {{ client_max_body_size 1k; proxy_pass http://127.0.0.1:1; }}
    location = /moved {{ return 302 /h1/tell; }}
    location = /slow {{ limit_rate 10k; alias {}; }}
    location /put/ {{ dav_methods PUT; create_full_put_path on; }}
}}
",
                at(each),
                files.path("www/big").display()
            ));
        }
        let nginx = Nginx::start(files, &http, &all.iter().collect::<Vec<_>>());
        let (clear, tls) = (listener(), listener());
        let mut config = format!(
            "{DEFAULTS}\n{more}\nfrontend f\n bind \"fd@${{CLEAR}}\"\n bind \"fd@${{TLS}}\" ssl crt {crt}\n \
             http-request return status 403 content-type text/plain string refused if {{ path /refused }}\n \
             http-request deny deny_status 429 if {{ path /denied }}\n \
             http-request redirect location /elsewhere if {{ path /redirected }}\n \
             use_backend %[path,field(2,/)]\n"
        );
        let words = ["", "ssl verify none", "proto h2", "ssl verify none alpn h2"];
        for (((name, _), each), words) in SERVERS.iter().zip(&all).zip(words) {
            config.push_str(&format!("backend {name}\n server s {} {words}\n", at(each)));
        }
        let proxy = Proxy::start_in(folder, &config, &[("CLEAR", &clear), ("TLS", &tls)]);
        Between {
            clear: address(&clear),
            tls: address(&tls),
            proxy,
            nginx,
            body,
            upload,
        }
    }

    fn url(&self, scheme: &str, path: &str) -> String {
        let at = match scheme {
            "http" => self.clear,
            _ => self.tls,
        };
        format!("{scheme}://{at}{path}")
    }

    fn get(&self, client: Client, path: &str, more: &[&str]) -> Fetched {
        let url = self.url(client.scheme, path);
        let mut all = vec!["-k", client.option];
        all.extend(more);
        all.push(&url);
        curl(&self.proxy.folder, &all)
    }
}

#[test]
fn every_version_meets_every_version() {
    if !has("curl") || !has("nginx") {
        return;
    }
    let between = Between::start("");
    for client in CLIENTS {
        for (server, spoken) in SERVERS {
            let case = format!("{client:?} {server}");
            let get = |path: &str, more: &[&str]| {
                let got = between.get(client, &format!("/{server}{path}"), more);
                assert_eq!(got.version, client.version, "{case} {path} {got:?}");
                got
            };
            let got = get("/tell", &["-b", "a=1; b=2"]);
            assert_eq!(got.status, 200, "{case}");
            let start = format!("HTTP/{spoken} GET a=1; b=2 n=");
            assert!(got.text().starts_with(&start), "{case} {}", got.text());
            let got = get("/big", &[]);
            assert!(
                got.body == between.body,
                "{case}: {} bytes, {}",
                got.body.len(),
                got.exit
            );
            let tag = got.field("etag").unwrap().to_owned();
            let got = get("/big", &["-H", &format!("if-none-match: {tag}")]);
            assert_eq!(
                (got.status, got.body.len(), got.exit),
                (304, 0, 0),
                "{case}"
            );
            let got = get("/big", &["-I"]);
            let length = got.field("content-length").unwrap().parse();
            assert_eq!(
                (got.status, length),
                (200, Ok(between.body.len())),
                "{case}"
            );
            let got = get("/empty", &[]);
            assert_eq!((got.status, got.exit), (204, 0), "{case}");
            let path = format!("/put/{}-{}-{server}", client.scheme, client.version);
            // With and without `Expect: 100-continue`.
            for (expect, status) in [("expect: 100-continue", 201), ("expect:", 204)] {
                let wait = ["--expect100-timeout", "0.05"];
                let got = get(
                    &path,
                    &[&wait[..], &["-T", &between.upload, "-H", expect]].concat(),
                );
                assert_eq!(got.status, status, "{case} {expect} {got:?}");
                let file = between.nginx.folder.path(&format!("www{path}"));
                let written = std::fs::read(file).unwrap();
                assert!(written == between.body, "{case} {expect}");
            }
            // Without a length.
            let chunked = ["-H", "transfer-encoding: chunked", "-H", "expect:"];
            let got = get(&path, &[&["-T", &between.upload], &chunked[..]].concat());
            assert_eq!(got.status, 204, "{case} {got:?} {}", between.nginx.errors());
            // Refused while the body arrives.
            let got = get(
                "/small",
                &["--data-binary", &format!("@{}", between.upload)],
            );
            assert_eq!(got.status, 413, "{case} {got:?}");
        }
        for (path, status) in [
            ("/refused", 403),
            ("/denied", 429),
            ("/redirected", 302),
            ("/h1/moved", 302),
            ("/h2s/moved", 302),
            ("/no", 503),
        ] {
            let got = between.get(client, path, &[]);
            assert_eq!((got.status, got.exit), (status, 0), "{client:?} {path}");
            let got = between.get(client, path, &["-T", &between.upload]);
            assert_eq!(got.status, status, "{client:?} {path} with a body");
        }
    }
    between.proxy.stop();
}

#[test]
fn many_streams_and_requests_are_served() {
    if !has("h2load") || !has("nginx") {
        return;
    }
    let between = Between::start("");
    for (scheme, server) in [
        ("http", "h1"),
        ("http", "h2"),
        ("https", "h2s"),
        ("https", "h1s"),
    ] {
        // nginx closes each connection after a thousand requests.
        let url = between.url(scheme, &format!("/{server}/tell"));
        let arguments = ["-n", "2500", "-c", "2", "-m", "40", &url];
        let output = program("h2load", &arguments, b"");
        let codes = output
            .stdout
            .lines()
            .find(|line| line.starts_with("status codes"));
        assert_eq!(
            codes,
            Some("status codes: 2500 2xx, 0 3xx, 0 4xx, 0 5xx"),
            "{}",
            output.stdout
        );
    }
    let url = between.url("https", "/h2s/big");
    let output = program("h2load", &["-n", "30", "-c", "2", "-m", "10", &url], b"");
    let codes = output
        .stdout
        .lines()
        .find(|line| line.starts_with("status codes"));
    assert_eq!(
        codes,
        Some("status codes: 30 2xx, 0 3xx, 0 4xx, 0 5xx"),
        "{}",
        output.stdout
    );
    assert!(
        output.stdout.contains("30 succeeded, 0 failed"),
        "{}",
        output.stdout
    );
    between.proxy.stop();
}
