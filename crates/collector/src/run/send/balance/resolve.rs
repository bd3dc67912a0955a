//! Names of backends: those that are written, or the addresses of a host, asked for again and
//! again.

use std::net::{IpAddr, SocketAddr};
use std::sync::Weak;
use std::time::Duration;

use export::lookup::Lookup;

use super::Balancer;
use crate::config::components::exporters::load_balancing::Dns;

/// The port of a backend that has none.
const PORT: u16 = 4317;

/// The address of a backend as the ring names it.
#[must_use]
pub fn with_port(name: &str) -> String {
    // An address of version 6 has colons of its own.
    if name.ends_with(']') || !name.contains(':') {
        format!("{name}:{PORT}")
    } else {
        name.to_owned()
    }
}

/// Asks for the addresses of a host, until the balancer is gone.
pub(super) async fn run(balancer: Weak<Balancer>, dns: Dns) {
    let mut lookup = Lookup::default();
    let mut ticks = tokio::time::interval(Duration::from_nanos(dns.interval_ns));
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let timeout = Duration::from_nanos(dns.timeout_ns);
        let addresses = lookup.ask(&dns.hostname, 0, timeout).await;
        let Some(balancer) = balancer.upgrade() else {
            return;
        };
        match addresses {
            Ok(addresses) => {
                let addresses = addresses.iter().map(SocketAddr::ip);
                balancer.resolved(names(addresses, dns.port));
            }
            Err(why) => balancer.unresolved(&format!("{}: {why}", dns.hostname)),
        }
    }
}

/// Addresses as the Collector writes them, so that both have one ring; sorted.
fn names(addresses: impl Iterator<Item = IpAddr>, port: Option<u16>) -> Vec<String> {
    let name = |address: IpAddr| {
        let host = match address.to_canonical() {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => format!("[{address}]"),
        };
        match port {
            Some(port) => format!("{host}:{port}"),
            None => host,
        }
    };
    let mut names: Vec<String> = addresses.map(name).collect();
    names.sort();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_collectors() {
        let addresses = || {
            let texts = ["10.0.0.2", "::1", "10.0.0.10", "::ffff:10.0.0.2"];
            texts.into_iter().map(|text| text.parse().unwrap())
        };
        assert_eq!(
            names(addresses(), Some(55690)),
            ["10.0.0.10:55690", "10.0.0.2:55690", "[::1]:55690"]
        );
        assert_eq!(names(addresses(), None), ["10.0.0.10", "10.0.0.2", "[::1]"]);
        assert_eq!(with_port("10.0.0.2"), "10.0.0.2:4317");
        assert_eq!(with_port("[::1]"), "[::1]:4317");
        assert_eq!(with_port("backend:1"), "backend:1");
    }
}
