//! The filter `opentelemetry` in a process, as the runtime interface shows it.

use crate::common;

use common::cli::{ask, until};
use common::http::Client;
use common::{DEFAULTS, Folder, Proxy, address, listener};

const OTEL: &str = "[f]
otel-instrumentation i
    config OTEL_YML
    scopes start idle
    groups answers
otel-group answers
    scopes answer
otel-scope start
    span request root
    attribute bin path,sha1
    otel-event on-stream-start if { path /a }
otel-scope idle
    idle-timeout 5s
    otel-event on-idle-timeout
otel-scope answer
    instrument hist_int size unit By desc \"bytes of answers\" value int(7)
    instrument update size
    log-record info str(answered)
";

const YML: &str = "exporters:
  out: { type: ostream, filename: OUT }
processors:
  p: { type: batch, max_queue_size: 100, max_export_batch_size: 50, schedule_delay: 60000 }
readers:
  r: { export_interval: 60000, export_timeout: 1000 }
signals:
  traces: { scope_name: s, exporters: out, processors: p }
  metrics: { scope_name: s, exporters: out, readers: r }
  logs: { scope_name: s, exporters: out, processors: p }
";

#[test]
fn status_tells_where_every_record_is() {
    let folder = Folder::new();
    let path = folder.path("cli.sock");
    let out = folder.path("out").display().to_string();
    let yml = folder.write("otel.yml", YML.replace("OUT", &out));
    let otel = folder.write("otel.cfg", OTEL.replace("OTEL_YML", &yml));
    let web = listener();
    let config = format!(
        "global
    stats socket {} level admin
{DEFAULTS}
frontend web
    bind \"fd@${{WEB}}\"
    filter opentelemetry id f config {otel}
    http-request otel-group f answers
    http-request return status 200
",
        path.display()
    );
    let proxy = Proxy::start_in(folder, &config, &[("WEB", &web)]);
    let mut client = Client::connect(address(&web));
    for _ in 0..3 {
        assert_eq!(client.get("/a").status, 200);
    }
    assert_eq!(client.get("/b").status, 200);
    assert_eq!(ask(&path, "disable"), "filter 'f' : disabled\n\n");
    assert_eq!(client.get("/a").status, 200);
    drop(client);

    until(
        &path,
        "status",
        "4 attached, 0 passed by rate, 1 passed while disabled",
    );
    let waiting = until(&path, "status", "3 waiting, 0 in flight");
    let expected = format!(
        "filter 'f' of frontend 'web' : disabled
  files        : {otel}, {yml}, instrumentation 'i'
  program      : 3 scopes, 1 groups, 1 spans, 0 contexts, 1 instruments, 0 policies
  options      : rate 100.00 %, soft errors, logging off, noflush off, require-context off
  streams      : 4 attached, 0 passed by rate, 1 passed while disabled, 0 stopped
  errors       : 0 hard, 3 soft, 0 lines suppressed
  pipeline     : traces ostream {out}
    records    : 3 started, 0 exported, 0 sampled out, 0 lost, 3 waiting, 0 in flight
    lost       : 0 stream_limit, 0 queue_full, 0 export_failed, 0 rejected, 0 shutdown
    queue      : 3 of 100 records, "
    );
    assert!(waiting.starts_with(&expected), "{waiting}\n{expected}");
    assert!(waiting.contains("    last sent  : never\n    last error : none\n"));

    assert_eq!(ask(&path, "flush @f"), "filter 'f' : flushed\n\n");
    let flushed = ask(&path, "status @f");
    for line in [
        "    records    : 3 started, 3 exported, 0 sampled out, 0 lost, 0 waiting, 0 in flight\n",
        "    records    : 4 started, 4 exported, 0 sampled out, 0 lost, 0 waiting, 0 in flight\n",
        "    last sent  : 0 s ago\n",
    ] {
        assert!(flushed.contains(line), "{line} in {flushed}");
    }
    assert_eq!(
        ask(&path, "reset-errors"),
        "filter 'f' : errors count from 0\n\n"
    );
    assert!(ask(&path, "status").contains("  errors       : 0 hard, 0 soft,"));
    assert_eq!(
        ask(&path, "instruments"),
        "filter 'f' : 1 instruments\n  hist_int 'size' : aggregation default, unit 'By', 1 updates, 'bytes of answers'\n\n"
    );
    assert_eq!(
        ask(&path, "scopes"),
        "filter 'f' : 3 scopes
  start : on-stream-start, with a condition; 0 extracts, 1 spans, 0 updates, 0 log records
  idle : on-idle-timeout every 5000 ms; 0 extracts, 0 spans, 0 updates, 0 log records
  answer : no event, of group answers; 0 extracts, 0 spans, 1 updates, 1 log records\n\n"
    );
    proxy.stop();
}

#[test]
fn what_waits_can_be_dropped_at_the_end() {
    for (command, spans) in [("noflush on", 0), ("noflush off", 1)] {
        let folder = Folder::new();
        let path = folder.path("cli.sock");
        let out = folder.path("out");
        let yml = folder.write("otel.yml", YML.replace("OUT", &out.display().to_string()));
        let otel = folder.write("otel.cfg", OTEL.replace("OTEL_YML", &yml));
        // The folder outlives the process.
        let kept = Folder::new();
        let link = kept.path("out");
        std::fs::write(&out, "").unwrap();
        std::fs::hard_link(&out, &link).unwrap();
        let web = listener();
        let config = format!(
            "global
    stats socket {} level admin
{DEFAULTS}
frontend web
    bind \"fd@${{WEB}}\"
    filter opentelemetry id f config {otel}
    http-request return status 200
",
            path.display()
        );
        let proxy = Proxy::start_in(folder, &config, &[("WEB", &web)]);
        let mut client = Client::connect(address(&web));
        assert_eq!(client.get("/a").status, 200);
        drop(client);
        until(&path, "status", "1 waiting");
        let said = format!("filter 'f' : {command}\n\n");
        assert_eq!(ask(&path, command), said);
        proxy.stop();
        let text = std::fs::read_to_string(&link).unwrap();
        assert_eq!(text.matches("request").count(), spans, "{command}: {text}");
    }
}
