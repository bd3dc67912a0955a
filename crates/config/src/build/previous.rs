//! The configuration that a new one follows in a running process.
//!
//! Streams that run keep the previous configuration, new streams take the new one, and both use the
//! same counters and states. Those are found by places: that of a proxy in
//! [`Config::proxies`], of a server in [`Proxy::servers`], of a bind line in [`Proxy::binds`]. So an
//! object of the new configuration gets the place of the previous one of its name. Objects that the
//! new configuration lacks leave a placeholder (`is_removed`), which keeps the place until its
//! object returns, or until the process reports that nothing uses the place. New objects take such
//! free places, or new ones behind all others.
//!
//! The same proxy is one of the same name and the same kind (frontend, backend, both). The same bind
//! line is one of the same address, interface and namespace; its places are never free, because a
//! previous address may return.

use std::collections::HashMap;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Deref;
use std::sync::Arc;

use super::Shared;
use crate::model::{Bind, Config, Mode, Proxy, Server, ServerAddress, ServerChecks, ServerOptions};

/// A configuration that other parts of the process hold too.
#[derive(Clone)]
pub struct Held(Arc<dyn AsRef<Config> + Send + Sync>);

impl Held {
    /// The configuration within a larger value.
    pub fn of(owner: Arc<impl AsRef<Config> + Send + Sync + 'static>) -> Held {
        Held(owner)
    }
}

impl Deref for Held {
    type Target = Config;

    fn deref(&self) -> &Config {
        (*self.0).as_ref()
    }
}

impl AsRef<Config> for Config {
    fn as_ref(&self) -> &Config {
        self
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held").finish_non_exhaustive()
    }
}

/// The configuration that a new one follows in a running process, and the names that it has now.
#[derive(Clone, Debug)]
pub struct Previous {
    /// The configuration.
    pub config: Held,
    /// One entry for each place of [`Config::proxies`].
    pub proxies: Vec<PreviousProxy>,
}

/// A proxy of the previous configuration.
#[derive(Clone, Debug)]
pub struct PreviousProxy {
    /// Its name now (it may have been given at run time); empty for a place that nothing uses: a
    /// new proxy may get it.
    pub name: String,
    /// The names of its servers by place, including servers that were added at run time; empty for
    /// a place that nothing uses.
    pub servers: Vec<String>,
}

/// The servers of a previous proxy.
#[derive(Clone, Copy, Debug)]
pub struct PreviousServers<'p> {
    names: &'p [String],
    servers: &'p [Arc<Server>],
}

impl Previous {
    /// A configuration in whose process nothing was added at run time, and all removed objects are
    /// still in use.
    #[must_use]
    pub fn of(config: Arc<Config>) -> Previous {
        let proxies = config.proxies.iter().map(|proxy| PreviousProxy {
            name: proxy.name.to_string(),
            servers: proxy.servers.iter().map(|it| it.name.clone()).collect(),
        });
        let proxies = proxies.collect();
        Previous {
            config: Held::of(config),
            proxies,
        }
    }

    /// What the compiler of expressions takes over.
    pub(super) fn resumed(&self) -> sample::Resumed<'_> {
        sample::Resumed {
            slots: self.config.slots,
            var_names: &self.config.var_names,
            contexts: &self.config.contexts,
            patterns: &self.config.patterns,
        }
    }

    /// The servers of the proxy at a place.
    pub(super) fn servers(&self, place: usize) -> PreviousServers<'_> {
        let names = self.proxies.get(place);
        let proxy = self.config.proxies.get(place);
        PreviousServers {
            names: names.map_or(&[], |proxy| &proxy.servers),
            servers: proxy.map_or(&[], |proxy| &proxy.servers),
        }
    }

    /// The placeholder for a proxy that the new configuration lacks. One at a free place is empty.
    pub(super) fn removed(&self, place: usize) -> Proxy {
        let placeholder = Proxy {
            is_removed: true,
            disabled: true,
            ..Proxy::default()
        };
        let name = self.name(place);
        let Some(old) = self.config.proxies.get(place).filter(|_| !name.is_empty()) else {
            return placeholder;
        };
        let servers = self.servers(place);
        Proxy {
            name: name.into(),
            is_frontend: old.is_frontend,
            is_backend: old.is_backend,
            mode: old.mode,
            id: old.id,
            retries: old.retries,
            timeout: old.timeout,
            options: old.options,
            origin: old.origin.clone(),
            servers: (0..servers.count()).map(|at| servers.removed(at)).collect(),
            binds: old.binds.iter().map(removed_bind).collect(),
            ..placeholder
        }
    }

    fn name(&self, place: usize) -> &str {
        self.proxies.get(place).map_or("", |proxy| &proxy.name)
    }

    fn count(&self) -> usize {
        self.config.proxies.len().max(self.proxies.len())
    }

    /// Places in the order in which their names apply: those of existing proxies before those of
    /// removed ones.
    fn named_places(&self) -> impl Iterator<Item = (usize, &Proxy)> {
        let proxies = || self.config.proxies.iter().enumerate();
        let live = proxies().filter(|(_, proxy)| !proxy.is_removed);
        let all = live.chain(proxies().filter(|(_, proxy)| proxy.is_removed));
        all.filter(|(place, _)| !self.name(*place).is_empty())
    }
}

/// A proxy that needs a place.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'t> {
    /// Its name.
    pub name: &'t str,
    /// See [`Proxy::is_frontend`].
    pub is_frontend: bool,
    /// See [`Proxy::is_backend`].
    pub is_backend: bool,
}

/// A reserved place, which a command at run time can use to add a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WantedReserve<'t> {
    /// The name of its `defaults` section.
    pub defaults: &'t str,
    /// Its mode.
    pub mode: Mode,
}

/// The places of the proxies of a configuration.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// Those of the sections, in the order of the files.
    pub sections: Vec<usize>,
    /// Those for backends that are added at run time, in the order of [`super::reserve::places`].
    pub reserved: Vec<usize>,
    /// The number of places.
    pub count: usize,
    /// By place: the proxy has it because the previous configuration has the same proxy there.
    kept: Vec<bool>,
}

impl Places {
    /// Without a previous configuration, the places are in the order of the files, and the reserved
    /// ones are behind all others.
    pub fn new(
        sections: &[Wanted<'_>],
        reserves: &[WantedReserve<'_>],
        previous: Option<&Previous>,
    ) -> Places {
        let Some(previous) = previous else {
            let count = sections.len() + reserves.len();
            return Places {
                sections: (0..sections.len()).collect(),
                reserved: (sections.len()..count).collect(),
                count,
                kept: vec![false; count],
            };
        };
        let kept_sections = same_sections(sections, previous);
        let kept_reserves = same_reserves(reserves, previous);
        let mut kept = vec![false; previous.count()];
        for place in kept_sections.iter().chain(&kept_reserves).flatten() {
            kept[*place] = true;
        }
        let is_free = |place: &usize| previous.name(*place).is_empty() && !kept[*place];
        let free: Vec<usize> = (0..previous.count()).filter(is_free).collect();
        let mut free = free.into_iter();
        let mut count = previous.count();
        let mut next = || {
            free.next().unwrap_or_else(|| {
                count += 1;
                count - 1
            })
        };
        let mut fill = |kept: Vec<Option<usize>>| -> Vec<usize> {
            let places = kept.into_iter();
            places
                .map(|place| place.unwrap_or_else(&mut next))
                .collect()
        };
        let (sections, reserved) = (fill(kept_sections), fill(kept_reserves));
        kept.resize(count, false);
        Places {
            sections,
            reserved,
            count,
            kept,
        }
    }

    /// Whether the previous configuration has the same proxy at this place.
    pub fn is_kept(&self, place: usize) -> bool {
        self.kept.get(place).copied().unwrap_or(false)
    }
}

/// For each section, the place of the same proxy in the previous configuration.
fn same_sections(sections: &[Wanted<'_>], previous: &Previous) -> Vec<Option<usize>> {
    let mut known = HashMap::new();
    for (place, proxy) in previous.named_places() {
        let key = (previous.name(place), proxy.is_frontend, proxy.is_backend);
        known.entry(key).or_insert(place);
    }
    let sections = sections.iter();
    sections
        .map(|one| known.remove(&(one.name, one.is_frontend, one.is_backend)))
        .collect()
}

/// For each reserved place, one that the previous configuration reserved for the same purpose and
/// that is not used.
fn same_reserves(reserves: &[WantedReserve<'_>], previous: &Previous) -> Vec<Option<usize>> {
    let config = &previous.config;
    let unused = |(place, proxy): (usize, &Proxy)| {
        let defaults = config.defaults.get(proxy.reserve_of?)?;
        let purpose = (defaults.name.clone(), proxy.mode == Mode::Http);
        previous.name(place).is_empty().then_some((purpose, place))
    };
    let mut known: HashMap<(String, bool), Vec<usize>> = HashMap::new();
    // The last one is taken first.
    let places = config.proxies.iter().enumerate().rev();
    for (purpose, place) in places.filter_map(unused) {
        known.entry(purpose).or_default().push(place);
    }
    let reserves = reserves.iter();
    reserves
        .map(|one| {
            let purpose = (one.defaults.to_owned(), one.mode == Mode::Http);
            known.get_mut(&purpose)?.pop()
        })
        .collect()
}

impl PreviousServers<'_> {
    fn count(&self) -> usize {
        self.names.len().max(self.servers.len())
    }

    fn name(&self, place: usize) -> &str {
        self.names.get(place).map_or("", String::as_str)
    }

    fn is_removed(&self, place: usize) -> bool {
        let server = self.servers.get(place);
        server.is_some_and(|server| server.is_removed)
    }

    /// The placeholder for a server that the new configuration lacks. It has the settings that the
    /// server had; only the name of one that was added at run time is known.
    fn removed(&self, place: usize) -> Arc<Server> {
        let name = self.name(place);
        match self.servers.get(place) {
            Some(old) if old.is_removed && old.name == name => Arc::clone(old),
            Some(old) if old.name == name => Arc::new(Server {
                is_removed: true,
                is_named: false,
                // Sections of the previous configuration.
                resolvers: None,
                fqdn: None,
                options: ServerOptions {
                    disabled: true,
                    cookie: None,
                    checks: ServerChecks::default(),
                    ..old.options.clone()
                },
                ..Server::clone(old)
            }),
            _ => Arc::new(Server {
                name: name.to_owned(),
                address: ServerAddress::Fixed(net::Addr::Inet(SocketAddr::from((
                    Ipv4Addr::UNSPECIFIED,
                    0,
                )))),
                unresolved: false,
                fqdn: None,
                resolvers: None,
                is_removed: true,
                words_hash: 0,
                is_named: false,
                takes_datagrams: false,
                is_quic: false,
                options: ServerOptions {
                    disabled: true,
                    ..ServerOptions::default()
                },
                origin: String::new(),
            }),
        }
    }
}

/// The names of a proxy's servers by place, empty where it has none. `names` are in the order of the
/// file, `before` has the servers of the same proxy in the previous configuration.
pub fn server_places(names: Vec<String>, before: Option<PreviousServers<'_>>) -> Vec<String> {
    let Some(before) = before else {
        return names;
    };
    let mut known = HashMap::new();
    for removed in [false, true] {
        let places = (0..before.count()).filter(|place| before.is_removed(*place) == removed);
        for place in places.filter(|place| !before.name(*place).is_empty()) {
            known.entry(before.name(place)).or_insert(place);
        }
    }
    let mut placed = vec![String::new(); before.count()];
    let mut new = Vec::new();
    for name in names {
        match known.remove(name.as_str()) {
            Some(place) => placed[place] = name,
            None => new.push(name),
        }
    }
    let mut free = (0..before.count()).filter(|place| before.name(*place).is_empty());
    for name in new {
        match free.next() {
            Some(place) => placed[place] = name,
            None => placed.push(name),
        }
    }
    placed
}

/// Moves the servers and the bind lines of a proxy, which are in the order of the file, to their
/// places. Gives ids to those without one.
pub fn place_parts(proxy: &mut Proxy, index: usize, shared: &Shared<'_>) {
    let Some(previous) = &shared.settings.previous else {
        return;
    };
    // A reserved place has no servers, and the name of its `defaults` during the build.
    if proxy.reserve_of.is_some() {
        return;
    }
    let is_kept = shared.names.places.is_kept(index);
    let before = previous.config.proxies.get(index).filter(|_| is_kept);
    let servers = if is_kept {
        previous.servers(index)
    } else {
        PreviousServers {
            names: &[],
            servers: &[],
        }
    };
    place_servers(proxy, shared.names.servers(&proxy.name), &servers);
    place_binds(&mut proxy.binds, before.map_or(&[], |before| &before.binds));
}

fn place_servers(proxy: &mut Proxy, names: &[String], before: &PreviousServers<'_>) {
    let built = std::mem::take(&mut proxy.servers).into_iter();
    let mut built: HashMap<String, Arc<Server>> =
        built.map(|server| (server.name.clone(), server)).collect();
    let mut ids = Ids::new(built.values().map(|server| server.id));
    let mut servers: Vec<Arc<Server>> = Vec::with_capacity(names.len());
    for (place, name) in names.iter().enumerate() {
        servers.push(match built.remove(name) {
            Some(server) => server,
            None => before.removed(place),
        });
    }
    let same = |place: usize, server: &Server| {
        let old = before.servers.get(place);
        old.filter(|old| old.name == server.name).map(|old| old.id)
    };
    let lacks_id = |server: &Server| server.id == 0 && !server.is_removed;
    for (place, server) in servers.iter_mut().enumerate() {
        // Servers are not shared before the proxies are complete, so `get_mut` succeeds.
        if lacks_id(server)
            && let Some(id) = same(place, server).and_then(|id| ids.take(id))
            && let Some(server) = Arc::get_mut(server)
        {
            server.options.id = id;
        }
    }
    for (place, server) in servers.iter_mut().enumerate() {
        if lacks_id(server)
            && let Some(server) = Arc::get_mut(server)
        {
            server.options.id = ids.new_one(place);
        }
    }
    proxy.servers = servers;
}

fn place_binds(binds: &mut Vec<Bind>, before: &[Bind]) {
    let mut ids = Ids::new(binds.iter().map(|bind| bind.id));
    let mut placed: Vec<Option<Bind>> = vec![None; before.len()];
    let mut start = 0;
    for bind in std::mem::take(binds) {
        // Mostly, the next line has the next place.
        let mut places = (start..before.len()).chain(0..start);
        let place =
            places.find(|place| placed[*place].is_none() && is_same(&before[*place], &bind));
        match place {
            Some(place) => {
                placed[place] = Some(bind);
                start = place + 1;
            }
            None => placed.push(Some(bind)),
        }
    }
    for (bind, old) in placed.iter_mut().zip(before) {
        if let Some(bind) = bind.as_mut().filter(|bind| bind.id == 0)
            && let Some(id) = ids.take(old.id)
        {
            bind.id = id;
        }
    }
    let all = placed.into_iter().enumerate().map(|(place, bind)| {
        let mut bind = bind.unwrap_or_else(|| removed_bind(&before[place]));
        if bind.id == 0 {
            bind.id = ids.new_one(place);
        }
        bind
    });
    binds.extend(all);
}

fn is_same(one: &Bind, other: &Bind) -> bool {
    one.address == other.address
        && one.interface == other.interface
        && one.tcp.namespace == other.tcp.namespace
}

fn removed_bind(old: &Bind) -> Bind {
    Bind {
        is_removed: true,
        tls: None,
        ..old.clone()
    }
}

/// The ids of the servers or bind lines of a proxy.
struct Ids {
    taken: std::collections::HashSet<u32>,
    next: u32,
}

impl Ids {
    /// The ids that lines ask for; 0 for none.
    fn new(written: impl Iterator<Item = u32>) -> Ids {
        Ids {
            taken: written.filter(|id| *id != 0).collect(),
            next: 1,
        }
    }

    /// Takes this id if it is free.
    fn take(&mut self, id: u32) -> Option<u32> {
        (id != 0 && self.taken.insert(id)).then_some(id)
    }

    /// A free id, as near as possible to the one that the place would give.
    fn new_one(&mut self, place: usize) -> u32 {
        if let Some(id) = self.take(place as u32 + 1) {
            return id;
        }
        while !self.taken.insert(self.next) {
            self.next += 1;
        }
        self.next
    }
}
