//! Receiving UDP datagrams, many per call, with what the kernel reports of each.

use std::mem::{size_of, zeroed};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::RawFd;

use libc::c_int;

use super::address::RawAddr;
use super::control::{self, Control};
use super::transfer::{Io, transferred};
use crate::Addr;
use crate::datagrams::RUN_BYTES_MAX;

/// The most messages of one call. Each is a datagram, or a run that the kernel has joined (GRO).
pub const RECEIVES_A_CALL: usize = 32;

/// The low bits of the type of service and of the traffic class: the ECN field (RFC 3168 §5).
pub(super) const ECN_BITS: u8 = 3;

/// A received message.
#[derive(Debug)]
pub struct Received<'a> {
    /// The sender; its port is not 0 and its address is a specified one.
    pub peer: SocketAddr,
    /// The address that the sender has sent to, if the socket reports it.
    pub local: Option<IpAddr>,
    /// The ECN field, 2 bits; 0 if the socket does not report it.
    pub ecn: u8,
    /// The length of each datagram in `bytes` except the last; not 0.
    pub segment: usize,
    /// The datagrams; not empty.
    pub bytes: &'a mut [u8],
}

/// Why a received message is of no use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unusable {
    /// It, or what the kernel reports of it, did not fit.
    Truncated,
    /// It has no bytes, or its sender cannot be answered.
    Ignored,
}

/// The buffers of calls that receive up to [`RECEIVES_A_CALL`] messages. The memory of messages
/// that never come is not touched.
pub struct ReceiveBatch {
    bytes: Vec<u8>,
    names: Vec<RawAddr>,
    controls: Vec<Control>,
    parts: Vec<libc::iovec>,
    headers: Vec<libc::mmsghdr>,
    /// How many messages the last call has received.
    count: usize,
}

// SAFETY: the pointers inside point only to memory that the batch owns and never reallocates.
unsafe impl Send for ReceiveBatch {}

impl std::fmt::Debug for ReceiveBatch {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "ReceiveBatch of {}", self.count)
    }
}

impl Default for ReceiveBatch {
    fn default() -> ReceiveBatch {
        ReceiveBatch::new()
    }
}

impl ReceiveBatch {
    /// Allocates the buffers.
    #[must_use]
    pub fn new() -> ReceiveBatch {
        ReceiveBatch {
            bytes: vec![0; RECEIVES_A_CALL * RUN_BYTES_MAX],
            names: (0..RECEIVES_A_CALL).map(|_| RawAddr::empty()).collect(),
            controls: (0..RECEIVES_A_CALL).map(|_| Control::empty()).collect(),
            parts: Vec::with_capacity(RECEIVES_A_CALL),
            headers: Vec::with_capacity(RECEIVES_A_CALL),
            count: 0,
        }
    }

    /// Receives what is there, without blocking. Returns the number of messages: if it is less than
    /// [`RECEIVES_A_CALL`], the socket was empty then.
    pub fn receive(&mut self, fd: RawFd) -> Io {
        self.arm();
        loop {
            // SAFETY: every header points to buffers of its own with their lengths, which live as
            // long as `self`; no timeout is given.
            let rc = unsafe {
                libc::recvmmsg(
                    fd,
                    self.headers.as_mut_ptr(),
                    self.headers.len() as _,
                    libc::MSG_DONTWAIT as _,
                    std::ptr::null_mut(),
                )
            };
            if let Some(done) = transferred(rc as isize) {
                self.count = match done {
                    Io::Done(count) => count.min(self.headers.len()),
                    Io::WouldBlock | Io::Failed(_) => 0,
                };
                return done;
            }
        }
    }

    /// A message of the last call.
    ///
    /// # Errors
    /// It is of no use.
    ///
    /// # Panics
    /// The last call has received fewer messages.
    pub fn message(&mut self, index: usize) -> Result<Received<'_>, Unusable> {
        let header = &self.headers[..self.count][index];
        let message = &header.msg_hdr;
        if message.msg_flags & (libc::MSG_TRUNC | libc::MSG_CTRUNC) != 0 {
            return Err(Unusable::Truncated);
        }
        let len = (header.msg_len as usize).min(RUN_BYTES_MAX);
        let Addr::Inet(peer) = self.names[index].to_addr() else {
            return Err(Unusable::Ignored);
        };
        if len == 0 || peer.port() == 0 || peer.ip().to_canonical().is_unspecified() {
            return Err(Unusable::Ignored);
        }
        let (mut local, mut ecn, mut segment) = (None, 0, len);
        // SAFETY: a receiving call has filled the header, which points to memory of `self`.
        unsafe {
            control::for_each(message, |level, kind, value| match (level, kind) {
                (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                    if let Some(info) = value.read::<libc::in_pktinfo>() {
                        let octets = info.ipi_addr.s_addr.to_ne_bytes();
                        // A socket of IPv6 reports the address in its own form as well.
                        local.get_or_insert(IpAddr::V4(Ipv4Addr::from(octets)));
                    }
                }
                (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                    if let Some(info) = value.read::<libc::in6_pktinfo>() {
                        local = Some(IpAddr::V6(Ipv6Addr::from(info.ipi6_addr.s6_addr)));
                    }
                }
                (libc::IPPROTO_IP, libc::IP_TOS) => ecn = value.read::<u8>().unwrap_or(0),
                (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                    ecn = value.read::<c_int>().unwrap_or(0) as u8;
                }
                (libc::SOL_UDP, libc::UDP_GRO) => {
                    let size = value.read::<c_int>().unwrap_or(0);
                    if let Ok(size @ 1..) = usize::try_from(size) {
                        segment = size.min(len);
                    }
                }
                _ => {}
            });
        }
        let from = index * RUN_BYTES_MAX;
        Ok(Received {
            peer,
            local,
            ecn: ecn & ECN_BITS,
            segment,
            bytes: &mut self.bytes[from..from + len],
        })
    }

    /// Points every header to its empty buffers.
    fn arm(&mut self) {
        self.count = 0;
        self.parts.clear();
        self.headers.clear();
        for bytes in self.bytes.chunks_exact_mut(RUN_BYTES_MAX) {
            self.parts.push(libc::iovec {
                iov_base: bytes.as_mut_ptr().cast(),
                iov_len: bytes.len(),
            });
        }
        let names = self.names.iter_mut().zip(&mut self.controls);
        for (part, (name, control)) in self.parts.iter_mut().zip(names) {
            name.storage.ss_family = libc::AF_UNSPEC as _;
            // SAFETY: an all-zero mmsghdr is valid.
            let mut header: libc::mmsghdr = unsafe { zeroed() };
            header.msg_hdr.msg_iov = part;
            header.msg_hdr.msg_iovlen = 1;
            header.msg_hdr.msg_name = name.as_mut_ptr().cast();
            header.msg_hdr.msg_namelen = size_of::<libc::sockaddr_storage>() as _;
            header.msg_hdr.msg_control = control.as_mut_ptr();
            header.msg_hdr.msg_controllen = Control::CAPACITY as _;
            self.headers.push(header);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A batch whose only message has this sender, flags and length.
    fn received(peer: SocketAddr, flags: c_int, len: u32) -> ReceiveBatch {
        let mut batch = ReceiveBatch::new();
        batch.arm();
        batch.count = 1;
        batch.names[0] = RawAddr::of_inet(peer);
        let header = &mut batch.headers[0];
        header.msg_len = len;
        header.msg_hdr.msg_flags = flags;
        header.msg_hdr.msg_controllen = 0;
        batch
    }

    #[test]
    fn messages_that_cannot_be_used_are_told() {
        let addr = |text: &str| text.parse::<SocketAddr>().expect("an address");
        let peer = addr("192.0.2.1:443");
        for (peer, flags, len, expected) in [
            (peer, 0, 5, None),
            (peer, libc::MSG_TRUNC, 5, Some(Unusable::Truncated)),
            (peer, libc::MSG_CTRUNC, 5, Some(Unusable::Truncated)),
            (peer, 0, 0, Some(Unusable::Ignored)),
            (addr("192.0.2.1:0"), 0, 5, Some(Unusable::Ignored)),
            (addr("0.0.0.0:443"), 0, 5, Some(Unusable::Ignored)),
            (addr("[::]:443"), 0, 5, Some(Unusable::Ignored)),
            (addr("[::ffff:0.0.0.0]:443"), 0, 5, Some(Unusable::Ignored)),
            (addr("[2001:db8::1]:0"), 0, 5, Some(Unusable::Ignored)),
            (addr("[2001:db8::1]:443"), 0, 5, None),
        ] {
            let mut batch = received(peer, flags, len);
            let told = batch.message(0);
            assert_eq!(
                told.as_ref().err().copied(),
                expected,
                "{peer} {flags} {len}"
            );
            if let Ok(told) = told {
                let facts = (told.peer, told.local, told.ecn, told.segment);
                assert_eq!(facts, (peer, None, 0, 5));
            }
        }
        let mut batch = received(peer, 0, 5);
        batch.names[0].storage.ss_family = libc::AF_UNSPEC as _;
        assert_eq!(batch.message(0).err(), Some(Unusable::Ignored));
    }
}
