//! DNS messages (RFC 1035 §4): queries written, answers checked and read.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

use domain::base::iana::{Class, Opcode, Rcode};
use domain::base::message_builder::PushError;
use domain::base::record::ParsedRecord;
use domain::base::wire::ParseError;
use domain::base::{Message, MessageBuilder, ParsedName, Rtype};
use domain::rdata::{A, Aaaa, Cname, Srv};

use crate::name::Name;
use crate::section::Family;
use crate::{ANSWER_RECORDS_MAX, CNAMES_MAX, OTHER_RECORDS_MAX};

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    A,
    Aaaa,
    Srv,
}

impl Kind {
    /// The type of the addresses of a family.
    pub(crate) fn of(family: Family) -> Kind {
        match family {
            Family::V4 => Kind::A,
            Family::V6 => Kind::Aaaa,
        }
    }

    fn record_type(self) -> Rtype {
        match self {
            Kind::A => Rtype::A,
            Kind::Aaaa => Rtype::AAAA,
            Kind::Srv => Rtype::SRV,
        }
    }
}

/// A valid answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Answer {
    /// The addresses of the name.
    pub addresses: Vec<IpAddr>,
    /// The services of the name.
    pub services: Vec<ServiceRecord>,
    /// The addresses of the services' targets in the additional section.
    pub targets: Vec<TargetAddress>,
    /// The name is an alias.
    pub is_alias: bool,
    /// The nameserver had more records than the message.
    pub is_truncated: bool,
}

/// An SRV record (RFC 2782).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServiceRecord {
    pub target: Name,
    pub port: u16,
    pub priority: u16,
    pub weight: u16,
}

/// An address of a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TargetAddress {
    pub target: Name,
    pub address: IpAddr,
}

/// Why a message is no valid answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It is no answer to this question. The true answer may still come.
    Unrelated,
    /// It is malformed, or has records of other names only.
    Invalid,
    /// The name does not exist.
    Nx,
    /// The nameserver refuses.
    Refused,
    /// It has no records.
    Empty,
    /// It has an alias without records of what that stands for.
    Alias,
    /// It is truncated.
    Truncated,
    /// Another error of the nameserver, or no record of the type asked for.
    Other,
}

impl From<ParseError> for Fault {
    fn from(_: ParseError) -> Fault {
        Fault::Invalid
    }
}

/// A query for records of a name, which asks for recursion and announces the largest answer that
/// is accepted (RFC 6891 §6.1.2).
pub(crate) fn query(id: u16, name: &Name, kind: Kind, payload_bytes: u16) -> Vec<u8> {
    let write = || -> Result<Vec<u8>, PushError> {
        let mut builder = MessageBuilder::new_vec();
        builder.header_mut().set_id(id);
        builder.header_mut().set_rd(true);
        let mut builder = builder.question();
        let wire = name.wire();
        // A `Name` has labels and a length within their bounds.
        let name =
            domain::base::Name::from_octets(wire.as_slice()).map_err(|_| PushError::ShortBuf)?;
        builder.push((name, kind.record_type()))?;
        let mut builder = builder.additional();
        builder.opt(|opt| {
            opt.set_udp_payload_size(payload_bytes);
            Ok(())
        })?;
        Ok(builder.finish())
    };
    write().expect("a vector has room for one question")
}

/// Reads the answer to a question. Only records of the type asked for count; an address of a
/// target may have either family.
pub(crate) fn read(bytes: &[u8], name: &Name, kind: Kind) -> Result<Answer, Fault> {
    let message = Message::from_slice(bytes).map_err(|_| Fault::Invalid)?;
    let header = message.header();
    if !header.qr() || header.opcode() != Opcode::QUERY {
        return Err(Fault::Unrelated);
    }
    check_question(message, name, kind)?;
    let is_truncated = header.tc();
    match header.rcode() {
        Rcode::NOERROR => {}
        Rcode::NXDOMAIN => return Err(Fault::Nx),
        Rcode::REFUSED => return Err(Fault::Refused),
        _ => return Err(Fault::Other),
    }
    // What a truncated answer of services has is used when no other way gives all of them.
    match read_records(message, name, kind) {
        Ok(answer) if kind == Kind::Srv => Ok(Answer {
            is_truncated,
            ..answer
        }),
        Ok(_) | Err(_) if is_truncated => Err(Fault::Truncated),
        result => result,
    }
}

/// A nameserver that cannot read a query may leave the question away in its error.
fn check_question(message: &Message<[u8]>, name: &Name, kind: Kind) -> Result<(), Fault> {
    if message.header_counts().qdcount() == 0 && message.header().rcode() != Rcode::NOERROR {
        return Ok(());
    }
    let question = message.sole_question().map_err(|_| Fault::Unrelated)?;
    let is_ours = question.qtype() == kind.record_type()
        && question.qclass() == Class::IN
        && Name::of_message(question.qname()).as_ref() == Some(name);
    if is_ours {
        Ok(())
    } else {
        Err(Fault::Unrelated)
    }
}

/// A record that may belong to the answer.
struct Found {
    owner: Name,
    data: Data,
}

enum Data {
    Address(IpAddr),
    Service(ServiceRecord),
    /// A service that is not offered: its target is the root (RFC 2782).
    Nothing,
    Alias(Name),
    Other,
}

fn read_records(message: &Message<[u8]>, name: &Name, kind: Kind) -> Result<Answer, Fault> {
    let counts = message.header_counts();
    let others = usize::from(counts.nscount()) + usize::from(counts.arcount());
    if usize::from(counts.ancount()) > ANSWER_RECORDS_MAX || others > OTHER_RECORDS_MAX {
        return Err(Fault::Invalid);
    }
    if counts.ancount() == 0 {
        return Err(Fault::Empty);
    }
    let mut found = Vec::new();
    let mut aliases = HashMap::new();
    for record in message.answer()? {
        let record = record?;
        let data = data(&record)?;
        let Some(owner) = Name::of_message(&record.owner()) else {
            continue;
        };
        if record.class() != Class::IN {
            continue;
        }
        match data {
            Data::Alias(target) => {
                aliases.entry(owner).or_insert(target);
            }
            data => found.push(Found { owner, data }),
        }
    }
    let canonical = canonical_name(name, &aliases)?;
    let is_alias = canonical != name;
    let mut answer = Answer {
        is_alias,
        ..Answer::default()
    };
    let mut is_named = false;
    let mut is_not_offered = false;
    for record in found
        .into_iter()
        .filter(|record| record.owner == *canonical)
    {
        is_named = true;
        match record.data {
            Data::Address(address) if kind == address_kind(address) => {
                answer.addresses.push(address);
            }
            Data::Service(service) if kind == Kind::Srv => answer.services.push(service),
            Data::Nothing => is_not_offered = true,
            Data::Address(_) | Data::Service(_) | Data::Alias(_) | Data::Other => {}
        }
    }
    if answer.addresses.is_empty() && answer.services.is_empty() {
        return Err(if is_alias {
            Fault::Alias
        } else if is_not_offered {
            Fault::Empty
        } else if is_named {
            Fault::Other
        } else {
            Fault::Invalid
        });
    }
    if kind == Kind::Srv {
        read_targets(message, &mut answer)?;
    }
    Ok(answer)
}

fn address_kind(address: IpAddr) -> Kind {
    match address {
        IpAddr::V4(_) => Kind::A,
        IpAddr::V6(_) => Kind::Aaaa,
    }
}

/// The name at the end of a chain of aliases.
fn canonical_name<'a>(name: &'a Name, aliases: &'a HashMap<Name, Name>) -> Result<&'a Name, Fault> {
    let mut canonical = name;
    for _ in 0..=CNAMES_MAX {
        match aliases.get(canonical) {
            Some(target) => canonical = target,
            None => return Ok(canonical),
        }
    }
    Err(Fault::Alias)
}

/// The content of a record; what is malformed makes the message invalid.
fn data(record: &ParsedRecord<'_, [u8]>) -> Result<Data, ParseError> {
    Ok(match record.rtype() {
        Rtype::A => {
            let parsed = record.to_record::<A>()?;
            parsed.map_or(Data::Other, |parsed| {
                Data::Address(parsed.data().addr().into())
            })
        }
        Rtype::AAAA => {
            let parsed = record.to_record::<Aaaa>()?;
            parsed.map_or(Data::Other, |parsed| {
                Data::Address(parsed.data().addr().into())
            })
        }
        Rtype::CNAME => {
            let parsed = record.to_record::<Cname<ParsedName<_>>>()?;
            let target = parsed.and_then(|parsed| Name::of_message(parsed.data().cname()));
            target.map_or(Data::Other, Data::Alias)
        }
        Rtype::SRV => {
            let parsed = record.to_record::<Srv<ParsedName<_>>>()?;
            parsed.map_or(Data::Other, |parsed| service(parsed.data()))
        }
        _ => Data::Other,
    })
}

fn service(srv: &Srv<ParsedName<&[u8]>>) -> Data {
    match Name::of_message(srv.target()) {
        Some(target) => Data::Service(ServiceRecord {
            target,
            port: srv.port(),
            priority: srv.priority(),
            weight: srv.weight(),
        }),
        None if srv.target().is_root() => Data::Nothing,
        None => Data::Other,
    }
}

/// Addresses of this answer's targets in the additional section; other records there are ignored.
fn read_targets(message: &Message<[u8]>, answer: &mut Answer) -> Result<(), Fault> {
    let targets: HashSet<&Name> = answer
        .services
        .iter()
        .map(|service| &service.target)
        .collect();
    for record in message.additional()? {
        let record = record?;
        let Data::Address(address) = data(&record)? else {
            continue;
        };
        if record.class() != Class::IN {
            continue;
        }
        if let Some(owner) = Name::of_message(&record.owner())
            && targets.contains(&owner)
        {
            answer.targets.push(TargetAddress {
                target: owner,
                address,
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
