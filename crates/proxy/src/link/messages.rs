//! What the layers above send to either peer, as messages: the mux of the connection frames them.
//! No layer above writes bytes to a connection that has a mux.

use std::collections::HashMap;

use http::{Head, Method};
use net::Driver;

use super::mux::h1::{Answered, Asked};
use super::{Links, Mux};
use crate::ids::ExchangeId;
use crate::runtime_config::Spelling;

/// Changes the spelling of field names in a serialised HTTP/1 head, from its first line to its
/// empty line.
#[inline(always)]
fn respell(spelling: Spelling<'_>, head: &mut [u8]) {
    if let Some(names) = spelling {
        respell_with(names, head);
    }
}

fn respell_with(names: &HashMap<Box<[u8]>, Box<[u8]>>, head: &mut [u8]) {
    for line in head.split_mut(|byte| *byte == b'\n').skip(1) {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else {
            continue;
        };
        // Only the case changes, so the length stays.
        if let Some(name) = names.get(&line[..colon]) {
            line[..colon].copy_from_slice(name);
        }
    }
}

/// The outcome of sending a request's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asking {
    /// It is sent, as this number of bytes.
    Sent { wire: usize },
    /// The connection takes no further request.
    Full,
    /// The server's connection cannot express the request: an upgrade without extended CONNECT (RFC
    /// 8441).
    Unsupported,
}

impl Links {
    /// Sends the head of a request to a server. `method` decides how the response is framed.
    pub fn send_request<D: Driver>(
        &mut self,
        io: &mut D,
        server: ExchangeId,
        head: &mut Head,
        method: Method,
        how: Asked,
        spelling: Spelling<'_>,
    ) -> Asking {
        match self.links.get_mut(server.into()).map(|link| &mut link.mux) {
            Some(Mux::Stream(_)) => self.ask_stream(io, server, head, how),
            Some(Mux::Back(back)) => {
                let mut out = std::mem::take(&mut self.head);
                back.ask(head, method, how, &mut out);
                respell(spelling, &mut out);
                self.send_whole(io, server, &out);
                let wire = self.put_head_back(out);
                Asking::Sent { wire }
            }
            Some(Mux::Raw | Mux::Front(_) | Mux::Connection(_)) | None => Asking::Full,
        }
    }

    /// Sends the head of a response to a client. Returns the number of its bytes.
    pub fn send_response<D: Driver>(
        &mut self,
        io: &mut D,
        client: ExchangeId,
        head: &mut Head,
        how: Answered,
        spelling: Spelling<'_>,
    ) -> usize {
        match self.links.get_mut(client.into()).map(|link| &mut link.mux) {
            Some(Mux::Stream(_)) => self.respond_stream(io, client, head, how),
            Some(Mux::Front(front)) => {
                let mut out = std::mem::take(&mut self.head);
                front.respond(head, how, &mut out);
                respell(spelling, &mut out);
                self.send_whole(io, client, &out);
                self.put_head_back(out)
            }
            Some(Mux::Raw | Mux::Back(_) | Mux::Connection(_)) | None => 0,
        }
    }

    /// Sends an interim response (RFC 9110 §15.2) to a client, unless the client speaks HTTP/1.0.
    /// Returns the number of its bytes.
    pub fn send_interim<D: Driver>(
        &mut self,
        io: &mut D,
        client: ExchangeId,
        head: &Head,
        spelling: Spelling<'_>,
    ) -> usize {
        match self.links.get_mut(client.into()).map(|link| &mut link.mux) {
            Some(Mux::Stream(_)) => self.interim_stream(io, client, head),
            Some(Mux::Front(front)) => {
                let mut out = std::mem::take(&mut self.head);
                if front.interim(head, &mut out) {
                    respell(spelling, &mut out);
                    self.send_whole(io, client, &out);
                }
                self.put_head_back(out)
            }
            Some(Mux::Raw | Mux::Back(_) | Mux::Connection(_)) | None => 0,
        }
    }

    /// Asks a client for its body if it waits to be asked (`Expect: 100-continue`). Returns the
    /// number of bytes of the interim response; none if the client does not wait.
    pub fn ask_for_body<D: Driver>(&mut self, io: &mut D, client: ExchangeId) -> Option<usize> {
        let expects = match &mut self.links.get_mut(client.into())?.mux {
            Mux::Stream(end) => std::mem::take(&mut end.expects),
            Mux::Front(front) => front.ask_for_body(),
            Mux::Raw | Mux::Back(_) | Mux::Connection(_) => false,
        };
        expects.then(|| {
            let mut interim = Head::default();
            interim.set_status(100, b"Continue");
            self.send_interim(io, client, &interim, None)
        })
    }

    /// Whether a client waits for `100 Continue` before it sends its body.
    pub fn awaits_continue(&self, client: ExchangeId) -> bool {
        self.get(client).is_some_and(|link| match &link.mux {
            Mux::Stream(end) => end.expects,
            Mux::Front(front) => front.expects(),
            Mux::Raw | Mux::Back(_) | Mux::Connection(_) => false,
        })
    }

    /// Keeps the scratch buffer of a head that was sent. Returns the number of bytes that it had.
    fn put_head_back(&mut self, mut out: Vec<u8>) -> usize {
        let wire = out.len();
        out.clear();
        self.head = out;
        wire
    }
}
