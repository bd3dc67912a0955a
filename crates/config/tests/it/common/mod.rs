//! Loads a text like the process does.

use spangate_config::build::Settings;
use spangate_config::build::previous::Previous;
use spangate_config::condition::BuildInfo;
use spangate_config::diagnostic::{Diagnostics, Rendering, Severity};
use spangate_config::environment::Environment;
use spangate_config::load::{LoadOptions, load};
use spangate_config::model::Config;
use spangate_config::reader::Input;
use std::sync::Arc;

/// Loads `text` as a file called `t.cfg`, with two cores and warnings allowed.
pub fn read(text: &str) -> Result<(Config, Diagnostics), Diagnostics> {
    read_after(None, text)
}

/// The same, after a previous configuration.
pub fn read_after(
    previous: Option<Arc<Previous>>,
    text: &str,
) -> Result<(Config, Diagnostics), Diagnostics> {
    let build = BuildInfo {
        version: "3.5-dev5".into(),
        features: "+THREAD".into(),
        openssl_version: None,
        ssllib_name: None,
        awslc_api: None,
        enabled: Vec::new(),
        fips_mode: false,
    };
    let options = LoadOptions {
        build: &build,
        settings: Settings {
            cores: 2,
            ignores_resolution_failures: false,
            is_added_server: false,
            lacks_master: false,
            allows_forks: false,
            has_local_peer: false,
            previous,
        },
        zero_warning: false,
    };
    let input = Input {
        name: "t.cfg".into(),
        text: text.as_bytes().to_vec(),
    };
    load(&[input], options, &mut Environment::new())
}

/// The output for `text` in diagnostic mode.
#[allow(dead_code)]
pub fn report(text: &str) -> String {
    let diagnostics = match read(text) {
        Ok((_, diagnostics)) | Err(diagnostics) => diagnostics,
    };
    diagnostics.render(&Rendering {
        pid: 1,
        diag: true,
        quiet: false,
    })
}

/// The configuration of `text`, which must be accepted.
#[allow(dead_code)]
pub fn accepted(text: &str) -> Config {
    match read(text) {
        Ok((config, _)) => config,
        Err(diagnostics) => panic!(
            "refused:\n{}",
            diagnostics.render(&Rendering {
                pid: 1,
                diag: true,
                quiet: false
            })
        ),
    }
}

/// The word above the carets of `message`; empty if they are after the end of the line.
#[allow(dead_code)]
pub fn under_caret(shown: &str, message: &str) -> Option<String> {
    let lines: Vec<&str> = shown.lines().collect();
    let at = lines.iter().position(|line| line.contains(message))?;
    let (text, carets) = (lines.get(at + 1)?, lines.get(at + 2)?);
    let start = carets.find('^')?;
    let end = carets.rfind('^')? + 1;
    Some(
        text.get(start..end.min(text.len()))
            .unwrap_or("")
            .to_owned(),
    )
}

/// The alerts for `text`, which must be refused, one on each line.
pub fn refused(text: &str) -> String {
    match read(text) {
        Ok(_) => panic!("accepted: {text}"),
        Err(diagnostics) => messages(&diagnostics, Severity::Alert).join("\n"),
    }
}

/// The messages of a severity.
pub fn messages(diagnostics: &Diagnostics, severity: Severity) -> Vec<String> {
    let of_it = diagnostics.iter().filter(|item| item.severity == severity);
    of_it.map(|item| item.message.clone()).collect()
}
