//! Running configurations for unit tests.

use std::time::Duration;

use super::{Process, RuntimeConfig, Tls};
use crate::ids::ProxyId;

/// The running configuration of a text, which must be good.
pub(crate) fn from_text(text: &str) -> RuntimeConfig {
    let input = config::reader::Input {
        name: "test.cfg".into(),
        text: text.as_bytes().to_vec(),
    };
    let build = config::condition::BuildInfo::default();
    let options = config::load::LoadOptions {
        build: &build,
        settings: config::build::Settings::default(),
        zero_warning: false,
    };
    let mut environment = config::environment::Environment::new();
    let no_file = |name: &str| Err(format!("no {name}"));
    let loaded = config::load::load_with(&[input], options, &mut environment, &no_file);
    let (config, _) = loaded.expect("a good configuration");
    let (tls, _) = Tls::load(
        &config,
        Duration::ZERO,
        tls::Passphrases::new(&mut |_| Err(String::new())),
    );
    RuntimeConfig::new(config, tls, Process::default())
}

/// The proxy of this name, which must exist.
pub(crate) fn proxy_named(runtime_config: &RuntimeConfig, name: &str) -> ProxyId {
    let proxies = &runtime_config.config.proxies;
    let place = proxies.iter().position(|proxy| &*proxy.name == name);
    ProxyId::at(place.expect("a proxy of this name"))
}
