//! Rings (manual §12.5): their buffers, and the thread that sends to their servers.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use config::model::Config;
use net::logs::{News, Reach};
use net::ring::Ring;
use net::ring_file::RingFile;
use net::sys::plain_error;
use proxy::{RuntimeConfig, SectionServer};
use syslog::servers::{Runner, Server};
use tls::stream::GetConnector;

/// The files of the rings that have one, in the order of the configuration.
pub(crate) type RingFiles = Vec<Option<RingFile>>;

/// See the module.
pub(crate) struct Rings {
    /// In the order of the configuration.
    rings: Vec<Arc<Ring>>,
    /// Whether each server is reached.
    reaches: Vec<Arc<Reach>>,
    runner: Option<Runner>,
}

impl Rings {
    /// Creates the files of the rings, in the order of the configuration.
    ///
    /// # Errors
    /// Which file cannot be created, and why.
    pub fn create_files(config: &Config) -> Result<RingFiles, String> {
        let create = |ring: &config::model::Ring| {
            let Some(path) = &ring.backing_file else {
                return Ok(None);
            };
            let file = RingFile::create(path, ring.bytes_max).map_err(|error| {
                let (path, name, why) = (path.display(), &ring.name, plain_error(&error));
                format!("cannot open backing-file '{path}' for ring '{name}': {why}.")
            })?;
            Ok(Some(file))
        };
        config.rings.iter().map(create).collect()
    }

    /// Creates the buffers, and starts the thread if there are servers. `wake` is called when
    /// [`Rings::tell`] has something to report.
    ///
    /// # Errors
    /// The thread cannot be created.
    pub fn start(
        runtime_config: &Arc<RuntimeConfig>,
        files: RingFiles,
        wake: fn(),
    ) -> io::Result<Rings> {
        let mut rings = Vec::new();
        let mut reaches = Vec::new();
        let mut servers = Vec::new();
        let mut files = files.into_iter();
        for (place, ring) in runtime_config.config.rings.iter().enumerate() {
            let buffer = Arc::new(match files.next().flatten() {
                Some(file) => Ring::with_file(ring.bytes_max, file),
                None => Ring::new(ring.bytes_max),
            });
            for (number, server) in ring.servers.iter().enumerate() {
                let own = Arc::clone(runtime_config);
                let connector = server.tls.as_ref().map(|_| -> GetConnector {
                    let server = SectionServer::Ring {
                        section: place,
                        server: number,
                    };
                    Box::new(move || own.tls().section_server(server))
                });
                let name = format!("{}/{}", ring.name, server.name);
                let reach = Arc::new(Reach::new(name, Duration::ZERO, wake));
                reaches.push(Arc::clone(&reach));
                servers.push(Server {
                    ring: Arc::clone(&buffer),
                    address: server.address,
                    framing: server.framing,
                    timeout_connect: ring.timeout_connect,
                    timeout_server: ring.timeout_server,
                    connector,
                    reach,
                });
            }
            rings.push(buffer);
        }
        let runner = if servers.is_empty() {
            None
        } else {
            Some(Runner::start(servers)?)
        };
        Ok(Rings {
            rings,
            reaches,
            runner,
        })
    }

    /// The buffers, in the order of the configuration.
    pub fn buffers(&self) -> &[Arc<Ring>] {
        &self.rings
    }

    /// Reports servers that became unreachable, and those that are reached again.
    pub fn tell(&self) {
        for reach in &self.reaches {
            let name = reach.name();
            while let Some(news) = reach.news() {
                match news {
                    News::Fails(why) => crate::warning(&format!(
                        "ring server {name} cannot be reached : {why} ; its messages wait in the ring, which drops the oldest ones when it is full."
                    )),
                    News::Works { .. } => {
                        crate::notice(&format!("ring server {name} is reached again."));
                    }
                }
            }
        }
    }

    /// Sends what is left within a limited time, and ends the thread.
    pub fn close(self) {
        if let Some(runner) = self.runner {
            runner.stop();
        }
    }
}
