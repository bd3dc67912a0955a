//! Opens connections to the single addresses of an endpoint's host.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::Uri;
use hyper_rustls::HttpsConnector;
use tokio::sync::Mutex;
use tonic::client::Grpc as Client;
use tonic::transport::{Channel, Endpoint};
use tower_service::Service;

use super::lanes::World;
use crate::causes::causes;
use crate::dial::Dial;
use crate::lookup::Lookup;
use crate::tls::{Secure, Version};

/// The time limit of a name lookup.
const LOOKUP_MAX: Duration = Duration::from_secs(10);

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Looks up the addresses of a name.
pub(super) type Ask = Box<dyn Fn() -> Boxed<Result<Vec<SocketAddr>, String>> + Send + Sync>;

/// A lookup by the resolver of the process.
pub(super) fn system(host: &str, port: u16) -> Ask {
    let host: Arc<str> = host.into();
    let lookup = Arc::<Mutex<Lookup>>::default();
    Box::new(move || {
        let (host, lookup) = (Arc::clone(&host), Arc::clone(&lookup));
        Box::pin(async move {
            let answer = lookup.lock().await.ask(&host, port, LOOKUP_MAX).await;
            answer.map_err(|why| format!("{host}: {why}"))
        })
    })
}

/// Looks up addresses and connects to them.
pub(super) struct Dialer {
    /// The lookup.
    pub ask: Ask,
    pub secure: Secure,
    /// The host name, and the connection options.
    pub endpoint: Endpoint,
    pub connect_max: Duration,
    /// Makes a client from a connection.
    pub client: fn(Channel) -> Client<Channel>,
}

impl World for Dialer {
    type Connection = Client<Channel>;

    async fn ask(&self) -> Result<Vec<SocketAddr>, String> {
        (self.ask)().await
    }

    async fn connect(&self, to: SocketAddr) -> Result<Client<Channel>, String> {
        let dial = Dial::at(to, self.connect_max)?;
        let connector = self.secure.connector(Version::Http2, dial);
        let connecting = self.endpoint.connect_with_connector(Once(Some(connector)));
        let channel = connecting.await.map_err(|error| causes(&error))?;
        Ok((self.client)(channel))
    }
}

/// Connects once: the task that keeps the connection opens the next one.
struct Once(Option<HttpsConnector<Dial>>);

type BoxError = Box<dyn std::error::Error + Send + Sync>;

impl Service<Uri> for Once {
    type Response = <HttpsConnector<Dial> as Service<Uri>>::Response;
    type Error = BoxError;
    type Future = Boxed<Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        match &mut self.0 {
            Some(connector) => connector.poll_ready(context),
            None => Poll::Ready(Ok(())),
        }
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        match self.0.take() {
            Some(mut connector) => Box::pin(connector.call(uri)),
            None => Box::pin(async { Err("the connection is gone".into()) }),
        }
    }
}
