//! `CommunityID`: a hash of a flow that is the same in both directions (Community ID Flow Hashing,
//! version 1).

use super::text::{optional, text, utf8};
use super::{Function, eval};
use crate::eval::Failure;
use crate::value::Value;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha1::Digest;
use std::net::IpAddr;

const PROTOCOLS: &[(&str, u8)] = &[
    ("ICMP", 1),
    ("TCP", 6),
    ("UDP", 17),
    ("RSVP", 46),
    ("ICMP6", 58),
    ("SCTP", 132),
];

pub const FUNCTIONS: &[Function] = &[eval(
    "CommunityID",
    &[
        "source_ip",
        "source_port",
        "destination_ip",
        "destination_port",
        "?protocol",
        "?seed",
    ],
    |args| {
        let source = (address(&args[0])?, number(&args[1], 1)?);
        let destination = (address(&args[2])?, number(&args[3], 1)?);
        let protocol = optional(&args[4], "TCP")?;
        let protocol = PROTOCOLS.iter().find(|(name, _)| *name == protocol);
        let (_, protocol) = protocol.ok_or(Failure::Syntax)?;
        let seed = match &args[5] {
            Value::Nil => 0,
            seed => number(seed, 0)?,
        };
        // The end with the shorter, then smaller address and port comes first.
        let order = |end: &(Vec<u8>, u16)| (end.0.len(), end.0.clone(), end.1);
        let (first, second) = if order(&source) <= order(&destination) {
            (source, destination)
        } else {
            (destination, source)
        };
        let hash = sha1::Sha1::new()
            .chain_update(seed.to_be_bytes())
            .chain_update(&first.0)
            .chain_update(&second.0)
            .chain_update([*protocol, 0])
            .chain_update(first.1.to_be_bytes())
            .chain_update(second.1.to_be_bytes())
            .finalize();
        Ok(Value::text(format!("1:{}", STANDARD.encode(hash))))
    },
)];

fn address(value: &Value<'_>) -> Result<Vec<u8>, Failure> {
    text(value)?;
    let address: IpAddr = utf8(value)?.parse().map_err(|_| Failure::Syntax)?;
    Ok(match address.to_canonical() {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    })
}

fn number(value: &Value<'_>, least: u16) -> Result<u16, Failure> {
    let Value::Int(number) = value else {
        return Err(Failure::Type);
    };
    let number = u16::try_from(*number).map_err(|_| Failure::Math)?;
    if number < least {
        return Err(Failure::Math);
    }
    Ok(number)
}
