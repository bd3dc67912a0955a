//! HTTP/2 frame by frame, for peers that do things that no library does.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use super::DEADLINE;

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const PRIORITY: u8 = 2;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;
pub const CONTINUATION: u8 = 9;

pub const END_STREAM: u8 = 1;
pub const END_HEADERS: u8 = 4;

/// `GET http://x/` in HPACK, up to the path.
pub const GET: &[u8] = b"\x82\x86\x01\x01x";

pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    frame.extend_from_slice(&[kind, flags]);
    frame.extend_from_slice(&stream.to_be_bytes());
    frame.extend_from_slice(payload);
    frame
}

/// The header block of a request for a path of less than 127 bytes.
pub fn get(path: &str) -> Vec<u8> {
    let mut block = GET.to_vec();
    block.extend_from_slice(&[0x04, path.len() as u8]);
    block.extend_from_slice(path.as_bytes());
    block
}

/// A peer that writes frames.
pub struct Raw {
    pub stream: TcpStream,
    pub got: Vec<u8>,
}

impl Raw {
    pub fn connect(to: SocketAddr, settings: &[u8]) -> Raw {
        let mut raw = Raw::on(TcpStream::connect(to).expect("a connection"));
        let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
        assert!(raw.send(preface) && raw.send(&frame(SETTINGS, 0, 0, settings)));
        raw
    }

    pub fn on(stream: TcpStream) -> Raw {
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        stream.set_write_timeout(Some(DEADLINE)).unwrap();
        Raw {
            stream,
            got: Vec::new(),
        }
    }

    /// The server's side: sends its settings and reads the client's preface.
    pub fn serve(stream: TcpStream) -> Raw {
        let mut raw = Raw::on(stream);
        let mut preface = [0; 24];
        let _ = raw.stream.read_exact(&mut preface);
        raw.send(&frame(SETTINGS, 0, 0, &[]));
        raw
    }

    /// Reads until a frame of this kind arrives. Returns its stream and payload.
    pub fn until(&mut self, kind: u8) -> Option<(u32, Vec<u8>)> {
        loop {
            let (each, _, stream, payload) = self.frame()?;
            if each == kind {
                return Some((stream, payload));
            }
        }
    }

    /// Sends bytes. Returns whether the other side accepted them.
    pub fn send(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).is_ok()
    }

    /// The next frame: its kind, flags, stream and payload. None at the end of the connection.
    pub fn frame(&mut self) -> Option<(u8, u8, u32, Vec<u8>)> {
        loop {
            if let Some((head, rest)) = self.got.split_first_chunk::<9>() {
                let len = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
                if rest.len() >= len {
                    let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
                    let frame = (head[3], head[4], stream, rest[..len].to_vec());
                    self.got.drain(..9 + len);
                    return Some(frame);
                }
            }
            let mut bytes = [0; 16 << 10];
            match self.stream.read(&mut bytes) {
                Ok(count @ 1..) => self.got.extend_from_slice(&bytes[..count]),
                _ => return None,
            }
        }
    }

    /// Reads to the end of the connection. Returns the error code; None if it ended without GOAWAY.
    pub fn goaway(&mut self) -> Option<u32> {
        let mut code = None;
        while let Some((kind, _, _, payload)) = self.frame() {
            if kind == GOAWAY {
                code = payload[4..8].try_into().ok().map(u32::from_be_bytes);
            }
        }
        code
    }
}
