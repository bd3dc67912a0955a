//! The drivers over real sockets.

mod epoll;
