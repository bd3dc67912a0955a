//! The negotiation of a proxy, checked once before anything is measured.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};

use super::PATIENCE;
use super::connect::{self, Offer, config};
use crate::Failure;

/// The outcome of a handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    version: String,
    cipher: String,
    group: String,
    /// The protocol that ALPN selected.
    alpn: Option<String>,
}

impl fmt::Display for Facts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.version, self.cipher, self.group)
    }
}

impl Facts {
    /// Whether it is TLS 1.3.
    pub fn is_tls13(&self) -> bool {
        self.version == "TLSv1_3"
    }

    /// Whether HTTP/2 was chosen.
    pub fn is_http2(&self) -> bool {
        self.alpn.as_deref() == Some("h2")
    }
}

/// The results of both offers to one proxy.
pub struct Probed {
    /// With the offer of the measured load.
    pub measured: Facts,
    /// With OpenSSL's default offer.
    pub usual: Facts,
}

/// Makes both offers, with HTTP/2 and HTTP/1.1 by ALPN if `http2` is set, otherwise without ALPN.
///
/// # Errors
/// A handshake fails.
pub fn tls(address: SocketAddr, http2: bool) -> Result<Probed, Failure> {
    let alpn: &[&str] = if http2 { &["h2", "http/1.1"] } else { &[] };
    Ok(Probed {
        measured: handshake(address, Offer::Measured, alpn)?,
        usual: handshake(address, Offer::Usual, alpn)?,
    })
}

fn handshake(address: SocketAddr, offer: Offer, alpn: &[&str]) -> Result<Facts, Failure> {
    let config = config(offer, alpn, false)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let stream = runtime.block_on(async {
        tokio::time::timeout(PATIENCE, connect::connect(address, &config)).await
    })??;
    let session = stream.get_ref().1;
    let version = session.protocol_version().map(|it| format!("{it:?}"));
    let cipher = session.negotiated_cipher_suite();
    let group = session.negotiated_key_exchange_group();
    let alpn = session.alpn_protocol();
    Ok(Facts {
        version: version.unwrap_or_default(),
        cipher: cipher.map_or(String::new(), |it| {
            format!("{:?}", it.suite()).replace("TLS13_", "TLS_")
        }),
        group: group.map_or(String::new(), |it| format!("{:?}", it.name())),
        alpn: alpn.map(|name| String::from_utf8_lossy(name).into_owned()),
    })
}

/// The first bytes of a client with prior knowledge of HTTP/2, and an empty SETTINGS frame (RFC
/// 9113, 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
/// The type of a SETTINGS frame (RFC 9113, 6.5), which follows the 3-byte length.
const SETTINGS: u8 = 4;

/// Whether `address` speaks HTTP/2 with prior knowledge: its first frame is SETTINGS.
///
/// # Errors
/// There is no connection.
pub fn clear_http2(address: SocketAddr) -> io::Result<bool> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(PREFACE)?;
    let mut frame = [0; 9];
    Ok(stream.read_exact(&mut frame).is_ok() && frame[3] == SETTINGS)
}
