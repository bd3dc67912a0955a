//! Changes at run time: server lines that are added (management guide §9.3 "add server"), and
//! weights.
//!
//! An added line is parsed as a line of its backend, after the `global` and `default-server` lines
//! with the defaults of servers. The configuration keeps those lines for this purpose
//! ([`crate::model::Global::server_lines`], [`crate::model::Proxy::default_server_lines`]).

use crate::build::Settings;
pub use crate::build::cookie::dynamic_value as cookie_value;
use crate::condition::BuildInfo;
use crate::diagnostic::Severity;
use crate::environment::Environment;
use crate::load::{self, LoadOptions};
use crate::model::{Config, Mode, Proto, Proxy, Server};
use crate::reader::Input;
use std::sync::Arc;

/// Options that a server cannot get at run time, as in HAProxy.
const STATIC_ONLY: &[&str] = &[
    "enabled",
    "init-addr",
    "log-bufsize",
    "log-proto",
    "max-reuse",
    "namespace",
    "non-stick",
    "redir",
    "resolve-net",
    "resolve-opts",
    "resolve-prefer",
    "resolvers",
    "socks4",
    "stick",
];

/// The largest weight of a server.
const WEIGHT_MAX: i64 = 256;

/// The indexes of the address and of the first option on a line.
const ADDRESS: usize = 0;

/// Whether servers can be added to a backend.
///
/// # Errors
/// The reason in HAProxy's words.
pub fn supports_servers(proxy: &Proxy) -> Result<(), String> {
    let title = if proxy.is_frontend {
        format!("proxy '{}'", proxy.name)
    } else {
        format!("backend '{}'", proxy.name)
    };
    if proxy.mode == Mode::Log {
        return Err(format!("{title} uses mode log"));
    }
    if !proxy.has_dynamic_weights() {
        return Err(format!("{title} uses a non dynamic load balancing method"));
    }
    Ok(())
}

/// The weight that a command or an agent asks for: a number, or a percentage of the `initial` one.
///
/// # Errors
/// The reason in HAProxy's words (`server_parse_weight_change_request`): the text is no weight, or
/// the proxy's balance algorithm does not allow this one.
pub fn weight(proxy: &Proxy, initial: u32, text: &str) -> Result<u32, &'static str> {
    if text.is_empty() {
        return Err("Require <weight> or <weight%>.\n");
    }
    let Some((number, rest)) = leading_number(text) else {
        return Err("Empty weight string empty or preceded by garbage\n");
    };
    let weight = match rest {
        "%" if number < 0 => return Err("Relative weight must be positive.\n"),
        "%" => (i64::from(initial) * number.min(100 * WEIGHT_MAX) / 100).min(WEIGHT_MAX),
        _ if !(0..=WEIGHT_MAX).contains(&number) => {
            return Err("Absolute weight can only be between 0 and 256 inclusive.\n");
        }
        "" => number,
        _ => return Err("Trailing garbage in weight string\n"),
    };
    if weight > 0 && weight != i64::from(initial) && !proxy.has_dynamic_weights() {
        return Err(
            "Backend is using a static LB algorithm and only accepts weights '0%' and '100%'.\n",
        );
    }
    Ok(weight as u32)
}

/// The number at the beginning of a text, parsed like `strtol`, and the rest of the text.
#[must_use]
pub fn leading_number(text: &str) -> Option<(i64, &str)> {
    let text = text.trim_start();
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let count = digits.bytes().take_while(u8::is_ascii_digit).count();
    if count == 0 {
        return None;
    }
    let end = text.len() - digits.len() + count;
    let limit = if text.starts_with('-') {
        i64::MIN
    } else {
        i64::MAX
    };
    let number = text[..end].strip_prefix('+').unwrap_or(&text[..end]);
    Some((number.parse().unwrap_or(limit), &text[end..]))
}

/// Parses a server of the proxy at this index: its name, and the words that follow it. As in
/// HAProxy, variables in its address are expanded from `environment`. Host names are not resolved.
/// A server without an id of its own has the id 0.
///
/// # Errors
/// All faults.
pub fn server(
    config: &Config,
    proxy: usize,
    name: &str,
    words: &[&[u8]],
    environment: &Environment,
) -> Result<Server, Vec<String>> {
    let one = |message: &str| vec![message.to_owned()];
    if name.is_empty() || words.is_empty() {
        return Err(one(
            "'server' expects <name> and <addr>[:<port>] as arguments.",
        ));
    }
    let backend = &config.proxies[proxy];
    let (mut words, track) = without_track(words);
    let address = environment.expand(words[ADDRESS]);
    words[ADDRESS] = &address;
    let banned = words
        .iter()
        .skip(ADDRESS + 1)
        .find(|word| STATIC_ONLY.iter().any(|name| name.as_bytes() == **word));
    if let Some(word) = banned {
        let word = String::from_utf8_lossy(word);
        return Err(vec![format!(
            "'{word}' option is not accepted for dynamic server"
        )]);
    }
    let has_id = words.iter().skip(ADDRESS + 1).any(|word| *word == b"id");
    let input = Input {
        name: "CLI".into(),
        text: text(config, backend, name, &words),
    };
    let options = LoadOptions {
        build: &BuildInfo::default(),
        settings: Settings {
            is_added_server: true,
            ..Settings::default()
        },
        zero_warning: false,
    };
    let loaded = load::load(&[input], options, &mut Environment::new());
    let (mut loaded, _) = loaded.map_err(|diagnostics| {
        let alerts = diagnostics
            .iter()
            .filter(|each| each.severity == Severity::Alert);
        alerts.map(|each| each.message.clone()).collect::<Vec<_>>()
    })?;
    if loaded.slots != sample::SlotCounts::default() || !loaded.contexts.is_empty() {
        return Err(one(
            "variables and contexts of filters cannot be named by a dynamic server.",
        ));
    }
    let server = loaded.proxies.pop().and_then(|mut own| own.servers.pop());
    let server = server.and_then(|server| Arc::try_unwrap(server).ok());
    let mut server = server.ok_or_else(|| one("The server could not be read."))?;
    if !has_id {
        server.options.id = 0;
    }
    let fits = match server.proto {
        Some(Proto::H1 | Proto::H2) => backend.mode == Mode::Http,
        Some(Proto::Tcp) => backend.mode == Mode::Tcp,
        None => true,
    };
    if !fits {
        return Err(one("MUX protocol is not usable for server."));
    }
    if let Some(track) = track {
        let target = tracked(config, proxy, &track).map_err(|message| vec![message])?;
        server.options.checks.track = Some(track);
        server.options.checks.tracked = Some(target);
    }
    Ok(server)
}

/// The words without `track <server>`, and the tracked server.
fn without_track<'a>(words: &[&'a [u8]]) -> (Vec<&'a [u8]>, Option<String>) {
    let mut left = words.to_vec();
    let at = left.iter().skip(1).position(|word| *word == b"track");
    let Some(at) = at.map(|at| at + 1).filter(|at| at + 1 < left.len()) else {
        return (left, None);
    };
    let track = String::from_utf8_lossy(left[at + 1]).into_owned();
    left.drain(at..=at + 1);
    (left, Some(track))
}

/// The server that another one tracks; it must be a server of the configuration with checks.
fn tracked(config: &Config, own: usize, written: &str) -> Result<(usize, usize), String> {
    let (proxy, name) = match written.split_once('/') {
        Some((proxy, name)) => (proxy, name),
        None => (config.proxies[own].name.as_str(), written),
    };
    let mut proxies = config.proxies.iter();
    let backend =
        proxies.position(|each| each.is_backend && !each.is_removed && each.name == proxy);
    let backend =
        backend.ok_or_else(|| format!("unable to find required proxy '{proxy}' for tracking."))?;
    let Some(place) = config.proxies[backend].server_named(name) else {
        return Err(format!(
            "unable to find required server '{name}' for tracking."
        ));
    };
    let checks = &config.proxies[backend].servers[place].checks;
    if !checks.enabled && !checks.agent.enabled && checks.tracked.is_none() {
        return Err(format!(
            "unable to use {proxy}/{name} for tracking as it does not have any check nor agent enabled."
        ));
    }
    Ok((backend, place))
}

/// The defaults from which servers of a backend may start.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Presets {
    /// Its `default-server` without a name sets an option.
    pub unnamed: bool,
    /// The names of the `default-server` lines that set an option.
    pub names: Vec<String>,
}

/// See [`Presets`].
#[must_use]
pub fn presets(proxy: &Proxy) -> Presets {
    let mut presets = Presets::default();
    for words in &proxy.default_server_lines {
        let words: Vec<&[u8]> = words.iter().skip(1).map(|word| &word[..]).collect();
        let (name, settings) = match words[..] {
            [word, name, ref settings @ ..] if word == b"name" => {
                (Some(String::from_utf8_lossy(name).into_owned()), settings)
            }
            _ => (None, &words[..]),
        };
        let is_reset = *settings == [&b"from"[..], b"none"];
        match name {
            None => presets.unnamed = !is_reset,
            Some(name) => {
                presets.names.retain(|known| *known != name);
                if !is_reset && !settings.is_empty() {
                    presets.names.push(name);
                }
            }
        }
    }
    presets
}

/// The text of a configuration with only this server.
fn text(config: &Config, backend: &Proxy, name: &str, words: &[&[u8]]) -> Vec<u8> {
    let mut text = b"global\n".to_vec();
    let mut line = |words: &[&[u8]]| {
        for word in words {
            text.push(b' ');
            quote(word, &mut text);
        }
        text.push(b'\n');
    };
    for words in &config.global.server_lines {
        line(&words.iter().map(|word| &word[..]).collect::<Vec<_>>());
    }
    line(&[b"backend", backend.name.as_bytes()]);
    let mode: &[u8] = match backend.mode {
        Mode::Tcp => b"tcp",
        Mode::Http => b"http",
        Mode::Log => b"log",
    };
    line(&[b"mode", mode]);
    for words in &backend.default_server_lines {
        line(&words.iter().map(|word| &word[..]).collect::<Vec<_>>());
    }
    let mut own: Vec<&[u8]> = vec![b"server", name.as_bytes(), words[ADDRESS]];
    let mut options = &words[ADDRESS + 1..];
    // Without `from`, nothing is inherited.
    match options {
        [from, origin, rest @ ..] if *from == b"from" => {
            own.extend([*from, *origin]);
            options = rest;
        }
        _ => own.extend([&b"from"[..], b"none"]),
    }
    own.extend([&b"init-addr"[..], b"none"]);
    own.extend(options);
    line(&own);
    text
}

/// A word in the language's strong quotes.
fn quote(word: &[u8], out: &mut Vec<u8>) {
    out.push(b'\'');
    for byte in word {
        match byte {
            b'\'' => out.extend_from_slice(b"'\\''"),
            byte => out.push(*byte),
        }
    }
    out.push(b'\'');
}

#[cfg(test)]
mod tests;
