//! QUIC of the process: the secrets of its connections, and their limits.

use config::model::Config;

use super::Process;

/// See the module.
#[derive(Debug)]
pub(crate) struct QuicConfig {
    pub keys: quic::Keys,
    pub limits: quic::Limits,
}

impl QuicConfig {
    pub fn new(_config: &Config, process: &Process) -> QuicConfig {
        QuicConfig {
            keys: quic::Keys::new(&process.secret),
            limits: quic::Limits::default(),
        }
    }
}
