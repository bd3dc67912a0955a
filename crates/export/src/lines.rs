//! The exporters `otlp_file` and `ostream`: write lines to a file or a standard stream.
//!
//! Writing may block (a full pipe, a slow disk), so it runs on a thread where it delays no other
//! exporter.

use std::fs::File;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use telemetry::settings::{OtlpFile, Signal, Target};

use crate::lock::lock;
use crate::request::Request;
use crate::rotate::Rotating;
use crate::sink::{Outcome, Prepared};
use crate::text;
use otlp::json;

/// An exporter that writes lines.
pub(crate) struct Lines {
    writer: Arc<Mutex<Writer>>,
    signal: Signal,
    form: Form,
}

enum Form {
    /// One line of OTLP JSON per request.
    Json,
    /// Human-readable text.
    Text,
}

enum Writer {
    Stdout,
    Stderr,
    File(File),
    Rotating(Box<Rotating>),
}

impl Lines {
    pub(crate) fn file(settings: &OtlpFile, signal: Signal) -> Result<Lines, String> {
        let rotating = Rotating::open(settings.clone())
            .map_err(|error| format!("{}: {error}", settings.file_pattern))?;
        let writer = Writer::Rotating(Box::new(rotating));
        Ok(Lines::new(writer, signal, Form::Json))
    }

    pub(crate) fn text(target: &Target, signal: Signal) -> Result<Lines, String> {
        let writer = match target {
            Target::Stdout => Writer::Stdout,
            Target::Stderr => Writer::Stderr,
            Target::File(path) => {
                let file = File::create(path).map_err(|error| format!("{path}: {error}"))?;
                Writer::File(file)
            }
        };
        Ok(Lines::new(writer, signal, Form::Text))
    }

    fn new(writer: Writer, signal: Signal, form: Form) -> Lines {
        Lines {
            writer: Arc::new(Mutex::new(writer)),
            signal,
            form,
        }
    }

    pub(crate) fn prepare(&self, request: &Request) -> Result<Prepared, String> {
        let lines: Bytes = match self.form {
            Form::Json => {
                let mut line = json::encode(self.signal, &request.flat());
                line.push(b'\n');
                line.into()
            }
            Form::Text => text::encode(self.signal, &request.flat())?.into(),
        };
        Ok(Prepared(vec![lines]))
    }

    pub(crate) async fn send(&self, request: &Prepared) -> Outcome {
        let writer = Arc::clone(&self.writer);
        let frames = request.0.clone();
        let write = move || {
            let mut writer = lock(&writer);
            frames.iter().try_for_each(|frame| writer.write(frame))
        };
        match tokio::task::spawn_blocking(write).await {
            Ok(Ok(())) => Outcome::TAKEN,
            Ok(Err(error)) => Outcome::Refused(error.to_string()),
            Err(error) => Outcome::Refused(error.to_string()),
        }
    }
}

impl Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Writer::Stdout => {
                let mut out = io::stdout().lock();
                out.write_all(bytes)?;
                out.flush()
            }
            Writer::Stderr => io::stderr().lock().write_all(bytes),
            Writer::File(file) => file.write_all(bytes),
            Writer::Rotating(rotating) => rotating.write(bytes),
        }
    }
}
