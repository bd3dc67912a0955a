//! Syslog over the network, off the data path: the servers of `ring` sections (manual §12.5), and the
//! receivers of `log-forward` sections (manual §12.6).
//!
//! | module | holds |
//! |---|---|
//! | [`frames`] | cuts a stream into messages |
//! | [`receive`] | receives datagrams and streams, on one thread |
//! | [`servers`] | sends the messages of rings to their servers, on one thread |

#![forbid(unsafe_code)]

pub mod frames;
pub mod receive;
pub mod servers;
