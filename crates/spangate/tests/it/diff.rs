//! `spangate diff`: the effects of a change, as text and as JSON.

use crate::common::{Folder, Output, run};
use serde_json::Value;

const OLD: &str = "\
global
    maxconn 1000
defaults
    mode http
    timeout client 1s
    timeout server 1s
    timeout connect 1s
userlist people
    user alice insecure-password hunter1
frontend web
    bind 127.0.0.1:8080
    bind 127.0.0.1:8081
    acl is_admin path_beg /admin
    http-request set-header Authorization \"Basic YTpi\"
    http-request deny if is_admin
    stats auth admin:wonder
    default_backend app
frontend api
    bind 127.0.0.1:8082
    default_backend app
backend app
    default-server check inter 2s
    server a 127.0.0.1:1 weight 5
    server b 127.0.0.1:2
";

/// The same with other spaces, places and forms.
const SAME: &str = "\
# A comment.
userlist people
    user   alice   insecure-password   'hunter1'
defaults
    timeout connect 1000
    timeout server  1000ms
    mode http
global
    maxconn 1000
backend app
    server a 127.0.0.1:1 weight 5 check
    server b 127.0.0.1:2 check
frontend web
    bind 127.0.0.1:8081,127.0.0.1:8080
    timeout client 1s
    http-request set-header Authorization 'Basic YTpi'
    acl is_admin path_beg /admin
    default_backend app
    http-request deny if is_admin
    stats auth admin:wonder
frontend api
    timeout client 1s
    bind 127.0.0.1:8082
    default_backend app
";

const NEW: &str = "\
global
    maxconn 2000
defaults
    mode http
    timeout client 2s
    timeout server 1s
    timeout connect 1s
userlist people
    user alice insecure-password hunter2
frontend web
    bind 127.0.0.1:8080 backlog 50
    bind 127.0.0.1:8443
    acl is_admin path_beg /root
    http-request deny if is_admin
    http-request set-header Authorization \"Basic Yzpk\"
    stats auth admin:land
    default_backend app
frontend api
    bind 127.0.0.1:8082
    default_backend app
backend app
    default-server check inter 3s
    server a 127.0.0.1:1 weight 6
    server b 127.0.0.1:2
";

const SECRETS: [&str; 6] = ["hunter1", "hunter2", "YTpi", "Yzpk", "wonder", "land"];

/// The output for two texts, with the names `old` and `new` for the files.
fn diff(old: &str, new: &str, words: &[&str]) -> Output {
    let folder = Folder::new();
    let (old, new) = (folder.write("old.cfg", old), folder.write("new.cfg", new));
    let mut output = run(&[&["diff"], words, &[&old, &new]].concat());
    output.stdout = output.stdout.replace(&old, "old").replace(&new, "new");
    output
}

#[test]
fn what_has_no_effect_is_no_difference() {
    let output = diff(OLD, SAME, &[]);
    assert_eq!(output.status.code(), Some(0), "{}", output.stdout);
    assert_eq!(output.stdout, "No differences.\n");
    let output = diff(OLD, SAME, &["--json"]);
    assert_eq!(output.status.code(), Some(0));
    let json: Value = serde_json::from_str(&output.stdout).expect("JSON");
    assert_eq!(json, serde_json::json!({ "effects": [], "restart": false }));
}

#[test]
fn effects_are_shown_by_section() {
    let output = diff(OLD, NEW, &[]);
    assert_eq!(output.status.code(), Some(1), "{}", output.stderr);
    let expected = "\
--- old
+++ new
old  new

global
  2    2  ~ maxconn 1000 → 2000  [restart]

userlist people
  9    9  ~ user alice insecure-password ***  (a hidden value or a variable differs)

frontend web
 12       - bind 127.0.0.1:8081  (closed)
      11  ~ bind 127.0.0.1:8080 + backlog 50  [restart]
      12  + bind 127.0.0.1:8443  (opened)
 13   13  ~ acl is_admin path_beg /admin → /root
      14      in: http-request deny if is_admin
 14       - http-request set-header Authorization ***
      15  + http-request set-header Authorization ***
 16   16  ~ stats auth admin:***  (a hidden value or a variable differs)

frontend web, frontend api
  5    5  ~ timeout client 1s → 2s

backend app
 22   22  ~ servers a, b inter 2s → 3s
 23   23  ~ server a weight 5 → 6

14 effects; 2 need a restart of the process:
  global maxconn: the process reads it once, at its start
  frontend web bind 127.0.0.1:8080 backlog: it is set when the socket is opened
";
    assert_eq!(output.stdout, expected);
}

#[test]
fn json_has_each_effect() {
    let output = diff(OLD, NEW, &["--json"]);
    assert_eq!(output.status.code(), Some(1));
    let json: Value = serde_json::from_str(&output.stdout).expect("JSON");
    assert_eq!(json["restart"], true);
    let effects = json["effects"].as_array().expect("effects");
    assert_eq!(effects.len(), 14);
    assert_eq!(
        effects[0],
        serde_json::json!({
            "section": "global",
            "section_name": "",
            "subject": "setting",
            "name": "maxconn",
            "option": null,
            "change": "changed",
            "old": { "text": "maxconn 1000", "file": "old", "line": 2 },
            "new": { "text": "maxconn 2000", "file": "new", "line": 2 },
            "restart": true,
            "restart_reason": "the process reads it once, at its start",
        })
    );
    let acl = effects
        .iter()
        .find(|effect| effect["subject"] == "acl")
        .expect("an ACL");
    assert_eq!(acl["used_by"][0]["line"], 14);
    let weight = effects
        .iter()
        .find(|effect| effect["option"] == "weight")
        .expect("a weight");
    assert_eq!(weight["subject"], "server_option");
    assert_eq!(
        (&weight["name"], &weight["restart"]),
        (&"a".into(), &false.into())
    );
}

#[test]
fn secrets_are_hidden() {
    for words in [&[][..], &["--json"]] {
        let output = diff(OLD, NEW, words);
        for secret in SECRETS {
            assert!(
                !output.stdout.contains(secret),
                "{secret}: {}",
                output.stdout
            );
        }
    }
}

#[test]
fn a_side_may_have_several_files() {
    let folder = Folder::new();
    let (first, second) = OLD.split_at(
        OLD.find("\nbackend app")
            .map(|at| at + 1)
            .expect("a backend"),
    );
    let whole = folder.write("whole.cfg", OLD);
    let first = folder.write("first.cfg", first);
    let second = folder.write("second.cfg", second);
    let files = ["diff", "-f", &first, "-f", &second, "--to", &whole];
    let output = run(&files);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}{}",
        output.stdout,
        output.stderr
    );
    // Files of a directory.
    let parts = Folder::new();
    for (name, from) in [("1.cfg", &first), ("2.cfg", &second)] {
        parts.write(name, std::fs::read_to_string(from).expect("a file"));
    }
    let output = run(&["diff", &parts.path("").to_string_lossy(), &whole]);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}{}",
        output.stdout,
        output.stderr
    );
}

#[test]
fn a_configuration_that_is_refused_is_trouble() {
    let broken = format!("{OLD}    frobnicate\n");
    for (old, new) in [(OLD, &*broken), (&*broken, OLD)] {
        let output = diff(old, new, &[]);
        assert_eq!(output.status.code(), Some(2));
        assert_eq!(output.stdout, "");
        assert!(
            output.stderr.contains("unknown keyword 'frobnicate'"),
            "{}",
            output.stderr
        );
        let file = if old == broken {
            "old.cfg:"
        } else {
            "new.cfg:"
        };
        assert!(output.stderr.contains(file), "{}", output.stderr);
    }
    for words in [&["diff"][..], &["diff", "a"], &["diff", "--none", "a", "b"]] {
        assert_eq!(run(words).status.code(), Some(2), "{words:?}");
    }
    let output = run(&["diff", "/nowhere/a.cfg", "/nowhere/b.cfg"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        output.stderr.contains("/nowhere/b.cfg"),
        "{}",
        output.stderr
    );
}
