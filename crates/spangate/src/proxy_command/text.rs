//! The configuration that the options of `spangate proxy` generate.

use std::fmt::Write as _;

use super::options::{Options, Server};

/// The text of the configuration. `certificate`: the file of the certificate, if the proxy serves HTTPS.
pub(super) fn configuration(options: &Options, certificate: Option<&str>) -> String {
    let mut text = String::new();
    write(options, certificate, &mut text).expect("a String takes everything");
    text
}

fn write(options: &Options, certificate: Option<&str>, out: &mut String) -> std::fmt::Result {
    writeln!(
        out,
        "# Made by spangate proxy. Use it with: spangate -f FILE\n"
    )?;
    if !options.quiet {
        writeln!(out, "global\n    log stdout format raw local0\n")?;
    }
    writeln!(out, "defaults\n    mode http")?;
    if !options.quiet {
        writeln!(out, "    log global\n    option httplog")?;
    }
    out.push_str(
        "    option forwardfor
    option latency-histograms
    timeout http-request 10s
    timeout connect 5s
    timeout client 1m
    timeout server 1m
    timeout tunnel 1h

",
    );
    let scheme = if certificate.is_some() {
        "https"
    } else {
        "http"
    };
    write!(out, "frontend web\n    bind {}", options.from)?;
    if let Some(certificate) = certificate {
        write!(out, " ssl crt {} alpn h2,http/1.1", quoted(certificate))?;
    }
    writeln!(
        out,
        "\n    http-request set-header X-Forwarded-Proto {scheme}"
    )?;
    if let Some(endpoint) = &options.trace {
        out.push_str("    option tracing service spangate");
        if let Some(url) = endpoint {
            write!(out, " endpoint {url}")?;
        }
        out.push('\n');
    }
    writeln!(out, "    default_backend servers\n\nbackend servers")?;
    let several = options.to.len() > 1;
    if several {
        // Checks detect a server that is down. A request that failed on it goes to another server.
        writeln!(out, "    balance roundrobin\n    option redispatch 1")?;
    }
    if options.changes_host {
        let host = host_field(&options.to[0]);
        writeln!(out, "    http-request set-header Host {host}")?;
    }
    for (place, server) in options.to.iter().enumerate() {
        write!(out, "    server s{} {}", place + 1, server.address)?;
        if server.is_tls {
            write!(out, " ssl verify required ca-file @system-ca")?;
            if !is_address(&server.host) {
                write!(out, " sni str({}) check-sni {0}", server.host)?;
            }
        }
        if several {
            write!(out, " check")?;
        }
        out.push('\n');
    }
    Ok(())
}

/// Without the default port of the scheme (RFC 9110 §7.2).
fn host_field(server: &Server) -> &str {
    let own = if server.is_tls { ":443" } else { ":80" };
    server.address.strip_suffix(own).unwrap_or(&server.address)
}

fn is_address(host: &str) -> bool {
    host.starts_with('[') || host.parse::<std::net::IpAddr>().is_ok()
}

/// Quotes a word so that no character in it has a meaning (manual §2.2).
fn quoted(word: &str) -> String {
    match word
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"/._-+".contains(&byte))
    {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(line: &str, certificate: Option<&str>) -> String {
        let words = line.split_whitespace().map(std::ffi::OsString::from);
        configuration(&Options::parse(words).unwrap(), certificate)
    }

    #[test]
    fn one_server_is_not_checked_and_several_are() {
        let one = text("--to :3000", None);
        assert!(
            one.contains("    bind :8080\n") && one.contains("    server s1 127.0.0.1:3000\n"),
            "{one}"
        );
        let two = text("--to :3000 --to :3001 --quiet", None);
        assert!(
            two.contains("server s2 127.0.0.1:3001 check\n") && !two.contains("log"),
            "{two}"
        );
    }

    #[test]
    fn servers_over_tls_are_verified_by_name() {
        let text = text(
            "--to https://api.example --change-host-header --trace=http://c:4318",
            None,
        );
        assert!(
            text.contains("ca-file @system-ca sni str(api.example)"),
            "{text}"
        );
        assert!(text.contains("set-header Host api.example\n"), "{text}");
        assert!(
            text.contains("option tracing service spangate endpoint http://c:4318\n"),
            "{text}"
        );
    }

    #[test]
    fn names_of_files_are_quoted_where_they_must_be() {
        assert!(text("--to :1", Some("/a b/it's.pem")).contains("crt '/a b/it'\\''s.pem' alpn"));
        assert!(text("--to :1", Some("/a/b.pem")).contains("crt /a/b.pem alpn"));
    }
}
