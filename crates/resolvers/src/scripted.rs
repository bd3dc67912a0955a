//! Answers of nameservers for tests, written byte by byte.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::name::Name;

pub(crate) const NOERROR: u8 = 0;
pub(crate) const FORMERR: u8 = 1;
pub(crate) const SERVFAIL: u8 = 2;
pub(crate) const NXDOMAIN: u8 = 3;
pub(crate) const REFUSED: u8 = 5;

pub(crate) const TYPE_A: u16 = 1;
pub(crate) const TYPE_CNAME: u16 = 5;
pub(crate) const TYPE_TXT: u16 = 16;
pub(crate) const TYPE_AAAA: u16 = 28;
pub(crate) const TYPE_SRV: u16 = 33;

/// A record: its owner and content as in messages.
#[derive(Clone)]
pub(crate) struct Record {
    pub owner: Vec<u8>,
    pub record_type: u16,
    pub content: Vec<u8>,
}

fn wire(name: &str) -> Vec<u8> {
    Name::parse(name).expect("a name").wire()
}

impl Record {
    pub fn new(owner: &str, record_type: u16, content: &[u8]) -> Record {
        Record {
            owner: wire(owner),
            record_type,
            content: content.to_vec(),
        }
    }

    pub fn a(owner: &str, address: &str) -> Record {
        let address: Ipv4Addr = address.parse().expect("an address");
        Record::new(owner, TYPE_A, &address.octets())
    }

    pub fn aaaa(owner: &str, address: &str) -> Record {
        let address: Ipv6Addr = address.parse().expect("an address");
        Record::new(owner, TYPE_AAAA, &address.octets())
    }

    pub fn cname(owner: &str, target: &str) -> Record {
        Record::new(owner, TYPE_CNAME, &wire(target))
    }

    /// A service of priority 1.
    pub fn srv(owner: &str, target: &str, port: u16, weight: u16) -> Record {
        let mut content = 1_u16.to_be_bytes().to_vec();
        content.extend(weight.to_be_bytes());
        content.extend(port.to_be_bytes());
        content.extend(wire(target));
        Record::new(owner, TYPE_SRV, &content)
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend(&self.owner);
        out.extend(self.record_type.to_be_bytes());
        out.extend([0, 1, 0, 0, 0, 60]);
        out.extend((self.content.len() as u16).to_be_bytes());
        out.extend(&self.content);
    }
}

/// An answer.
#[derive(Clone, Default)]
pub(crate) struct Reply {
    pub rcode: u8,
    pub is_truncated: bool,
    pub answers: Vec<Record>,
    pub additional: Vec<Record>,
}

impl Reply {
    pub fn of(answers: Vec<Record>) -> Reply {
        Reply {
            answers,
            ..Reply::default()
        }
    }

    pub fn error(rcode: u8) -> Reply {
        Reply {
            rcode,
            ..Reply::default()
        }
    }

    /// The answer to a query: its id, its question, these records.
    pub fn to(&self, query: &[u8]) -> Vec<u8> {
        let mut out = query[..2].to_vec();
        out.push(0x81 | u8::from(self.is_truncated) << 1);
        out.push(0x80 | self.rcode);
        let count = |records: &[Record]| (records.len() as u16).to_be_bytes();
        out.extend([0, 1]);
        out.extend(count(&self.answers));
        out.extend([0, 0]);
        out.extend(count(&self.additional));
        out.extend(question(query));
        for record in self.answers.iter().chain(&self.additional) {
            record.write(&mut out);
        }
        out
    }
}

/// The question of a query with its type and class.
pub(crate) fn question(query: &[u8]) -> &[u8] {
    let name = query[12..].iter().position(|&byte| byte == 0);
    &query[12..12 + name.expect("the end of the name") + 5]
}

/// The type that a query asks for.
pub(crate) fn type_of(query: &[u8]) -> u16 {
    let question = question(query);
    let at = question.len() - 4;
    u16::from_be_bytes([question[at], question[at + 1]])
}
