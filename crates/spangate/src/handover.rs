//! Hands listening sockets from one process to the next, so that a reload loses no connection that
//! waits to be accepted.
//!
//! There are two ways, with HAProxy's protocol. `-x` names a UNIX socket of the runtime interface
//! with `expose-fd listeners` (management guide §3). A master gives a new worker a channel to the
//! previous one. The new process sends `_getsocks`. The answer is the number of sockets as an `int`
//! of the machine, then messages of at most [`FDS_A_MESSAGE`] descriptors, each acknowledged with
//! another `int`. For each descriptor, a message holds a network namespace and an interface, each
//! as a length byte and a text, and four zero bytes.
//!
//! Some descriptors are no listeners: where the next process sends datagrams of connections that this
//! one and earlier ones have ([`net::relay`]). Their interface is [`RELAY`] and the number of the
//! process; that of this one comes first. Another program closes them unused.

use std::io::{self, ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use net::Addr;
use net::relay::Sender;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};

/// Messages on a [`Channel`]: each carries a connection.
const ASKS_FOR_SOCKETS: &[u8] = b"+";
const BRINGS_COMMANDS: &[u8] = b"c";
/// From a worker to its master.
const ASKS_FOR_FILES: &[u8] = b"f";

/// See the module.
const RELAY: &str = "spangate-relay:";

/// The command that requests the sockets.
pub(crate) const COMMAND: &str = "_getsocks";
/// Most descriptors of a message: HAProxy's number, and one less than the system's limit.
const FDS_A_MESSAGE: usize = 252;
/// Most sockets that are taken over.
const SOCKETS_MAX: usize = 1 << 16;
/// Most bytes that describe a socket: two texts of at most 255 bytes with their lengths, and the
/// zeros.
const RECORD_BYTES_MAX: usize = 2 * (1 + 255) + RESERVED_BYTES;
const RESERVED_BYTES: usize = 4;
/// The process that never ends.
const INIT: i32 = 1;
/// How long the other side may be silent.
const ANSWER_TIME: Duration = Duration::from_secs(5);

fn relay_name(number: u8) -> String {
    format!("{RELAY}{number}")
}

/// The listening sockets of this process, for the process that follows it.
#[derive(Debug, Default)]
pub(crate) struct Exposed {
    sockets: Mutex<Vec<ExposedSocket>>,
    /// The process that was given the sockets last; 0 for none.
    given_to: AtomicI32,
}

#[derive(Clone, Debug)]
pub(crate) struct ExposedSocket {
    pub fd: Arc<OwnedFd>,
    pub interface: Option<String>,
}

impl Exposed {
    pub fn new(sockets: Vec<ExposedSocket>) -> Self {
        Exposed {
            sockets: Mutex::new(sockets),
            given_to: AtomicI32::new(0),
        }
    }

    fn sockets(&self) -> MutexGuard<'_, Vec<ExposedSocket>> {
        self.sockets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the socket for the datagrams of connections that a process has; that of this process
    /// last. `number`: that of the process.
    pub fn add_relay(&self, sender: OwnedFd, number: u8) {
        let socket = ExposedSocket {
            fd: Arc::new(sender),
            interface: Some(relay_name(number)),
        };
        self.sockets().insert(0, socket);
    }

    /// Whether there are sockets of datagrams.
    pub fn has_datagrams(&self) -> bool {
        let is_datagram = |fd: &OwnedFd| matches!(Kind::of(fd), Ok(Some(Kind::Datagrams)));
        self.sockets().iter().any(|socket| is_datagram(&socket.fd))
    }

    /// Whether [`Exposed::add_relay`] was called for the process with this number.
    pub fn has_relay(&self, number: u8) -> bool {
        let name = relay_name(number);
        let sockets = self.sockets();
        let mut names = sockets.iter().map(|socket| socket.interface.as_ref());
        names.any(|interface| interface == Some(&name))
    }

    /// Adds further sockets.
    pub fn add(&self, sockets: Vec<ExposedSocket>) {
        self.sockets().extend(sockets);
    }

    /// Drops the sockets. One that another owner holds stays open.
    pub fn clear(&self) {
        self.sockets().clear();
    }

    /// Drops one socket.
    pub fn remove(&self, fd: &Arc<OwnedFd>) {
        self.sockets().retain(|one| !Arc::ptr_eq(&one.fd, fd));
    }

    /// Whether another process holds the sockets too. One that took them and ended, because its
    /// start failed, does not.
    pub fn is_given(&self) -> bool {
        match self.given_to.load(Ordering::Relaxed) {
            0 => false,
            pid => crate::sys::is_alive(pid),
        }
    }

    /// Answers a process that requests the sockets.
    ///
    /// # Errors
    /// The process has ended, or does not answer.
    pub fn give(&self, to: &UnixStream) -> io::Result<()> {
        to.set_read_timeout(Some(ANSWER_TIME))?;
        to.set_write_timeout(Some(ANSWER_TIME))?;
        let sockets = self.sockets().clone();
        if sockets.is_empty() {
            return Ok(());
        }
        let mut to_it = to;
        to_it.write_all(&(sockets.len() as i32).to_ne_bytes())?;
        for part in sockets.chunks(FDS_A_MESSAGE) {
            send(to, part)?;
            to_it.read_exact(&mut [0; size_of::<i32>()])?;
        }
        // A process of another namespace has no number here; init stands for it.
        let peer = rustix::net::sockopt::socket_peercred(to)
            .map_or(INIT, |peer| peer.pid.as_raw_nonzero().get());
        self.given_to.store(peer, Ordering::Relaxed);
        Ok(())
    }
}

fn send(to: &UnixStream, sockets: &[ExposedSocket]) -> io::Result<()> {
    let mut records = Vec::new();
    for socket in sockets {
        // No namespace.
        records.push(0);
        let interface = socket.interface.as_deref().unwrap_or_default();
        records.push(u8::try_from(interface.len()).map_err(|_| ErrorKind::InvalidData)?);
        records.extend_from_slice(interface.as_bytes());
        records.extend_from_slice(&[0; RESERVED_BYTES]);
    }
    let fds: Vec<BorrowedFd<'_>> = sockets.iter().map(|socket| socket.fd.as_fd()).collect();
    let sent = send_with(to, &records, &fds)?;
    if sent == records.len() {
        Ok(())
    } else {
        Err(ErrorKind::WriteZero.into())
    }
}

fn send_with(to: impl AsFd, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_A_MESSAGE))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(fds));
    Ok(sendmsg(
        to,
        &[IoSlice::new(bytes)],
        &mut control,
        SendFlags::NOSIGNAL,
    )?)
}

fn receive_with(from: impl AsFd, bytes: &mut [u8], fds: &mut Vec<OwnedFd>) -> io::Result<usize> {
    receive_flagged(from, bytes, fds, RecvFlags::empty())
}

fn receive_flagged(
    from: impl AsFd,
    bytes: &mut [u8],
    fds: &mut Vec<OwnedFd>,
    flags: RecvFlags,
) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_A_MESSAGE))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(bytes)];
    let received = recvmsg(
        from,
        &mut parts,
        &mut control,
        flags | RecvFlags::CMSG_CLOEXEC,
    )?;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            fds.extend(rights);
        }
    }
    Ok(received.bytes)
}

/// The sockets of the previous process that are not in use yet. The unused ones close on drop.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    sockets: Vec<TakenSocket>,
    relays: Vec<Sender>,
}

/// What a socket delivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Connections,
    Datagrams,
}

impl Kind {
    /// None for a socket that Spangate does not listen on.
    fn of(socket: &OwnedFd) -> io::Result<Option<Kind>> {
        Ok(match net::sys::socket_type(socket.as_raw_fd())? {
            libc::SOCK_STREAM => Some(Kind::Connections),
            libc::SOCK_DGRAM => Some(Kind::Datagrams),
            _ => None,
        })
    }
}

#[derive(Debug)]
struct TakenSocket {
    fd: OwnedFd,
    addr: Addr,
    kind: Kind,
    v6only: bool,
    interface: Option<String>,
}

impl TakenSocket {
    /// None for a socket that Spangate does not listen on.
    fn of(fd: OwnedFd, interface: Option<String>) -> io::Result<Option<TakenSocket>> {
        let Some(kind) = Kind::of(&fd)? else {
            return Ok(None);
        };
        let addr = net::sys::local_addr(fd.as_raw_fd())?;
        Ok(Some(TakenSocket {
            v6only: is_ipv6(&addr) && net::sys::is_v6only(fd.as_raw_fd())?,
            addr,
            kind,
            fd,
            interface,
        }))
    }
}

impl Taken {
    /// Requests the sockets from the process at a socket of the runtime interface (`-x`).
    ///
    /// # Errors
    /// The failure as text.
    pub fn from_path(path: &str) -> io::Result<Self> {
        Taken::ask(UnixStream::connect(path)?)
    }

    /// Requests the sockets from the worker at the other end of a channel.
    ///
    /// # Errors
    /// The worker has ended, or does not answer.
    pub fn from_channel(channel: &Channel) -> io::Result<Self> {
        let (ours, theirs) = UnixStream::pair()?;
        send_with(&channel.0, ASKS_FOR_SOCKETS, &[theirs.as_fd()])?;
        drop(theirs);
        Taken::ask(ours)
    }

    fn ask(mut from: UnixStream) -> io::Result<Self> {
        from.set_read_timeout(Some(ANSWER_TIME))?;
        from.set_write_timeout(Some(ANSWER_TIME))?;
        from.write_all(format!("{COMMAND}\n").as_bytes())?;
        let mut count = [0; size_of::<i32>()];
        from.read_exact(&mut count)
            .map_err(|error| match error.kind() {
                ErrorKind::UnexpectedEof => {
                    io::Error::other("it does not hand them over: see 'expose-fd listeners'")
                }
                _ => error,
            })?;
        let count = usize::try_from(i32::from_ne_bytes(count))
            .ok()
            .filter(|count| *count <= SOCKETS_MAX)
            .ok_or_else(|| io::Error::other("it reports an invalid number of sockets"))?;
        let (mut records, mut fds) = (Vec::new(), Vec::new());
        while fds.len() < count {
            let mut bytes = vec![0; FDS_A_MESSAGE * RECORD_BYTES_MAX];
            let before = fds.len();
            let received = receive_with(&from, &mut bytes, &mut fds)?;
            if received == 0 || fds.len() > count {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            records.extend_from_slice(&bytes[..received]);
            // A message may arrive in parts; the first part carries the descriptors.
            if fds.len() > before {
                from.write_all(&(fds.len() as i32).to_ne_bytes())?;
            }
        }
        let mut records = Records(&records);
        let mut all = Taken::default();
        for fd in fds {
            all.add(fd, &mut records)?;
        }
        Ok(all)
    }

    /// Adds a descriptor of another process; one that is nothing that Spangate has is closed.
    fn add(&mut self, fd: OwnedFd, records: &mut Records<'_>) -> io::Result<()> {
        let (namespace, interface) = records.next().ok_or(ErrorKind::UnexpectedEof)?;
        let interface = (!interface.is_empty()).then(|| String::from_utf8_lossy(interface));
        if let Some(number) = interface.as_ref().and_then(|text| text.strip_prefix(RELAY)) {
            if let Ok(number) = number.parse() {
                self.relays.push(Sender::new(fd, number)?);
            }
            return Ok(());
        }
        if namespace.is_empty() {
            let interface = interface.map(|text| text.into_owned());
            self.sockets.extend(TakenSocket::of(fd, interface)?);
        }
        Ok(())
    }

    /// Where datagrams of connections of earlier processes go, the last one first.
    pub fn take_relays(&mut self) -> Vec<Sender> {
        std::mem::take(&mut self.relays)
    }

    /// The sockets of lines of this process that close.
    pub fn from_own(sockets: &[Arc<OwnedFd>]) -> Taken {
        let own = |fd: &Arc<OwnedFd>| TakenSocket::of(fd.try_clone().ok()?, None).ok()?;
        Taken {
            sockets: sockets.iter().filter_map(own).collect(),
            relays: Vec::new(),
        }
    }

    /// Takes all sockets with an address. `v6only`: whether an IPv6 socket refuses IPv4.
    pub fn take(
        &mut self,
        kind: Kind,
        addr: &Addr,
        v6only: impl Fn() -> bool,
        interface: Option<&str>,
    ) -> Vec<OwnedFd> {
        let suits = |socket: &mut TakenSocket| {
            socket.kind == kind
                && is_same(&socket.addr, addr)
                && socket.interface.as_deref() == interface
                && (!is_ipv6(addr) || socket.v6only == v6only())
        };
        self.sockets
            .extract_if(.., suits)
            .map(|socket| socket.fd)
            .collect()
    }
}

fn is_ipv6(addr: &Addr) -> bool {
    addr.ip().is_some_and(|ip| ip.is_ipv6())
}

/// Whether a bound address equals the wanted one. A UNIX socket keeps the name under which it was
/// first bound (`PATH.PID.tmp`). It counts as equal only while its path is a socket.
fn is_same(bound: &Addr, wanted: &Addr) -> bool {
    let (Addr::Unix(bound), Addr::Unix(wanted)) = (bound, wanted) else {
        return bound == wanted;
    };
    if wanted.first() == Some(&0) {
        return bound == wanted;
    }
    let Some(suffix) = bound.strip_prefix(&**wanted) else {
        return false;
    };
    let is_temporary = || {
        let number = suffix.strip_prefix(b".")?.strip_suffix(b".tmp")?;
        Some(!number.is_empty() && number.iter().all(u8::is_ascii_digit))
    };
    (suffix.is_empty() || is_temporary() == Some(true)) && net::listen::is_socket(wanted)
}

/// The descriptions that arrive with the descriptors.
struct Records<'a>(&'a [u8]);

impl<'a> Records<'a> {
    /// Namespace and interface of the next descriptor.
    fn next(&mut self) -> Option<(&'a [u8], &'a [u8])> {
        let texts = (self.text()?, self.text()?);
        self.0 = self.0.get(RESERVED_BYTES..)?;
        Some(texts)
    }

    fn text(&mut self) -> Option<&'a [u8]> {
        let (len, rest) = self.0.split_first()?;
        let (text, rest) = rest.split_at_checked(usize::from(*len))?;
        self.0 = rest;
        Some(text)
    }
}

/// One end of the connection between a worker and its master. Each message carries a connection
/// from a client that wants the sockets or the runtime interface.
#[derive(Debug)]
pub(crate) struct Channel(OwnedFd);

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Channel {
    /// Both ends.
    ///
    /// # Errors
    /// `errno` of `socketpair`.
    pub fn pair() -> io::Result<(Channel, Channel)> {
        let (one, other) = socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )?;
        Ok((Channel(one), Channel(other)))
    }

    /// The descriptor of this end.
    pub fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// Opens a session of the runtime interface with the process at the other end.
    ///
    /// # Errors
    /// The process has ended.
    pub fn open_cli(&self) -> io::Result<UnixStream> {
        let (ours, theirs) = UnixStream::pair()?;
        send_with(&self.0, BRINGS_COMMANDS, &[theirs.as_fd()])?;
        Ok(ours)
    }

    /// Requests a snapshot of the files from the master. Returns the connection that brings it.
    ///
    /// # Errors
    /// The master has ended.
    pub fn ask_for_files(&self) -> io::Result<UnixStream> {
        let (ours, theirs) = UnixStream::pair()?;
        send_with(&self.0, ASKS_FOR_FILES, &[theirs.as_fd()])?;
        Ok(ours)
    }

    /// Reads a worker's request for the files, if there is one. Does not wait.
    ///
    /// # Errors
    /// The worker has ended.
    pub fn request_for_files(&self) -> io::Result<Option<UnixStream>> {
        let mut message = [0];
        let mut fds = Vec::new();
        let flags = RecvFlags::DONTWAIT;
        match receive_flagged(&self.0, &mut message, &mut fds, flags) {
            Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
            Ok(_) if message == ASKS_FOR_FILES => Ok(fds.pop().map(UnixStream::from)),
            Ok(_) => Ok(None),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Answers requests for the sockets on a thread of its own, until the other end is closed: the
    /// master has ended. `commands` receives the sessions of the runtime interface, and `orphaned`
    /// runs at the end.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn serve(
        self: Arc<Self>,
        exposed: Arc<Exposed>,
        commands: impl Fn(UnixStream) + Send + 'static,
        orphaned: impl FnOnce() + Send + 'static,
    ) -> io::Result<()> {
        const STACK_BYTES: usize = 128 << 10;
        let builder = std::thread::Builder::new()
            .name("handover".to_owned())
            .stack_size(STACK_BYTES);
        builder.spawn(move || {
            let mut fds = Vec::new();
            let mut message = [0];
            while receive_with(&self.0, &mut message, &mut fds).is_ok_and(|received| received > 0) {
                for stream in fds.drain(..).map(UnixStream::from) {
                    if message == BRINGS_COMMANDS {
                        commands(stream);
                    } else {
                        // The process that requests the sockets reports a failure.
                        let _ = answer(stream, &exposed);
                    }
                }
            }
            orphaned();
        })?;
        Ok(())
    }
}

fn answer(mut stream: UnixStream, exposed: &Exposed) -> io::Result<()> {
    stream.set_read_timeout(Some(ANSWER_TIME))?;
    let mut command = [0; COMMAND.len() + 1];
    stream.read_exact(&mut command)?;
    if command.strip_suffix(b"\n") == Some(COMMAND.as_bytes()) {
        exposed.give(&stream)
    } else {
        Err(ErrorKind::InvalidInput.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::os::unix::net::UnixListener;

    fn exposed(count: usize) -> (Exposed, Vec<Addr>) {
        let listen = || TcpListener::bind("127.0.0.1:0").expect("a port");
        let listeners: Vec<TcpListener> = (0..count).map(|_| listen()).collect();
        let addrs = listeners
            .iter()
            .map(|listener| Addr::Inet(listener.local_addr().expect("an address")))
            .collect();
        let sockets = listeners.into_iter().map(|listener| ExposedSocket {
            fd: Arc::new(listener.into()),
            interface: None,
        });
        (Exposed::new(sockets.collect()), addrs)
    }

    fn count_taken(taken: &mut Taken, addr: &Addr, interface: Option<&str>) -> usize {
        let sockets = taken.take(Kind::Connections, addr, || false, interface);
        sockets.len()
    }

    fn handed_over(exposed: Exposed) -> io::Result<Taken> {
        let (here, there) = Channel::pair().expect("a channel");
        Arc::new(there)
            .serve(Arc::new(exposed), drop, || ())
            .expect("a thread");
        Taken::from_channel(&here)
    }

    #[test]
    fn more_than_fit_one_message() {
        let (exposed, addrs) = exposed(FDS_A_MESSAGE + 5);
        let mut taken = handed_over(exposed).expect("sockets");
        for addr in addrs {
            assert_eq!(count_taken(&mut taken, &addr, None), 1, "{addr}");
            assert_eq!(count_taken(&mut taken, &addr, None), 0, "{addr}");
        }
        assert!(taken.sockets.is_empty());
    }

    #[test]
    fn who_has_none_says_so() {
        let error = handed_over(Exposed::default()).expect_err("nothing to have");
        assert!(error.to_string().contains("expose-fd listeners"), "{error}");
    }

    #[test]
    fn interfaces_and_namespaces_tell_sockets_apart() {
        let socket = |interface: Option<&str>| {
            let (exposed, addrs) = exposed(1);
            let mut socket = exposed.sockets().remove(0);
            socket.interface = interface.map(str::to_owned);
            (socket, addrs[0].clone())
        };
        let ((one, addr), (other, _)) = (socket(Some("lo")), socket(None));
        let mut taken = handed_over(Exposed::new(vec![one, other])).expect("sockets");
        assert_eq!(count_taken(&mut taken, &addr, None), 0);
        assert_eq!(count_taken(&mut taken, &addr, Some("eth0")), 0);
        assert_eq!(count_taken(&mut taken, &addr, Some("lo")), 1);
        let mut records = Records(b"\x02ns\x00\0\0\0\0\x00\x02lo\0\0\0\0\x05lo");
        assert_eq!(records.next(), Some((&b"ns"[..], &b""[..])));
        assert_eq!(records.next(), Some((&b""[..], &b"lo"[..])));
        assert_eq!(records.next(), None);
    }

    #[test]
    fn a_unix_socket_keeps_the_name_of_its_birth() {
        let folder = std::env::temp_dir().join(format!("spangate-handover-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("a.sock");
        drop(std::fs::remove_file(&path));
        let listener = UnixListener::bind(&path).expect("a socket");
        let unix = |suffix: &str| {
            let name = format!("{}{suffix}", path.display());
            Addr::Unix(name.as_bytes().into())
        };
        for (suffix, same) in [
            ("", true),
            (".17.tmp", true),
            (".x.tmp", false),
            ("b", false),
        ] {
            assert_eq!(is_same(&unix(suffix), &unix("")), same, "{suffix}");
        }
        drop(listener);
        std::fs::remove_dir_all(&folder).expect("removed");
        // No client could connect to the socket.
        assert!(!is_same(&unix(".17.tmp"), &unix("")));
    }
}
