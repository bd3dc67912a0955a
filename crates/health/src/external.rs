//! Checks by an external program (manual §4.2 option external-check). It gets the addresses as
//! arguments and more in its environment; exit status 0 passes.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::process::Stdio;

use config::model::{CheckStatus, ExternalCheck, ExternalEnvironment, Mode};
use net::Addr;
use proxy::CheckOutcome;
use tokio::process::Command;
use tokio::time::{Instant, timeout};

use crate::Control;
use crate::outcome::Verdict;
use crate::target::Target;
use crate::text;

/// The default search path for programs.
const PATH_DEFAULT: &str = "/usr/bin:/bin";

/// Runs the program.
pub(crate) async fn check(
    control: &Control,
    target: &Target,
    program: &ExternalCheck,
) -> CheckOutcome {
    let started = Instant::now();
    let time = target.timeouts.check.unwrap_or(target.timeouts.inter);
    let verdict = |status: CheckStatus, text: String, code: i64| {
        Verdict::new(status, text).outcome(code, started.elapsed())
    };
    let mut child = match command(control, target, program).spawn() {
        Ok(child) => child,
        Err(error) => {
            let why = text::system(&error);
            let hint = if control.runtime_config.config.global.allows_forks {
                ""
            } else {
                " (likely caused by missing 'insecure-fork-wanted')"
            };
            (control.tell)(&format!(
                "Failed to fork process for external health check{hint}: {why}. Aborting."
            ));
            return verdict(CheckStatus::SocketError, why, 0);
        }
    };
    match timeout(time, child.wait()).await {
        Ok(Ok(status)) => match status.code() {
            Some(0) => verdict(CheckStatus::ProcessOk, String::new(), 0),
            Some(code) => verdict(CheckStatus::ProcessError, String::new(), i64::from(code)),
            // A signal ended it.
            None => {
                use std::os::unix::process::ExitStatusExt as _;
                let signal = i64::from(status.signal().unwrap_or(0));
                verdict(CheckStatus::ProcessError, String::new(), signal)
            }
        },
        Ok(Err(error)) => verdict(CheckStatus::SocketError, text::system(&error), 0),
        Err(_) => {
            // If this fails, the process is gone already.
            let _ = child.kill().await;
            verdict(CheckStatus::ProcessTimeout, String::new(), 0)
        }
    }
}

fn command(control: &Control, target: &Target, program: &ExternalCheck) -> Command {
    let config = &control.runtime_config.config;
    let proxy = &config.proxies[target.backend];
    let shared = &control.shared;
    let (own_addr, own_port) = match proxy.live_binds().next().map(|(_, bind)| &bind.address) {
        Some(
            config::model::BindAddress::Addr(Addr::Inet(addr))
            | config::model::BindAddress::Quic(addr),
        ) => (addr.ip().to_string(), addr.port().to_string()),
        Some(config::model::BindAddress::Addr(Addr::Unix(path))) => (
            String::from_utf8_lossy(path).into_owned(),
            "NOT_USED".into(),
        ),
        _ => ("NOT_USED".to_owned(), "NOT_USED".to_owned()),
    };
    let (addr, port) = match target.check_addr() {
        Addr::Inet(addr) => (addr.ip().to_string(), addr.port().to_string()),
        Addr::Unix(path) => (
            String::from_utf8_lossy(&path).into_owned(),
            "NOT_USED".into(),
        ),
    };
    let (sessions, _, _) = shared.sessions(target.backend, target.place);
    let mut command = Command::new(&program.command);
    if config.global.checks.external != Some(ExternalEnvironment::Preserved) {
        command.env_clear();
    }
    let path = program.path.as_deref();
    let path = path.map_or(OsStr::new(PATH_DEFAULT), OsStr::from_bytes);
    let words = target.line.tls_words.as_deref();
    let is_tls = words.is_some_and(|words| words.ssl);
    let mode = match proxy.mode {
        Mode::Http => "http",
        Mode::Tcp => "tcp",
        Mode::Log => "log",
    };
    command
        .args([&own_addr, &own_port, &addr, &port])
        .env("PATH", path)
        .env("HAPROXY_PROXY_NAME", proxy.name.as_str())
        .env("HAPROXY_PROXY_ID", proxy.id.to_string())
        .env("HAPROXY_PROXY_ADDR", &own_addr)
        .env("HAPROXY_PROXY_PORT", &own_port)
        .env("HAPROXY_SERVER_NAME", &target.line.name)
        .env("HAPROXY_SERVER_ID", target.line.id.to_string())
        .env("HAPROXY_SERVER_ADDR", &addr)
        .env("HAPROXY_SERVER_PORT", &port)
        .env("HAPROXY_SERVER_MAXCONN", target.line.maxconn.to_string())
        .env("HAPROXY_SERVER_CURCONN", sessions.to_string())
        .env("HAPROXY_SERVER_SSL", if is_tls { "1" } else { "0" })
        .env("HAPROXY_SERVER_PROTO", mode)
        .stdin(Stdio::null())
        .kill_on_drop(true);
    command
}
