//! The fields of HAProxy's modules in `show stat`: HTTP/1, HTTP/2 and TLS. Those of HTTP/3 and QUIC
//! are 0 here.

use std::collections::HashMap;
use std::io::Write as _;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};

use crate::common::cli::{ask_any, until_any_holds};
use crate::common::h2::{DATA, END_HEADERS, END_STREAM, HEADERS, RST_STREAM, Raw, frame, get};
use crate::common::http::Client;
use crate::common::origin::{Origin, ok};
use crate::common::tls::{Authority, secure};
use crate::common::{DEFAULTS, Folder, Proxy, accept, address, listener, spawn};

/// The fields of HAProxy's modules, in its order.
const MODULES: &str = "h2_headers_rcvd,h2_data_rcvd,h2_settings_rcvd,h2_rst_stream_rcvd,h2_goaway_rcvd,\
    h2_detected_conn_protocol_errors,h2_detected_strm_protocol_errors,h2_rst_stream_resp,\
    h2_goaway_resp,h2_open_connections,h2_backend_open_streams,h2_total_connections,\
    h2_backend_total_streams,ssl_sess,ssl_reused_sess,ssl_failed_handshake,ssl_ocsp_staple,\
    ssl_failed_ocsp_staple,\
    h3_data,h3_headers,h3_cancel_push,h3_push_promise,h3_max_push_id,h3_goaway,h3_settings,\
    h3_no_error,h3_general_protocol_error,h3_internal_error,h3_stream_creation_error,\
    h3_closed_critical_stream,h3_frame_unexpected,h3_frame_error,h3_excessive_load,\
    h3_id_error,h3_settings_error,h3_missing_settings,h3_request_rejected,\
    h3_request_cancelled,h3_request_incomplete,h3_message_error,h3_connect_error,\
    h3_version_fallback,pack_decompression_failed,qpack_encoder_stream_error,\
    qpack_decoder_stream_error,quic_rxbuf_full,quic_dropped_pkt,quic_dropped_pkt_bufoverrun,\
    quic_dropped_parsing_pkt,quic_socket_full,quic_sendto_err,quic_sendto_err_unknwn,\
    quic_sent_pkt,quic_lost_pkt,quic_too_short_dgram,quic_retry_sent,quic_retry_validated,\
    quic_retry_error,quic_half_open_conn,quic_hdshk_fail,quic_stless_rst_sent,\
    quic_conn_migration_done,quic_transp_err_no_error,quic_transp_err_internal_error,\
    quic_transp_err_connection_refused,quic_transp_err_flow_control_error,\
    quic_transp_err_stream_limit_error,quic_transp_err_stream_state_error,\
    quic_transp_err_final_size_error,quic_transp_err_frame_encoding_error,\
    quic_transp_err_transport_parameter_error,quic_transp_err_connection_id_limit,\
    quic_transp_err_protocol_violation_error,quic_transp_err_invalid_token,\
    quic_transp_err_application_error,quic_transp_err_crypto_buffer_exceeded,\
    quic_transp_err_key_update_error,quic_transp_err_aead_limit_reached,\
    quic_transp_err_no_viable_path,quic_transp_err_crypto_error,\
    quic_transp_err_unknown_error,quic_data_blocked,quic_stream_data_blocked,\
    quic_streams_blocked_bidi,quic_streams_blocked_uni,quic_ncbuf_gap_limit,\
    h1_open_connections,h1_open_streams,h1_total_connections,\
    h1_total_streams,h1_bytes_in,h1_bytes_out,h1_spliced_bytes_in,h1_spliced_bytes_out";

fn start(folder: Folder, config: &str, listeners: &[(&str, &TcpListener)]) -> (Proxy, PathBuf) {
    let path = folder.path("cli.sock");
    let config = format!(
        "global\n stats socket {} level admin\n{DEFAULTS}{config}",
        path.display()
    );
    (Proxy::start_in(folder, &config, listeners), path)
}

/// The fields of a row, by name.
fn row(stat: &str, proxy: &str, name: &str) -> HashMap<String, String> {
    let mut lines = stat.lines();
    let names: Vec<&str> = lines
        .next()
        .expect("the names")
        .trim_start_matches("# ")
        .split(',')
        .collect();
    let begin = format!("{proxy},{name},");
    let values = lines.find(|line| line.starts_with(&begin)).expect("a row");
    let pairs = names.into_iter().zip(values.split(','));
    pairs
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// Some numbers of a row; none for an empty field.
pub fn numbers<const N: usize>(
    path: &Path,
    (proxy, name): (&str, &str),
    fields: [&str; N],
) -> [Option<u64>; N] {
    let row = row(&ask_any(path, "show stat"), proxy, name);
    fields.map(|field| row[field].parse().ok())
}

/// Waits until these fields of a row have these numbers.
fn until<const N: usize>(path: &Path, of: (&str, &str), wanted: [(&str, u64); N]) {
    until_any_holds(path, "show stat", |stat| {
        let row = row(stat, of.0, of.1);
        wanted
            .iter()
            .all(|(field, number)| row[*field] == number.to_string())
    });
}

fn request(stream: u32, path: &str) -> Vec<u8> {
    frame(HEADERS, END_STREAM | END_HEADERS, stream, &get(path))
}

#[test]
fn the_fields_stand_where_haproxy_has_them() {
    let front = listener();
    let config = "frontend f\n bind \"fd@${FRONT}\"\n http-request return status 200\n";
    let (proxy, path) = start(Folder::new(), config, &[("FRONT", &front)]);
    let stat = ask_any(&path, "show stat");
    let names = stat.lines().next().expect("the names");
    let (_, modules) = names.split_once(",cache_hint_hits,-,").expect("modules");
    assert_eq!(modules, format!("{MODULES},retr_refused,ejections,"));
    for line in stat.lines().filter(|line| !line.is_empty()) {
        assert_eq!(line.matches(',').count(), names.matches(',').count());
    }
    let typed = ask_any(&path, "show stat typed");
    assert!(
        typed.contains(".119.h2_headers_rcvd.1:MCPV:u64:0\n"),
        "{typed}"
    );
    assert!(typed.contains(".h1_open_streams.1:MGPV:u64:0\n"), "{typed}");
    assert!(
        typed.contains(".177.quic_half_open_conn.1:MGPV:u64:0\n"),
        "{typed}"
    );
    proxy.stop();
}

#[test]
fn clients_of_both_versions_are_told_apart() {
    let (front, held) = (listener(), listener());
    let config = format!(
        "frontend f\n bind \"fd@${{FRONT}}\"\n http-request return status 200 if {{ path /own }}\n \
         default_backend b\nbackend b\n server s {}\n",
        address(&held)
    );
    let (proxy, path) = start(Folder::new(), &config, &[("FRONT", &front)]);
    let at = address(&front);
    let of = ("f", "FRONTEND");
    let mut first = Client::connect(at);
    assert_eq!(first.get("/own").status, 200);
    let mut waiting = TcpStream::connect(at).expect("a connection");
    waiting
        .write_all(b"GET / HTTP/1.1\r\nhost: t\r\n\r\n")
        .expect("sent");
    let mut raw = Raw::connect(at, &[]);
    raw.send(&request(1, "/own"));
    assert_eq!(raw.until(HEADERS).expect("an answer").0, 1);
    raw.send(&request(3, "/"));
    raw.send(&request(5, "/"));
    until(
        &path,
        of,
        [
            ("h1_open_connections", 2),
            ("h1_open_streams", 1),
            ("h1_total_connections", 2),
            ("h1_total_streams", 2),
            ("h2_open_connections", 1),
            ("h2_backend_open_streams", 2),
            ("h2_total_connections", 1),
            ("h2_backend_total_streams", 3),
            ("h2_headers_rcvd", 3),
        ],
    );
    // Counters are cleared, and what is open stays open.
    ask_any(&path, "clear counters all");
    let fields = [
        "h1_total_streams",
        "h1_open_streams",
        "h2_headers_rcvd",
        "h2_open_connections",
        "h2_backend_open_streams",
    ];
    let cleared = numbers(&path, of, fields);
    assert_eq!(cleared, [0, 1, 0, 1, 2].map(Some));
    // A stream that the client resets, and one of which the connection ends.
    raw.send(&frame(RST_STREAM, 0, 3, &[0, 0, 0, 8]));
    until(
        &path,
        of,
        [("h2_rst_stream_rcvd", 1), ("h2_backend_open_streams", 1)],
    );
    // DATA on the connection itself is an error.
    raw.send(&frame(DATA, 0, 0, b"x"));
    until(
        &path,
        of,
        [
            ("h2_detected_conn_protocol_errors", 1),
            ("h2_goaway_resp", 1),
            ("h2_open_connections", 0),
            ("h2_backend_open_streams", 0),
            ("h1_open_streams", 1),
        ],
    );
    drop((first, waiting));
    until(
        &path,
        of,
        [("h1_open_connections", 0), ("h1_open_streams", 0)],
    );
    proxy.stop();
}

#[test]
fn bytes_are_those_of_the_version() {
    let (front, origin) = (listener(), Origin::start(|_| ok("0123456789")));
    let config = format!(
        "frontend f\n bind \"fd@${{FRONT}}\"\n default_backend b\nbackend b\n server s {}\n",
        origin.at
    );
    let (proxy, path) = start(Folder::new(), &config, &[("FRONT", &front)]);
    let mut client = Client::connect(address(&front));
    assert_eq!(client.get("/").status, 200);
    let of = ("f", "FRONTEND");
    until(&path, of, [("h1_total_streams", 1)]);
    let bytes = ["reqbin", "resbout", "h1_bytes_in", "h1_bytes_out"];
    let [received, sent, h1_in, h1_out] = numbers(&path, of, bytes).map(Option::unwrap);
    assert!(received > 0 && sent > 10);
    assert_eq!((h1_in, h1_out), (received, sent));
    let mut raw = Raw::connect(address(&front), &[]);
    raw.send(&request(1, "/"));
    raw.until(DATA).expect("a body");
    until_any_holds(&path, "show stat", |stat| {
        row(stat, "f", "FRONTEND")["reqbin"] != received.to_string()
    });
    let [_, _, still_in, still_out] = numbers(&path, of, bytes).map(Option::unwrap);
    assert_eq!(
        (still_in, still_out),
        (h1_in, h1_out),
        "HTTP/2 is not among them"
    );
    // Both requests went to the server over HTTP/1.
    let back = [
        "reqbout",
        "resbin",
        "h1_bytes_out",
        "h1_bytes_in",
        "h1_total_streams",
    ];
    let [sent, received, h1_out, h1_in, streams] =
        numbers(&path, ("b", "BACKEND"), back).map(Option::unwrap);
    assert_eq!((h1_out, h1_in, streams), (sent, received, 2));
    proxy.stop();
}

#[test]
fn servers_of_http2_are_told_apart() {
    let (front, origin) = (listener(), listener());
    let config = format!(
        "frontend f\n bind \"fd@${{FRONT}}\"\n default_backend b\nbackend b\n server s {} proto h2\n",
        address(&origin)
    );
    let (proxy, path) = start(Folder::new(), &config, &[("FRONT", &front)]);
    let at: SocketAddr = address(&front);
    let answer = spawn(move || Client::connect(at).get("/").status);
    let mut server = Raw::serve(accept(&origin, "a connection"));
    let (stream, _) = server.until(HEADERS).expect("a request");
    let of = ("b", "BACKEND");
    until(
        &path,
        of,
        [
            ("h2_open_connections", 1),
            ("h2_total_connections", 1),
            ("h2_backend_open_streams", 1),
            ("h2_backend_total_streams", 1),
            ("h1_open_connections", 0),
            ("h1_open_streams", 0),
        ],
    );
    // `:status: 200` of the static table.
    server.send(&frame(HEADERS, END_STREAM | END_HEADERS, stream, b"\x88"));
    assert_eq!(crate::common::join(&answer, "an answer"), 200);
    until(
        &path,
        of,
        [
            ("h2_headers_rcvd", 1),
            ("h2_settings_rcvd", 1),
            ("h2_backend_open_streams", 0),
            ("h2_backend_total_streams", 1),
            ("h1_total_streams", 0),
            ("h1_bytes_in", 0),
        ],
    );
    drop(server);
    until(&path, of, [("h2_open_connections", 0)]);
    proxy.stop();
}

#[test]
fn handshakes_are_counted() {
    let (authority, folder) = (Authority::new("root"), Folder::new());
    let crt = folder.write("one.pem", authority.issue(&["one.test"]));
    let front = listener();
    let config = format!(
        "frontend f\n option socket-stats\n bind \"fd@${{FRONT}}\" ssl crt {crt}\n \
         http-request return status 200\n"
    );
    let (proxy, path) = start(folder, &config, &[("FRONT", &front)]);
    let at = address(&front);
    let stream = TcpStream::connect(at).expect("a connection");
    let mut client = Client::over(secure(stream, &authority, "one.test"));
    assert_eq!(client.get("/").status, 200);
    let mut plain = TcpStream::connect(at).expect("a connection");
    plain.write_all(b"GET / HTTP/1.1\r\n\r\n").expect("sent");
    for of in [("f", "FRONTEND"), ("f", "sock-1")] {
        until(
            &path,
            of,
            [
                ("ssl_sess", 1),
                ("ssl_reused_sess", 0),
                ("ssl_failed_handshake", 1),
            ],
        );
    }
    let [of_listener] = numbers(&path, ("f", "sock-1"), ["h2_headers_rcvd"]);
    assert_eq!(of_listener, None, "a listener has no such field");
    proxy.stop();
}
