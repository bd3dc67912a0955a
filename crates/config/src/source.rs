//! The files of a configuration: `-f` files and directories, and the arguments after `--`
//! (management guide §3).

use crate::diagnostic::{Diagnostics, Severity};
use crate::reader::Input;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Most bytes from a file that is not regular (a pipe, `/dev/stdin`) and may never end; HAProxy's
/// limit.
pub const MAX_STREAM_BYTES: u64 = 10 << 20;

/// Most bytes from a regular file.
pub const MAX_FILE_BYTES: u64 = 1 << 30;

/// Reads every file of `paths` in order. A directory stands for its regular files named `*.cfg`
/// that are not hidden, sorted by bytes. Each file that cannot be read is an alert; the others are
/// still read. No paths, or only empty directories, result in no input: as in HAProxy, the caller
/// prints its usage.
pub fn load(paths: &[impl AsRef<Path>], diagnostics: &mut Diagnostics) -> Vec<Input> {
    let mut inputs = Vec::new();
    for path in paths.iter().map(AsRef::as_ref) {
        match expand(path) {
            Ok(files) => files
                .iter()
                .for_each(|file| load_file(file, &mut inputs, diagnostics)),
            Err(error) => fail(
                diagnostics,
                "Cannot open configuration file/directory",
                path,
                &error,
            ),
        }
    }
    inputs
}

/// The files for `path`.
fn expand(path: &Path) -> io::Result<Vec<PathBuf>> {
    if !files::info(path)?.is_dir {
        return Ok(vec![path.to_owned()]);
    }
    let mut found = Vec::new();
    for name in files::names(path)? {
        if !is_configuration(&name) {
            continue;
        }
        // Joined like in HAProxy, so that names in messages look familiar.
        let file = PathBuf::from(
            [path.as_os_str(), OsStr::new("/"), &name]
                .into_iter()
                .collect::<std::ffi::OsString>(),
        );
        if files::info(&file)?.is_file {
            found.push(file);
        }
    }
    Ok(found)
}

/// Whether the name is not hidden and its first `.cfg` is at its end (not `a.cfg.cfg`, as in
/// HAProxy).
fn is_configuration(name: &OsStr) -> bool {
    let name = name.as_bytes();
    let extension = name.windows(4).position(|part| part == b".cfg");
    name.first() != Some(&b'.') && extension.is_some_and(|at| at + 4 == name.len())
}

fn load_file(path: &Path, inputs: &mut Vec<Input>, diagnostics: &mut Diagnostics) {
    match read_bounded(path) {
        Ok(text) => inputs.push(Input {
            name: path.to_string_lossy().into_owned(),
            text,
        }),
        Err(error) => fail(
            diagnostics,
            "Could not open configuration file",
            path,
            &error,
        ),
    }
}

fn read_bounded(path: &Path) -> io::Result<Vec<u8>> {
    let limit = if files::info(path)?.is_file {
        MAX_FILE_BYTES
    } else {
        MAX_STREAM_BYTES
    };
    let text = files::read(path, limit + 1)?;
    if text.len() as u64 > limit {
        Err(io::Error::other(format!(
            "input is too large, limited to {} MB",
            limit >> 20
        )))
    } else {
        Ok(text)
    }
}

fn fail(diagnostics: &mut Diagnostics, what: &str, path: &Path, error: &io::Error) {
    let error = error.to_string();
    // Rust appends the number to the system's text.
    let words = error.split(" (os error ").next().unwrap_or_default();
    diagnostics.add(
        Severity::Alert,
        None,
        format!("{what} {} : {words}", path.display()),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn names_of_configuration_files() {
        let cases = [
            ("a.cfg", true),
            (".a.cfg", false),
            ("a.cfg.cfg", false),
            ("a.cfgx", false),
            ("a.conf", false),
            ("b.c.cfg", true),
        ];
        for (name, expected) in cases {
            assert_eq!(is_configuration(OsStr::new(name)), expected, "{name}");
        }
        assert!(!is_configuration(OsStr::new("")));
    }

    #[test]
    fn a_directory_is_its_configuration_files_in_byte_order() {
        let dir = std::env::temp_dir().join(format!("spangate-source-{}", std::process::id()));
        fs::create_dir_all(dir.join("sub.cfg")).unwrap();
        for name in ["b.cfg", "B.cfg", "10.cfg", "9.cfg", "x.conf", ".h.cfg"] {
            fs::write(dir.join(name), name).unwrap();
        }
        let mut diagnostics = Diagnostics::new();
        let missing = dir.join("missing");
        let inputs = load(&[&dir, &missing, &dir.join("x.conf")], &mut diagnostics);
        fs::remove_dir_all(&dir).unwrap();
        let texts: Vec<&[u8]> = inputs.iter().map(|input| input.text.as_slice()).collect();
        assert_eq!(
            texts,
            [&b"10.cfg"[..], b"9.cfg", b"B.cfg", b"b.cfg", b"x.conf"]
        );
        assert!(inputs[0].name.ends_with("/10.cfg"));
        let messages: Vec<&str> = diagnostics
            .iter()
            .map(|item| item.message.as_str())
            .collect();
        let expected = format!(
            "Cannot open configuration file/directory {} : No such file or directory",
            missing.display()
        );
        assert_eq!(messages, [expected]);
    }
}
