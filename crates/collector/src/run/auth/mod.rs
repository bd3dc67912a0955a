//! Authenticators: extensions that ask who sends, and that tell who we are.

mod basic;
mod bearer;
mod gate;
mod headers;
mod identity;
mod params;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use export::tls::Reloading;
use hyper::header::HeaderMap;

use crate::config::components::extensions::basic_auth::{BasicAuth, Credential};
use crate::config::{ComponentId, Config, Extension};
use crate::run::origin::Origin;
pub use basic::users;
pub use gate::{Denied, Gate};
pub use identity::Identity;
pub use params::seen;

/// Files of credentials are read again after this time, when they are needed.
const FILE_EVERY: Duration = Duration::from_secs(1);
/// Bytes of a file of credentials.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// Changes the fields of a request when it is sent, by what is known of its data's client; or says
/// why it cannot be sent.
pub type Editor = Arc<dyn Fn(&mut HeaderMap, Option<&Origin>) -> Result<(), String> + Send + Sync>;

/// Those of a configuration, by id.
#[derive(Clone, Default)]
pub struct Authenticators {
    gates: HashMap<ComponentId, Arc<Gate>>,
    editors: HashMap<ComponentId, Editor>,
}

impl Authenticators {
    /// Those that run.
    ///
    /// # Errors
    /// Which one cannot, and why.
    pub fn start(config: &Config) -> Result<Authenticators, String> {
        let mut all = Authenticators::default();
        for extension in &config.extensions {
            let id = &extension.id;
            let failed = |why: String| format!("{}: extension '{id}': {why}", extension.place);
            all.add(id, &extension.settings).map_err(failed)?;
        }
        Ok(all)
    }

    fn add(&mut self, id: &ComponentId, extension: &Extension) -> Result<(), String> {
        let (gate, editor) = match extension {
            Extension::BasicAuth(BasicAuth::Server { file, inline }) => {
                (Some(basic::gate(file.as_deref(), inline)?), None)
            }
            Extension::BasicAuth(BasicAuth::Client { username, password }) => {
                (None, Some(basic::editor(username, password)?))
            }
            Extension::BearerTokenAuth(settings) => {
                let tokens = bearer::Tokens::new(settings)?;
                let editor = tokens.editor();
                (Some(Gate::Bearer(tokens)), Some(editor))
            }
            Extension::HeadersSetter(settings) => (None, Some(headers::editor(settings)?)),
            Extension::HealthCheck(_) | Extension::HealthCheckV2(_) | Extension::FileStorage(_) => {
                (None, None)
            }
        };
        if let Some(gate) = gate {
            self.gates.insert(id.clone(), Arc::new(gate));
        }
        if let Some(editor) = editor {
            self.editors.insert(id.clone(), editor);
        }
        Ok(())
    }

    /// Who asks, for a server that names it.
    ///
    /// # Errors
    /// There is no such extension.
    pub fn gate(&self, id: Option<&ComponentId>) -> Result<Option<Arc<Gate>>, String> {
        found(&self.gates, id)
    }

    /// What changes requests, for a client that names it.
    ///
    /// # Errors
    /// There is no such extension.
    pub fn editor(&self, id: Option<&ComponentId>) -> Result<Option<Editor>, String> {
        found(&self.editors, id)
    }
}

fn found<T: Clone>(
    all: &HashMap<ComponentId, T>,
    id: Option<&ComponentId>,
) -> Result<Option<T>, String> {
    let Some(id) = id else { return Ok(None) };
    let missing = || format!("the authenticator '{id}' does not run");
    all.get(id).cloned().map(Some).ok_or_else(missing)
}

/// A credential that may change.
fn text(credential: &Credential) -> Result<Reloading<String>, String> {
    match credential.clone() {
        Credential::Text(text) => Reloading::new(None, move || Ok(text.clone())),
        Credential::File(path) => Reloading::new(Some(FILE_EVERY), move || {
            Ok(read(&path)?.trim_end_matches(['\r', '\n']).to_owned())
        }),
    }
}

/// A file of text.
pub(super) fn read(path: &str) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("{path}: {error}");
    let len = std::fs::metadata(path).map_err(failed)?.len();
    if len > FILE_BYTES_MAX {
        return Err(format!("{path}: more than {FILE_BYTES_MAX} bytes"));
    }
    std::fs::read_to_string(path).map_err(failed)
}
