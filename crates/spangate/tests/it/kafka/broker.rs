//! A broker as a child.

use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use crate::common::tls::Authority;
use crate::common::{Folder, address, eventually, listener, skipped};

/// See the module. It ends with its value.
pub struct Broker {
    /// `host:port`
    pub at: String,
    /// The same for users, in the clear.
    pub sasl: String,
    /// And over TLS.
    pub tls: String,
    /// The file of the authority of its certificate.
    pub authority: String,
    child: Child,
    /// What starts it.
    command: Command,
    port: u16,
    _folder: Folder,
}

impl Broker {
    /// One with nothing in it; none where there is no Java, or no jars of Kafka.
    pub fn start() -> Option<Broker> {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/kafka/broker");
        // The jars first, which may take a while.
        let jars = Command::new(script).status().expect("a script");
        if !jars.success() {
            skipped("no broker of Kafka can be started: Java or the jars are missing");
            return None;
        }
        let folder = Folder::new();
        let authority = Authority::new("kafka");
        folder.write("pems/server.pem", authority.issue(&["127.0.0.1"]));
        let authority = folder.write("ca.pem", authority.pem());
        // The broker must know its ports.
        let ports: Vec<u16> = {
            let free: Vec<_> = (0..4).map(|_| listener()).collect();
            free.iter().map(|one| address(one).port()).collect()
        };
        let [plain, controller, sasl, tls] = ports[..] else {
            panic!("{ports:?}")
        };
        let mut command = Command::new(script);
        command
            .arg(folder.path("broker"))
            .args([plain, controller, sasl, tls].map(|port| port.to_string()))
            .arg(folder.path("pems"))
            .stdin(Stdio::null());
        let child = listening(&mut command, plain);
        let at = |port: u16| format!("127.0.0.1:{port}");
        Some(Broker {
            at: at(plain),
            sasl: at(sasl),
            tls: at(tls),
            authority,
            child,
            command,
            port: plain,
            _folder: folder,
        })
    }

    /// It dies.
    pub fn die(&mut self) {
        self.child.kill().expect("it ran");
        self.child.wait().expect("its end");
    }

    /// It comes back with what it had.
    pub fn come_back(&mut self) {
        self.child = listening(&mut self.command, self.port);
    }
}

/// Starts it, and waits until it listens.
fn listening(command: &mut Command, port: u16) -> Child {
    let mut child = command.spawn().expect("a broker");
    eventually("the broker listens", || {
        assert_eq!(child.try_wait().expect("a child"), None, "it ended");
        TcpStream::connect(("127.0.0.1", port)).ok()
    });
    child
}

impl Drop for Broker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
