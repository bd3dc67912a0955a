//! The same configurations and requests as for HAProxy: every expression, condition and scenario
//! must have the same result.
//!
//! HAProxy's results are data in `recorded`. If `HAPROXY` names a HAProxy 3.5, they are recorded
//! again. Cases that it does not accept are omitted.

use crate::common;

mod conditions;
mod expressions;
mod recorded;
mod scenarios;

use std::path::Path;
use std::process::Command;

use common::http::Client;
use common::{DEFAULTS, Folder, Proxy, address, listener};
use recorded::{Answers, REFUSED};

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
        head: "connection: keep-alive\r\nhost: other.example\r\nx-num: 0x10\r\nx-ip: 10.1.2\r\nx-text: a,b;c=d e\r\n",
        body: "",
    },
];

/// Texts that are looked up in a pattern file and in a map.
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
    let rule = |case: usize, expr: &str| {
        let expr = expr
            .replace('\\', "\\\\")
            .replace('"', "\\\"")
            .replace('$', "\\$");
        format!(
            " http-request return status 200 content-type text/plain lf-string \"<%[{expr}]>\" if {{ req.hdr(x-case) -m str {case} }}\n"
        )
    };
    compare("expressions", expressions::EXPRESSIONS, &rule);
}

#[test]
fn conditions_come_to_the_same() {
    let rule = |case: usize, condition: &str| {
        format!(
            " http-request return status 200 content-type text/plain string yes if {{ req.hdr(x-case) -m str {case} }} {condition}\n \
             http-request return status 200 content-type text/plain string no if {{ req.hdr(x-case) -m str {case} }}\n"
        )
    };
    compare("conditions", conditions::CONDITIONS, &rule);
}

/// The rule for a case with a number.
type Rule<'a> = &'a dyn Fn(usize, &str) -> String;

fn compare(set: &str, cases: &'static str, rule: Rule<'_>) {
    let cases = cases.lines().map(str::trim);
    let cases: Vec<&str> = cases.filter(|case| !case.is_empty()).collect();
    if let Some((program, version)) = recorded::haproxy() {
        let known = understood(&program, cases.clone(), rule);
        let mut answers = play(&program, &known, rule);
        for case in &cases {
            let refused = || vec![REFUSED.to_owned()];
            answers.entry((*case).to_owned()).or_insert_with(refused);
        }
        recorded::write(set, &version, &answers);
    }
    let theirs = recorded::read(set);
    let accepted = |case: &&str| theirs.get(*case).is_none_or(|lines| lines != &[REFUSED]);
    let cases: Vec<&str> = cases.into_iter().filter(accepted).collect();
    let ours = play(Path::new(env!("CARGO_BIN_EXE_spangate")), &cases, rule);
    let told = recorded::differences(&theirs, &ours);
    let (cases, requests) = (cases.len(), REQUESTS.len());
    assert!(
        told.is_empty(),
        "of {cases} cases over {requests} requests:{told}"
    );
}

/// The cases that a HAProxy accepts. It reports the first one that it does not accept.
fn understood<'c>(program: &Path, mut cases: Vec<&'c str>, rule: Rule<'_>) -> Vec<&'c str> {
    loop {
        let folder = files();
        // A case may take two lines; the number in the second one identifies it too.
        let config = config(&folder, &rules(&cases, rule)).replace("fd@${FRONT}", "127.0.0.1:80");
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

/// A folder with the pattern files.
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

fn rules(cases: &[&str], rule: Rule<'_>) -> String {
    let numbered = cases.iter().enumerate();
    numbered.map(|(number, case)| rule(number, case)).collect()
}

/// The result of each case for each request.
fn play(program: &Path, cases: &[&str], rule: Rule<'_>) -> Answers {
    let folder = files();
    let front = listener();
    let config = config(&folder, &rules(cases, rule));
    let proxy = Proxy::start_program(program, folder, &config, &[("FRONT", &front)], &[]);
    let ask = |case: usize, request: &Request| {
        let mut client = Client::connect(address(&front));
        let Request { start, head, body } = request;
        client.send(format!("{start}\r\n{head}x-case: {case}\r\n\r\n{body}"));
        match client.response() {
            Some(answer) if answer.status == 200 => answer.text().escape_debug().to_string(),
            // An error page has its own text.
            Some(answer) => answer.status.to_string(),
            None => "closed".to_owned(),
        }
    };
    let numbered = cases.iter().enumerate();
    let answers = numbered.map(|(number, case)| {
        let answers = REQUESTS.iter().map(|request| ask(number, request));
        ((*case).to_owned(), answers.collect())
    });
    let answers = answers.collect();
    drop(proxy);
    answers
}
