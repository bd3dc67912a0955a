//! Which socket of a group with the same port receives a QUIC packet.

use std::io;
use std::mem::size_of;
use std::os::fd::RawFd;

use libc::socklen_t;

use super::check;

/// The highest place in a connection id (RFC 9000 §5.1: at most 20 bytes).
const ID_PLACE_MAX: u8 = 19;
/// Where the connection id begins in a packet with a short header (RFC 9000 §17.3).
const SHORT_ID_AT: u32 = 1;
/// Where the length of the connection id is in a packet with a long header (RFC 9000 §17.2).
const LONG_ID_LEN_AT: u32 = 5;
/// Where the connection id begins in a packet with a long header.
const LONG_ID_AT: u32 = 6;
/// The bit of the first byte that a long header has.
const LONG: u32 = 0x80;
/// The bits of the first byte that tell the type of a packet with a long header.
const TYPE: u32 = 0x30;
/// Those of a Handshake packet (RFC 9000 §17.2.4).
const HANDSHAKE: u32 = 0x20;
/// No socket has this number: the kernel selects one by a hash of the addresses.
const HASH: u32 = u32::MAX;

/// Lets byte `place` (from 0) of the destination connection id, modulo `sockets`, select the socket
/// of the group (`SO_REUSEPORT`) that `fd` belongs to: `SO_ATTACH_REUSEPORT_CBPF`, socket(7).
///
/// This holds for packets with a short header and for Handshake packets, whose ids the server has
/// chosen. All other packets, and those that are too short, go where the kernel's hash of the
/// addresses sends them, as before. Sockets have the numbers in which they were bound; if one
/// closes, the last takes its number.
///
/// The program serves the whole group and takes the place of an earlier one.
///
/// # Errors
/// `InvalidInput` if `sockets` is 0, `place` is beyond an id, or a bound socket is in no group (it
/// did not share its port when it was bound, and no other socket has the port); otherwise `errno`
/// of `setsockopt`.
pub fn steer_by_id(fd: RawFd, place: u8, sockets: u32) -> io::Result<()> {
    if sockets == 0 || place > ID_PLACE_MAX {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut program = program(u32::from(place), sockets);
    let filter = libc::sock_fprog {
        len: program.len() as _,
        filter: program.as_mut_ptr(),
    };
    // SAFETY: pointer and length describe `filter`, which describes `program`; the kernel copies
    // both.
    check(unsafe {
        libc::setsockopt(
            fd,
            libc::SOL_SOCKET,
            libc::SO_ATTACH_REUSEPORT_CBPF,
            (&raw const filter).cast(),
            size_of::<libc::sock_fprog>() as socklen_t,
        )
    })
    .map(drop)
}

/// The program: its offsets count from the first byte behind the UDP header.
fn program(place: u32, sockets: u32) -> [libc::sock_filter; 16] {
    use libc::{
        BPF_A, BPF_ABS, BPF_ALU, BPF_AND, BPF_B, BPF_JA, BPF_JEQ, BPF_JGT, BPF_JMP, BPF_JSET,
        BPF_K, BPF_LD, BPF_LEN, BPF_MOD, BPF_RET, BPF_W,
    };

    let op = |code: u32, k: u32| jump(code, k, 0, 0);
    let load = BPF_LD | BPF_B | BPF_ABS;
    let greater = BPF_JMP | BPF_JGT | BPF_K;
    // A load beyond the packet would end the program with 0, so lengths are compared first. Jumps
    // count from the next instruction; 15 is the hash.
    [
        op(BPF_LD | BPF_W | BPF_LEN, 0),
        jump(greater, SHORT_ID_AT + place, 0, 13),
        op(load, 0),
        jump(BPF_JMP | BPF_JSET | BPF_K, LONG, 2, 0),
        op(load, SHORT_ID_AT + place),
        jump(BPF_JMP | BPF_JA, 7, 0, 0),
        op(BPF_ALU | BPF_AND | BPF_K, TYPE),
        jump(BPF_JMP | BPF_JEQ | BPF_K, HANDSHAKE, 0, 7),
        op(BPF_LD | BPF_W | BPF_LEN, 0),
        jump(greater, LONG_ID_AT + place, 0, 5),
        op(load, LONG_ID_LEN_AT),
        jump(greater, place, 0, 3),
        op(load, LONG_ID_AT + place),
        op(BPF_ALU | BPF_MOD | BPF_K, sockets),
        op(BPF_RET | BPF_A, 0),
        op(BPF_RET | BPF_K, HASH),
    ]
}

fn jump(code: u32, k: u32, yes: u8, no: u8) -> libc::sock_filter {
    libc::sock_filter {
        code: code as u16,
        jt: yes,
        jf: no,
        k,
    }
}
