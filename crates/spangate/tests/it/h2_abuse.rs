//! HTTP/2 clients that exceed limits: their connection ends with an error code, and other clients
//! are served.

use crate::common;

use std::net::SocketAddr;

use common::h2::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS, PING, PRIORITY, RST_STREAM, Raw,
    SETTINGS, WINDOW_UPDATE, frame, get,
};
use common::http::Client;
use common::origin::{Origin, ok};
use common::{DEFAULTS, Proxy, address, listener};

/// Error codes for a peer that exceeds limits (RFC 9113 §7) or breaks a rule.
const PROTOCOL_ERROR: u32 = 1;
const COMPRESSION_ERROR: u32 = 9;
const ENHANCE_YOUR_CALM: u32 = 11;

/// A proxy, and the memory of its process in bytes.
struct Attacked {
    proxy: Proxy,
    front: SocketAddr,
}

impl Attacked {
    fn start() -> Attacked {
        let body = vec![b'x'; 1_000_000];
        let origin = Origin::start(move |_| ok(&body));
        let front = listener();
        let config = format!(
            "{DEFAULTS}\n timeout tarpit 20s\nfrontend f\n bind \"fd@${{FRONT}}\"\n http-request tarpit if {{ path /tarpit }}\n \
             http-request return status 200 if {{ path / }}\n default_backend b\nbackend b\n server s {}\n",
            origin.at
        );
        Attacked {
            proxy: Proxy::start(&config, &[("FRONT", &front)]),
            front: address(&front),
        }
    }

    fn resident_kib(&self) -> u64 {
        let path = format!("/proc/{}/status", self.proxy.running.pid());
        let status = std::fs::read_to_string(path).expect("the process lives");
        let line = status.lines().find(|line| line.starts_with("VmRSS:"));
        let words = line.and_then(|line| line.split_whitespace().nth(1));
        words.and_then(|kib| kib.parse().ok()).expect("a number")
    }

    /// Another client is served.
    fn serves(&self) {
        assert_eq!(Client::connect(self.front).get("/").status, 200);
    }
}

/// Sends frames up to `times` times, until the other side ends the connection. Returns its error
/// code.
fn flood(attacked: &Attacked, times: u32, mut frames: impl FnMut(u32) -> Vec<u8>) -> Option<u32> {
    let mut raw = Raw::connect(attacked.front, &[]);
    let mut reader = Raw {
        stream: raw.stream.try_clone().unwrap(),
        got: Vec::new(),
    };
    let end = common::spawn(move || reader.goaway());
    let mut batch = Vec::new();
    for number in 0..times {
        batch.extend(frames(number));
        if batch.len() > 4000 || number == times - 1 {
            if !raw.send(&batch) {
                break;
            }
            batch.clear();
        }
    }
    attacked.serves();
    let _ = raw.stream.shutdown(std::net::Shutdown::Write);
    common::join(&end, "the end of the connection")
}

#[test]
fn floods_end_their_connection() {
    let attacked = Attacked::start();
    attacked.serves();
    let before = attacked.resident_kib();
    let request =
        |stream: u32, path: &str| frame(HEADERS, END_STREAM | END_HEADERS, stream, &get(path));

    let rapid_reset = flood(&attacked, 5000, |number| {
        let stream = number * 2 + 1;
        let mut both = request(stream, "/tarpit");
        both.extend(frame(RST_STREAM, 0, stream, &8u32.to_be_bytes()));
        both
    });
    assert_eq!(rapid_reset, Some(ENHANCE_YOUR_CALM), "reset");
    let settings = flood(&attacked, 5000, |_| frame(SETTINGS, 0, 0, &[]));
    assert_eq!(settings, Some(ENHANCE_YOUR_CALM), "settings");
    let pings = flood(&attacked, 5000, |_| frame(PING, 0, 0, &[0; 8]));
    assert_eq!(pings, Some(ENHANCE_YOUR_CALM), "pings");
    let priorities = flood(&attacked, 5000, |_| frame(PRIORITY, 0, 3, &[0, 0, 0, 1, 5]));
    assert_eq!(priorities, Some(ENHANCE_YOUR_CALM), "priorities");
    let windows = flood(&attacked, 5000, |_| {
        frame(WINDOW_UPDATE, 0, 0, &1u32.to_be_bytes())
    });
    assert_eq!(windows, Some(ENHANCE_YOUR_CALM), "windows");
    let unknown = flood(&attacked, 5000, |_| frame(0xbe, 0, 0, &[]));
    assert_eq!(unknown, Some(ENHANCE_YOUR_CALM), "unknown frames");
    let empty = flood(&attacked, 5000, |number| match number {
        0 => frame(HEADERS, END_HEADERS, 1, &get("/tarpit")),
        _ => frame(DATA, 0, 1, &[]),
    });
    assert_eq!(empty, Some(ENHANCE_YOUR_CALM), "empty data");
    let continuations = flood(&attacked, 5000, |number| match number {
        0 => frame(HEADERS, 0, 1, &get("/")),
        _ => frame(CONTINUATION, 0, 1, b"\x00\x01a\x01b"),
    });
    assert!(
        matches!(
            continuations,
            Some(ENHANCE_YOUR_CALM | PROTOCOL_ERROR | COMPRESSION_ERROR)
        ),
        "continuations {continuations:?}"
    );
    // A 3 KB field that one byte refers to again and again.
    let bomb = flood(&attacked, 200, |number| {
        let mut block = get("/");
        if number == 0 {
            block.extend_from_slice(&[0x40, 1, b'a', 0x7f, 0xb9, 0x16]);
            block.extend_from_slice(&[b'x'; 3000]);
        }
        block.extend_from_slice(&[0xbe; 5000]);
        frame(HEADERS, END_STREAM | END_HEADERS, number * 2 + 1, &block)
    });
    assert!(
        matches!(bomb, None | Some(0 | ENHANCE_YOUR_CALM | COMPRESSION_ERROR)),
        "{bomb:?}"
    );
    // Large heads are not an attack: each is answered.
    let large = flood(&attacked, 200, |number| {
        let mut block = get("/");
        block.extend_from_slice(&[0x00, 1, b'a', 0x7f, 0x89, 0x26]);
        block.extend_from_slice(&[b'x'; 5000]);
        frame(HEADERS, END_STREAM | END_HEADERS, number * 2 + 1, &block)
    });
    assert!(matches!(large, None | Some(0)), "{large:?}");
    let after = attacked.resident_kib();
    assert!(after < before + 20_000, "{before} KiB, {after} KiB");
    attacked.serves();
    attacked.proxy.stop();
}

#[test]
fn clients_that_read_nothing_cost_little() {
    let attacked = Attacked::start();
    attacked.serves();
    let before = attacked.resident_kib();
    let mut clients = Vec::new();
    for _ in 0..5 {
        // An initial window of 0.
        let mut raw = Raw::connect(attacked.front, &[0, 4, 0, 0, 0, 0]);
        for stream in 0..90 {
            let request = frame(
                HEADERS,
                END_STREAM | END_HEADERS,
                stream * 2 + 1,
                &get("/big"),
            );
            assert!(raw.send(&request));
        }
        clients.push(raw);
    }
    // All clients have received their heads.
    for raw in &mut clients {
        let mut heads = 0;
        while heads < 90 {
            let (kind, _, _, _) = raw.frame().expect("a frame");
            assert_ne!(kind, DATA);
            heads += u32::from(kind == HEADERS);
        }
    }
    attacked.serves();
    let after = attacked.resident_kib();
    // 450 responses of one megabyte each.
    assert!(after < before + 80_000, "{before} KiB, {after} KiB");
    // One window opens: this stream continues to its end.
    let raw = &mut clients[0];
    let more = 2_000_000u32.to_be_bytes();
    let mut bytes = frame(WINDOW_UPDATE, 0, 0, &more);
    bytes.extend(frame(WINDOW_UPDATE, 0, 5, &more));
    assert!(raw.send(&bytes));
    let mut came = 0;
    loop {
        let (kind, flags, stream, payload) = raw.frame().expect("a frame");
        if kind == DATA {
            assert_eq!(stream, 5);
            came += payload.len();
            if flags & END_STREAM > 0 {
                break;
            }
        }
    }
    assert_eq!(came, 1_000_000);
    drop(clients);
    attacked.serves();
    attacked.proxy.stop();
}
