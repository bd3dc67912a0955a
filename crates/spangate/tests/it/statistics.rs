//! Statistics: `show stat`, `clear counters`, `stats-file` and the page (management guide §9.1,
//! manual §4.2 stats).

use crate::common;

use std::collections::HashMap;
use std::io::{Read as _, Write as _};
use std::path::Path;

use common::cli::{ask_any, until_any_holds};
use common::http::{Client, Message};
use common::origin::{Origin, ok};
use common::{DEADLINE, DEFAULTS, Folder, Proxy, address, listener};

/// The rows of `show stat`, by `proxy/name`, with their fields by name.
pub type Rows = HashMap<String, HashMap<String, String>>;

fn rows(csv: &str) -> Rows {
    let mut lines = csv.lines();
    let names: Vec<&str> = lines
        .next()
        .and_then(|line| line.strip_prefix("# "))
        .expect("a header")
        .split(',')
        .collect();
    let row = |line: &str| {
        let values: Vec<&str> = line.split(',').collect();
        let fields = names.iter().zip(&values);
        let fields = fields.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        (format!("{}/{}", values[0], values[1]), fields.collect())
    };
    lines.filter(|line| !line.is_empty()).map(row).collect()
}

fn number(rows: &Rows, row: &str, field: &str) -> u64 {
    let text = &rows[row][field];
    text.parse()
        .unwrap_or_else(|_| panic!("{row} {field}: {text:?}"))
}

/// The rows after a field has a value: a stream is counted at its end, which its client may see a
/// moment earlier.
pub fn until(socket: &Path, row: &str, field: &str, wanted: &str) -> Rows {
    let csv = until_any_holds(socket, "show stat", |csv| rows(csv)[row][field] == wanted);
    rows(&csv)
}

const FRONT: &str = "
frontend fe
    bind \"fd@${FE}\"
    option socket-stats
    http-request deny if { path /deny }
    http-request return status 200 if { path /own }
    default_backend be
";

/// What a server has not answered is not counted as its answer; a try at another server is no
/// retry; a response that `tcp-response` refuses is a refused response.
#[test]
fn failures_are_counted_where_they_belong() {
    let folder = Folder::new();
    let socket = folder.path("cli.sock");
    let [dead, moved, refuses] = [listener(), listener(), listener()];
    let origin = Origin::start(|_| ok("twelve bytes"));
    let closed = {
        let listener = listener();
        address(&listener)
    };
    let config = format!(
        "global\n stats socket {} level admin\n{DEFAULTS}
listen dead
    bind \"fd@${{DEAD}}\"
    retries 0
    server s1 {closed}
listen moved
    bind \"fd@${{MOVED}}\"
    balance first
    retries 1
    option redispatch 1
    server s1 {closed}
    server s2 {at}
listen refuses
    mode tcp
    bind \"fd@${{REFUSES}}\"
    tcp-response inspect-delay 5s
    tcp-response content reject if {{ res.len gt 0 }}
    server s1 {at}
",
        socket.display(),
        at = origin.at,
    );
    let sockets = [("DEAD", &dead), ("MOVED", &moved), ("REFUSES", &refuses)];
    let _proxy = Proxy::start_in(folder, &config, &sockets);
    assert_eq!(Client::connect(address(&dead)).get("/").status, 503);
    assert_eq!(Client::connect(address(&moved)).get("/").status, 200);
    let mut client = std::net::TcpStream::connect(address(&refuses)).expect("a connection");
    client.set_read_timeout(Some(DEADLINE)).expect("a deadline");
    client
        .write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
        .expect("it is sent");
    let _ = client.read(&mut [0; 1]);
    for (row, field, wanted) in [
        ("dead/BACKEND", "hrsp_5xx", 1),
        ("dead/s1", "hrsp_5xx", 0),
        ("dead/s1", "req_tot", 0),
        ("dead/s1", "econ", 1),
        ("moved/s2", "hrsp_2xx", 1),
        ("moved/s1", "wretr", 0),
        ("moved/s1", "wredis", 1),
        ("moved/BACKEND", "wretr", 0),
        ("moved/BACKEND", "wredis", 1),
        ("refuses/FRONTEND", "dresp", 1),
        ("refuses/BACKEND", "dresp", 1),
        ("refuses/s1", "dresp", 1),
        ("refuses/FRONTEND", "dreq", 0),
    ] {
        let all = until(&socket, row, field, &wanted.to_string());
        assert_eq!(number(&all, row, field), wanted, "{row} {field}");
    }
}

#[test]
fn counters_of_a_request_and_their_clearing() {
    let folder = Folder::new();
    let (socket, front) = (folder.path("cli.sock"), listener());
    let origin = Origin::start(|_| ok("twelve bytes"));
    let config = format!(
        "global\n stats socket {} level admin\n{DEFAULTS}{FRONT}
backend be
    server s1 {} maxconn 7 maxqueue 3 weight 20
    server s2 {} backup
",
        socket.display(),
        origin.at,
        origin.at
    );
    let proxy = Proxy::start_in(folder, &config, &[("FE", &front)]);
    let mut client = Client::connect(address(&front));
    for (path, status) in [("/", 200), ("/deny", 403), ("/", 200), ("/own", 200)] {
        assert_eq!(client.get(path).status, status, "{path}");
    }
    let all = until(&socket, "fe/FRONTEND", "hrsp_2xx", "3");
    for (row, field, wanted) in [
        ("fe/FRONTEND", "scur", 1),
        ("fe/FRONTEND", "smax", 1),
        ("fe/FRONTEND", "stot", 1),
        ("fe/FRONTEND", "conn_tot", 1),
        ("fe/FRONTEND", "req_tot", 4),
        ("fe/FRONTEND", "h1req", 4),
        ("fe/FRONTEND", "h1sess", 1),
        ("fe/FRONTEND", "hrsp_4xx", 1),
        ("fe/FRONTEND", "dreq", 1),
        ("fe/FRONTEND", "intercepted", 1),
        ("fe/sock-1", "conn_tot", 1),
        ("fe/sock-1", "dreq", 1),
        ("be/BACKEND", "stot", 2),
        ("be/BACKEND", "lbtot", 2),
        ("be/BACKEND", "hrsp_2xx", 2),
        ("be/BACKEND", "connect", 1),
        ("be/BACKEND", "reuse", 1),
        ("be/BACKEND", "act", 1),
        ("be/BACKEND", "bck", 1),
        ("be/s1", "stot", 2),
        ("be/s1", "req_tot", 2),
        ("be/s1", "slim", 7),
        ("be/s1", "qlimit", 3),
        ("be/s1", "weight", 20),
        ("be/s2", "stot", 0),
    ] {
        assert_eq!(number(&all, row, field), wanted, "{row} {field}");
    }
    assert_eq!(all["be/s1"]["status"], "no check");
    for field in ["bin", "bout", "reqbout", "resbout"] {
        let (front, server) = (
            number(&all, "fe/FRONTEND", field),
            number(&all, "be/s1", field),
        );
        assert!(front >= server && server > 0, "{field}: {front} {server}");
        assert_eq!(number(&all, "be/BACKEND", field), server, "{field}");
    }
    assert_eq!(
        all["be/s1"]["lastsess"].parse::<i32>().map(|s| s >= 0),
        Ok(true)
    );
    assert_eq!(all["be/s2"]["lastsess"], "-1");

    // Only the requested rows.
    let servers = rows(&ask_any(&socket, "show stat be 4 -1"));
    assert_eq!(servers.len(), 2);
    let typed = ask_any(&socket, "show stat fe 1 -1 typed");
    assert!(typed.contains(".stot.1:MCPP:u64:1\n"), "{typed}");
    assert!(!typed.contains("BACKEND"), "{typed}");
    let json: serde_json::Value =
        serde_json::from_str(&ask_any(&socket, "show stat json")).expect("JSON");
    assert_eq!(json.as_array().map(Vec::len), Some(all.len()));
    let schema: serde_json::Value =
        serde_json::from_str(&ask_any(&socket, "show schema json")).expect("JSON");
    assert!(schema["oneOf"].is_array());
    assert_eq!(
        ask_any(&socket, "show stat nothing 4 -1"),
        "No such proxy.\n\n"
    );

    // Only the maxima, then a server, then everything.
    ask_any(&socket, "clear counters");
    let after = rows(&ask_any(&socket, "show stat"));
    assert_eq!(number(&after, "be/s1", "smax"), 0);
    assert_eq!(number(&after, "fe/FRONTEND", "req_rate_max"), 0);
    assert_eq!(number(&after, "be/s1", "stot"), 2);
    let cleared = ask_any(&socket, "clear counters server be/s1 force");
    assert_eq!(cleared, "Server counters cleared.\n\n");
    assert_eq!(
        ask_any(&socket, "clear counters server be/s3"),
        "No such server.\n\n"
    );
    assert_eq!(
        ask_any(&socket, "clear counters server no/s1"),
        "No such backend.\n\n"
    );
    let after = rows(&ask_any(&socket, "show stat"));
    assert_eq!(number(&after, "be/s1", "stot"), 0);
    assert_eq!(number(&after, "be/BACKEND", "stot"), 2);
    ask_any(&socket, "clear counters all");
    let after = rows(&ask_any(&socket, "show stat"));
    for row in ["fe/FRONTEND", "fe/sock-1", "be/BACKEND", "be/s1"] {
        assert_eq!(number(&after, row, "stot"), 0, "{row}");
        assert_eq!(number(&after, row, "bin"), 0, "{row}");
    }
    assert_eq!(client.get("/").status, 200);
    let after = until(&socket, "be/s1", "hrsp_2xx", "1");
    assert_eq!(number(&after, "fe/FRONTEND", "req_tot"), 1);
    proxy.stop();
}

#[test]
fn failures_are_counted_where_they_happen() {
    let folder = Folder::new();
    let (socket, front) = (folder.path("cli.sock"), listener());
    let dead = common::Port::reserve();
    let silent = Origin::raw(drop);
    let config = format!(
        "global\n stats socket {} level admin\n{DEFAULTS}
frontend fe
    bind \"fd@${{FE}}\"
    use_backend silent if {{ path /silent }}
    default_backend be
backend be
    retries 1
    timeout connect 100ms
    server s1 127.0.0.1:{}
backend silent
    server s1 {}
",
        socket.display(),
        dead.number,
        silent.at
    );
    let proxy = Proxy::start_in(folder, &config, &[("FE", &front)]);
    let mut client = Client::connect(address(&front));
    assert_eq!(client.get("/").status, 503);
    assert_eq!(client.get("/silent").status, 502);
    client.send("GET / HTTP/1.1\r\nhost a\r\n\r\n");
    assert_eq!(client.response().map(|response| response.status), Some(400));
    let all = until(&socket, "fe/FRONTEND", "ereq", "1");
    for (row, field, wanted) in [
        ("be/BACKEND", "econ", 1),
        ("be/BACKEND", "wretr", 1),
        ("be/s1", "econ", 1),
        ("be/s1", "wretr", 1),
        ("be/BACKEND", "hrsp_5xx", 1),
        ("silent/BACKEND", "eresp", 1),
        ("silent/s1", "eresp", 1),
        ("fe/FRONTEND", "hrsp_5xx", 2),
        ("fe/FRONTEND", "hrsp_4xx", 1),
    ] {
        assert_eq!(number(&all, row, field), wanted, "{row} {field}");
    }
    proxy.stop();
}

#[test]
fn counters_outlive_the_process_in_a_file() {
    let folder = Folder::new();
    let (socket, front) = (folder.path("cli.sock"), listener());
    let file = folder.write(
        "counters",
        "#fe guid,stot,req_tot,\nthe-fe,1024,2000,\nnobody,1,1,\n\n#be guid,stot,\nthe-be,7,\nthe-server,8,\nthe-fe,9,\n",
    );
    let config = format!(
        "global\n stats socket {} level admin\n stats-file {file}\n{DEFAULTS}
frontend fe
    guid the-fe
    bind \"fd@${{FE}}\" guid-prefix listen
    default_backend be
backend be
    guid the-be
    server s1 127.0.0.1:9 guid the-server
",
        socket.display()
    );
    let proxy = Proxy::start_in(folder, &config, &[("FE", &front)]);
    let all = rows(&ask_any(&socket, "show stat"));
    let told = ["fe/FRONTEND", "be/BACKEND", "be/s1"].map(|row| number(&all, row, "stot"));
    assert_eq!(told, [1024, 7, 8]);
    assert_eq!(number(&all, "fe/FRONTEND", "req_tot"), 2000);
    let dump = ask_any(&socket, "dump stats-file");
    assert!(dump.starts_with("#fe guid,stot,bin,"), "{dump}");
    assert!(dump.contains("\nthe-fe,1024,"), "{dump}");
    assert!(dump.contains("\nthe-server,8,"), "{dump}");
    proxy.stop();
}

const PAGE: &str = "
frontend fe
    bind \"fd@${FE}\"
    stats enable
    stats uri /stats
    stats refresh 5s
    stats realm The\\ page
    stats auth ann:secret
    stats admin if TRUE
    stats show-legends
    stats show-node
backend b1
    server srv1 127.0.0.1:9
    server srv2 127.0.0.1:9
backend b2
    server srv1 127.0.0.1:9
";

/// The answer to a request with these fields.
pub fn send(front: &std::net::TcpListener, request: &str, fields: &str, body: &str) -> Message {
    let mut client = Client::connect(address(front));
    client.send(format!(
        "{request} HTTP/1.1\r\nhost: proxy\r\n{fields}content-length: {}\r\n\r\n{body}",
        body.len()
    ));
    client.response().expect("a response")
}

/// All bytes received on a connection that sends this request.
fn all_of(front: &std::net::TcpListener, request: &str) -> String {
    let mut stream = std::net::TcpStream::connect(address(front)).expect("a connection");
    stream.set_read_timeout(Some(DEADLINE)).expect("a deadline");
    stream.write_all(request.as_bytes()).expect("sent");
    let mut all = String::new();
    stream.read_to_string(&mut all).expect("an answer");
    all
}

const ANN: &str = "authorization: Basic YW5uOnNlY3JldA==\r\n";

#[test]
fn the_page_and_its_forms() {
    let folder = Folder::new();
    let (socket, front) = (folder.path("cli.sock"), listener());
    let config = format!(
        "global\n stats socket {} level admin\n{DEFAULTS}{PAGE}",
        socket.display()
    );
    let proxy = Proxy::start_in(folder, &config, &[("FE", &front)]);
    let refused = send(&front, "GET /stats", "", "");
    assert_eq!(refused.status, 401);
    assert_eq!(
        refused.field("www-authenticate"),
        Some("Basic realm=\"The page\"")
    );
    let wrong = "authorization: Basic YW5uOnNlY3JlVA==\r\n";
    assert_eq!(send(&front, "GET /stats", wrong, "").status, 401);

    let page = send(&front, "GET /stats", ANN, "");
    assert_eq!(page.status, 200);
    assert_eq!(page.field("content-type"), Some("text/html"));
    assert_eq!(page.field("refresh"), Some("5; url=/stats"));
    let text = page.text();
    for part in [
        "id=\"b1\"",
        "id=\"b2\"",
        "value=\"srv1\"",
        "name=\"b\" value=\"#3\"",
        "127.0.0.1:9",
        "</html>",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert_eq!(
        send(&front, "GET /stats;norefresh", ANN, "").field("refresh"),
        None
    );
    let csv = send(&front, "GET /stats?;csv;scope=b1", ANN, "");
    assert_eq!(csv.field("content-type"), Some("text/plain"));
    let shown = rows(&csv.text());
    assert!(shown.contains_key("b1/BACKEND") && !shown.contains_key("b2/BACKEND"));
    let json = send(&front, "GET /stats;json", ANN, "");
    assert!(serde_json::from_str::<serde_json::Value>(&json.text()).is_ok());
    let head = all_of(&front, &format!("HEAD /stats HTTP/1.0\r\n{ANN}\r\n"));
    assert!(
        head.starts_with("HTTP/1.1 200 ") && head.ends_with("\r\n\r\n"),
        "{head}"
    );

    let form = "s=srv1&s=srv2&action=maint&b=%233";
    let done = send(&front, "POST /stats;up", ANN, form);
    assert_eq!(done.status, 303);
    assert_eq!(done.field("location"), Some("/stats;st=DONE;up"));
    let states =
        |rows: &Rows| ["b1/srv1", "b1/srv2", "b2/srv1"].map(|row| rows[row]["status"].clone());
    let told = rows(&ask_any(&socket, "show stat"));
    assert_eq!(states(&told), ["MAINT", "MAINT", "no check"]);
    assert_eq!(told["b1/BACKEND"]["status"], "DOWN");
    let hidden = rows(&ask_any(&socket, "show stat up"));
    assert!(!hidden.contains_key("b1/srv1") && hidden.contains_key("b2/srv1"));
    assert_eq!(hidden["b1/BACKEND"]["status"], "DOWN (0/2)");

    for (fields, form, code) in [
        (
            "origin: http://evil\r\n",
            "s=srv1&action=ready&b=b1",
            "DENY",
        ),
        (
            "referer: http://evil/\r\n",
            "s=srv1&action=ready&b=b1",
            "DENY",
        ),
        (
            "origin: http://proxy\r\n",
            "s=srv1&action=ready&b=b1",
            "DONE",
        ),
        ("", "s=srv1&s=nobody&action=drain&b=b1", "PART"),
        ("", "s=srv1&action=dance&b=b1", "ERRP"),
        ("", "s=srv1&action=ready&b=nobody", "ERRP"),
        ("", "action=ready&b=b1", "NONE"),
    ] {
        let answer = send(&front, "POST /stats", &format!("{ANN}{fields}"), form);
        let wanted = format!("/stats;st={code}");
        assert_eq!(answer.field("location"), Some(&*wanted), "{fields}{form}");
    }
    assert_eq!(
        rows(&ask_any(&socket, "show stat"))["b1/srv1"]["status"],
        "DRAIN"
    );
    let banner = send(&front, "GET /stats;st=DENY", ANN, "").text();
    assert!(banner.contains("The action was denied."), "{banner}");
    let large = format!("s={}&action=ready&b=b1", "x".repeat(32 << 10));
    let refused = send(&front, "POST /stats", ANN, &large);
    assert_eq!(refused.field("location"), Some("/stats;st=EXCD"));
    proxy.stop();
}

#[test]
fn rules_and_scopes_of_the_page() {
    let front = listener();
    let config = format!(
        "{DEFAULTS}
listen fe
    bind \"fd@${{FE}}\"
    stats uri /s
    stats scope .
    stats http-request deny if {{ query -m sub no }}
    stats http-request auth realm R if {{ query -m sub ask }}
    server s 127.0.0.1:9
backend other
    server s 127.0.0.1:9
"
    );
    let proxy = Proxy::start(&config, &[("FE", &front)]);
    let shown = rows(&send(&front, "GET /s;csv", "", "").text());
    assert!(shown.contains_key("fe/s") && !shown.contains_key("other/s"));
    assert_eq!(send(&front, "GET /s?no", "", "").status, 403);
    let asked = send(&front, "GET /s?ask", "", "");
    assert_eq!(asked.field("www-authenticate"), Some("Basic realm=\"R\""));
    let denied = send(&front, "POST /s", "", "s=s&action=maint&b=fe");
    assert_eq!(
        denied.field("location"),
        Some("/s;st=DENY"),
        "nobody is admin"
    );
    proxy.stop();
}

#[test]
fn a_long_answer_is_made_while_it_leaves() {
    const SERVERS: usize = 1500;
    // Two frontends, one of which shows that the program is ready, and a backend.
    const ROWS: usize = SERVERS + 3;
    let front = listener();
    let mut config = format!(
        "{DEFAULTS}\nfrontend fe\n bind \"fd@${{FE}}\"\n stats uri /s\n http-request use-service prometheus-exporter if {{ path /metrics }}\nbackend be\n"
    );
    for place in 0..SERVERS {
        config.push_str(&format!(" server server-{place} 127.0.0.1:9\n"));
    }
    let proxy = Proxy::start(&config, &[("FE", &front)]);
    let csv = send(&front, "GET /s;csv", "", "");
    assert_eq!(csv.field("transfer-encoding"), Some("chunked"));
    assert_eq!(rows(&csv.text()).len(), ROWS);
    let page = send(&front, "GET /s", "", "").text();
    assert_eq!(page.matches("<tr class=\"server").count(), SERVERS);
    assert!(page.ends_with("</html>\n"));
    let json = send(&front, "GET /s;json", "", "").text();
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json.as_array().map(Vec::len), Some(ROWS));
    let metrics = send(&front, "GET /metrics?scope=server", "", "").text();
    let series = metrics.matches("haproxy_server_sessions_total{").count();
    assert_eq!(series, SERVERS);
    // A client that leaves in the middle leaves no state behind.
    for _ in 0..3 {
        let mut client = std::net::TcpStream::connect(address(&front)).expect("a connection");
        client
            .write_all(b"GET /metrics HTTP/1.1\r\nhost: a\r\n\r\n")
            .expect("sent");
    }
    // HTTP/1.0 has no chunks: the end of the connection ends the answer.
    let all = all_of(&front, "GET /s;csv HTTP/1.0\r\n\r\n");
    let body = all.split_once("\r\n\r\n").expect("a head").1;
    assert_eq!(rows(body).len(), ROWS);
    proxy.stop();
}

/// An agent's server: sends a line to every client.
fn agent(line: &'static str) -> Origin {
    Origin::raw(move |mut stream| {
        // The checker may have disconnected.
        let _ = stream.write_all(line.as_bytes());
    })
}

/// The rows after fields have these values.
fn until_all(socket: &Path, wanted: &[(&str, &str, &str)]) -> Rows {
    let holds = |csv: &str| {
        let rows = rows(csv);
        wanted
            .iter()
            .all(|(row, field, value)| rows[*row][*field] == *value)
    };
    rows(&until_any_holds(socket, "show stat", holds))
}

#[test]
fn health_of_servers_in_every_field() {
    let folder = Folder::new();
    let (socket, front) = (folder.path("cli.sock"), listener());
    let good = Origin::start(|_| ok("good"));
    let bad = Origin::start(|_| b"HTTP/1.1 503 x\r\ncontent-length: 0\r\n\r\n".to_vec());
    let absent = Origin::start(|_| b"HTTP/1.1 404 x\r\ncontent-length: 0\r\n\r\n".to_vec());
    let (ups, downs) = (agent("up 50%\n"), agent("down # gone\n"));
    let (good_at, bad_at, absent_at) = (good.at, bad.at, absent.at);
    let config = format!(
        "global\n stats socket {} level admin\n{DEFAULTS}
frontend fe
    bind \"fd@${{FE}}\"
    http-request use-service prometheus-exporter
backend be
    option httpchk GET /
    http-check disable-on-404
    timeout check 5s
    default-server check inter 100ms rise 2 fall 3
    server good {good_at}
    server bad {bad_at}
    server absent {absent_at}
    server tracks {good_at} no-check track be/bad
    server plain {good_at} no-check
    server observed {good_at} observe layer7
backend agents
    timeout check 5s
    default-server agent-inter 100ms
    server up {good_at} agent-check agent-port {} weight 20
    server down {good_at} agent-check agent-port {}
",
        socket.display(),
        ups.at.port(),
        downs.at.port()
    );
    let proxy = Proxy::start_in(folder, &config, &[("FE", &front)]);
    let all = until_all(
        &socket,
        &[
            ("be/good", "check_status", "L7OK"),
            ("be/bad", "status", "DOWN"),
            ("be/absent", "status", "NOLB"),
            ("agents/up", "agent_status", "L7OK"),
            ("agents/down", "status", "DOWN (agent)"),
        ],
    );
    for (row, field, wanted) in [
        ("be/good", "status", "UP"),
        ("be/good", "check_code", "200"),
        ("be/good", "check_desc", "Layer7 check passed"),
        ("be/good", "check_rise", "2"),
        ("be/good", "check_fall", "3"),
        ("be/good", "check_health", "4"),
        ("be/good", "chkfail", "0"),
        ("be/good", "chkdown", "0"),
        ("be/good", "downtime", "0"),
        ("be/good", "hanafail", ""),
        ("be/good", "agent_status", ""),
        ("be/good", "tracked", ""),
        ("be/bad", "check_status", "L7STS"),
        ("be/bad", "check_code", "503"),
        ("be/bad", "check_health", "0"),
        ("be/bad", "chkfail", "1"),
        ("be/bad", "chkdown", "1"),
        ("be/absent", "check_status", "L7OKC"),
        ("be/tracks", "status", "DOWN"),
        ("be/tracks", "tracked", "be/bad"),
        ("be/tracks", "check_status", ""),
        ("be/tracks", "chkdown", ""),
        ("be/plain", "status", "no check"),
        ("be/plain", "downtime", ""),
        ("be/observed", "hanafail", "0"),
        ("agents/up", "status", "no check"),
        ("agents/up", "uweight", "10"),
        ("agents/up", "agent_rise", "1"),
        ("agents/up", "agent_health", "1"),
        ("agents/down", "agent_status", "L7STS"),
        ("agents/down", "last_agt", "via agent : down (gone)"),
        ("agents/down", "agent_health", "0"),
        ("agents/BACKEND", "act", "1"),
        ("be/BACKEND", "chkdown", "0"),
    ] {
        // While the next check runs, the previous result is marked with a star.
        let found = all[row][field].trim_start_matches("* ");
        assert_eq!(found, wanted, "{row} {field}");
    }
    for (row, field) in [
        ("be/good", "check_duration"),
        ("be/good", "lastchg"),
        ("be/bad", "downtime"),
        ("be/BACKEND", "lastchg"),
        ("agents/down", "agent_duration"),
    ] {
        assert!(
            number(&all, row, field) < DEADLINE.as_secs() * 1000,
            "{row} {field}"
        );
    }
    let typed = ask_any(&socket, "show stat be 4 -1 typed");
    let status = ".check_status.1:MOPV:str:";
    let mut lines = typed.lines().filter(|line| line.contains(status));
    assert!(lines.any(|line| line.ends_with("L7STS")), "{typed}");
    assert!(typed.contains(".check_duration.1:MDPV:u64:"), "{typed}");
    let metrics = send(&front, "GET /metrics", "", "").text();
    for line in [
        "haproxy_server_check_status{proxy=\"be\",server=\"bad\",state=\"L7STS\"} 1",
        "haproxy_server_check_code{proxy=\"be\",server=\"bad\"} 503",
        "haproxy_server_status{proxy=\"be\",server=\"absent\",state=\"NOLB\"} 1",
        "haproxy_backend_agg_check_status{proxy=\"be\",state=\"L7STS\"} 1",
        "haproxy_server_agent_status{proxy=\"agents\",server=\"down\",state=\"L7STS\"} 1",
    ] {
        assert!(
            metrics.lines().any(|known| known == line),
            "{line}\n{metrics}"
        );
    }

    // A server that tracks a server in maintenance shows this, and its counters are reset.
    ask_any(&socket, "set server be/bad state maint");
    let all = rows(&ask_any(&socket, "show stat"));
    assert_eq!(all["be/tracks"]["status"], "MAINT (via be/bad)");
    assert_eq!(all["be/bad"]["status"], "MAINT");
    assert_eq!(all["be/bad"]["check_status"], "");
    ask_any(&socket, "clear counters all");
    let all = rows(&ask_any(&socket, "show stat"));
    assert_eq!(number(&all, "be/bad", "chkdown"), 0);
    proxy.stop();
}

#[test]
fn frontends_tell_whether_they_accept() {
    let folder = Folder::new();
    let (socket, front) = (folder.path("cli.sock"), listener());
    let config = format!(
        "global\n stats socket {} level admin\n{DEFAULTS}
frontend fe
    bind \"fd@${{FE}}\"
    maxconn 11
",
        socket.display()
    );
    let proxy = Proxy::start_in(folder, &config, &[("FE", &front)]);
    for (command, status, limit) in [
        ("show env", "OPEN", 11),
        ("disable frontend fe", "PAUSED", 11),
        ("enable frontend fe", "OPEN", 11),
        ("set maxconn frontend fe 12", "OPEN", 12),
        ("shutdown frontend fe", "STOP", 12),
    ] {
        ask_any(&socket, command);
        let all = rows(&ask_any(&socket, "show stat"));
        assert_eq!(all["fe/FRONTEND"]["status"], status, "{command}");
        assert_eq!(number(&all, "fe/FRONTEND", "slim"), limit, "{command}");
    }
    proxy.stop();
}

#[test]
fn the_page_changes_checks_agents_and_sessions() {
    let folder = Folder::new();
    let (socket, front, admin) = (folder.path("cli.sock"), listener(), listener());
    let origin = Origin::raw(|mut stream| {
        // Reads a request and never answers.
        let _ = stream.read(&mut [0; 1024]);
        let _ = stream.read(&mut [0; 1024]);
    });
    let said = agent("up\n");
    let config = format!(
        "global\n stats socket {} level admin\n max-spread-checks 1\n{DEFAULTS}
frontend fe
    bind \"fd@${{FE}}\"
    default_backend be
frontend page
    bind \"fd@${{ADMIN}}\"
    stats uri /stats
    stats admin if TRUE
backend be
    server s {} check inter 1h agent-check agent-port {} agent-inter 1h
    server plain {}
",
        socket.display(),
        origin.at,
        said.at.port(),
        origin.at
    );
    let proxy = Proxy::start_in(folder, &config, &[("FE", &front), ("ADMIN", &admin)]);
    until_all(
        &socket,
        &[
            ("be/s", "check_status", "L4OK"),
            ("be/s", "agent_status", "L7OK"),
        ],
    );
    let act = |action: &str, server: &str, outcome: &str| {
        let form = format!("s={server}&action={action}&b=be");
        let answer = send(&admin, "POST /stats", "", &form);
        let wanted = format!("/stats;st={outcome}");
        assert_eq!(answer.field("location"), Some(&*wanted), "{form}");
        rows(&ask_any(&socket, "show stat"))["be/s"].clone()
    };
    for (action, field, wanted) in [
        ("hdown", "status", "DOWN"),
        ("hrunn", "status", "UP"),
        ("hnolb", "status", "NOLB"),
        ("hrunn", "status", "UP"),
        ("adown", "status", "DOWN (agent)"),
        ("arunn", "status", "UP"),
        ("dhlth", "check_status", ""),
        ("ehlth", "check_status", "L4OK"),
        ("dagent", "agent_status", ""),
        ("eagent", "agent_status", "L7OK"),
        ("maint", "status", "MAINT"),
        ("ready", "status", "UP 1/3"),
    ] {
        assert_eq!(act(action, "s", "DONE")[field], wanted, "{action}");
    }
    for action in [
        "dhlth", "ehlth", "dagent", "eagent", "arunn", "adown", "start", "enable",
    ] {
        act(action, "plain", "ERRP");
    }

    // The page's action ends streams.
    let mut client = Client::connect(address(&front));
    client.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
    let busy_one = |csv: &str| {
        let rows = rows(csv);
        let is_busy = |server: &&str| number(&rows, &format!("be/{server}"), "scur") == 1;
        ["s", "plain"].into_iter().find(is_busy)
    };
    let busy = until_any_holds(&socket, "show stat", |csv| busy_one(csv).is_some());
    let server = busy_one(&busy).expect("a server with a stream");
    act("shutdown", server, "DONE");
    let cut = client.response().map(|response| response.status);
    assert!(matches!(cut, Some(502 | 503) | None), "{cut:?}");
    until(&socket, "be/BACKEND", "scur", "0");
    proxy.stop();
}
