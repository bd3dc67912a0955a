//! Checks the ports of collectors for conflicts. Collectors share their ports with the process that
//! a reload starts. Therefore the system would also let two parts of one process share a port and
//! would distribute connections between them.

use std::net::SocketAddr;

use ::config::model::{BindAddress, CollectorSection, Config};
use collector::run::Collector;

/// The ports of bind lines, each with a description of its owner.
pub(super) fn of_proxies(config: &Config) -> Vec<(SocketAddr, String)> {
    let proxies = config.proxies.iter().filter(|proxy| !proxy.disabled);
    let binds = proxies.flat_map(|proxy| proxy.binds.iter().map(move |bind| (proxy, bind)));
    let ports = binds.filter_map(|(proxy, bind)| match &bind.address {
        BindAddress::Addr(net::Addr::Inet(at)) => {
            Some((*at, format!("{} of proxy '{}'", bind.origin, proxy.name)))
        }
        _ => None,
    });
    ports.collect()
}

/// Claims the ports of a collector.
///
/// # Errors
/// The current owner of one of the ports.
pub(super) fn claim(
    section: &CollectorSection,
    collector: &Collector,
    taken: &mut Vec<(SocketAddr, String)>,
) -> Result<(), String> {
    for (name, at) in collector.addresses() {
        let Some(at) = at else { continue };
        if let Some((_, other)) = taken.iter().find(|(other, _)| overlap(*other, at)) {
            return Err(format!(
                "{name}: the address {at} is already used by {other}"
            ));
        }
        taken.push((at, format!("{name} of collector '{}'", section.name)));
    }
    Ok(())
}

fn overlap(one: SocketAddr, other: SocketAddr) -> bool {
    let any = one.ip().is_unspecified() || other.ip().is_unspecified();
    one.port() == other.port() && (any || one.ip() == other.ip())
}
