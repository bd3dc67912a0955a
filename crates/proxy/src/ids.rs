//! Names of a configuration's objects and of connections and streams: typed indices instead of bare
//! numbers.

/// A proxy (`frontend`, `backend`, `listen`): its place in the configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ProxyId(u32);

impl ProxyId {
    /// The proxy at a place of the configuration.
    #[inline]
    pub fn at(place: usize) -> ProxyId {
        ProxyId(place as u32)
    }

    /// Its place.
    #[inline]
    pub fn place(self) -> usize {
        self.0 as usize
    }

    /// As expressions name it.
    #[inline]
    pub fn number(self) -> u32 {
        self.0
    }
}

/// A server of a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ServerId {
    pub backend: ProxyId,
    place: u32,
}

impl ServerId {
    /// The server at a place of its backend.
    #[inline]
    pub fn at(backend: ProxyId, place: usize) -> ServerId {
        ServerId {
            backend,
            place: place as u32,
        }
    }

    /// Its place in its backend.
    #[inline]
    pub fn place(self) -> usize {
        self.place as usize
    }

    /// As expressions name it.
    #[inline]
    pub fn number(self) -> u32 {
        self.place
    }
}

/// A `bind` line of a frontend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct BindId {
    pub frontend: ProxyId,
    pub place: usize,
}

/// A rule: its proxy and its place in the current rule set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RuleId {
    pub proxy: ProxyId,
    pub place: usize,
}

/// The slot of a connection or of an exchange in the table of folder `link`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LinkId {
    pub slot: u32,
    pub generation: u32,
}

impl net::slots::Key for LinkId {
    fn new(slot: u32, generation: u32) -> Self {
        LinkId { slot, generation }
    }
    fn slot(self) -> u32 {
        self.slot
    }
    fn generation(self) -> u32 {
        self.generation
    }
}

/// A connection of this worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ConnId(LinkId);

impl ConnId {
    /// The connection in this slot, which holds one.
    #[inline]
    pub fn of(link: LinkId) -> ConnId {
        ConnId(link)
    }

    /// The exchange of a connection that serves one at a time.
    #[inline]
    pub fn only_exchange(self) -> ExchangeId {
        ExchangeId(self.0)
    }
}

/// A request and its response on a connection, or the two directions of a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ExchangeId(LinkId);

impl ExchangeId {
    /// The exchange in this slot, which holds one.
    #[inline]
    pub fn of(link: LinkId) -> ExchangeId {
        ExchangeId(link)
    }

    /// The connection that the exchange has for itself, as `Links::own_connection`
    /// knows.
    #[inline]
    pub fn own_connection(self) -> ConnId {
        ConnId(self.0)
    }
}

impl From<ConnId> for LinkId {
    #[inline]
    fn from(conn: ConnId) -> LinkId {
        conn.0
    }
}

impl From<ExchangeId> for LinkId {
    #[inline]
    fn from(exchange: ExchangeId) -> LinkId {
        exchange.0
    }
}

/// A stream of this worker: its place. Places are reused; [`sample::Txn::id`] identifies a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct StreamId(pub u32);

/// The owner of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    Link(LinkId),
    Stream(StreamId),
    /// A QUIC connection, by its name at the worker's endpoint.
    Quic(u32),
}

/// The deadlines of a worker.
pub(crate) type Timers = net::timers::Timers<Owner>;

/// The proxy that has a QUIC connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QuicUser {
    /// It is a client's, and counts for its frontend.
    Frontend(ProxyId),
    /// It is one to a server of this backend.
    Backend(ProxyId),
}
