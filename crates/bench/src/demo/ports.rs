//! The ports of the demo.

use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};

use crate::Failure;

/// All ports, on the loopback address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ports {
    http: u16,
    https: u16,
    dashboard: u16,
    otlp: u16,
}

impl Default for Ports {
    fn default() -> Ports {
        Ports {
            http: 8080,
            https: 8443,
            dashboard: 8404,
            otlp: 8405,
        }
    }
}

impl Ports {
    /// Four ports from this one on.
    ///
    /// # Errors
    /// There are not enough ports.
    pub fn from(text: &str) -> Result<Ports, Failure> {
        let first: u16 = text.parse().unwrap_or(0);
        match first {
            1..=65_532 => Ok(Ports {
                http: first,
                https: first + 1,
                dashboard: first + 2,
                otlp: first + 3,
            }),
            _ => Err(format!("PORT={text} is not a port from 1 to 65532").into()),
        }
    }

    pub fn http(self) -> SocketAddr {
        local(self.http)
    }

    pub fn https(self) -> SocketAddr {
        local(self.https)
    }

    pub fn dashboard(self) -> SocketAddr {
        local(self.dashboard)
    }

    /// The address for the origins' spans.
    pub fn otlp(self) -> SocketAddr {
        local(self.otlp)
    }

    /// The variables with the ports for the configuration.
    pub fn variables(self) -> [(&'static str, String); 4] {
        [
            ("SPANGATE_PORT_HTTP", self.http.to_string()),
            ("SPANGATE_PORT_HTTPS", self.https.to_string()),
            ("SPANGATE_PORT_DASHBOARD", self.dashboard.to_string()),
            ("SPANGATE_PORT_OTLP", self.otlp.to_string()),
        ]
    }

    /// Checks that all ports are free.
    ///
    /// # Errors
    /// The first port that is in use, and what to do.
    pub fn check(self) -> Result<(), Failure> {
        let in_use = |address: SocketAddr, error: io::Error| {
            format!(
                "port {} cannot be used ({error}): `make demo PORT=9000` uses 9000 to 9003 instead",
                address.port()
            )
        };
        for address in [self.http(), self.https(), self.dashboard(), self.otlp()] {
            TcpListener::bind(address).map_err(|error| in_use(address, error))?;
        }
        // HTTP/3.
        let address = self.https();
        UdpSocket::bind(address).map_err(|error| in_use(address, error))?;
        Ok(())
    }
}

fn local(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_move_together() {
        let ports = Ports::from("9000").unwrap();
        let all = [ports.http(), ports.https(), ports.dashboard(), ports.otlp()];
        assert_eq!(all.map(|address| address.port()), [9000, 9001, 9002, 9003]);
        for wrong in ["", "0", "65533", "http"] {
            assert!(Ports::from(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_port_in_use_says_what_to_do() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = taken.local_addr().unwrap().port();
        let ports = Ports {
            dashboard: port,
            http: 0,
            https: 0,
            otlp: 0,
        };
        let message = ports.check().unwrap_err().to_string();
        assert!(message.contains(&format!("port {port} ")), "{message}");
        assert!(message.contains("PORT="), "{message}");
        let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
        let ports = Ports {
            dashboard: 0,
            https: taken.local_addr().unwrap().port(),
            ..ports
        };
        assert!(ports.check().is_err());
    }
}
