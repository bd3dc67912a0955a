//! Passphrases of private keys, from the program that `ssl-passphrase-cmd` names (manual §3.1).

use std::io::{self, Read as _};
use std::path::Path;
use std::process::{Command, Stdio};

use config::model::PassphraseCommand;

/// The longest passphrase, bytes, as in OpenSSL.
const PASSPHRASE_BYTES_MAX: u64 = 1024;

/// Runs the program with the name of the key's file and its own arguments. Returns what it prints,
/// without a line feed at the end.
///
/// # Errors
/// There is no program, or it fails; the message for the user.
pub(crate) fn ask(command: Option<&PassphraseCommand>, file: &Path) -> Result<Vec<u8>, String> {
    let Some(command) = command else {
        return Err("no 'ssl-passphrase-cmd' is defined".to_owned());
    };
    let program = command.program.to_string_lossy();
    let name = format!("passphrase of {}", file.display());
    let passphrase = files::other(&name, || run(command, file));
    passphrase.map_err(|error| format!("'{program}' : {}", net::sys::plain_error(&error)))
}

fn run(command: &PassphraseCommand, file: &Path) -> io::Result<Vec<u8>> {
    let mut child = Command::new(&command.program)
        .arg(file)
        .args(&command.arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut printed = Vec::new();
    // The pipe is closed before the program is awaited, so that it cannot wait for a reader.
    let read = match child.stdout.take() {
        Some(output) => output
            .take(PASSPHRASE_BYTES_MAX + 1)
            .read_to_end(&mut printed),
        None => Ok(0),
    };
    let status = child.wait()?;
    read?;
    if printed.len() as u64 > PASSPHRASE_BYTES_MAX {
        let message = format!("more than {PASSPHRASE_BYTES_MAX} bytes");
        return Err(io::Error::other(message));
    }
    if !status.success() {
        return Err(io::Error::other(status.to_string()));
    }
    if printed.last() == Some(&b'\n') {
        printed.pop();
    }
    Ok(printed)
}
