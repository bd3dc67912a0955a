//! The drivers over real sockets.

mod datagrams;
mod epoll;
