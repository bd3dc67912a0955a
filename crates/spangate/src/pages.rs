//! The dashboard of this process (section `dashboard`): its sockets, its data, and the changes that
//! it may make.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use config::diagnostic::{Diagnostics, Severity};
use config::model::{Bind, Config, DashboardSection};
use config::reader::Input;
use dashboard::{
    Action, Change, CurrentFiles, Dashboard, Explain, Files, Notice, Question, Refused, Reload,
    Reloader, Sampling, Setup, Socket, Text,
};
use net::listen::ListenOptions;
use proxy::Current;

use crate::cli::{self, CurrentSubjects, Subjects};
use crate::process::{ReloadKind, Reloads};
use crate::serve::shown;
use crate::sockets::Sockets;
use crate::{explain, notice, sys};

/// How long a page waits for a reload: less than the dashboard has for a request.
const RELOAD_TIME: Duration = Duration::from_secs(25);
/// Most connections that wait to be accepted.
const BACKLOG: i32 = 16;

/// The configuration files that the dashboard shows. Empty without a dashboard.
#[derive(Debug, Default)]
pub(crate) struct Sources(Files);

impl Sources {
    /// The files of a configuration, and the diagnostics about them.
    pub fn of(config: Option<&Config>, inputs: Vec<Input>, found: &Diagnostics) -> Sources {
        if config.is_none_or(|config| config.dashboard.is_none()) {
            return Sources::default();
        }
        let texts = inputs.into_iter().map(|input| Text {
            name: input.name,
            bytes: input.text,
        });
        let notices = found.iter().filter_map(|one| {
            let severity = match one.severity {
                Severity::Alert | Severity::Warning => "warning",
                Severity::Notice => "notice",
                Severity::Diag => return None,
            };
            let span = one.span.as_ref();
            Some(Notice {
                severity,
                place: span.map(|span| (span.source.name.clone(), span.line)),
                message: one.message.clone(),
            })
        });
        Sources(Files {
            texts: texts.collect(),
            notices: notices.collect(),
        })
    }
}

/// The dashboard's sockets, opened before privileges are dropped.
#[derive(Default)]
pub(crate) struct Pages {
    section: Option<DashboardSection>,
    sockets: Vec<Socket>,
    addresses: Vec<String>,
}

/// A running dashboard.
pub(crate) struct Served {
    files: Arc<CurrentFiles>,
    _dashboard: Dashboard,
}

impl Served {
    /// Shows the files of another configuration.
    pub fn show(&self, sources: Sources) {
        self.files.set(sources.0);
    }
}

impl Pages {
    /// # Errors
    /// Why a socket cannot be bound.
    pub fn open(config: &Config, sockets: &mut Sockets) -> Result<Pages, String> {
        let mut pages = Pages {
            section: config.dashboard.clone(),
            ..Pages::default()
        };
        let binds = config.dashboard.iter().flat_map(|section| &section.binds);
        for bind in binds {
            pages.listen(bind, sockets).map_err(|error| {
                let (origin, address) = (&bind.origin, shown(&bind.address));
                format!("Binding [{origin}] for the dashboard: {error} for [{address}].")
            })?;
        }
        Ok(pages)
    }

    fn listen(&mut self, bind: &Bind, sockets: &mut Sockets) -> std::io::Result<()> {
        let options = ListenOptions {
            backlog: BACKLOG,
            unix_mode: bind.mode,
            unix_uid: bind.uid,
            unix_gid: bind.gid,
            reuse_port: true,
            ..ListenOptions::default()
        };
        let opened = sockets.open(bind, &options, 1)?;
        let is_unix = opened.local.is_unix();
        for fd in opened.own.iter().chain(&opened.shared) {
            let fd: OwnedFd = fd.try_clone()?;
            self.sockets.push(if is_unix {
                Socket::Unix(fd)
            } else {
                Socket::Tcp(fd)
            });
        }
        self.addresses.push(if is_unix {
            opened.local.to_string()
        } else {
            format!("http://{}/", opened.local)
        });
        Ok(())
    }

    /// Serves the pages; nothing runs without a section `dashboard`.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub fn start(
        self,
        subjects: &Arc<CurrentSubjects>,
        current: &Arc<Current>,
        sources: Sources,
    ) -> Result<Option<Served>, String> {
        let Some(section) = self.section else {
            return Ok(None);
        };
        let files = Arc::new(CurrentFiles::default());
        files.set(sources.0);
        let now = subjects.get();
        let setup = Setup {
            explain: explainer(Arc::clone(&files)),
            traces: collector::dashboard::store(&now.collectors),
            sampling: sampling(&now),
            current: Arc::clone(current),
            sockets: self.sockets,
            users: section.users,
            version: env!("CARGO_PKG_VERSION"),
            files: Arc::clone(&files),
            change: section.admin.then(|| change(subjects)),
            reload: section.admin.then(|| reloader(Arc::clone(&now.reloads))),
            seed: [sys::random_seed(), sys::random_seed()],
            memory_used_bytes: collector::run::process::memory::resident_bytes,
        };
        let started = Dashboard::start(setup)
            .map_err(|error| format!("Cannot start the dashboard : {error}."))?;
        notice(&format!("Dashboard on {}.", self.addresses.join(", ")));
        Ok(Some(Served {
            files,
            _dashboard: started,
        }))
    }
}

/// Changes servers with commands of the runtime interface.
fn change(subjects: &Arc<CurrentSubjects>) -> Box<Change> {
    let subjects = Arc::clone(subjects);
    Box::new(move |backend, server, action| {
        let name = format!("{backend}/{server}");
        let words: &[&str] = match action {
            Action::Ready => &["set", "server", &name, "state", "ready"],
            Action::Drain => &["set", "server", &name, "state", "drain"],
            Action::Maintenance => &["set", "server", &name, "state", "maint"],
            Action::Weight(weight) => &["set", "server", &name, "weight", weight],
            Action::Health(true) => &["enable", "health", &name],
            Action::Health(false) => &["disable", "health", &name],
        };
        cli::carry_out(&subjects.get(), words)
    })
}

/// Reloads in place, or shows the effects, as the command `reload` does.
fn reloader(reloads: Arc<Reloads>) -> Box<Reloader> {
    Box::new(move |asked| {
        let kind = match asked {
            Reload::Preview => ReloadKind::Check,
            Reload::Apply => ReloadKind::Apply,
        };
        reloads.ask(kind, RELOAD_TIME)
    })
}

/// Explains requests with the running texts, in a separate configuration, so that no rule changes
/// the state of the running one.
fn explainer(files: Arc<CurrentFiles>) -> Box<Explain> {
    Box::new(move |question: &Question| {
        let input = |text: &Text| Input {
            name: text.name.clone(),
            text: text.bytes.clone(),
        };
        let inputs: Vec<Input> = files.get().texts.iter().map(input).collect();
        let asked = explain::Asked {
            method: question.method.clone(),
            url: question.url.clone(),
            fields: question.fields.clone(),
            source: question.source.clone(),
            frontend: question.frontend.clone(),
            response: question.response.clone(),
            response_fields: question.response_fields.clone(),
        };
        explain::of_texts(&inputs, &asked)
    })
}

/// The sampling of this process's collectors, and their results with other policies.
fn sampling(subjects: &Arc<Subjects>) -> Sampling {
    let subjects = Arc::clone(subjects);
    Sampling {
        account: Box::new(move || {
            let sampling = collector::dashboard::sampling(&subjects.collectors);
            serde_json::to_value(sampling).unwrap_or_default()
        }),
        dry_run: Box::new(|store, text, now_ms| {
            let answer = collector::dashboard::dry_run(store, text, now_ms);
            let answer = answer.map_err(|fault| Refused {
                message: fault.error,
                line: fault.line,
                column: fault.column,
            })?;
            Ok(serde_json::to_value(answer).unwrap_or_default())
        }),
    }
}
