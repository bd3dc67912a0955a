//! Authenticators that components name: extensions that run, and that can do what they are asked
//! for.

use crate::config::components::Role;
use crate::config::components::exporters::Exporter;
use crate::config::components::extensions::Extension;
use crate::config::components::id::ComponentId;
use crate::config::components::shared::auth::{Side, fits, is_secret};
use crate::config::components::shared::context::Context;
use crate::config::definitions::{Definition, Definitions, Settings};
use crate::config::diagnostic::Notes;

/// An authenticator that a component names.
struct Asked<'a> {
    id: &'a ComponentId,
    side: Side,
    /// Over gRPC without TLS.
    is_plain_grpc: bool,
    /// What it is for waits in a storage.
    is_stored: bool,
}

/// Notes what is wrong with the authenticators of components.
pub(super) fn check(definitions: &Definitions, running: &[ComponentId], notes: &Notes) {
    for definition in definitions.iter() {
        for asked in asked(definition) {
            let Err(reason) = judge(&asked, definitions, running) else {
                continue;
            };
            let path = format!("{}::{}", definition.role.key(), definition.id);
            let message = format!("{path}: auth: '{}' {reason}", asked.id);
            // A component that does not run needs nobody.
            if definition.used.get() {
                notes.error(definition.at, message)
            } else {
                notes.warn(definition.at, message)
            }
        }
    }
}

fn judge(
    asked: &Asked<'_>,
    definitions: &Definitions,
    running: &[ComponentId],
) -> Result<(), &'static str> {
    let definition = definitions.find(Role::Extension, asked.id);
    let settings = definition.and_then(|extension| extension.settings.as_ref());
    let Some(Settings::Extension(extension)) = settings else {
        return Err("is no extension that is defined and built in");
    };
    if !fits(extension, asked.side) {
        return Err(match asked.side {
            Side::Server => "cannot tell who sends",
            Side::Client => "has nothing to send",
        });
    }
    if !running.contains(asked.id) {
        return Err("is not in service::extensions");
    }
    let is_auth = |context: &&Context| matches!(context, Context::Auth(_));
    if asked.is_stored && extension.contexts().iter().any(is_auth) {
        return Err(
            "asks for what an authenticator found, which a queue with 'storage' does not keep",
        );
    }
    if asked.is_plain_grpc && is_secret(extension) {
        // As in gRPC: a secret does not go in plain text.
        Err("needs TLS over gRPC")
    } else {
        Ok(())
    }
}

fn asked<'a>(definition: &'a Definition) -> Vec<Asked<'a>> {
    let server = |id| Asked {
        id,
        side: Side::Server,
        is_plain_grpc: false,
        is_stored: false,
    };
    let client = |exporter: &'a Exporter| {
        let queue = exporter.any_queue();
        exporter.auth().map(|id| Asked {
            id,
            side: Side::Client,
            is_plain_grpc: exporter.is_plain_grpc(),
            is_stored: queue.is_some_and(|queue| queue.is_stored()),
        })
    };
    match &definition.settings {
        Some(Settings::Receiver(receiver)) => {
            let auths = receiver.server_auths().into_iter();
            auths.map(server).collect()
        }
        Some(Settings::Exporter(exporter)) => {
            let server = exporter.server_auth().map(server);
            server.into_iter().chain(client(exporter)).collect()
        }
        Some(Settings::Extension(Extension::HealthCheck(page))) => {
            page.server.auth.iter().map(server).collect()
        }
        Some(Settings::Extension(Extension::HealthCheckV2(pages))) => {
            pages.auth().map(server).collect()
        }
        _ => Vec::new(),
    }
}
