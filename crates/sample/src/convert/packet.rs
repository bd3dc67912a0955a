//! Headers of Ethernet, IP and TCP, as in a saved SYN (`fc_saved_syn`). Nothing is read beyond the
//! input.

use super::{Convert, bytes_of, convert, written};
use crate::args::ArgKind::Int;
use crate::args::{Arg, NONE, int_at, spec};
use crate::{Kind, Scope, Value};
use std::net::{Ipv4Addr, Ipv6Addr};

/// An entry whose result is a number.
macro_rules! number {
    ($name:literal, $doc:literal, $read:expr) => {
        convert($name, NONE, Kind::Bin, Kind::Int, $doc, |_, value, _| {
            let read: fn(&[u8]) -> Option<i64> = $read;
            read(&bytes_of(value)?).map(Value::Int)
        })
    };
}

/// An entry whose result is a range of its input.
macro_rules! part {
    ($name:literal, $doc:literal, $range:expr) => {
        convert($name, NONE, Kind::Bin, Kind::Bin, $doc, |_, value, _| {
            let range: fn(&[u8]) -> Option<(usize, usize)> = $range;
            let bytes = bytes_of(value)?;
            let (start, end) = range(&bytes)?;
            Some(Value::Bin(bytes.slice(start, end)))
        })
    };
}

/// An entry whose result is the address at an offset of an IPv4 or IPv6 header.
macro_rules! address {
    ($name:literal, $doc:literal, $at4:literal, $at6:literal) => {
        convert($name, NONE, Kind::Bin, Kind::Addr, $doc, |_, value, _| {
            let packet = bytes_of(value)?;
            let version = version(&packet)?;
            let header = packet.get(..least_header(version))?;
            Some(match version {
                Version::V4 => Value::Ipv4(Ipv4Addr::from(*header[$at4..].first_chunk::<4>()?)),
                Version::V6 => Value::Ipv6(Ipv6Addr::from(*header[$at6..].first_chunk::<16>()?)),
            })
        })
    };
}

pub(crate) const CONVERTERS: &[Convert] = &[
    part!("eth.data", "what follows an Ethernet header", |frame| {
        Some((ethernet_header(frame)?, frame.len()))
    }),
    part!("eth.dst", "the destination of an Ethernet frame", |frame| {
        (frame.len() >= 6).then_some((0, 6))
    }),
    part!(
        "eth.hdr",
        "an Ethernet header with its VLAN tags",
        |frame| { Some((0, ethernet_header(frame)?)) }
    ),
    number!("eth.proto", "the protocol in an Ethernet frame", |frame| {
        u16_at(frame, ethernet_header(frame)? - 2)
    }),
    part!("eth.src", "the source of an Ethernet frame", |frame| {
        (frame.len() >= 12).then_some((6, 12))
    }),
    number!("eth.vlan", "the last VLAN of an Ethernet frame", |frame| {
        // The tags, four bytes each, precede the protocol, which is not a tag.
        let end = ethernet_header(frame)?;
        let vlan = u16_at(frame, end - 4)? & 0xfff;
        (end > 14 && vlan != 0).then_some(vlan)
    }),
    part!("ip.data", "what follows an IP header", |packet| {
        Some((ip_header(packet)?.len, packet.len()))
    }),
    number!(
        "ip.df",
        "whether an IP packet must not be fragmented",
        |packet| {
            match version(packet)? {
                Version::V4 => Some(i64::from(packet.get(6)? >> 6 & 1)),
                Version::V6 => Some(1),
            }
        }
    ),
    address!("ip.dst", "the destination of an IP packet", 16, 24),
    convert(
        "ip.fp",
        spec(0, &[Int]),
        Kind::Bin,
        Kind::Bin,
        "a fingerprint of the sender's IP and TCP",
        fingerprint,
    ),
    part!("ip.hdr", "an IP header with its extensions", |packet| {
        Some((0, ip_header(packet)?.len))
    }),
    number!("ip.proto", "the protocol in an IP packet", |packet| {
        match version(packet)? {
            Version::V4 => Some(i64::from(*packet.get(9)?)),
            Version::V6 => Some(ip_header(packet)?.protocol.into()),
        }
    }),
    address!("ip.src", "the source of an IP packet", 12, 8),
    number!("ip.tos", "the type of service of an IP packet", |packet| {
        let first = u16_at(packet, 0)?;
        Some(match version(packet)? {
            Version::V4 => first & 0xff,
            Version::V6 => first >> 4 & 0xff,
        })
    }),
    number!("ip.ttl", "the time to live of an IP packet", |packet| {
        let whole = packet.get(..least_header(version(packet)?))?;
        Some(i64::from(match version(packet)? {
            Version::V4 => whole[8],
            Version::V6 => whole[7],
        }))
    }),
    number!("ip.ver", "the version of an IP packet", |packet| {
        Some(i64::from(packet.first()? >> 4))
    }),
    number!("tcp.dst", "the destination port of TCP", |segment| {
        u16_at(segment.get(..TCP_HEADER)?, 2)
    }),
    number!("tcp.flags", "the flags of TCP", |segment| {
        Some(segment.get(..TCP_HEADER)?[13].into())
    }),
    number!("tcp.options.mss", "TCP's maximum segment size", |segment| {
        option_value(segment, MSS, |at| u16_at(segment, at))
    }),
    number!("tcp.options.sack", "whether TCP permits SACK", |segment| {
        option_value(segment, SACK_PERMITTED, |_| Some(1))
    }),
    number!(
        "tcp.options.tsopt",
        "whether TCP has timestamps",
        |segment| { option_value(segment, TIMESTAMP, |_| Some(1)) }
    ),
    number!("tcp.options.tsval", "TCP's timestamp", |segment| {
        option_value(segment, TIMESTAMP, |at| u32_at(segment, at))
    }),
    number!("tcp.options.wscale", "TCP's window scale", |segment| {
        option_value(segment, WINDOW_SCALE, |at| Some((*segment.get(at)?).into()))
    }),
    number!(
        "tcp.options.wsopt",
        "whether TCP has a window scale",
        |segment| { option_value(segment, WINDOW_SCALE, |_| Some(1)) }
    ),
    convert(
        "tcp.options_list",
        NONE,
        Kind::Bin,
        Kind::Bin,
        "the kinds of TCP's options, a byte each",
        |_, value, _| {
            let segment = bytes_of(value)?;
            let options = Options::of(&segment)?;
            written(|out| {
                out.extend(options.map(|option| option.kind));
                Some(())
            })
            .map(Value::Bin)
        },
    ),
    number!("tcp.seq", "the sequence number of TCP", |segment| {
        u32_at(segment.get(..TCP_HEADER)?, 4)
    }),
    number!("tcp.src", "the source port of TCP", |segment| {
        u16_at(segment.get(..TCP_HEADER)?, 0)
    }),
    number!("tcp.win", "the window of TCP", |segment| {
        u16_at(segment.get(..TCP_HEADER)?, 14)
    }),
];

fn u16_at(bytes: &[u8], at: usize) -> Option<i64> {
    let number = bytes.get(at..)?.first_chunk::<2>()?;
    Some(u16::from_be_bytes(*number).into())
}

fn u32_at(bytes: &[u8], at: usize) -> Option<i64> {
    let number = bytes.get(at..)?.first_chunk::<4>()?;
    Some(u32::from_be_bytes(*number).into())
}

/// EtherType of a VLAN tag (IEEE 802.1Q).
const VLAN: i64 = 0x8100;

/// The length of an Ethernet header including all VLAN tags. At least one byte must follow it.
fn ethernet_header(frame: &[u8]) -> Option<usize> {
    (12..frame.len().saturating_sub(2))
        .step_by(4)
        .find(|at| u16_at(frame, *at) != Some(VLAN))
        .map(|at| at + 2)
}

#[derive(Clone, Copy)]
enum Version {
    V4,
    V6,
}

fn version(packet: &[u8]) -> Option<Version> {
    match packet.first()? >> 4 {
        4 => Some(Version::V4),
        6 => Some(Version::V6),
        _ => None,
    }
}

/// The length of a header without options or extensions.
const fn least_header(version: Version) -> usize {
    match version {
        Version::V4 => 20,
        Version::V6 => 40,
    }
}

const TCP: u8 = 6;
const UDP: u8 = 17;

/// The headers before the transport header.
struct IpHeader {
    /// The length including options and extensions.
    len: usize,
    /// The protocol; after IPv6 extensions, that of the last one.
    protocol: u8,
}

/// Every IPv6 extension before TCP or UDP is assumed to have a length field (RFC 8200 §4).
fn ip_header(packet: &[u8]) -> Option<IpHeader> {
    let header = match version(packet)? {
        Version::V4 => IpHeader {
            len: usize::from(packet[0] & 15) * 4,
            protocol: packet.get(9).copied().unwrap_or(0),
        },
        Version::V6 => {
            let mut len = packet.get(..40)?.len();
            let mut protocol = packet[6];
            while protocol != TCP && protocol != UDP {
                let [next, units] = *packet.get(len..)?.first_chunk::<2>()?;
                protocol = next;
                len += usize::from(units) * 8 + 8;
            }
            IpHeader { len, protocol }
        }
    };
    (header.len > 0 && header.len <= packet.len()).then_some(header)
}

/// Bytes of a TCP header without options (RFC 9293 §3.1).
const TCP_HEADER: usize = 20;

/// Option kinds (RFC 9293 §3.1, RFC 7323, RFC 2018).
const END: u8 = 0;
const NOP: u8 = 1;
const MSS: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const TIMESTAMP: u8 = 8;

/// The length of a complete TCP header.
fn tcp_header(segment: &[u8]) -> Option<usize> {
    let fixed = segment.get(..TCP_HEADER)?;
    let len = usize::from(fixed[12] >> 4) * 4;
    (len >= TCP_HEADER && len <= segment.len()).then_some(len)
}

/// The options of a TCP header, up to the end mark or an option without a length.
struct Options<'s> {
    header: &'s [u8],
    at: usize,
}

/// One option.
struct TcpOption {
    kind: u8,
    /// The position of its kind.
    at: usize,
    /// The position after the option; None if the length is missing or reaches beyond the header.
    end: Option<usize>,
}

impl<'s> Options<'s> {
    fn of(segment: &'s [u8]) -> Option<Options<'s>> {
        Some(Options {
            header: segment.get(..tcp_header(segment)?)?,
            at: TCP_HEADER,
        })
    }
}

impl Iterator for Options<'_> {
    type Item = TcpOption;

    fn next(&mut self) -> Option<TcpOption> {
        let at = self.at;
        let kind = *self.header.get(at).filter(|kind| **kind != END)?;
        let len = match kind {
            NOP => Some(1),
            // HAProxy interprets a length above 127 as negative.
            _ => self
                .header
                .get(at + 1)
                .copied()
                .filter(|len| (2..128).contains(len)),
        };
        let end = len.map(|len| at + usize::from(len));
        self.at = end.unwrap_or(usize::MAX);
        Some(TcpOption {
            kind,
            at,
            end: end.filter(|end| *end <= self.header.len()),
        })
    }
}

/// The result of `read` after the length byte of the first complete option of a kind; 0 if there is
/// none. None for an incomplete header.
fn option_value(segment: &[u8], kind: u8, read: impl Fn(usize) -> Option<i64>) -> Option<i64> {
    let mut options = Options::of(segment)?;
    match options.find(|option| option.kind == kind && option.end.is_some()) {
        Some(option) => read(option.at + 2),
        None => Some(0),
    }
}

/// The parts that `ip.fp` may append, in this order (manual §7.3.1).
const WITH_TTL: i64 = 1;
const WITH_OPTIONS: i64 = 2;
const WITH_SOURCE: i64 = 4;

/// The layout is described in the manual.
fn fingerprint<'a>(args: &'a [Arg], value: Value<'a>, _: &Scope<'a>) -> Option<Value<'a>> {
    let mode = int_at(args, 0).unwrap_or(0);
    let packet = bytes_of(value)?;
    let version = version(&packet)?;
    let header = packet.get(..least_header(version))?;
    let word = u16_at(header, 0)?;
    let (tos, total, unfragmented, ttl, extended, source) = match version {
        Version::V4 => (
            word as u8,
            u16_at(header, 2)?,
            header[6] >> 6 & 1,
            header[8],
            header[0] & 15 != 5,
            &header[12..16],
        ),
        Version::V6 => (
            (word >> 4) as u8,
            40 + u16_at(header, 4)?,
            1,
            header[7],
            header[6] != TCP && header[6] != UDP,
            &header[8..24],
        ),
    };
    let ip = ip_header(&packet)?.len;
    let segment = &packet[ip..];
    let tcp = tcp_header(segment)?;
    let data = (total & 0xffff) - (ip + tcp) as i64;
    if data < 0 {
        return None;
    }
    let found = FoundOptions::of(segment)?;
    let ttl_class = match ttl {
        0..=32 => 0,
        33..=64 => 1,
        65..=128 => 2,
        129.. => 3,
    };
    let is_v6 = matches!(version, Version::V6);
    let flags = u8::from(is_v6) << 7
        | unfragmented << 6
        | ttl_class << 4
        | u8::from(extended) << 3
        | u8::from(data > 0) << 2
        | segment[13] >> 6;
    let text = written(|out| {
        out.extend_from_slice(&[tos, flags, (tcp << 2) as u8 | found.window_scale]);
        out.extend_from_slice(&segment[14..16]);
        out.extend_from_slice(&found.mss);
        out.push(found.present);
        if mode & WITH_TTL != 0 {
            out.push(ttl);
        }
        if mode & WITH_OPTIONS != 0 {
            out.extend(whole_options(segment)?.map(|option| option.kind));
        }
        if mode & WITH_SOURCE != 0 {
            out.extend_from_slice(source);
        }
        Some(())
    });
    text.map(Value::Bin)
}

/// The options before the first truncated one.
fn whole_options(segment: &[u8]) -> Option<impl Iterator<Item = TcpOption>> {
    Some(Options::of(segment)?.take_while(|option| option.end.is_some()))
}

/// The options in a fingerprint.
#[derive(Default)]
struct FoundOptions {
    /// 1 to 15 for scales from 0 on; 0 without the option.
    window_scale: u8,
    mss: [u8; 2],
    /// One bit for each of the kinds 2 to 8, and one bit for all others.
    present: u8,
}

impl FoundOptions {
    fn of(segment: &[u8]) -> Option<FoundOptions> {
        let mut found = FoundOptions::default();
        let header = segment.get(..tcp_header(segment)?)?;
        for option in whole_options(segment)? {
            let value = header.get(option.at + 2..).unwrap_or_default();
            match (option.kind, value) {
                (MSS, [high, low, ..]) => found.mss = [*high, *low],
                (WINDOW_SCALE, [scale, ..]) => found.window_scale = (*scale).min(14) + 1,
                _ => {}
            }
            if option.kind > NOP {
                found.present |= 1 << (option.kind - 2).min(7);
            }
        }
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{convert_text, none};

    /// A SYN as Linux sends it, over IPv4, in a frame with a VLAN tag.
    const FRAME: &str = "02000000000102000000000281000064\
        0800450000 3c1c4640004006b1e6c0a80001c0a800c7\
        d4310050aabbccdd00000000a002faf0fe300000020405b40402080a01020304000000000103030a";

    fn of_frame(converters: &str) -> String {
        let frame: String = FRAME.split_whitespace().collect();
        convert_text(&format!("bin({frame}),{converters}"))
    }

    #[test]
    fn fields_of_a_saved_syn() {
        for (converters, wanted) in [
            ("eth.dst,hex", "020000000001"),
            ("eth.src,hex", "020000000002"),
            ("eth.proto", "2048"),
            ("eth.vlan", "100"),
            ("eth.hdr,hex", "020000000001020000000002810000640800"),
            ("eth.data,ip.ver", "4"),
            ("eth.data,ip.df", "1"),
            ("eth.data,ip.src", "192.168.0.1"),
            ("eth.data,ip.dst", "192.168.0.199"),
            ("eth.data,ip.proto", "6"),
            ("eth.data,ip.ttl", "64"),
            ("eth.data,ip.tos", "0"),
            (
                "eth.data,ip.hdr,hex",
                "4500003C1C4640004006B1E6C0A80001C0A800C7",
            ),
            ("eth.data,ip.data,tcp.src", "54321"),
            ("eth.data,ip.data,tcp.dst", "80"),
            ("eth.data,ip.data,tcp.seq", "2864434397"),
            ("eth.data,ip.data,tcp.flags", "2"),
            ("eth.data,ip.data,tcp.win", "64240"),
            ("eth.data,ip.data,tcp.options.mss", "1460"),
            ("eth.data,ip.data,tcp.options.sack", "1"),
            ("eth.data,ip.data,tcp.options.tsopt", "1"),
            ("eth.data,ip.data,tcp.options.tsval", "16909060"),
            ("eth.data,ip.data,tcp.options.wsopt", "1"),
            ("eth.data,ip.data,tcp.options.wscale", "10"),
            ("eth.data,ip.data,tcp.options_list,hex", "0204080103"),
            ("eth.data,ip.fp,hex", "0050ABFAF005B447"),
            (
                "eth.data,ip.fp(7),hex",
                "0050ABFAF005B447400204080103C0A80001",
            ),
        ] {
            assert_eq!(of_frame(converters), wanted, "{converters}");
        }
    }

    #[test]
    fn incomplete_headers_have_no_fields() {
        for expr in [
            "bin(0200000000010200000000020800),eth.proto",
            "bin(0200000000),eth.dst",
            "bin(45),ip.src",
            "bin(75),ip.df",
            "bin(6000000000000000000000000000000000000000000000000000000000000000000000000000000000),ip.data",
            "bin(0050005000000000000000006002),tcp.win",
            "bin(0050005000000000000000006002000000000000),tcp.options.mss",
            "bin(00500050000000000000000050020000000000),tcp.src",
        ] {
            none(expr);
        }
        // A complete header without options.
        let expr = "bin(0050005000000000000000005002000000000000),tcp.options.mss";
        assert_eq!(convert_text(expr), "0");
    }
}
