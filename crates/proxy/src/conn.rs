//! The engine's side of a connection: small entries indexed by the driver's slots.

use net::ConnId;
use sample::Session;

use crate::input::Input;
use crate::stream::StreamId;

/// What the engine knows of one connection.
#[derive(Debug, Default)]
pub(crate) struct Conn {
    pub generation: u32,
    /// The driver still holds unsent bytes.
    pub backlog: bool,
    /// Reading is paused.
    pub paused: bool,
    /// The peer's end came.
    pub eof: bool,
    /// Our end was sent.
    pub shut: bool,
    /// Bytes that came and nobody has taken yet.
    pub input: Input,
    pub role: Role,
}

/// Which side of the proxy a connection is on.
#[derive(Debug, Default)]
pub(crate) enum Role {
    /// No connection lives in this slot.
    #[default]
    Free,
    Client(Client),
    Server(Server),
}

/// A client connection.
#[derive(Debug)]
pub(crate) struct Client {
    pub session: Session,
    pub listener: usize,
    pub frontend: usize,
    pub stage: Stage,
    /// The stream that it works on; none between requests.
    pub stream: Option<StreamId>,
    /// Streams so far.
    pub streams: u32,
    /// Its streams are HTTP: by the frontend's mode, or since one of them was upgraded.
    pub is_http: bool,
    /// A server connection that only this client may use again (`http-reuse never`, PROXY protocol).
    pub kept: Option<ConnId>,
    /// Closing, it is read until it has seen our end.
    pub lingers: bool,
    /// When the last stream ended: what `%Ti` and the keep-alive timeout count from.
    pub idle_since: net::Now,
}

/// How far a client connection has come before its first stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The PROXY protocol header is awaited.
    ProxyHeader,
    /// `tcp-request session` rules are due.
    Session,
    /// Its last bytes leave, or it has yet to see our end; then it closes.
    Closing,
    /// Streams begin as bytes come.
    Ready,
}

/// A server connection.
#[derive(Debug)]
pub(crate) struct Server {
    pub backend: usize,
    pub server: usize,
    /// The stream that it serves; none while it is idle.
    pub stream: Option<StreamId>,
    /// It does not stand yet.
    pub connecting: bool,
    /// Responses it has completed.
    pub served: u32,
    /// Only the client that opened it may use it again.
    pub private: bool,
    /// Its place in the idle pool.
    pub pool_place: Option<u32>,
    /// The client that keeps it, when it is private and idle.
    pub keeper: Option<ConnId>,
    /// The PROXY protocol header that it begins with; empty for none.
    pub header: Box<[u8]>,
    /// What its packets carry. One whose packets carry anything is private.
    pub labels: net::Labels,
}

impl Conn {
    pub fn client(&mut self) -> Option<&mut Client> {
        match &mut self.role {
            Role::Client(client) => Some(client),
            _ => None,
        }
    }

    pub fn server(&mut self) -> Option<&mut Server> {
        match &mut self.role {
            Role::Server(server) => Some(server),
            _ => None,
        }
    }
}

/// Connections by slot.
#[derive(Debug, Default)]
pub(crate) struct Conns {
    entries: Vec<Conn>,
}

/// The leftover buffer that an idle connection may keep; a larger one is given back.
const IDLE_INPUT_BYTES_MAX: usize = 256;

impl Conns {
    pub fn insert(&mut self, id: ConnId, role: Role) {
        let slot = id.slot as usize;
        if slot >= self.entries.len() {
            self.entries.resize_with(slot + 1, Conn::default);
        }
        let entry = &mut self.entries[slot];
        debug_assert!(matches!(entry.role, Role::Free), "slot {slot} is taken");
        let mut input = std::mem::take(&mut entry.input);
        input.clear();
        *entry = Conn {
            generation: id.generation,
            role,
            input,
            ..Conn::default()
        };
    }

    /// The connection of this name, unless it is gone.
    pub fn get(&mut self, id: ConnId) -> Option<&mut Conn> {
        let entry = self.entries.get_mut(id.slot as usize)?;
        let lives = entry.generation == id.generation && !matches!(entry.role, Role::Free);
        lives.then_some(entry)
    }

    pub fn client(&mut self, id: ConnId) -> Option<&mut Client> {
        self.get(id)?.client()
    }

    pub fn server(&mut self, id: ConnId) -> Option<&mut Server> {
        self.get(id)?.server()
    }

    pub fn client_ref(&self, id: ConnId) -> Option<&Client> {
        let entry = self.entries.get(id.slot as usize)?;
        match &entry.role {
            Role::Client(client) if entry.generation == id.generation => Some(client),
            _ => None,
        }
    }

    pub fn server_ref(&self, id: ConnId) -> Option<&Server> {
        let entry = self.entries.get(id.slot as usize)?;
        match &entry.role {
            Role::Server(server) if entry.generation == id.generation => Some(server),
            _ => None,
        }
    }

    /// A client's session, and its bytes that nobody has taken yet.
    #[inline]
    pub fn session_and_input(&self, id: ConnId) -> Option<(&Session, &[u8])> {
        let entry = self.entries.get(id.slot as usize)?;
        match &entry.role {
            Role::Client(client) if entry.generation == id.generation => {
                Some((&client.session, &entry.input))
            }
            _ => None,
        }
    }

    /// The bytes of a connection that nobody has taken yet.
    pub fn input(&self, id: ConnId) -> &[u8] {
        match self.entries.get(id.slot as usize) {
            Some(entry) if entry.generation == id.generation => &entry.input,
            _ => &[],
        }
    }

    /// The living connection in a slot, for a timer.
    pub fn in_slot(&self, slot: u32) -> Option<ConnId> {
        let entry = self.entries.get(slot as usize)?;
        let lives = !matches!(entry.role, Role::Free);
        lives.then_some(ConnId {
            slot,
            generation: entry.generation,
        })
    }

    pub fn remove(&mut self, id: ConnId) -> Option<Role> {
        let entry = self.get(id)?;
        entry.input = Input::default();
        Some(std::mem::take(&mut entry.role))
    }

    /// Gives back the memory that an idle connection does not need.
    pub fn slim(&mut self, id: ConnId) {
        if let Some(entry) = self.get(id)
            && entry.input.capacity() > IDLE_INPUT_BYTES_MAX
            && entry.input.is_empty()
        {
            entry.input = Input::default();
        }
    }

    /// All living connections with what they are.
    pub fn all(&self) -> impl Iterator<Item = (ConnId, &Role)> {
        self.ids()
            .map(|id| (id, &self.entries[id.slot as usize].role))
    }

    /// All living connections.
    pub fn ids(&self) -> impl Iterator<Item = ConnId> + '_ {
        (0..self.entries.len() as u32).filter_map(|slot| self.in_slot(slot))
    }
}
