//! `rules`: the cost of fifty typical rules and a large map.

use std::fmt::Write;
use std::path::Path;

use crate::Failure;
use crate::comparison::{self, Case, Comparison};

/// The options.
pub const HELP: &str = comparison::help!(
    "CPU of requests that pass fifty rules and a map of 100,000 hosts, compared with HAProxy"
);

/// Number of hosts in the map.
const HOSTS: u32 = 100_000;

/// The header fields of a browser.
pub const HEADERS: &[&str] = &[
    "Host: www.host54321.example.com",
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36",
    "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8",
    "Accept-Language: en-GB,en;q=0.9,de;q=0.8",
    "Accept-Encoding: gzip, deflate, br, zstd",
    "Cookie: session=4f1c9a7be2d04c55; theme=dark; lang=en",
    "Referer: https://www.host54321.example.com/news/today",
];

/// Runs the command.
///
/// # Errors
/// An option is invalid, a program is missing, or a proxy fails.
pub fn run(parser: lexopt::Parser) -> Result<(), Failure> {
    let comparison = Comparison::new(parser, "bench-rules")?;
    let map = comparison.dir().join("hosts.map");
    std::fs::write(&map, hosts())?;
    println!("Medians; CPU in microseconds per request.\n");
    println!(
        "{:<12}{:<10}{:>9}{:>9}{:>10}",
        "rules", "proxy", "CPU us", "user us", "x haproxy"
    );
    let rules = rules(&map);
    let mut progress = comparison.progress(2);
    let all = format!("{} + map", rules.lines().count());
    for (name, rules) in [("none", ""), (all.as_str(), rules.as_str())] {
        let case = Case {
            name,
            rules,
            headers: HEADERS,
            ..Case::default()
        };
        let costs = comparison.case(&case, &mut progress, |_| Ok(()))?;
        let haproxy = costs.iter().find(|cost| cost.name == "haproxy");
        for (index, cost) in costs.iter().enumerate() {
            println!(
                "{:<12}{:<10}{:>9.2}{:>9.2}{:>10}{}",
                if index == 0 { name } else { "" },
                cost.name,
                cost.cpu_us,
                cost.user_us,
                haproxy.map_or("-".into(), |peer| format!(
                    "{:.3}",
                    cost.cpu_us / peer.cpu_us
                )),
                if cost.errors > 0 { "  ! errors" } else { "" },
            );
        }
    }
    Ok(())
}

fn hosts() -> String {
    let mut text = String::new();
    for number in 0..HOSTS {
        let _ = writeln!(text, "www.host{number}.example.com tenant{}", number % 977);
    }
    text
}

/// The rules of a site with a few applications: most rules do not match.
fn rules(map: &Path) -> String {
    let mut text = String::new();
    let mut rule = |line: &str| {
        let _ = writeln!(text, "    {line}");
    };
    rule("http-request deny if { method TRACE CONNECT }");
    rule("http-request deny if { path_reg ^/(wp-admin|phpmyadmin|cgi-bin|\\.git)/ }");
    rule("http-request deny if { path_end -i .php .asp .aspx .jsp .bak }");
    rule("http-request deny if { path_sub -i ../ %00 <script }");
    rule("http-request deny if { req.hdr_cnt(host) gt 1 }");
    rule("http-request deny if { req.hdr(user-agent) -m sub -i sqlmap nikto masscan zgrab }");
    rule("http-request deny if { src 192.0.2.0/24 198.51.100.0/24 203.0.113.0/24 }");
    rule(
        "http-request set-var(txn.mobile) bool(true) if { req.hdr(user-agent) -m reg -i (android|iphone|ipad|mobile) }",
    );
    rule(&format!(
        "http-request set-var(txn.tenant) req.hdr(host),lower,map_str({},none)",
        map.display()
    ));
    rule("http-request deny if { var(txn.tenant) -m str none }");
    rule("http-request set-header x-tenant %[var(txn.tenant)]");
    rule("http-request set-header x-forwarded-proto http if !{ ssl_fc }");
    rule("http-request set-header x-forwarded-for %[src]");
    rule("http-request set-header x-request-start %[date()]");
    rule("http-request del-header proxy");
    rule("http-request del-header x-internal");
    rule(
        "http-request set-header x-session %[req.cook(session)] if { req.cook(session) -m found }",
    );
    rule("http-request set-var(txn.lang) req.hdr(accept-language),field(1,-)");
    for name in [
        "debug", "trace", "admin", "preview", "bypass", "sandbox", "canary", "shadow",
    ] {
        rule(&format!(
            "http-request deny if {{ req.hdr(x-{name}) -m found }}"
        ));
    }
    for area in [
        "api", "static", "images", "login", "account", "cart", "search", "admin", "metrics",
        "graphql", "ws", "health",
    ] {
        rule(&format!(
            "http-request set-header x-area {area} if {{ path_beg /{area}/ }}"
        ));
    }
    rule(
        "http-request set-var(txn.cached) bool(true) if { method GET HEAD } { path_end .css .js .png .jpg .svg .woff2 }",
    );
    rule("http-request redirect code 301 location /new%[path] if { path_beg /old/ }");
    rule("http-request return status 200 content-type text/plain string ok if { path /ping }");
    rule("http-request set-header x-beta 1 if { url_param(beta) -m str 1 }");
    rule("http-request deny if { url_param(debug) -m found }");
    rule("http-request deny if { req.hdr(content-length),add(0) gt 10000000 }");
    rule("http-response set-header strict-transport-security max-age=31536000");
    rule("http-response set-header x-content-type-options nosniff");
    rule("http-response set-header x-frame-options SAMEORIGIN");
    rule("http-response del-header server");
    rule("http-response del-header x-powered-by");
    rule("http-response set-header cache-control no-store if { var(txn.tenant) -m beg secret }");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_fifty_rules_and_the_host_is_in_the_map() {
        assert_eq!(rules(Path::new("hosts.map")).lines().count(), 50);
        let host = HEADERS[0].strip_prefix("Host: ").unwrap();
        assert!(
            hosts()
                .lines()
                .any(|line| line.starts_with(&format!("{host} ")))
        );
    }
}
