//! The system calls of the data path. This module and its files are the only ones of the crate with
//! `unsafe` code.
//!
//! Thin wrappers: safe types as arguments, `errno` returned as [`io::Error`] or a small enum. One
//! file per kind of call.

mod address;
mod clock;
mod control;
mod datagram;
mod epoll;
mod mapping;
mod options;
mod socket;
mod steering;
mod transfer;
mod udp_receive;
mod udp_send;

use std::io;

use libc::c_int;

pub use address::UNIX_PATH_BYTES_MAX;
pub(crate) use address::path_too_long;
pub use clock::{
    ThreadClock, clock_is_counter, counter, monotonic_ns, now, now_after, process_cpu_ns,
    thread_cpu_ns,
};
pub use datagram::{DatagramBatch, Delivery, send_datagrams, tell_datagram_errors};
pub use epoll::{Epoll, Event, Events, eventfd, eventfd_reset, eventfd_ring};
pub use mapping::{Mapping, reserve};
pub use options::{
    TCP_SAVE_SYN, bind_to_interface, is_v6only, label, option, pending_error, saved_syn, set_bytes,
    set_linger_zero, set_md5_key, set_option, set_transparent, silence, socket_type, tcp_info,
    v6only_by_default,
};
pub use socket::{
    Accept, accept, bind, connect, datagram_socket, datagram_socket_in, inherit, is_local, listen,
    local_addr, peer_addr, set_nonblocking_cloexec, socket_in, socket_of, stream_socket,
};
pub use steering::steer_by_id;
pub use transfer::{
    Io, PIECES_MAX, Pieces, discard_input, peek, recv, send, shutdown_write, wait_writable, write,
};
pub use udp_receive::{RECEIVES_A_CALL, ReceiveBatch, Received, Unusable};
pub use udp_send::{
    MESSAGE_BYTES_MAX, SEGMENTS_MAX, SENDS_A_CALL, SendBatch, Sending, cuts_datagrams,
    join_datagrams, set_buffer,
};

/// An error's text without Rust's "(os error N)".
#[must_use]
pub fn plain_error(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}

fn errno() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

fn check(rc: c_int) -> io::Result<c_int> {
    if rc < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(rc)
    }
}
