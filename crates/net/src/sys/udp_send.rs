//! Sending UDP datagrams, many per call, each message with its own peer, source and ECN field.

use std::io;
use std::mem::zeroed;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::RawFd;

use libc::c_int;

use super::address::RawAddr;
use super::control::Control;
use super::transfer::{Io, transferred};
use super::udp_receive::ECN_BITS;

/// The most messages of one call.
pub const SENDS_A_CALL: usize = 64;
/// The most datagrams that the kernel cuts out of one message (`UDP_MAX_SEGMENTS`,
/// linux/udp.h; later kernels take more).
pub const SEGMENTS_MAX: usize = 64;
/// The most bytes of one message: what the length fields of IP and UDP leave, with the larger
/// header of IPv6.
pub const MESSAGE_BYTES_MAX: usize = 65_535 - 40 - 8;

/// A message to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Sending<'a> {
    /// The destination.
    pub peer: SocketAddr,
    /// The local address to send from. One of another family than the peer's is ignored.
    pub source: Option<IpAddr>,
    /// The ECN field, 2 bits.
    pub ecn: u8,
    /// The kernel cuts the bytes into datagrams of this length (`UDP_SEGMENT`).
    pub segment: Option<u16>,
    /// One datagram, or several with `segment`.
    pub bytes: &'a [u8],
}

/// The headers of messages, kept so that a call allocates nothing. Empty between calls.
#[derive(Default)]
pub struct SendBatch {
    names: Vec<RawAddr>,
    controls: Vec<Control>,
    parts: Vec<libc::iovec>,
    headers: Vec<libc::mmsghdr>,
}

// SAFETY: the pointers inside live only during one call of `send`; between calls the batch has
// none.
unsafe impl Send for SendBatch {}

impl std::fmt::Debug for SendBatch {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("SendBatch")
    }
}

impl SendBatch {
    /// Sends the first [`SENDS_A_CALL`] of these messages in one call, without blocking. Returns
    /// how many the kernel took; an error is that of the first message.
    pub fn send<'a>(&mut self, fd: RawFd, messages: impl Iterator<Item = Sending<'a>>) -> Io {
        self.fill(messages.take(SENDS_A_CALL));
        let done = loop {
            // SAFETY: every header points to names, control data and parts of `self`, which are
            // not changed meanwhile, and the parts to live datagrams, which are only read.
            let rc = unsafe {
                libc::sendmmsg(
                    fd,
                    self.headers.as_mut_ptr(),
                    self.headers.len() as _,
                    (libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) as _,
                )
            };
            if let Some(done) = transferred(rc as isize) {
                break done;
            }
        };
        self.headers.clear();
        self.parts.clear();
        done
    }

    fn fill<'a>(&mut self, messages: impl Iterator<Item = Sending<'a>>) {
        self.names.clear();
        self.parts.clear();
        self.headers.clear();
        for (index, message) in messages.enumerate() {
            self.names.push(RawAddr::of_inet(message.peer));
            self.parts.push(libc::iovec {
                iov_base: message.bytes.as_ptr().cast_mut().cast(),
                iov_len: message.bytes.len(),
            });
            if self.controls.len() == index {
                self.controls.push(Control::empty());
            }
            fill_control(&mut self.controls[index], &message);
        }
        let controls = self.names.iter_mut().zip(&mut self.controls);
        for (part, (name, control)) in self.parts.iter_mut().zip(controls) {
            // SAFETY: an all-zero mmsghdr is valid.
            let mut header: libc::mmsghdr = unsafe { zeroed() };
            header.msg_hdr.msg_iov = part;
            header.msg_hdr.msg_iovlen = 1;
            header.msg_hdr.msg_name = name.as_mut_ptr().cast();
            header.msg_hdr.msg_namelen = name.len;
            if control.len() > 0 {
                header.msg_hdr.msg_controllen = control.len() as _;
                header.msg_hdr.msg_control = control.as_mut_ptr();
            }
            self.headers.push(header);
        }
    }
}

fn fill_control(control: &mut Control, message: &Sending<'_>) {
    control.clear();
    // The kernel sends to an IPv4 address in its IPv6 form by IPv4, which has options of its own.
    let is_v4 = message.peer.ip().to_canonical().is_ipv4();
    let source = message.source.map(|ip| ip.to_canonical());
    match source.filter(|ip| !ip.is_unspecified()) {
        Some(IpAddr::V4(ip)) if is_v4 => {
            let info = libc::in_pktinfo {
                ipi_ifindex: 0,
                ipi_spec_dst: libc::in_addr {
                    s_addr: u32::from_ne_bytes(ip.octets()),
                },
                ipi_addr: libc::in_addr { s_addr: 0 },
            };
            control.put(libc::IPPROTO_IP, libc::IP_PKTINFO, info);
        }
        Some(IpAddr::V6(ip)) if !is_v4 => {
            let info = libc::in6_pktinfo {
                ipi6_addr: libc::in6_addr {
                    s6_addr: ip.octets(),
                },
                ipi6_ifindex: 0,
            };
            control.put(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, info);
        }
        _ => {}
    }
    let ecn = c_int::from(message.ecn & ECN_BITS);
    if ecn != 0 {
        let (level, kind) = if is_v4 {
            (libc::IPPROTO_IP, libc::IP_TOS)
        } else {
            (libc::IPPROTO_IPV6, libc::IPV6_TCLASS)
        };
        control.put(level, kind, ecn);
    }
    if let Some(segment) = message.segment {
        control.put(libc::SOL_UDP, libc::UDP_SEGMENT, segment);
    }
}

/// Whether the kernel cuts messages of this socket into datagrams (`UDP_SEGMENT`).
#[must_use]
pub fn cuts_datagrams(fd: RawFd) -> bool {
    super::option(fd, libc::SOL_UDP, libc::UDP_SEGMENT).is_ok()
}

/// Makes the kernel join datagrams of a peer (`UDP_GRO`); false if it cannot. May be repeated.
pub fn join_datagrams(fd: RawFd) -> bool {
    super::set_option(fd, libc::SOL_UDP, libc::UDP_GRO, 1).is_ok()
}

/// Sets the size of a socket's buffer, in bytes, as far as the system permits: beyond its limit with
/// a privilege. `name` is `SO_RCVBUF` or `SO_SNDBUF`.
///
/// # Errors
/// `errno` of `setsockopt`.
pub fn set_buffer(fd: RawFd, name: c_int, bytes: c_int) -> io::Result<()> {
    let forced = match name {
        libc::SO_RCVBUF => libc::SO_RCVBUFFORCE,
        _ => libc::SO_SNDBUFFORCE,
    };
    super::set_option(fd, libc::SOL_SOCKET, forced, bytes)
        .or_else(|_| super::set_option(fd, libc::SOL_SOCKET, name, bytes))
}
