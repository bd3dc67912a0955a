//! TLS in the configuration language: the settings for the engine, and refused lines.

mod certificates;
mod lines;

use crate::common::{messages, read};
use spangate_config::diagnostic::{Diagnostics, Severity};
use spangate_config::model::{BindTls, Config};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

const TIMEOUTS: &str =
    "defaults\n mode http\n timeout client 1s\n timeout server 1s\n timeout connect 1s\n";

/// A directory of files for one test.
pub struct Files(PathBuf);

impl Files {
    /// Files with these names; their content does not matter.
    pub fn new(names: &[&str]) -> Files {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("spangate-tls-{}-{number}", std::process::id());
        let files = Files(std::env::temp_dir().join(name));
        std::fs::create_dir_all(&files.0).expect("a directory");
        for name in names {
            files.add(name, "");
        }
        files
    }

    fn add(&self, name: &str, text: &str) {
        let path = self.path(name);
        let parent = path.parent().expect("a parent");
        std::fs::create_dir_all(parent).expect("a directory");
        std::fs::write(path, text).expect("a file");
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// `text` with `DIR` replaced by the directory's name.
    pub fn named_in(&self, text: &str) -> String {
        text.replace("DIR", &self.0.to_string_lossy())
    }

    /// A name below the directory.
    fn short<'p>(&self, path: &'p Path) -> &'p str {
        let path = path.strip_prefix(&self.0).unwrap_or(path);
        path.to_str().expect("UTF-8")
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn load(text: &str) -> Result<(Config, Diagnostics), Diagnostics> {
    read(text)
}

fn accepted(text: &str) -> (Config, Diagnostics) {
    match load(text) {
        Ok(both) => both,
        Err(diagnostics) => panic!(
            "{text}\nrefused: {:?}",
            messages(&diagnostics, Severity::Alert)
        ),
    }
}

fn alerts(text: &str) -> Vec<String> {
    let Err(diagnostics) = load(text) else {
        return Vec::new();
    };
    messages(&diagnostics, Severity::Alert)
}

/// A frontend whose bind line has these options, after these lines of `global`.
fn frontend(global: &str, options: &str) -> String {
    format!("global\n {global}\n{TIMEOUTS}frontend f\n bind :8443 {options}\n")
}

/// A backend whose server has these options.
fn backend(global: &str, options: &str) -> String {
    format!("global\n {global}\n{TIMEOUTS}backend b\n server s 127.0.0.1:1 {options}\n")
}

fn bind_of(config: &Config) -> &BindTls {
    config.proxies[0].binds[0].tls.as_deref().expect("TLS")
}
