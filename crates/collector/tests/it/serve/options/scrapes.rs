//! The receiver `prometheus`, from targets on sockets to a file of records.

use std::io::Write;
use std::path::PathBuf;

use serde_json::Value as Json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::tls::{Authority, served};
use super::*;

/// A server that answers each request in one way, and keeps the heads of requests.
struct Server {
    at: String,
    heads: Arc<Mutex<Vec<String>>>,
}

/// How a server answers.
#[derive(Clone)]
enum Way {
    /// With fields and a body.
    Body(&'static str, Vec<u8>),
    /// With a body that never ends.
    Endless,
    /// With a byte now and then.
    Slow,
}

impl Server {
    async fn start(way: Way) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let at = listener.local_addr().expect("an address").to_string();
        let heads = Arc::<Mutex<Vec<String>>>::default();
        let kept = Arc::clone(&heads);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream, way.clone(), Arc::clone(&kept)));
            }
        });
        Server { at, heads }
    }

    async fn text(text: &str) -> Server {
        Server::start(Way::Body("", text.as_bytes().to_vec())).await
    }

    fn heads(&self) -> Vec<String> {
        self.heads.lock().expect("no panic").clone()
    }
}

async fn answer(mut stream: TcpStream, way: Way, heads: Arc<Mutex<Vec<String>>>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => return,
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    heads.lock().expect("no panic").push(head);
    // The client may have gone.
    let _ = match way {
        Way::Body(fields, body) => {
            let length = body.len();
            let head = format!(
                "HTTP/1.1 200 OK\r\n{fields}content-length: {length}\r\nconnection: close\r\n\r\n"
            );
            stream.write_all(&[head.as_bytes(), &body].concat()).await
        }
        Way::Endless => {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await;
            while stream.write_all(&[b'#'; 4096]).await.is_ok() {}
            Ok(())
        }
        Way::Slow => {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await;
            while stream.write_all(b"#").await.is_ok() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Ok(())
        }
    };
}

const FAST: &str = "scrape_interval: 20ms, scrape_timeout: 20ms";

/// A collector with jobs, and the file of what they scrape.
fn scraping(jobs: &str, more: &str) -> (Collector, TempFile) {
    let file = TempFile::new();
    let collector = start(&format!(
        "receivers: {{ prometheus: {{ config: {{ {more} scrape_configs: [ {jobs} ] }} }} }}
exporters: {{ file: {{ path: '{}' }} }}
service: {{ {NO_METRICS}, pipelines: {{ metrics: {{ receivers: [prometheus], exporters: [file] }} }} }}",
        file.0.display()
    ));
    (collector, file)
}

/// A data point of a file: its metric, its resource's `service.instance.id`, its attributes, and its
/// value (none where it is stale).
type Seen = (String, String, String, Option<f64>);

fn seen(file: &TempFile) -> Vec<Seen> {
    let text = std::fs::read_to_string(&file.0).unwrap_or_default();
    let mut seen = Vec::new();
    let of = |attributes: &Json| {
        let all = attributes.as_array().into_iter().flatten();
        let all = all.map(|one| {
            let value = one["value"]["stringValue"].as_str().unwrap_or_default();
            (
                one["key"].as_str().unwrap_or_default().to_owned(),
                value.to_owned(),
            )
        });
        all.collect::<Vec<_>>()
    };
    // The last line may not be whole yet.
    for request in text
        .lines()
        .filter_map(|line| serde_json::from_str::<Json>(line).ok())
    {
        for resource in request["resourceMetrics"].as_array().into_iter().flatten() {
            let own = of(&resource["resource"]["attributes"]);
            let instance = own.iter().find(|(key, _)| key == "service.instance.id");
            let instance = instance.map(|(_, value)| value.clone()).unwrap_or_default();
            for scope in resource["scopeMetrics"].as_array().into_iter().flatten() {
                for metric in scope["metrics"].as_array().into_iter().flatten() {
                    let points = metric["gauge"]["dataPoints"].as_array();
                    for point in points.into_iter().flatten() {
                        let own = of(&point["attributes"]);
                        let own: Vec<_> = own
                            .iter()
                            .map(|(key, value)| format!("{key}={value}"))
                            .collect();
                        let name = metric["name"].as_str().unwrap_or_default().to_owned();
                        let value = point["asDouble"].as_f64();
                        seen.push((name, instance.clone(), own.join(" "), value));
                    }
                }
            }
        }
    }
    seen
}

fn has(file: &TempFile, name: &str, instance: &str, value: Option<f64>) -> bool {
    let all = seen(file);
    all.iter()
        .any(|(own, of, _, it)| own == name && of == instance && *it == value)
}

fn to(server: &Server) -> String {
    format!(
        "static_configs: [ {{ targets: ['{}'], labels: {{ color: blue }} }} ]",
        server.at
    )
}

#[tokio::test]
async fn a_target_is_asked_as_the_job_says() {
    let server = Server::text("a{b=\"c\"} 1\n").await;
    let job = format!(
        "{{ job_name: j, {FAST}, metrics_path: /own, params: {{ p: [v] }}, basic_auth: {{ username: u, password: w }}, {} }}",
        to(&server)
    );
    let (collector, file) = scraping(&job, "global: { external_labels: { site: s } },");
    until("a sample", || has(&file, "a", &server.at, Some(1.0))).await;
    until("and again", || server.heads().len() > 2).await;
    let [_, balance, _] = collector.end().await;
    assert_eq!((balance.refused, balance.dropped), (0, 0));
    assert_eq!(balance.exported, balance.accepted);
    let head = server.heads()[0].to_ascii_lowercase();
    assert!(head.starts_with("get /own?p=v http/1.1\r\n"), "{head}");
    assert!(head.contains("authorization: basic dtp3\r\n"), "{head}");
    assert!(
        head.contains("accept-encoding: gzip\r\n")
            && head.contains("accept: application/openmetrics-text")
    );
    let all = seen(&file);
    let sample = all.iter().find(|(name, ..)| name == "a").expect("a sample");
    assert_eq!(sample.2, "b=c color=blue site=s");
}

#[tokio::test]
async fn credentials_may_be_tokens_and_in_files() {
    let secret = TempFile::new();
    std::fs::write(&secret.0, "hidden\n").expect("a file");
    let path = secret.0.display();
    for (options, expected) in [
        ("authorization: { credentials: t }".to_owned(), "Bearer t"),
        (
            format!("authorization: {{ type: Own, credentials_file: '{path}' }}"),
            "Own hidden",
        ),
        ("bearer_token: t".to_owned(), "Bearer t"),
        (
            "basic_auth: { username: u, password: w }".to_owned(),
            "Basic dTp3",
        ),
        (format!("bearer_token_file: '{path}'"), "Bearer hidden"),
        (
            format!("basic_auth: {{ username: u, password_file: '{path}' }}"),
            "Basic dTpoaWRkZW4=",
        ),
    ] {
        let server = Server::text("a 1\n").await;
        let job = format!(
            "{{ job_name: j, {FAST}, enable_compression: false, {options}, {} }}",
            to(&server)
        );
        let (collector, _file) = scraping(&job, "");
        until("a request", || !server.heads().is_empty()).await;
        let head = server.heads()[0].clone();
        assert!(
            head.contains(&format!("authorization: {expected}\r\n")),
            "{head}"
        );
        assert!(head.contains("accept-encoding: identity\r\n"), "{head}");
        collector.end().await;
        // A server that lists targets is asked in the same way.
        let server = Server::text("[]").await;
        let list = format!(
            "http_sd_configs: [ {{ url: 'http://{}', {options} }} ]",
            server.at
        );
        let (collector, _file) = scraping(&format!("{{ job_name: j, {list} }}"), "");
        until("a request", || !server.heads().is_empty()).await;
        let head = server.heads()[0].clone();
        assert!(
            head.contains(&format!("authorization: {expected}\r\n")),
            "{head}"
        );
        collector.end().await;
    }
}

#[tokio::test]
async fn bodies_may_be_openmetrics_and_compressed() {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(b"# TYPE a gauge\na 1\n# EOF\n")
        .expect("a text");
    let fields =
        "content-type: application/openmetrics-text; version=1.0.0\r\ncontent-encoding: gzip\r\n";
    let server = Server::start(Way::Body(fields, gzip.finish().expect("a body"))).await;
    let (collector, file) = scraping(&format!("{{ job_name: j, {FAST}, {} }}", to(&server)), "");
    until("a sample", || has(&file, "a", &server.at, Some(1.0))).await;
    collector.end().await;
    // The same without its end is no OpenMetrics.
    let fields = "content-type: application/openmetrics-text; version=1.0.0\r\n";
    let server = Server::start(Way::Body(fields, b"a 1\n".to_vec())).await;
    let (collector, file) = scraping(&format!("{{ job_name: j, {FAST}, {} }}", to(&server)), "");
    until("a failure", || has(&file, "up", &server.at, Some(0.0))).await;
    collector.end().await;
}

#[tokio::test]
async fn a_bad_target_costs_only_its_own_scrapes() {
    let good = Server::text("a 1\n").await;
    let (endless, slow) = (
        Server::start(Way::Endless).await,
        Server::start(Way::Slow).await,
    );
    let targets = format!("['{}', '{}', '{}']", good.at, endless.at, slow.at);
    let job = format!(
        "{{ job_name: j, scrape_interval: 100ms, scrape_timeout: 100ms, body_size_limit: 100KB, static_configs: [ {{ targets: {targets} }} ] }}"
    );
    let (collector, file) = scraping(&job, "");
    until("the bad ones fail", || {
        has(&file, "up", &endless.at, Some(0.0)) && has(&file, "up", &slow.at, Some(0.0))
    })
    .await;
    until("the good one is scraped", || {
        has(&file, "a", &good.at, Some(1.0))
    })
    .await;
    let before = good.heads().len();
    until("and again", || good.heads().len() > before + 2).await;
    collector.end().await;
}

/// A folder that is removed.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[tokio::test]
async fn targets_come_from_files_and_servers_and_go() {
    let (one, two, three) = (
        Server::text("a 1\n").await,
        Server::text("a 2\n").await,
        Server::text("a 3\n").await,
    );
    let folder = Folder(TempFile::new().0.with_extension("targets"));
    std::fs::create_dir_all(&folder.0).expect("a folder");
    let write = |name: &str, text: &str| std::fs::write(folder.0.join(name), text).expect("a file");
    write(
        "x.json",
        &format!(
            "[{{\"targets\": [\"{}\"], \"labels\": {{\"l\": \"v\"}}}}]",
            one.at
        ),
    );
    write("x.yml", &format!("- targets: ['{}']\n", two.at));
    let list = format!("[{{\"targets\": [\"{}\"]}}]", three.at);
    let lists = Server::start(Way::Body(
        "content-type: application/json\r\n",
        list.into_bytes(),
    ))
    .await;
    let files = folder.0.display();
    let job = format!(
        "{{ job_name: j, {FAST}, relabel_configs: [ {{ source_labels: [__meta_filepath, __meta_url], target_label: from }} ], \
         file_sd_configs: [ {{ files: ['{files}/x*.json', '{files}/x.yml'], refresh_interval: 20ms }} ], \
         http_sd_configs: [ {{ url: 'http://{}/list', refresh_interval: 20ms, authorization: {{ credentials: t }} }} ] }}",
        lists.at
    );
    let (collector, file) = scraping(&job, "");
    for (server, value) in [(&one, 1.0), (&two, 2.0), (&three, 3.0)] {
        until("all are scraped", || {
            has(&file, "a", &server.at, Some(value))
        })
        .await;
    }
    let head = lists.heads()[0].clone();
    assert!(
        head.starts_with("GET /list HTTP/1.1\r\n") && head.contains("authorization: Bearer t\r\n"),
        "{head}"
    );
    let all = seen(&file);
    let of_file = all
        .iter()
        .find(|(name, of, ..)| name == "a" && *of == one.at);
    let expected = format!("from={files}/x.json; l=v");
    assert_eq!(of_file.expect("a sample").2, expected);
    // A target that is listed no more is stale; the others are scraped on.
    write("x.yml", "[]\n");
    until("it is stale", || {
        has(&file, "a", &two.at, None) && has(&file, "up", &two.at, None)
    })
    .await;
    let before = one.heads().len();
    until("the other is scraped on", || one.heads().len() > before).await;
    collector.end().await;
}

#[tokio::test]
async fn a_job_with_too_many_targets_scrapes_none() {
    let (one, two) = (Server::text("a 1\n").await, Server::text("a 2\n").await);
    let job = format!(
        "{{ job_name: j, {FAST}, target_limit: 1, static_configs: [ {{ targets: ['{}', '{}'] }} ] }}",
        one.at, two.at
    );
    let (collector, file) = scraping(&job, "");
    until("both fail", || {
        has(&file, "up", &one.at, Some(0.0)) && has(&file, "up", &two.at, Some(0.0))
    })
    .await;
    collector.end().await;
    assert!(one.heads().is_empty() && two.heads().is_empty());
}

/// Settings of TLS, and whether they fit to a server of TLS 1.2 and to one of TLS 1.3.
fn tls_cases(authority: &Authority, [own, own_key]: &[TempFile; 2]) -> Vec<(String, [bool; 2])> {
    let files = format!(
        "cert_file: '{}', key_file: '{}'",
        own.0.display(),
        own_key.0.display()
    );
    let text = |path: &str| {
        let text = std::fs::read_to_string(path).expect("a file");
        serde_json::to_string(&text).expect("JSON")
    };
    let file = |file: &TempFile| text(&file.0.display().to_string());
    let texts = format!("cert: {}, key: {}", file(own), file(own_key));
    let ca = format!("ca_file: '{}'", authority.file());
    let ca_text = format!("ca: {}", text(&authority.file()));
    let name = "server_name: other.example";
    vec![
        (format!("{ca}, {files}, {name}"), [true, true]),
        (format!("{ca_text}, {texts}, {name}"), [true, true]),
        (format!("insecure_skip_verify: true, {files}"), [true, true]),
        // Another name, no certificate, no authority.
        (format!("{ca}, {files}"), [false, false]),
        (format!("{ca}, {name}"), [false, false]),
        (format!("{files}, {name}"), [false, false]),
        (
            format!("{ca}, {files}, {name}, min_version: TLS13"),
            [false, true],
        ),
        (
            format!("{ca}, {files}, {name}, max_version: TLS12"),
            [true, false],
        ),
    ]
}

#[tokio::test]
async fn targets_may_speak_tls() {
    let authority = Authority::new();
    let [certificate, key] = authority.signed("other.example");
    let mut servers = Vec::new();
    for version in ["max_version: '1.2'", "min_version: '1.3'"] {
        let more = format!("client_ca_file: '{}', {version}", authority.file());
        let exposed = served("prometheus", &certificate, &key, &more);
        servers.push(start(&format!(
            "receivers: {{ nop: }}\nexporters: {{ {exposed} }}\nservice: {{ {NO_METRICS}, pipelines: {{ metrics: {{ receivers: [nop], exporters: [prometheus] }} }} }}"
        )));
    }
    for (tls, expected) in tls_cases(&authority, &authority.signed("client.example")) {
        for (server, is_up) in servers.iter().zip(expected) {
            let at = address(server, "prometheus");
            let job = format!(
                "{{ job_name: j, scrape_interval: 500ms, scheme: https, tls_config: {{ {tls} }}, static_configs: [ {{ targets: ['{at}'] }} ] }}"
            );
            let (collector, file) = scraping(&job, "");
            until("a scrape", || {
                seen(&file).iter().any(|(name, ..)| name == "up")
            })
            .await;
            if is_up {
                // On a busy machine a scrape may take too long, but not each.
                until(&tls, || has(&file, "up", &at, Some(1.0))).await;
            }
            assert_eq!(has(&file, "up", &at, Some(1.0)), is_up, "{tls}");
            collector.end().await;
            // A server that lists targets: a page of metrics is no list, which is told once it came.
            let list = format!(
                "http_sd_configs: [ {{ url: 'https://{at}/metrics', tls_config: {{ {tls} }} }} ]"
            );
            let (collector, lines) = start_logged(
                Level::Warn,
                &format!(
                    "receivers: {{ prometheus: {{ config: {{ scrape_configs: [ {{ job_name: j, {list} }} ] }} }} }}\nexporters: {{ nop: }}\n\
                     service: {{ {NO_METRICS}, pipelines: {{ metrics: {{ receivers: [prometheus], exporters: [nop] }} }} }}"
                ),
            );
            let told = || {
                let lines = lines.lock().expect("no panic");
                lines
                    .iter()
                    .find(|line| line.contains("targets are not found"))
                    .cloned()
            };
            until("a failure", || told().is_some()).await;
            let told = told().unwrap_or_default();
            assert_eq!(told.contains(" at line 1 column 0"), is_up, "{tls}: {told}");
            collector.end().await;
        }
    }
    for server in servers {
        server.end().await;
    }
}
