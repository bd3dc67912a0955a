//! Looks up the addresses of a name with the resolver of the process ([`resolvers::system`]).

use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper_util::client::legacy::connect::dns::Name;
use resolvers::system::{LookupError, of_process};
use tokio::task::JoinHandle;
use tower_service::Service;

/// One lookup at a time: nameservers may take longer than the caller's time limit.
#[derive(Default)]
pub struct Lookup(Option<JoinHandle<Result<Vec<SocketAddr>, LookupError>>>);

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
            tokio::spawn(async move { of_process().lookup(&host, port).await })
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

/// The resolver of the process, for hyper's connections.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProcessResolver;

impl Service<Name> for ProcessResolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = LookupError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, LookupError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), LookupError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        // The connector sets the port.
        Box::pin(async move { Ok(of_process().lookup(name.as_str(), 0).await?.into_iter()) })
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
