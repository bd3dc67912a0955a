//! Peers that speak no HTTP: each sends its bytes and its end, and checks those of the other.

use super::driver::Pipe;
use super::plan::{Exchange, Way, mismatch, pattern};
use super::stage::Stage;

/// A client: a line with its number, its bytes, its end.
#[derive(Debug)]
pub struct TcpClient {
    pub index: usize,
    got: usize,
}

impl TcpClient {
    pub fn new(index: usize) -> Self {
        TcpClient { index, got: 0 }
    }

    fn plan(&self, stage: &Stage<'_>) -> Exchange {
        stage.plans[self.index][0]
    }

    /// The connection stands.
    pub fn start(&mut self, stage: &mut Stage<'_>, pipe: &mut Pipe) {
        if stage.setup.accepts_proxy {
            let line = format!(
                "PROXY TCP4 10.0.0.{} 10.1.0.1 {} 80\r\n",
                self.index + 1,
                5000 + self.index
            );
            pipe.write(line.as_bytes());
        }
        pipe.write(format!("{}\n", self.index).as_bytes());
        let size = self.plan(stage).body.size();
        pipe.write(&pattern(self.index, 0, Way::TunnelUp, size));
        pipe.peer_ended = true;
    }

    /// Bytes from the proxy.
    pub fn read(&mut self, bytes: &[u8], stage: &mut Stage<'_>) {
        if let Some(place) = mismatch(self.index, 0, Way::TunnelDown, self.got, bytes) {
            stage.fault(format!(
                "tcp client {}: a wrong byte at {place}",
                self.index
            ));
        }
        self.got += bytes.len();
    }

    /// The proxy's end or reset.
    pub fn ended(&mut self, stage: &mut Stage<'_>, pipe: &mut Pipe, reset: bool) {
        pipe.peer_ended = true;
        let wanted = self.plan(stage).answer.body.size();
        if self.got > wanted || (stage.mood.calm && (self.got != wanted || reset)) {
            stage.fault(format!(
                "tcp client {}: {} bytes of {wanted}, reset: {reset}",
                self.index, self.got
            ));
        }
    }
}

/// A server: after the client's line its own bytes and its end.
#[derive(Debug)]
pub struct TcpServer {
    line: Option<Vec<u8>>,
    needs_proxy_line: bool,
    client: usize,
    got: usize,
}

impl TcpServer {
    pub fn new(stage: &Stage<'_>) -> Self {
        TcpServer {
            line: Some(Vec::new()),
            needs_proxy_line: stage.setup.sends_proxy,
            client: 0,
            got: 0,
        }
    }

    /// Bytes from the proxy.
    pub fn read(&mut self, mut bytes: &[u8], stage: &mut Stage<'_>, pipe: &mut Pipe) {
        while let Some(line) = &mut self.line {
            let Some((first, rest)) = bytes.split_first() else {
                return;
            };
            bytes = rest;
            if *first != b'\n' {
                line.push(*first);
                continue;
            }
            let text = String::from_utf8_lossy(line).into_owned();
            if std::mem::take(&mut self.needs_proxy_line) {
                line.clear();
                if !text.starts_with("PROXY TCP4 10.0.0.") {
                    stage.fault(format!("tcp server: PROXY line {text:?}"));
                }
                continue;
            }
            match text
                .parse::<usize>()
                .ok()
                .filter(|client| *client < stage.plans.len())
            {
                Some(client) => self.client = client,
                None => return stage.fault(format!("tcp server: line {text:?}")),
            }
            self.line = None;
            let size = stage.plans[self.client][0].answer.body.size();
            pipe.write(&pattern(self.client, 0, Way::TunnelDown, size));
            pipe.peer_ended = true;
        }
        if let Some(place) = mismatch(self.client, 0, Way::TunnelUp, self.got, bytes) {
            stage.fault(format!(
                "tcp server of {}: a wrong byte at {place}",
                self.client
            ));
        }
        self.got += bytes.len();
    }

    /// The proxy's end or reset.
    pub fn ended(&mut self, stage: &mut Stage<'_>, pipe: &mut Pipe, reset: bool) {
        pipe.peer_ended = true;
        if self.line.is_some() {
            return;
        }
        let wanted = stage.plans[self.client][0].body.size();
        if self.got > wanted || (stage.mood.calm && (self.got != wanted || reset)) {
            stage.fault(format!(
                "tcp server of {}: {} bytes of {wanted}, reset: {reset}",
                self.client, self.got
            ));
        }
    }
}
