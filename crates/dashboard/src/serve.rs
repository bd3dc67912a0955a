//! The control thread: its sockets, and its connections.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread::JoinHandle;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::runtime::Builder;
use tokio::sync::{Notify, Semaphore, watch};
use tokio::time::{sleep, timeout};

use crate::limits::{
    ACCEPT_AGAIN, CONNECTION_END_MAX, CONNECTION_TIME_MAX, CONNECTIONS_MAX, END_MAX, FIELDS_MAX,
    HEAD_BYTES_MAX, HEAD_TIME_MAX, SLOW_THREADS_MAX,
};
use crate::routes::Site;
use crate::{Setup, Socket};

/// The stack of the control thread.
const STACK_BYTES: usize = 512 << 10;

/// The dashboard accepts connections until this value is dropped. The drop waits for the thread.
#[derive(Debug)]
pub struct Dashboard {
    end: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl Dashboard {
    /// Starts the control thread.
    ///
    /// # Errors
    /// A thread or the runtime cannot be created, or a socket cannot be watched.
    pub fn start(setup: Setup) -> io::Result<Dashboard> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(SLOW_THREADS_MAX)
            .thread_name("dashboard-slow")
            .build()?;
        let (end, ended) = watch::channel(false);
        let (site, sockets) = Site::new(setup);
        let server = Server {
            site: Arc::new(site),
            places: Arc::new(Semaphore::new(CONNECTIONS_MAX)),
            ended: ended.clone(),
        };
        let listeners = {
            let _within = runtime.enter();
            let listeners = sockets.into_iter().map(Listener::new);
            listeners.collect::<io::Result<Vec<_>>>()?
        };
        let work = move || {
            runtime.block_on(async {
                let places = Arc::clone(&server.places);
                for listener in listeners {
                    tokio::spawn(accept(listener, server.clone()));
                }
                over(ended).await;
                // Current answers may complete.
                let all = places.acquire_many(CONNECTIONS_MAX as u32);
                let _ = timeout(END_MAX, all).await;
            });
            runtime.shutdown_background();
        };
        let thread = std::thread::Builder::new().name("dashboard".to_owned());
        let thread = thread.stack_size(STACK_BYTES).spawn(work)?;
        Ok(Dashboard {
            end,
            thread: Some(thread),
        })
    }
}

impl Drop for Dashboard {
    fn drop(&mut self) {
        // A thread that has ended ignores the message.
        let _ = self.end.send(true);
        if let Some(thread) = self.thread.take() {
            // The panic was reported.
            let _ = thread.join();
        }
    }
}

#[derive(Clone)]
struct Server {
    site: Arc<Site>,
    places: Arc<Semaphore>,
    ended: watch::Receiver<bool>,
}

enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Listener {
    fn new(socket: Socket) -> io::Result<Listener> {
        fn blocks_never<T: From<OwnedFd>>(
            fd: OwnedFd,
            set: impl FnOnce(&T) -> io::Result<()>,
        ) -> io::Result<T> {
            let socket = T::from(fd);
            set(&socket)?;
            Ok(socket)
        }
        match socket {
            Socket::Tcp(fd) => {
                let socket: std::net::TcpListener =
                    blocks_never(fd, |socket: &std::net::TcpListener| {
                        socket.set_nonblocking(true)
                    })?;
                TcpListener::from_std(socket).map(Listener::Tcp)
            }
            Socket::Unix(fd) => {
                let socket: std::os::unix::net::UnixListener =
                    blocks_never(fd, |socket: &std::os::unix::net::UnixListener| {
                        socket.set_nonblocking(true)
                    })?;
                UnixListener::from_std(socket).map(Listener::Unix)
            }
        }
    }
}

async fn accept(listener: Listener, server: Server) {
    loop {
        // The sender outlives the runtime's tasks, and the semaphore is never closed.
        let Ok(place) = Arc::clone(&server.places).acquire_owned().await else {
            return;
        };
        let accepted = tokio::select! {
            biased;
            () = over(server.ended.clone()) => return,
            accepted = listener.next() => accepted,
        };
        match accepted {
            Ok(stream) => {
                let own = server.clone();
                tokio::spawn(async move {
                    own.serve(stream).await;
                    drop(place);
                });
            }
            Err(_) => sleep(ACCEPT_AGAIN).await,
        }
    }
}

/// A TCP or a UNIX connection.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

impl Listener {
    /// The next connection.
    async fn next(&self) -> io::Result<Box<dyn Stream>> {
        Ok(match self {
            Listener::Tcp(listener) => Box::new(listener.accept().await?.0),
            Listener::Unix(listener) => Box::new(listener.accept().await?.0),
        })
    }
}

impl Server {
    /// Serves a connection until it ends.
    async fn serve(self, stream: impl AsyncRead + AsyncWrite + Unpin) {
        let site = self.site;
        let asked = Notify::new();
        let service = service_fn(|request| {
            asked.notify_one();
            let site = Arc::clone(&site);
            async move { Ok::<_, std::convert::Infallible>(site.answer(request).await) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIME_MAX)
            .max_buf_size(HEAD_BYTES_MAX)
            .max_headers(FIELDS_MAX)
            .serve_connection(TokioIo::new(stream), service);
        let mut connection = std::pin::pin!(connection);
        tokio::select! {
            // A client that breaks the protocol or disconnects gets no answer.
            _ = connection.as_mut() => return,
            () = sleep(CONNECTION_TIME_MAX) => {}
            () = over(self.ended) => {}
        }
        // The graceful shutdown closes a connection that waits for its first request. No other
        // process can answer that request, so it is answered here.
        tokio::select! {
            _ = connection.as_mut() => return,
            () = asked.notified() => {}
            () = sleep(CONNECTION_END_MAX) => {}
        }
        connection.as_mut().graceful_shutdown();
        let _ = timeout(CONNECTION_END_MAX, connection).await;
    }
}

/// Waits until the dashboard must end.
async fn over(mut ended: watch::Receiver<bool>) {
    // If the sender is gone, the dashboard has ended too.
    let _ = ended.wait_for(|ended| *ended).await;
}
