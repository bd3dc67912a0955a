//! The options of `spangate proxy`.

use std::ffi::OsString;

use crate::usage::{Arguments, Opt, Subcommand, Value, flag, with};

const fn optional(name: &'static str, value: &'static str, about: &'static str) -> Opt {
    let value = Value::Joined(value);
    Opt { name, value, about }
}

/// The command, for help texts.
#[rustfmt::skip]
pub(crate) const COMMAND: Subcommand = Subcommand {
    name: "proxy",
    synopsis: "--to ADDRESS [--to ADDRESS]... [OPTIONS]",
    about: "Forwards HTTP to one or more servers, without a configuration file.\n\
            For other settings, start from the configuration that --print-config prints.",
    words: &[],
    options: &[
        with("--from", "ADDRESS", "the address to listen on: :PORT, or an address as in 'bind' (default :8080)"),
        with("--to", "ADDRESS", "a server: [http://]HOST:PORT, :PORT, or https://HOST[:PORT]; may be repeated"),
        with("--tls", "internal|FILE", "serves HTTPS and HTTP/2 with a certificate of this machine's own authority, or with a PEM file"),
        flag("--change-host-header", "sends the server's own name in the field Host; for one server only"),
        optional("--trace", "[=URL]", "sends spans over OTLP to URL (default: OTEL_EXPORTER_OTLP_ENDPOINT, or http://localhost:4318)"),
        flag("--quiet", "writes no access log"),
        flag("--print-config", "prints the configuration for these options, and exits"),
        flag("--help", "displays this text"),
    ],
};

/// Most servers.
const SERVERS_MAX: usize = 64;

/// A server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Server {
    /// Address or name, with the port.
    pub address: String,
    /// Name or address, without the port.
    pub host: String,
    pub is_tls: bool,
}

/// The source of the certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Certificate {
    Internal,
    File(String),
}

/// The parsed command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Options {
    pub help: bool,
    pub print: bool,
    pub from: String,
    pub to: Vec<Server>,
    pub tls: Option<Certificate>,
    pub changes_host: bool,
    /// Whether spans are sent, and to which URL if one is named.
    pub trace: Option<Option<String>>,
    pub quiet: bool,
}

impl Options {
    pub(super) fn parse(arguments: impl Iterator<Item = OsString>) -> Result<Options, String> {
        let mut options = Options {
            from: ":8080".to_owned(),
            ..Options::default()
        };
        let mut arguments = Arguments::new(arguments);
        while let Some(argument) = arguments.next() {
            let name = argument.name();
            let mut value = || arguments.value(&argument);
            match name {
                "--from" => options.from = listened(&value()?)?,
                "--to" => options.to.push(server(&value()?)?),
                "--tls" => {
                    options.tls = Some(match value()?.as_str() {
                        "internal" => Certificate::Internal,
                        file => Certificate::File(file.to_owned()),
                    });
                }
                "--trace" => options.trace = Some(argument.inline().map(of_url).transpose()?),
                "--change-host-header" => options.changes_host = true,
                "--quiet" => options.quiet = true,
                "--print-config" => options.print = true,
                "--help" | "-h" => options.help = true,
                _ => return Err(format!("unknown argument '{}'", argument.word)),
            }
        }
        if options.to.is_empty() && !options.help {
            return Err("name a server with --to".to_owned());
        }
        if options.to.len() > SERVERS_MAX {
            return Err(format!("--to appears more than {SERVERS_MAX} times"));
        }
        if options.changes_host && options.to.len() > 1 {
            return Err("--change-host-header needs exactly one --to".to_owned());
        }
        Ok(options)
    }

    /// The message at the start. `authority`: the file of the authority for clients to trust.
    pub(super) fn summary(&self, authority: Option<&str>) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let from = match self.from.strip_prefix(':') {
            Some(port) => format!("localhost:{port}"),
            None => self.from.clone(),
        };
        let to: Vec<&str> = self.to.iter().map(|server| &*server.address).collect();
        let mut text = format!(
            "spangate proxy: {scheme}://{from} -> {}; stop with Ctrl-C\n",
            to.join(", ")
        );
        if let Some(authority) = authority {
            text.push_str(&format!(
                "spangate proxy: clients must trust {authority}, for example: curl --cacert {authority} {scheme}://{from}\n"
            ));
        }
        text
    }
}

/// Whether a text can be part of an address: no character in it has a meaning in the configuration
/// language.
fn is_plain(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:@/[]".contains(&byte);
    !text.is_empty() && text.bytes().all(is_plain)
}

fn listened(text: &str) -> Result<String, String> {
    // A number alone is a port.
    let text = if text.bytes().all(|byte| byte.is_ascii_digit()) {
        format!(":{text}")
    } else {
        text.to_owned()
    };
    if is_plain(&text) {
        Ok(text)
    } else {
        Err(format!("--from '{text}' is not an address"))
    }
}

fn server(text: &str) -> Result<Server, String> {
    let wrong = || format!("--to '{text}' is neither HOST:PORT nor an http or https URL");
    let (rest, scheme_port) = match text.split_once("://") {
        None => (text, None),
        Some(("http", rest)) => (rest, Some(80)),
        Some(("https", rest)) => (rest, Some(443)),
        Some(_) => return Err(wrong()),
    };
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    if !is_plain(rest) || rest.contains(['/', '@']) {
        return Err(wrong());
    }
    let (host, port) = match rest.rsplit_once(':') {
        // The colon belongs to an IPv6 address in brackets.
        Some((_, last)) if last.ends_with(']') => (rest, None),
        Some((host, port)) => (host, Some(port.parse::<u16>().map_err(|_| wrong())?)),
        // A number alone is a port.
        None => match (rest.parse::<u16>(), scheme_port) {
            (Ok(port), None) => ("", Some(port)),
            _ => (rest, None),
        },
    };
    let port = port
        .or(scheme_port)
        .filter(|port| *port > 0)
        .ok_or_else(wrong)?;
    let host = if host.is_empty() { "127.0.0.1" } else { host };
    Ok(Server {
        address: format!("{host}:{port}"),
        host: host.to_owned(),
        is_tls: scheme_port == Some(443),
    })
}

fn of_url(text: &str) -> Result<String, String> {
    if is_plain(text) && text.contains("://") {
        Ok(text.to_owned())
    } else {
        Err(format!("--trace '{text}' is not a URL"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Options, String> {
        Options::parse(line.split_whitespace().map(OsString::from))
    }

    #[test]
    fn every_option_of_the_table_is_known() {
        for option in COMMAND.options {
            let error = parsed(option.name).err().unwrap_or_default();
            assert!(!error.contains("unknown argument"), "{error}");
        }
    }

    #[test]
    fn servers_in_every_form() {
        for (text, address, host, is_tls) in [
            (":3000", "127.0.0.1:3000", "127.0.0.1", false),
            ("3000", "127.0.0.1:3000", "127.0.0.1", false),
            ("app:3000", "app:3000", "app", false),
            ("http://app", "app:80", "app", false),
            (
                "https://api.example/",
                "api.example:443",
                "api.example",
                true,
            ),
            ("https://[::1]:8443", "[::1]:8443", "[::1]", true),
            ("http://[::1]", "[::1]:80", "[::1]", false),
        ] {
            let server = server(text).unwrap();
            let read = (&*server.address, &*server.host, server.is_tls);
            assert_eq!(read, (address, host, is_tls), "{text}");
        }
        for wrong in [
            "",
            "app",
            "app:",
            "app:0",
            "app:70000",
            "ftp://a:1",
            "a:1/b",
            "a b:1",
            "u@a:1",
            "a:1\n x",
        ] {
            assert!(server(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_wrong_is_told() {
        assert!(parsed("").unwrap_err().contains("--to"));
        assert!(parsed("--to :1 --to :2 --change-host-header").is_err());
        assert!(parsed("--to :1 --from a'b").unwrap_err().contains("--from"));
        assert!(parsed("--to :1 --trace=x").unwrap_err().contains("--trace"));
        assert!(
            parsed("--to :1 --what")
                .unwrap_err()
                .contains("unknown argument")
        );
        let options = parsed("--to :1 --from 81 --trace --tls internal").unwrap();
        assert_eq!(options.from, ":81");
        assert_eq!(
            (options.trace, options.tls),
            (Some(None), Some(Certificate::Internal))
        );
    }
}
