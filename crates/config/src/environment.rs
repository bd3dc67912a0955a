//! The environment in which a configuration is read (manual §2.3): a copy of the process's
//! environment, which `setenv` and related keywords change. The process's own environment never
//! changes.

use crate::suggest;
use crate::tree::{Span, Statement};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// `HAPROXY_HTTP_LOG_FMT`: the format of `option httplog` (manual §8.2.3).
pub const HTTP_LOG_FORMAT: &str = "%ci:%cp [%tr] %ft %b/%s %TR/%Tw/%Tc/%Tr/%Ta %ST %B %CC %CS %tsc %ac/%fc/%bc/%sc/%rc %sq/%bq %hr %hs %{+Q}r";

/// `HAPROXY_HTTP_CLF_LOG_FMT`: the format of `option httplog clf`.
pub const HTTP_CLF_LOG_FORMAT: &str = "%{+Q}o %{-Q}ci - - [%trg] %r %ST %B \"\" \"\" %cp %ms %ft %b %s %TR %Tw %Tc %Tr %Ta %tsc \
     %ac %fc %bc %sc %rc %sq %bq %CC %CS %hrl %hsl";

/// `HAPROXY_HTTPS_LOG_FMT`: the format of `option httpslog` (manual §8.2.4).
pub const HTTPS_LOG_FORMAT: &str = "%ci:%cp [%tr] %ft %b/%s %TR/%Tw/%Tc/%Tr/%Ta %ST %B %CC %CS %tsc %ac/%fc/%bc/%sc/%rc %sq/%bq \
     %hr %hs %{+Q}r %[fc_err]/%[ssl_fc_err,hex]/%[ssl_c_err]/%[ssl_c_ca_err]/%[ssl_fc_is_resumed] %[ssl_fc_sni]/%sslv/%sslc";

/// `HAPROXY_TCP_LOG_FMT`: the format of `option tcplog` (manual §8.2.2).
pub const TCP_LOG_FORMAT: &str =
    "%ci:%cp [%t] %ft %b/%s %Tw/%Tc/%Tt %B %ts %ac/%fc/%bc/%sc/%rc %sq/%bq";

/// `HAPROXY_TCP_CLF_LOG_FMT`: the format of `option tcplog clf`.
pub const TCP_CLF_LOG_FORMAT: &str = "%{+Q}o %{-Q}ci - - [%T] \"TCP \" 000 %B \"\" \"\" %cp %ms %ft %b %s %Th %Tw %Tc %Tt %U %ts-- \
     %ac %fc %bc %sc %rc %sq %bq \"\" \"\" ";

/// The lines of a TLS key log: label and fetch of its secret. Client side and server side differ in
/// the prefix of the fetches.
const KEYLOG_LINES: [(&str, &str); 8] = [
    ("CLIENT_RANDOM", "session_key,hex"),
    ("CLIENT_EARLY_TRAFFIC_SECRET", "client_early_traffic_secret"),
    (
        "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
        "client_handshake_traffic_secret",
    ),
    (
        "SERVER_HANDSHAKE_TRAFFIC_SECRET",
        "server_handshake_traffic_secret",
    ),
    ("CLIENT_TRAFFIC_SECRET_0", "client_traffic_secret_0"),
    ("SERVER_TRAFFIC_SECRET_0", "server_traffic_secret_0"),
    ("EXPORTER_SECRET", "exporter_secret"),
    ("EARLY_EXPORTER_SECRET", "early_exporter_secret"),
];

/// Names and values as bytes, because they may not be valid text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    variables: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// Inputs of the variables that HAProxy defines for a configuration.
#[derive(Clone, Copy, Debug)]
pub struct Predefined<'a> {
    /// The reported version, see [`crate::condition::BuildInfo::version`].
    pub version: &'a str,
    /// `-L`, or the name of the host.
    pub local_peer: &'a str,
    /// The configuration files.
    pub files: &'a [&'a str],
    /// Whether this is a worker or a master (`-W`).
    pub master_worker: bool,
}

impl Environment {
    /// An empty environment.
    pub fn new() -> Self {
        Self::default()
    }

    /// A copy of the process's environment.
    pub fn of_process() -> Self {
        use std::os::unix::ffi::OsStringExt;
        Environment {
            variables: std::env::vars_os()
                .map(|(name, value)| (name.into_vec(), value.into_vec()))
                .collect(),
        }
    }

    /// Defines the `HAPROXY_*` variables that a configuration can use (manual §2.3).
    pub fn predefine(&mut self, facts: &Predefined<'_>) {
        // A master passes its own start version to the workers.
        if self.get("HAPROXY_STARTUP_VERSION").is_none() {
            self.set("HAPROXY_STARTUP_VERSION", facts.version);
        }
        self.set("HAPROXY_BRANCH", branch(facts.version));
        self.set("HAPROXY_LOCALPEER", facts.local_peer);
        self.set("HAPROXY_CFGFILES", facts.files.join(";"));
        if facts.master_worker {
            self.set("HAPROXY_MWORKER", "1");
        }
        self.set("HAPROXY_HTTP_LOG_FMT", HTTP_LOG_FORMAT);
        self.set("HAPROXY_HTTP_CLF_LOG_FMT", HTTP_CLF_LOG_FORMAT);
        self.set("HAPROXY_HTTPS_LOG_FMT", HTTPS_LOG_FORMAT);
        self.set("HAPROXY_TCP_LOG_FMT", TCP_LOG_FORMAT);
        self.set("HAPROXY_TCP_CLF_LOG_FMT", TCP_CLF_LOG_FORMAT);
        self.set("HAPROXY_KEYLOG_FC_LOG_FMT", keylog_format("ssl_fc"));
        self.set("HAPROXY_KEYLOG_BC_LOG_FMT", keylog_format("ssl_bc"));
    }

    /// The value of `name`; an empty value differs from None.
    pub fn get(&self, name: impl AsRef<[u8]>) -> Option<&[u8]> {
        self.variables.get(name.as_ref()).map(Vec::as_slice)
    }

    /// Sets `name`, and replaces an earlier value.
    pub fn set(&mut self, name: impl AsRef<[u8]>, value: impl AsRef<[u8]>) {
        self.variables
            .insert(name.as_ref().to_vec(), value.as_ref().to_vec());
    }

    /// `text` with every `$NAME` and `${NAME}` replaced by its value; an unset name is replaced by
    /// nothing.
    pub fn expand<'t>(&self, text: &'t [u8]) -> Cow<'t, [u8]> {
        let mut rest = text;
        let mut out = Vec::new();
        while let Some(dollar) = memchr::memchr(b'$', rest) {
            out.extend_from_slice(&rest[..dollar]);
            rest = &rest[dollar + 1..];
            let is_braced = rest.first() == Some(&b'{');
            rest = &rest[usize::from(is_braced)..];
            let is_of_name = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_';
            let (name, after) = rest.split_at(rest.iter().take_while(is_of_name).count());
            out.extend_from_slice(self.get(name).unwrap_or_default());
            rest = match after {
                [b'}', after @ ..] if is_braced => after,
                _ => after,
            };
        }
        if rest.len() == text.len() {
            Cow::Borrowed(text)
        } else {
            out.extend_from_slice(rest);
            Cow::Owned(out)
        }
    }

    /// Removes `name`.
    pub fn unset(&mut self, name: impl AsRef<[u8]>) {
        self.variables.remove(name.as_ref());
    }

    /// Removes every name for which `keep` returns false.
    pub fn retain(&mut self, keep: impl Fn(&[u8]) -> bool) {
        self.variables.retain(|name, _| keep(name));
    }

    /// Names and values, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.variables
            .iter()
            .map(|(name, value)| (name.as_slice(), value.as_slice()))
    }

    /// The defined name that is most similar to `name`, which is not defined.
    pub fn suggest(&self, name: &str) -> Option<&str> {
        suggest::closest(
            name,
            self.variables
                .keys()
                .filter_map(|known| std::str::from_utf8(known).ok()),
        )
    }

    /// Executes `setenv`, `presetenv`, `unsetenv` and `resetenv` (manual §3.1); other statements do
    /// nothing. The error is a place and a message.
    pub(crate) fn apply(&mut self, statement: &Statement) -> Result<(), (Span, String)> {
        match statement.keyword() {
            "setenv" => self.apply_set(statement, true),
            "presetenv" => self.apply_set(statement, false),
            "localpeer" if !statement.arg(1).is_empty() => {
                self.set(crate::build::peers::LOCAL_PEER, statement.arg(1));
                Ok(())
            }
            "unsetenv" => self.apply_unset(statement),
            "resetenv" => {
                self.retain(|name| statement.args().iter().any(|keep| keep.bytes() == name));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn apply_set(&mut self, statement: &Statement, overwrite: bool) -> Result<(), (Span, String)> {
        let keyword = statement.keyword();
        let at =
            |index: usize, message: String| Err((statement.words[index].span.clone(), message));
        match statement.args() {
            [] => at(0, format!("'{keyword}' expects environment variable name.")),
            [name] => at(
                0,
                format!(
                    "'{keyword}' expects environment variable value for '{}'.",
                    name.text
                ),
            ),
            [_, _, extra, ..] => at(
                3,
                format!(
                    "'{keyword}' cannot handle unexpected argument '{}'.",
                    extra.text
                ),
            ),
            [name, _] if name.text.contains('=') => at(1, invalid_name(keyword, &name.text)),
            [name, value] => {
                if overwrite || self.get(name.bytes()).is_none() {
                    self.set(name.bytes(), value.bytes());
                }
                Ok(())
            }
        }
    }

    fn apply_unset(&mut self, statement: &Statement) -> Result<(), (Span, String)> {
        let keyword = statement.keyword();
        if statement.args().is_empty() {
            return Err((
                statement.span().clone(),
                format!("'{keyword}' expects at least one variable name."),
            ));
        }
        for name in statement.args() {
            if name.text.contains('=') {
                return Err((name.span.clone(), invalid_name(keyword, &name.text)));
            }
            self.unset(name.bytes());
        }
        Ok(())
    }
}

fn invalid_name(keyword: &str, name: &str) -> String {
    format!("'{keyword}' failed on variable '{name}' : Invalid argument.")
}

/// `3.5` of `3.5-dev5` or `3.5.1`.
fn branch(version: &str) -> &str {
    let number = version.split('-').next().unwrap_or_default();
    match number.match_indices('.').nth(1) {
        Some((second_dot, _)) => &number[..second_dot],
        None => number,
    }
}

fn keylog_format(fetches: &str) -> String {
    let line = |(label, secret): &(&str, &str)| {
        format!("{label} %[{fetches}_client_random,hex] %[{fetches}_{secret}]")
    };
    KEYLOG_LINES.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn haproxys_variables_are_defined() {
        let mut environment = Environment::new();
        let facts = Predefined {
            version: "3.5-dev5",
            local_peer: "me",
            files: &["a.cfg", "b.cfg"],
            master_worker: false,
        };
        environment.predefine(&facts);
        let get = |name: &str| {
            environment
                .get(name)
                .map(|value| String::from_utf8_lossy(value).into_owned())
        };
        assert_eq!(get("HAPROXY_BRANCH").as_deref(), Some("3.5"));
        assert_eq!(get("HAPROXY_STARTUP_VERSION").as_deref(), Some("3.5-dev5"));
        assert_eq!(get("HAPROXY_CFGFILES").as_deref(), Some("a.cfg;b.cfg"));
        assert_eq!(get("HAPROXY_LOCALPEER").as_deref(), Some("me"));
        assert_eq!(get("HAPROXY_MWORKER"), None);
        assert!(
            get("HAPROXY_TCP_CLF_LOG_FMT")
                .unwrap()
                .ends_with("%bq \"\" \"\" ")
        );
        let keylog = get("HAPROXY_KEYLOG_BC_LOG_FMT").unwrap();
        assert_eq!(
            keylog.lines().next(),
            Some("CLIENT_RANDOM %[ssl_bc_client_random,hex] %[ssl_bc_session_key,hex]")
        );
    }

    #[test]
    fn branches_of_versions() {
        for (version, expected) in [
            ("3.5-dev5-50872d-2", "3.5"),
            ("3.5.1", "3.5"),
            ("3.5", "3.5"),
            ("", ""),
        ] {
            assert_eq!(branch(version), expected);
        }
    }

    #[test]
    fn the_start_version_of_a_master_stays() {
        let mut environment = Environment::new();
        environment.set("HAPROXY_STARTUP_VERSION", "3.4");
        environment.predefine(&Predefined {
            version: "3.5",
            local_peer: "",
            files: &[],
            master_worker: true,
        });
        assert_eq!(
            environment.get("HAPROXY_STARTUP_VERSION"),
            Some(&b"3.4"[..])
        );
        assert_eq!(environment.get("HAPROXY_MWORKER"), Some(&b"1"[..]));
    }
}
