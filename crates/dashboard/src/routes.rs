//! The table of addresses and their handlers.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use hyper::{Method, Request, StatusCode};
use proxy::Current;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::actions::{self, Change};
use crate::configuration::{self, CurrentFiles};
use crate::explained::{self, Explain};
use crate::gate::{Gate, Refusal};
use crate::limits::{BODY_BYTES_MAX, REFUSAL_PAUSE, REQUEST_TIME_MAX};
use crate::reload::{self, Reloader};
use crate::reply::{self, Reply};
use crate::sampling::Sampling;
use crate::{Setup, Socket, assets, now, traced};

/// Handles requests.
pub struct Site {
    gate: Gate,
    current: Arc<Current>,
    version: &'static str,
    files: Arc<CurrentFiles>,
    change: Option<Box<Change>>,
    reload: Option<Box<Reloader>>,
    explain: Box<Explain>,
    traces: Option<Arc<traces::Store>>,
    sampling: Sampling,
    memory_used_bytes: fn() -> u64,
}

/// Handles a `GET`. The input is the query.
type Read = fn(&Site, &str) -> Reply;
/// Handles a `POST`. The input is the body.
type Write = fn(&Site, &[u8]) -> Reply;

enum Answers {
    Get(Read),
    /// A slow handler, which runs on another thread.
    Slow(Read),
    /// Only for our own pages, with their token.
    Post(Write),
    /// The same, on another thread.
    SlowPost(Write),
}

/// The API; other addresses are those of files.
const ROUTES: &[(&str, Answers)] = &[
    ("/api/now", Answers::Get(Site::now)),
    ("/api/config", Answers::Get(Site::config)),
    ("/api/traces", Answers::Slow(Site::traces)),
    ("/api/heatmap", Answers::Slow(Site::heat_map)),
    ("/api/services", Answers::Slow(Site::services)),
    ("/api/sampling", Answers::Get(Site::sampling)),
    ("/api/dry-run", Answers::SlowPost(Site::dry_run)),
    ("/api/explain", Answers::Slow(Site::explain)),
    ("/api/actions", Answers::Post(Site::act)),
    ("/api/reload", Answers::SlowPost(Site::reload)),
];

impl Site {
    /// The site, and its sockets.
    pub fn new(setup: Setup) -> (Site, Vec<Socket>) {
        let site = Site {
            gate: Gate::new(&setup.users, setup.seed),
            current: setup.current,
            version: setup.version,
            files: setup.files,
            change: setup.change,
            reload: setup.reload,
            explain: setup.explain,
            traces: setup.traces,
            sampling: setup.sampling,
            memory_used_bytes: setup.memory_used_bytes,
        };
        (site, setup.sockets)
    }

    /// Answers a request, within [`REQUEST_TIME_MAX`].
    pub async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Reply {
        if let Err(refusal) = self.gate.admit(request.headers()) {
            return self.refuse(refusal).await;
        }
        match timeout(REQUEST_TIME_MAX, self.route(request)).await {
            Ok(reply) => reply,
            Err(_) => reply::error(StatusCode::REQUEST_TIMEOUT, "that takes too long"),
        }
    }

    async fn refuse(&self, refusal: Refusal) -> Reply {
        match refusal {
            Refusal::Host => reply::error(
                StatusCode::MISDIRECTED_REQUEST,
                "without 'auth', the dashboard is asked by an address or as localhost",
            ),
            Refusal::Password => {
                sleep(REFUSAL_PAUSE).await;
                reply::unauthorized()
            }
            Refusal::Origin => reply::error(
                StatusCode::FORBIDDEN,
                "data and actions are for the dashboard's own pages; actions need Origin and X-Spangate-Token",
            ),
        }
    }

    async fn route(self: Arc<Self>, request: Request<Incoming>) -> Reply {
        let (head, body) = request.into_parts();
        let path = head.uri.path();
        if path.starts_with("/api/") && Gate::is_foreign(&head.headers) {
            return self.refuse(Refusal::Origin).await;
        }
        if let Some(id) = path.strip_prefix("/api/traces/")
            && is_read(&head.method)
        {
            let (site, id) = (Arc::clone(&self), id.to_owned());
            return beside(move || traced::trace(site.traces.as_deref(), &id)).await;
        }
        let Some((_, route)) = ROUTES.iter().find(|(known, _)| *known == path) else {
            return file(path, &head.method);
        };
        match route {
            Answers::Get(read) if is_read(&head.method) => {
                read(&self, head.uri.query().unwrap_or_default())
            }
            Answers::Slow(read) if is_read(&head.method) => {
                let (read, site) = (*read, Arc::clone(&self));
                let query = head.uri.query().unwrap_or_default().to_owned();
                beside(move || read(&site, &query)).await
            }
            Answers::Get(_) | Answers::Slow(_) => reply::method_not_allowed("GET"),
            Answers::Post(_) | Answers::SlowPost(_) if head.method != Method::POST => {
                reply::method_not_allowed("POST")
            }
            Answers::Post(write) | Answers::SlowPost(write) => {
                if let Err(refusal) = self.gate.admit_action(&head.headers) {
                    return self.refuse(refusal).await;
                }
                match Limited::new(body, BODY_BYTES_MAX).collect().await {
                    Ok(body) if matches!(route, Answers::SlowPost(_)) => {
                        let (write, site, body) = (*write, Arc::clone(&self), body.to_bytes());
                        beside(move || write(&site, &body)).await
                    }
                    Ok(body) => write(&self, &body.to_bytes()),
                    Err(_) => reply::error(
                        StatusCode::PAYLOAD_TOO_LARGE,
                        "the body is too long, or it broke off",
                    ),
                }
            }
        }
    }

    fn now(&self, _: &str) -> Reply {
        let now = net::sys::now();
        let current = self.current.get();
        let mut all = now::now(&current.runtime_config, &current.shared, self.version, now);
        let memory = (self.memory_used_bytes)();
        if let Some(Value::Object(process)) = all.get_mut("process") {
            process.insert("memory_bytes".to_owned(), memory.into());
        }
        let permits = self.change.is_some();
        all.insert("token".to_owned(), self.gate.token().into());
        all.insert("permits_actions".to_owned(), permits.into());
        reply::json(&all.into())
    }

    fn config(&self, _: &str) -> Reply {
        let files = self.files.get();
        reply::json(&configuration::shown(&files.texts, &files.notices))
    }

    fn traces(&self, query: &str) -> Reply {
        traced::list(self.traces.as_deref(), query)
    }

    fn heat_map(&self, query: &str) -> Reply {
        traced::heat_map(self.traces.as_deref(), query)
    }

    fn services(&self, _: &str) -> Reply {
        traced::services(self.traces.as_deref())
    }

    fn sampling(&self, _: &str) -> Reply {
        reply::json(&(self.sampling.account)())
    }

    fn dry_run(&self, body: &[u8]) -> Reply {
        self.sampling.dry_run(self.traces.as_deref(), body)
    }

    fn explain(&self, query: &str) -> Reply {
        match explained::read(query).and_then(|question| (self.explain)(&question)) {
            Ok(explained) => reply::json(&explained),
            Err(why) => reply::error(StatusCode::BAD_REQUEST, &why),
        }
    }

    fn act(&self, body: &[u8]) -> Reply {
        let Some(change) = &self.change else {
            return not_permitted();
        };
        let done = actions::read(body)
            .and_then(|asked| change(&asked.backend, &asked.server, &asked.action));
        match done {
            Ok(said) => reply::json(&json!({ "done": true, "message": said })),
            Err(why) => reply::error(StatusCode::BAD_REQUEST, &why),
        }
    }

    fn reload(&self, body: &[u8]) -> Reply {
        let Some(reload) = &self.reload else {
            return not_permitted();
        };
        let asked = match reload::read(body) {
            Ok(asked) => asked,
            Err(why) => return reply::error(StatusCode::BAD_REQUEST, &why),
        };
        // The status is 200 also if the files are refused: the page shows the text, which says why.
        let done = reload(asked);
        let is_refused = done.is_err();
        let text = reload::without_secrets(&done.unwrap_or_else(|why| why));
        reply::json(&json!({ "refused": is_refused, "text": text }))
    }
}

/// The section does not have `admin`.
fn not_permitted() -> Reply {
    let why = "actions need 'admin' in the section 'dashboard'";
    reply::error(StatusCode::FORBIDDEN, why)
}

/// Runs slow work on a thread other than the control thread.
async fn beside(work: impl FnOnce() -> Reply + Send + 'static) -> Reply {
    match tokio::task::spawn_blocking(work).await {
        Ok(reply) => reply,
        // The panic was reported.
        Err(_) => reply::error(StatusCode::INTERNAL_SERVER_ERROR, "an internal error"),
    }
}

fn is_read(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}

fn file(path: &str, method: &Method) -> Reply {
    match assets::find(path) {
        None => reply::error(StatusCode::NOT_FOUND, "there is no such page"),
        Some(_) if !is_read(method) => reply::method_not_allowed("GET"),
        Some(asset) => reply::bytes(StatusCode::OK, asset.kind, Bytes::from_static(asset.bytes)),
    }
}
