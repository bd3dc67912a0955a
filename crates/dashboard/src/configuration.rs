//! `GET /api/config`: the files of the running configuration, and the messages about them at the
//! start.

use std::sync::{Arc, Mutex, PoisonError};

use config::secrets;
use serde_json::{Value, json};

/// Most bytes of a file in the answer.
const TEXT_BYTES_MAX: usize = 1 << 20;

/// A file of the configuration.
#[derive(Clone, Debug)]
pub struct Text {
    /// Its name in messages.
    pub name: String,
    /// Its content.
    pub bytes: Vec<u8>,
}

/// A message about the configuration.
#[derive(Clone, Debug)]
pub struct Notice {
    /// `warning` or `notice`.
    pub severity: &'static str,
    /// Its file and line; None for a message without a line.
    pub place: Option<(String, u32)>,
    /// The text.
    pub message: String,
}

/// The files of a configuration.
#[derive(Debug, Default)]
pub struct Files {
    /// Their content.
    pub texts: Vec<Text>,
    /// The messages about them when they were read.
    pub notices: Vec<Notice>,
}

/// The files of the running configuration, which a reload in place replaces.
#[derive(Debug, Default)]
pub struct CurrentFiles(Mutex<Arc<Files>>);

impl CurrentFiles {
    /// The present ones.
    #[must_use]
    pub fn get(&self) -> Arc<Files> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces them.
    pub fn set(&self, files: Files) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(files);
    }
}

/// The answer, without the secrets that [`secrets::hide`] recognises.
pub fn shown(texts: &[Text], notices: &[Notice]) -> Value {
    let files = texts.iter().map(|text| {
        let all = String::from_utf8_lossy(&text.bytes);
        let end = all.floor_char_boundary(TEXT_BYTES_MAX.min(all.len()));
        let lines: Vec<String> = all[..end]
            .lines()
            .map(|line| secrets::hide(line).text)
            .collect();
        json!({ "name": text.name, "lines": lines, "cut": end < all.len() })
    });
    let notices = notices.iter().map(|notice| {
        json!({
            "severity": notice.severity,
            "file": notice.place.as_ref().map(|(file, _)| file),
            "line": notice.place.as_ref().map(|(_, line)| line),
            "message": message_without_secrets(texts, notice),
        })
    });
    json!({ "files": files.collect::<Vec<_>>(), "notices": notices.collect::<Vec<_>>() })
}

/// The secrets that a line has, as messages about it quote them.
fn secrets_of(texts: &[Text], place: Option<&(String, u32)>) -> Vec<String> {
    let found = place.and_then(|(file, line)| {
        let text = texts.iter().find(|text| text.name == *file)?;
        let mut lines = text.bytes.split(|byte| *byte == b'\n');
        lines.nth(*line as usize - 1)
    });
    found.map_or_else(Vec::new, |line| {
        secrets::hide(&String::from_utf8_lossy(line)).hidden
    })
}

/// The text of a message without the secrets of its line.
fn message_without_secrets(texts: &[Text], notice: &Notice) -> String {
    let secrets = secrets_of(texts, notice.place.as_ref());
    cut_out(notice.message.clone(), &secrets)
}

/// A text with [`secrets::HIDDEN`] in place of each of these secrets.
pub fn cut_out(text: String, secrets: &[String]) -> String {
    let secrets = secrets.iter().filter(|secret| !secret.is_empty());
    secrets.fold(text, |text, secret| {
        text.replace(&**secret, secrets::HIDDEN)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "global\n  setenv API_KEY hunter2\nfrontend f\n  bind :80\n  \
        http-request set-header Authorization \"Basic hunter2\"\n  stats auth ann:hunter2\n  \
        http-request deny unless { req.hdr(X-Api-Key) hunter2 }\n";

    #[test]
    fn the_page_shows_no_secret() {
        let texts = [Text {
            name: "f.cfg".to_owned(),
            bytes: FILE.as_bytes().to_vec(),
        }];
        let notices = [Notice {
            severity: "warning",
            place: Some(("f.cfg".to_owned(), 2)),
            message: "a word 'hunter2' is odd".to_owned(),
        }];
        let shown = shown(&texts, &notices);
        let text = shown.to_string();
        assert!(!text.contains("hunter2"), "{text}");
        assert_eq!(shown["files"][0]["lines"][3], "  bind :80");
        assert_eq!(shown["files"][0]["lines"][5], "  stats auth ann:***");
        assert_eq!(shown["notices"][0]["message"], "a word '***' is odd");
    }
}
