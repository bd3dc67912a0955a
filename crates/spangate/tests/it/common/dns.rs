//! A name server with records that a test changes.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};

const A: u16 = 1;
const AAAA: u16 = 28;
const SRV: u16 = 33;
const IN: u16 = 1;

/// A record of a name.
#[derive(Clone, Debug)]
pub enum Record {
    Address(IpAddr),
    /// A service with its weight, its port and its host.
    Service(u16, u16, &'static str),
}

/// An address.
pub fn ip(text: &str) -> Record {
    Record::Address(text.parse().expect("an address"))
}

/// The answers for a name.
#[derive(Clone, Debug)]
enum Answer {
    Records(Vec<Record>),
    /// An error (RFC 1035 §4.1.1).
    Code(u8),
    Nothing,
}

/// The error for a name that does not exist, which unknown names get.
pub const NXDOMAIN: u8 = 3;

/// Serves until the test ends.
#[derive(Clone)]
pub struct NameServer {
    pub at: SocketAddr,
    answers: Arc<Mutex<HashMap<String, Answer>>>,
}

impl NameServer {
    pub fn start() -> NameServer {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let at = socket.local_addr().expect("an address");
        let answers: Arc<Mutex<HashMap<String, Answer>>> = Arc::default();
        let own = Arc::clone(&answers);
        let serve = move || {
            let mut query = [0; 4096];
            while let Ok((len, client)) = socket.recv_from(&mut query) {
                let answer = answer(&query[..len], &own.lock().unwrap());
                if let Some(answer) = answer {
                    let _ = socket.send_to(&answer, client);
                }
            }
        };
        let thread = std::thread::Builder::new().name("nameserver".to_owned());
        thread.spawn(serve).expect("a thread");
        NameServer { at, answers }
    }

    /// Sets the records of a name.
    pub fn set(&self, name: &str, records: &[Record]) {
        self.put(name, Answer::Records(records.to_vec()));
    }

    /// Answers questions about a name with an error.
    pub fn fail(&self, name: &str, code: u8) {
        self.put(name, Answer::Code(code));
    }

    /// Answers no questions about a name.
    pub fn mute(&self, name: &str) {
        self.put(name, Answer::Nothing);
    }

    fn put(&self, name: &str, answer: Answer) {
        self.answers.lock().unwrap().insert(name.to_owned(), answer);
    }
}

fn answer(query: &[u8], answers: &HashMap<String, Answer>) -> Option<Vec<u8>> {
    let mut at = 12;
    let mut labels = Vec::new();
    loop {
        let len = usize::from(*query.get(at)?);
        let label = query.get(at + 1..at + 1 + len)?;
        at += 1 + len;
        if len == 0 {
            break;
        }
        labels.push(String::from_utf8_lossy(label).into_owned());
    }
    let kind = u16::from_be_bytes([*query.get(at)?, *query.get(at + 1)?]);
    let question = query.get(12..at + 4)?;
    let (code, records) = match answers.get(&labels.join(".")) {
        Some(Answer::Nothing) => return None,
        Some(Answer::Code(code)) => (*code, &[][..]),
        Some(Answer::Records(records)) => (0, &**records),
        None => (NXDOMAIN, &[][..]),
    };
    let data: Vec<Vec<u8>> = records
        .iter()
        .filter_map(|record| data(record, kind))
        .collect();
    let mut message = query[..2].to_vec();
    message.extend([0x81, 0x80 | code, 0, 1]);
    message.extend((data.len() as u16).to_be_bytes());
    message.extend([0; 4]);
    message.extend(question);
    for data in data {
        // The name of the question.
        message.extend([0xc0, 12]);
        message.extend(kind.to_be_bytes());
        message.extend(IN.to_be_bytes());
        message.extend(60_u32.to_be_bytes());
        message.extend((data.len() as u16).to_be_bytes());
        message.extend(data);
    }
    Some(message)
}

/// The data of a record, if it is of this type.
fn data(record: &Record, kind: u16) -> Option<Vec<u8>> {
    match record {
        Record::Address(IpAddr::V4(ip)) if kind == A => Some(ip.octets().to_vec()),
        Record::Address(IpAddr::V6(ip)) if kind == AAAA => Some(ip.octets().to_vec()),
        Record::Service(weight, port, host) if kind == SRV => {
            let mut data = [0_u16, *weight, *port].map(u16::to_be_bytes).concat();
            for label in host.split('.') {
                data.push(label.len() as u8);
                data.extend(label.as_bytes());
            }
            data.push(0);
            Some(data)
        }
        Record::Address(_) | Record::Service(..) => None,
    }
}
