//! The same configuration and the same requests through HAProxy and Spangate: every expression and every condition must
//! come to the same.
//!
//! Runs where a HAProxy is installed (`HAPROXY=…` names another one); says so where there is none. A case that its version
//! did differently names the version that it asks for; one that it does not know is left out.

#![allow(clippy::print_stdout, reason = "what was compared is told")]

use crate::common;

mod conditions;
mod expressions;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::http::Client;
use common::{DEFAULTS, Folder, Proxy, address, listener};

/// The first version that does it as 3.5 does.
type Since = (u32, u32);

/// Any version that is still in use.
const ANY: Since = (2, 6);

/// Lines of a request after its start line; `x-case` is added.
struct Request {
    start: &'static str,
    head: &'static str,
    body: &'static str,
}

const REQUESTS: &[Request] = &[
    Request {
        start: "GET /a/b%20c/d.html?x=1&y=two%26&empty=&x=3 HTTP/1.1",
        head: "host: www.Example.com:8080\r\nuser-agent: Mozilla/5.0 (X11; Linux) test\r\naccept: text/html, */*;q=0.8 ,, x\r\n\
               accept-language: da, en-gb;q=0.8, en;q=0.7\r\ncookie: a=1; b=\"two\"; a=3; c=; d\r\ncookie: e=5\r\n\
               x-forwarded-for: 10.1.2.3, 192.0.2.77\r\nx-ip: 2001:db8::7\r\nx-num:  -17 \r\nx-empty:\r\nx-list: one,two,,three\r\nx-hex: 48656C6c6f\r\n\
               x-date: Sun, 06 Nov 1994 08:49:37 GMT\r\nx-json: {\"a\":{\"b\":[1,2,{\"c\":\"d\\u00e9\"}],\"t\":true,\"n\":null,\"f\":1.5}}\r\n\
               forwarded: for=\"[2001:db8::9]:80\";by=10.0.0.1;proto=http;host=x\r\n\
               x-b64: SGVsbG8gd29ybGQ=\r\nx-u64: SGVsbG8_d29-bGQ\r\nx-text: Hello World, \"quoted\" & <b>\\back\r\n",
        body: "",
    },
    Request {
        start: "POST /form HTTP/1.1",
        head: "host: 127.0.0.1\r\ncontent-type: application/x-www-form-urlencoded\r\ncontent-length: 28\r\nx-list: ,\r\nx-num: 2147483647\r\n\
               x-ip: 10.0.0.256\r\nx-b64: !!!\r\nx-json: {bad\r\nx-text: \t x\r\ncookie: =;;a\r\n",
        body: "name=J%C3%B8rgen&x=1&y=&z=%2",
    },
    Request {
        start: "OPTIONS * HTTP/1.1",
        head: "host: [::1]:80\r\nx-num: 12abc\r\nx-ip: ::ffff:10.1.1.1\r\nx-list: x\r\nx-text: \r\nx-hex: 4\r\n",
        body: "",
    },
    Request {
        start: "GET http://other.example/p?q HTTP/1.0",
        head: "connection: keep-alive\r\nx-num: 0x10\r\nx-ip: 10.1.2\r\nx-text: a,b;c=d e\r\n",
        body: "",
    },
];

/// Text that is looked up in a file of patterns and in a map.
const FILES: &[(&str, &str)] = &[
    (
        "words.lst",
        "# a comment\none\n  two\nthree four\r\n\n#x\n/a/\nExample\n",
    ),
    (
        "nets.lst",
        "10.0.0.0/8\n192.0.2.0/24\n2001:db8::/32\n127.0.0.1\n",
    ),
    ("numbers.lst", "1\n5:9\n100:\n"),
    (
        "str.map",
        "one first\ntwo second with blanks \nthree\t3\nx 10.9.8.7\nexample.com host\n",
    ),
    ("beg.map", "/ root\n/a below-a\n/a/b below-b\n/form form\n"),
    (
        "ip.map",
        "10.0.0.0/8 ten\n10.1.0.0/16 ten-one\n127.0.0.0/8 loop\n2001:db8::/32 doc\n0.0.0.0/0 any\n",
    ),
    ("reg.map", "^/a/(.*)$ first\n^/ second\nform third\n"),
    ("int.map", "0 zero\n1 one\n8 eight\n27 27\n"),
];

#[test]
fn expressions_come_to_the_same() {
    let cases: Vec<(Since, String)> = expressions::EXPRESSIONS
        .iter()
        .flat_map(|(since, lines)| lines.lines().map(|line| (*since, line.trim().to_owned())))
        .filter(|(_, line)| !line.is_empty())
        .collect();
    let rule = |case: usize, expr: &str| {
        let expr = expr
            .replace('\\', "\\\\")
            .replace('"', "\\\"")
            .replace('$', "\\$");
        format!(
            " http-request return status 200 content-type text/plain lf-string \"<%[{expr}]>\" if {{ req.hdr(x-case) -m str {case} }}\n"
        )
    };
    compare(&cases, rule);
}

#[test]
fn conditions_come_to_the_same() {
    let cases: Vec<(Since, String)> = conditions::CONDITIONS
        .iter()
        .flat_map(|(since, lines)| lines.lines().map(|line| (*since, line.trim().to_owned())))
        .filter(|(_, line)| !line.is_empty())
        .collect();
    let rule = |case: usize, condition: &str| {
        format!(
            " http-request return status 200 content-type text/plain string yes if {{ req.hdr(x-case) -m str {case} }} {condition}\n \
             http-request return status 200 content-type text/plain string no if {{ req.hdr(x-case) -m str {case} }}\n"
        )
    };
    compare(&cases, rule);
}

#[expect(
    clippy::print_stdout,
    reason = "says what was compared, and when nothing was"
)]
fn compare(cases: &[(Since, String)], rule: impl Fn(usize, &str) -> String) {
    let Some((program, version)) = haproxy() else {
        println!("no HAProxy is installed: nothing was compared");
        return;
    };
    let cases: Vec<&str> = cases
        .iter()
        .filter(|(since, _)| *since <= version)
        .map(|(_, text)| text.as_str())
        .collect();
    let asked = cases.len();
    let cases = understood(&program, cases, &rule);
    println!(
        "{} of {asked} cases are known to HAProxy {}.{}",
        cases.len(),
        version.0,
        version.1
    );
    assert!(cases.len() > asked / 2, "too few");
    let rules: String = cases
        .iter()
        .enumerate()
        .map(|(number, case)| rule(number, case))
        .collect();
    let ours = PathBuf::from(env!("CARGO_BIN_EXE_spangate"));
    let answers = [program, ours].map(|program| play(&program, &rules, cases.len()));
    let [theirs, ours] = &answers;
    let mut differences = String::new();
    for (number, (their, our)) in theirs.iter().zip(ours).enumerate() {
        if their != our {
            let (case, request) = (cases[number / REQUESTS.len()], number % REQUESTS.len());
            differences.push_str(&format!(
                "\n{case}   [{}]\n    haproxy:  {their}\n    spangate: {our}",
                REQUESTS[request].start
            ));
        }
    }
    assert!(
        differences.is_empty(),
        "of {} cases over {} requests: {differences}",
        cases.len(),
        REQUESTS.len()
    );
}

/// The cases that a HAProxy accepts. It names the first one that it does not.
fn understood<'c>(
    program: &Path,
    mut cases: Vec<&'c str>,
    rule: &impl Fn(usize, &str) -> String,
) -> Vec<&'c str> {
    loop {
        let folder = files();
        // A case may have two lines; the number in the second tells it as well.
        let rules: String = cases
            .iter()
            .enumerate()
            .map(|(number, case)| rule(number, case))
            .collect();
        let config = config(&folder, &rules).replace("fd@${FRONT}", "127.0.0.1:80");
        let file = folder.write("check.cfg", &config);
        let output = Command::new(program)
            .args(["-c", "-f", &file])
            .output()
            .expect("HAProxy runs");
        if output.status.success() {
            return cases;
        }
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let refused: Vec<usize> = text
            .match_indices("check.cfg:")
            .filter_map(|(at, found)| {
                let digits = &text[at + found.len()..];
                let end = digits.find(|c: char| !c.is_ascii_digit())?;
                let line = config
                    .lines()
                    .nth(digits[..end].parse::<usize>().ok()? - 1)?;
                let (_, number) = line.split_once("{ req.hdr(x-case) -m str ")?;
                number.split(' ').next()?.parse().ok()
            })
            .collect();
        assert!(!refused.is_empty(), "{text}");
        let mut number = 0;
        cases.retain(|_| {
            number += 1;
            !refused.contains(&(number - 1))
        });
    }
}

/// A folder with the files of patterns.
fn files() -> Folder {
    let folder = Folder::new();
    for (name, text) in FILES {
        folder.write(name, text);
    }
    folder
}

fn config(folder: &Folder, rules: &str) -> String {
    let rules = rules.replace("@/", &format!("{}/", folder.root().display()));
    format!(
        "{DEFAULTS}\nfrontend f\n id 77\n bind \"fd@${{FRONT}}\" name public\n option http-buffer-request\n \
         http-request set-var(txn.int) int(42)\n http-request set-var(txn.str) str(variable)\n http-request set-var(txn.ip) src\n \
         acl named path_beg /a /form\n acl named method OPTIONS\n{rules}backend b\n server s1 127.0.0.1:1\n server s2 127.0.0.1:2 weight 7 disabled\n"
    )
}

/// What each case answers to each request.
fn play(program: &Path, rules: &str, cases: usize) -> Vec<String> {
    let folder = files();
    let front = listener();
    let config = config(&folder, rules);
    let proxy = Proxy::start_program(program, folder, &config, &[("FRONT", &front)], &[]);
    let mut answers = Vec::new();
    for case in 0..cases {
        for request in REQUESTS {
            let mut client = Client::connect(address(&front));
            let Request { start, head, body } = request;
            client.send(format!("{start}\r\n{head}x-case: {case}\r\n\r\n{body}"));
            answers.push(match client.response() {
                Some(answer) => format!("{} {}", answer.status, answer.text().escape_debug()),
                None => "closed".into(),
            });
        }
    }
    drop(proxy);
    answers
}

/// The HAProxy that is installed, and its version.
fn haproxy() -> Option<(PathBuf, Since)> {
    let program = PathBuf::from(std::env::var_os("HAPROXY").unwrap_or("haproxy".into()));
    let candidates = [program.clone(), PathBuf::from("/usr/sbin").join(&program)];
    candidates.into_iter().find_map(|program| {
        let output = Command::new(&program).arg("-v").output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        let numbers = text
            .split_whitespace()
            .find(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
        let mut numbers = numbers.split(['.', '-']).map(str::parse);
        let version = (numbers.next()?.ok()?, numbers.next()?.ok()?);
        (version >= ANY).then_some((program, version))
    })
}
