//! Looks up the addresses of a name with the system's resolver.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::task::JoinHandle;

/// One lookup at a time: the system's resolver may take longer than the caller's time limit.
#[derive(Default)]
pub struct Lookup(Option<JoinHandle<io::Result<Vec<SocketAddr>>>>);

impl Lookup {
    /// The addresses of a host and port, within a time. A result that arrives later is returned by
    /// the next call.
    ///
    /// # Errors
    /// There are no addresses.
    pub async fn ask(
        &mut self,
        host: &str,
        port: u16,
        timeout: Duration,
    ) -> Result<Vec<SocketAddr>, String> {
        let question = self.0.get_or_insert_with(|| {
            let host = host.to_owned();
            tokio::spawn(async move { Ok(tokio::net::lookup_host((host, port)).await?.collect()) })
        });
        let answer = match tokio::time::timeout(timeout, question).await {
            Ok(answer) => answer,
            Err(_) => return Err("no answer in time".to_owned()),
        };
        self.0 = None;
        match answer {
            Ok(Ok(addresses)) => Ok(addresses),
            Ok(Err(error)) => Err(error.to_string()),
            Err(error) => Err(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_host_is_asked_for() {
        let patience = Duration::from_secs(20);
        let addresses = Lookup::default().ask("localhost", 1, patience).await;
        let addresses = addresses.unwrap();
        let is_ours = |address: &SocketAddr| address.ip().is_loopback() && address.port() == 1;
        assert!(!addresses.is_empty());
        assert!(addresses.iter().all(is_ours), "{addresses:?}");
    }
}
