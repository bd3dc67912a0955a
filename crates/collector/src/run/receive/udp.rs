//! Jaeger's agent: Thrift over UDP, a message a datagram. UDP has no answer: what finds no room is
//! gone, and counted.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use socket2::{Domain, Socket, Type};
use tokio::net::UdpSocket;
use tokio::sync::watch;

use super::listen::Stage;
use super::status::Fault;
use super::{Intake, Listening, Opening, Sharing};
use crate::config::Signal;
use crate::config::components::receivers::jaeger::Agent;
use crate::run::translate::jaeger;

/// No datagram is larger (RFC 768: a length of 16 bits).
const DATAGRAM_BYTES_MAX: usize = 65_535;

/// Opens the socket and takes what comes, in the compact protocol or the binary one. To be called
/// within the runtime.
///
/// # Errors
/// Why it cannot be opened.
pub fn listen(
    agent: &Agent,
    is_compact: bool,
    intake: Arc<Intake>,
    opening: Opening<'_>,
) -> Result<Listening, String> {
    let failed = |error: io::Error| format!("{}:{}: {error}", agent.host, agent.port);
    let address = format!("udp {}:{}", agent.host, agent.port);
    let bind = || open(agent, opening.sharing).map(OwnedFd::from);
    let (fd, keep) = opening.listeners.open(address, bind).map_err(failed)?;
    let socket = UdpSocket::from_std(fd.into()).map_err(failed)?;
    let address = socket.local_addr().ok();
    let (stage, stages) = watch::channel(Stage::Open);
    let bytes_max = agent.datagram_bytes_max.min(DATAGRAM_BYTES_MAX);
    let task = tokio::spawn(async move {
        run(socket, bytes_max, is_compact, intake, stages).await;
        drop(keep);
    });
    Ok(Listening::new(address, task, stage))
}

fn open(agent: &Agent, sharing: Sharing) -> io::Result<Socket> {
    // Every address: that of version 6 takes both.
    let hosts: &[&str] = match agent.host.as_str() {
        "" => &["::", "0.0.0.0"],
        host => &[host],
    };
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for host in hosts {
        for address in (*host, agent.port).to_socket_addrs()? {
            match bind(agent, address, sharing) {
                Ok(socket) => return Ok(socket),
                Err(error) => last = error,
            }
        }
    }
    Err(last)
}

fn bind(agent: &Agent, address: SocketAddr, sharing: Sharing) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, None)?;
    if address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    if sharing == Sharing::Shared {
        socket.set_reuse_port(true)?;
    }
    if agent.socket_buffer_bytes > 0 {
        socket.set_recv_buffer_size(agent.socket_buffer_bytes)?;
    }
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    Ok(socket)
}

async fn run(
    socket: UdpSocket,
    bytes_max: usize,
    is_compact: bool,
    intake: Arc<Intake>,
    mut stages: watch::Receiver<Stage>,
) {
    // A datagram that is too long fills the last byte.
    let mut buffer = vec![0; bytes_max + 1];
    loop {
        let received = tokio::select! {
            biased;
            _ = stages.changed() => return,
            received = socket.recv(&mut buffer) => received,
        };
        // An error is one of an earlier answer, which we never send.
        let Ok(len) = received else { continue };
        // There is no sender to be told.
        if let Err(fault) = take(&intake, &buffer[..len], bytes_max, is_compact).await {
            intake.entrance.tell(&fault);
        }
    }
}

async fn take(
    intake: &Intake,
    datagram: &[u8],
    bytes_max: usize,
    is_compact: bool,
) -> Result<(), Fault> {
    let request = if datagram.len() > bytes_max {
        Err("the datagram is too long".to_owned())
    } else {
        jaeger::from_datagram(datagram, is_compact)
    };
    let bytes = intake.translated(request)?;
    // Nobody is told what becomes of it.
    let charge = intake.charge(&bytes)?;
    let given = intake.give(Signal::Traces, (bytes, charge), None).await;
    given.map(drop).map_err(Fault::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::components::receivers::jaeger::JaegerReceiver;
    use crate::config::receiver;

    #[tokio::test]
    async fn the_buffer_of_a_socket_is_as_large_as_the_settings_say() {
        let agent = |bytes: u32| {
            let agent = format!("{{ endpoint: '127.0.0.1:0', socket_buffer_size: {bytes} }}");
            let settings = receiver(&format!(
                "jaeger: {{ protocols: {{ thrift_compact: {agent}, thrift_binary: {agent} }} }}"
            ));
            let jaeger: &JaegerReceiver = settings.get().expect("a receiver");
            [jaeger.thrift_compact.clone(), jaeger.thrift_binary.clone()]
        };
        let size = |agent: &Option<Agent>| {
            let socket = open(agent.as_ref().expect("an agent"), Sharing::Alone);
            let socket = socket.expect("a socket");
            socket2::SockRef::from(&socket)
                .recv_buffer_size()
                .expect("a size")
        };
        // The system doubles it, for its own use (socket(7)), or not.
        for (small, large) in agent(20_000).iter().zip(&agent(60_000)) {
            assert!([20_000, 40_000].contains(&size(small)));
            assert!([60_000, 120_000].contains(&size(large)));
        }
    }
}
