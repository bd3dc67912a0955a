//! Updates of the status of certificates from their responders (manual §5.1 ocsp-update, RFC 6960).
//!
//! [`schedule`] says which certificate is due when, [`fetch`] queries its responder. One request is
//! in flight at a time. A response is checked against the issuer before it is stapled, and every
//! outcome is logged.

mod fetch;
mod schedule;

use std::rc::Rc;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use proxy::{EditError, OcspSubject, RuntimeConfig};
use tls::{CertId, OcspResponse};
use tokio::sync::Notify;

use crate::Control;
pub use schedule::OcspUpdate;
use schedule::{Delays, Due, Schedule};

/// The longest wait between two readings of the clock: it may be set meanwhile.
const LOOK_AGAIN: Duration = Duration::from_secs(60);

/// The outcome of an update, with the numbers of the runtime interface (management guide §9.3 show
/// ssl ocsp-updates).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OcspOutcome {
    /// No update has ended.
    #[default]
    Unknown,
    /// The response is stapled.
    Done,
    /// There was no HTTP response, or one with a status other than 200.
    Http,
    /// The body is not an OCSP response.
    Header,
    /// The response is about another certificate, out of date, or not signed by the issuer.
    Check,
    /// The response cannot be stapled.
    Insertion,
}

impl OcspOutcome {
    /// The number of the outcome.
    #[must_use]
    pub fn number(self) -> u8 {
        self as u8
    }

    /// The outcome in HAProxy's words.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            OcspOutcome::Unknown => "Unknown",
            OcspOutcome::Done => "Update successful",
            OcspOutcome::Http => "HTTP error",
            OcspOutcome::Header => "Missing \"ocsp-response\" header",
            OcspOutcome::Check => "OCSP response check failure",
            OcspOutcome::Insertion => "Error during insertion",
        }
    }
}

/// Why the status of a certificate cannot be updated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OcspRefusal {
    /// There is no such certificate.
    UnknownCertificate,
    /// It has no status to replace, names no responder, or its issuer is unknown.
    NoResponse,
}

/// The updates of a process: the work of its thread, and the state that commands show and change.
#[derive(Debug)]
pub struct OcspUpdates {
    schedule: Mutex<Schedule>,
    changed: Notify,
    is_off: bool,
}

impl OcspUpdates {
    /// Updates for the certificates of a configuration.
    #[must_use]
    pub fn new(runtime_config: &RuntimeConfig) -> OcspUpdates {
        let words = &runtime_config.config.global.tls.ocsp;
        let updates = OcspUpdates {
            schedule: Mutex::new(Schedule::new(Delays {
                min_s: u64::from(words.delay_min_s),
                max_s: u64::from(words.delay_max_s),
            })),
            changed: Notify::new(),
            is_off: words.is_off,
        };
        updates.refresh(runtime_config);
        updates
    }

    /// Takes over the current certificates, and which of them are updated.
    pub fn refresh(&self, runtime_config: &RuntimeConfig) {
        let subjects = runtime_config.tls().ocsp_subjects();
        self.schedule().refresh(subjects, self.is_off, now_s());
        self.changed.notify_one();
    }

    /// Requests an immediate update of a certificate's status, by the certificate's name.
    ///
    /// # Errors
    /// See [`OcspRefusal`].
    pub fn ask_now(&self, runtime_config: &RuntimeConfig, name: &str) -> Result<(), OcspRefusal> {
        let subject = match runtime_config.tls().ocsp_subject(name) {
            Err(EditError::Unknown) => return Err(OcspRefusal::UnknownCertificate),
            Err(_) => return Err(OcspRefusal::NoResponse),
            Ok(subject) => subject,
        };
        if !self.schedule().ask_now(subject) {
            return Err(OcspRefusal::NoResponse);
        }
        self.changed.notify_one();
        Ok(())
    }

    /// The certificates that are updated automatically, in the order in which they are due.
    #[must_use]
    pub fn list(&self) -> Vec<OcspUpdate> {
        self.schedule().list()
    }

    fn schedule(&self) -> MutexGuard<'_, Schedule> {
        self.schedule.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn now_s() -> u64 {
    net::sys::now().wall_ns / 1_000_000_000
}

/// Performs due updates until the process stops.
pub(crate) async fn run(control: Rc<Control>) {
    let updates = &control.ocsp;
    loop {
        let due = updates.schedule().due(now_s());
        match due {
            Due::Now(subject) => update(&control, subject).await,
            Due::In(seconds) => {
                let wait = Duration::from_secs(seconds).min(LOOK_AGAIN);
                tokio::select! {
                    () = tokio::time::sleep(wait) => {}
                    () = updates.changed.notified() => {}
                }
            }
            Due::Never => updates.changed.notified().await,
        }
    }
}

/// Performs one update and logs its outcome.
async fn update(control: &Control, subject: OcspSubject) {
    let http_proxy = control
        .runtime_config
        .config
        .global
        .tls
        .ocsp
        .http_proxy
        .as_ref();
    let fetched = fetch::fetch(&subject.uri, &subject.id.request(), http_proxy).await;
    let (outcome, why) = match fetched.and_then(|response| take(control, &subject, &response)) {
        Ok(expires_s) => (OcspOutcome::Done, Ok(expires_s)),
        Err((outcome, why)) => (outcome, Err(why)),
    };
    let ended = control
        .ocsp
        .schedule()
        .ended(&subject.id, outcome, why, now_s());
    // A certificate that was removed during the update gets no log line.
    if let Some(ended) = ended {
        (control.tell)(&format!("<OCSP-UPDATE> {}", ended.log_text()));
    }
}

/// The failed step, and the reason if there is more to say.
type Fault = (OcspOutcome, String);

/// Staples a response. Returns when it is not stapled any more, seconds after the UNIX epoch.
fn take(control: &Control, subject: &OcspSubject, der: &[u8]) -> Result<Option<u64>, Fault> {
    let check = |why: String| (OcspOutcome::Check, why);
    let response = OcspResponse::parse(der).map_err(|error| check(error.to_string()))?;
    is_about(&response, &subject.id).map_err(check)?;
    let now = Duration::from_secs(now_s());
    response
        .check_signature(&subject.issuer, now)
        .map_err(|error| check(error.to_string()))?;
    let tls = control.runtime_config.tls();
    match tls.set_ocsp(der, now.as_secs()) {
        Ok(_) => Ok(response.expires_s()),
        Err(EditError::Wrong(why)) => Err((OcspOutcome::Insertion, why)),
        Err(_) => Err((OcspOutcome::Insertion, String::new())),
    }
}

fn is_about(response: &OcspResponse, id: &CertId) -> Result<(), String> {
    if response.id == *id {
        Ok(())
    } else {
        Err("OCSP response for another certificate".to_owned())
    }
}
