//! Asks a target for what it exposes.

use std::fs::File;
use std::io::Read;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use export::get::{Getter, NoAnswer};
use hyper::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue,
};
use tokio::task::spawn_blocking;

use super::text::Format;
use crate::config::components::receivers::prometheus::client::{Credentials, Secret};
use crate::run::charge::Body;
use crate::run::receive::Intake;

/// Bytes of a body where nothing is written.
pub(super) const BODY_BYTES_MAX: u64 = 64 << 20;
/// Bytes of a file that holds a secret.
const SECRET_BYTES_MAX: u64 = 64 << 10;
/// The formats, the preferred one first, as Prometheus 3 asks for them (`scrape_protocols`).
const FORMATS: &str = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2";

/// Answer of a target.
pub(super) struct Fetched {
    pub bytes: Vec<u8>,
    pub format: Format,
    pub is_gzip: bool,
    /// Charges the bytes, and permits to decode them.
    pub room: Body,
}

/// Asks a target. The caller limits the time.
///
/// # Errors
/// Why there is no body.
pub(super) async fn fetch(
    getter: &Getter,
    url: &str,
    (credentials, is_compressed): (&Credentials, bool),
    bytes_max: u64,
    intake: &Intake,
) -> Result<Fetched, String> {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static(FORMATS));
    let coding = if is_compressed { "gzip" } else { "identity" };
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(coding));
    authorize(credentials, &mut headers).await?;
    let answer = getter.get(url, headers).await;
    let mut answer = answer.map_err(|why| reason(&why))?;
    let field = |name| {
        let value = answer.headers().get(name);
        value.and_then(|value| value.to_str().ok()).unwrap_or("")
    };
    let media = field(CONTENT_TYPE).trim_start().to_ascii_lowercase();
    let format = if media.starts_with("application/openmetrics-text") {
        Format::OpenMetrics
    } else {
        Format::Text
    };
    let is_gzip = field(CONTENT_ENCODING).eq_ignore_ascii_case("gzip");
    let busy = || "there is no memory for the body".to_owned();
    let mut room = intake.reserve(0).ok_or_else(busy)?;
    let mut bytes = Vec::new();
    while let Some(piece) = answer.next().await? {
        if (bytes.len() + piece.len()) as u64 > bytes_max {
            return Err("body size limit exceeded".to_owned());
        }
        if !room.grow(piece.len() as u64) {
            return Err(busy());
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(Fetched {
        bytes,
        format,
        is_gzip,
        room,
    })
}

/// Adds what tells who we are.
///
/// # Errors
/// A file cannot be read, or its text is no value of a field.
pub(super) async fn authorize(
    credentials: &Credentials,
    headers: &mut HeaderMap,
) -> Result<(), String> {
    let value = match credentials {
        Credentials::None => return Ok(()),
        Credentials::Basic { user, password } => {
            let password = text_of(password).await?;
            format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
        }
        Credentials::Scheme {
            scheme,
            credentials,
        } => format!("{scheme} {}", text_of(credentials).await?),
    };
    let value = HeaderValue::from_str(&value);
    let mut value = value.map_err(|_| "credentials have a control character".to_owned())?;
    value.set_sensitive(true);
    headers.insert(AUTHORIZATION, value);
    Ok(())
}

async fn text_of(secret: &Secret) -> Result<String, String> {
    let path = match secret {
        Secret::Text(text) => return Ok(text.clone()),
        Secret::File(path) => path.clone(),
    };
    let read = spawn_blocking(move || {
        let mut text = String::new();
        let file = File::open(&path);
        let read = file.and_then(|file| file.take(SECRET_BYTES_MAX).read_to_string(&mut text));
        match read {
            Ok(_) => Ok(text.trim().to_owned()),
            Err(error) => Err(format!("{path}: {error}")),
        }
    });
    let read = read.await;
    read.map_err(|_| "the collector ends".to_owned())?
}

/// Why there was no answer. What the server said is not told: it may be long.
pub(super) fn reason(why: &NoAnswer) -> String {
    match why {
        NoAnswer::Status(status, _) => format!("server returned HTTP status {status}"),
        NoAnswer::Failed(why) => why.clone(),
    }
}
