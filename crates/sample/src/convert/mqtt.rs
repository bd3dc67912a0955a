//! MQTT 3.1, 3.1.1 and 5.0: fields of the first packet of each side, CONNECT and CONNACK, and
//! validation of these packets.
//!
//! A packet is read once, in order; only the wanted field is kept.

use super::{Convert, bytes_of, convert, written};
use crate::args::ArgKind::Str;
use crate::args::{Arg, NONE, int_at, spec, str_at};
use crate::text::{push_uint, read_ui};
use crate::{Kind, Value};

pub(crate) const CONVERTERS: &[Convert] = &[
    convert(
        "mqtt_is_valid",
        NONE,
        Kind::Bin,
        Kind::Bool,
        "whether it is an MQTT CONNECT or CONNACK packet",
        |_, value, _| match read(&bytes_of(value)?, None) {
            Ok(_) => Some(Value::Bool(true)),
            Err(Fault::Invalid) => Some(Value::Bool(false)),
            Err(Fault::Incomplete) => None,
        },
    )
    .settling(),
    convert(
        "mqtt_field_value",
        spec(2, &[Str, Str]),
        Kind::Bin,
        Kind::Str,
        "a field of an MQTT CONNECT or CONNACK packet",
        |args, value, _| {
            let packet = bytes_of(value)?;
            let wanted = Wanted {
                packet: u8::try_from(int_at(args, 0)?).ok()?,
                field: u8::try_from(int_at(args, 1)?).ok()?,
            };
            match read(&packet, Some(wanted)).ok()?? {
                Kept::Number(number) => written(|out| {
                    push_uint(out, number.into());
                    Some(())
                })
                .map(Value::Str),
                Kept::Range(start, end) => {
                    (start < end).then(|| Value::Str(packet.slice(start, end)))
                }
            }
        },
    )
    .settling()
    .checked(field_args),
];

/// Packet types by their numbers (MQTT 5.0 §2.1.2).
const PACKETS: [&str; 16] = [
    "",
    "CONNECT",
    "CONNACK",
    "PUBLISH",
    "PUBACK",
    "PUBREC",
    "PUBREL",
    "PUBCOMP",
    "SUBSCRIBE",
    "SUBACK",
    "UNSUBSCRIBE",
    "UNSUBACK",
    "PINGREQ",
    "PINGRESP",
    "DISCONNECT",
    "AUTH",
];
const CONNECT: u8 = 1;
const CONNACK: u8 = 2;
const PUBLISH: u8 = 3;

/// Fields that are not properties. Properties have numbers below 64 (MQTT 5.0 §2.2.2.2).
const FLAGS: u8 = 64;
const REASON_CODE: u8 = 65;
const PROTOCOL_NAME: u8 = 66;
const PROTOCOL_VERSION: u8 = 67;
const CLIENT_IDENTIFIER: u8 = 68;
const WILL_TOPIC: u8 = 69;
const WILL_PAYLOAD: u8 = 70;
const USERNAME: u8 = 71;
const PASSWORD: u8 = 72;
const KEEPALIVE: u8 = 73;

const NAMED: &[(&str, u8)] = &[
    ("flags", FLAGS),
    ("reason_code", REASON_CODE),
    ("protocol_name", PROTOCOL_NAME),
    ("protocol_version", PROTOCOL_VERSION),
    ("client_identifier", CLIENT_IDENTIFIER),
    ("will_topic", WILL_TOPIC),
    ("will_payload", WILL_PAYLOAD),
    ("username", USERNAME),
    ("password", PASSWORD),
    ("keepalive", KEEPALIVE),
];

const USER_PROPERTY: u8 = 38;
const AUTHENTICATION_METHOD: u8 = 21;
const AUTHENTICATION_DATA: u8 = 22;
const ASSIGNED_CLIENT_IDENTIFIER: u8 = 18;

/// The format of a property's value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// One byte, 0 or 1.
    Flag,
    Two,
    /// Two bytes, not 0.
    TwoPositive,
    Four,
    /// Four bytes, not 0.
    FourPositive,
    Text,
    /// A text that is not empty.
    SomeText,
    /// Two texts; may occur several times.
    Pair,
}

impl Form {
    fn is_number(self) -> bool {
        use Form::{Flag, Four, FourPositive, Two, TwoPositive};
        matches!(self, Flag | Two | TwoPositive | Four | FourPositive)
    }
}

/// Properties of CONNECT, of its will, of CONNACK (MQTT 5.0 §3.1.2.11, §3.1.3.2, §3.2.2.3).
type Properties = &'static [(u8, Form)];

const OF_CONNECT: Properties = &[
    (17, Form::Four),
    (33, Form::TwoPositive),
    (39, Form::FourPositive),
    (34, Form::Two),
    (25, Form::Flag),
    (23, Form::Flag),
    (USER_PROPERTY, Form::Pair),
    (AUTHENTICATION_METHOD, Form::Text),
    (AUTHENTICATION_DATA, Form::Text),
];
const OF_WILL: Properties = &[
    (24, Form::Four),
    (1, Form::Flag),
    (2, Form::Four),
    (3, Form::Text),
    (8, Form::Text),
    (9, Form::Text),
    (USER_PROPERTY, Form::Pair),
];
const OF_CONNACK: Properties = &[
    (17, Form::Four),
    (33, Form::TwoPositive),
    (36, Form::Flag),
    (37, Form::Flag),
    (39, Form::FourPositive),
    (ASSIGNED_CLIENT_IDENTIFIER, Form::SomeText),
    (34, Form::Two),
    (31, Form::Text),
    (40, Form::Flag),
    (41, Form::Flag),
    (42, Form::Flag),
    (19, Form::Two),
    (26, Form::Text),
    (28, Form::Text),
    (USER_PROPERTY, Form::Pair),
    (AUTHENTICATION_METHOD, Form::Text),
    (AUTHENTICATION_DATA, Form::Text),
];

/// Fields of other packet types. They can be named but are never read: only the first packet is
/// read.
const OF_OTHERS: &[(&str, &[u8])] = &[
    ("PUBLISH", &[1, 2, 3, 8, 9, 11, 35, USER_PROPERTY]),
    ("PUBACK", &[REASON_CODE, 31, USER_PROPERTY]),
    ("PUBREC", &[REASON_CODE, 31, USER_PROPERTY]),
    ("PUBREL", &[REASON_CODE, 31, USER_PROPERTY]),
    ("PUBCOMP", &[REASON_CODE, 31, USER_PROPERTY]),
    ("SUBSCRIBE", &[11, USER_PROPERTY]),
    ("SUBACK", &[31, USER_PROPERTY]),
    ("UNSUBSCRIBE", &[USER_PROPERTY]),
    ("UNSUBACK", &[31, USER_PROPERTY]),
    ("DISCONNECT", &[REASON_CODE, 17, 28, 31, USER_PROPERTY]),
    (
        "AUTH",
        &[
            AUTHENTICATION_METHOD,
            AUTHENTICATION_DATA,
            31,
            USER_PROPERTY,
        ],
    ),
];

/// Whether a packet type has a field.
fn has_field(packet: u8, field: u8) -> bool {
    let in_properties = |list: Properties| list.iter().any(|(id, _)| *id == field);
    match packet {
        CONNECT => {
            in_properties(OF_CONNECT)
                || in_properties(OF_WILL)
                || (field >= FLAGS && field != REASON_CODE)
        }
        CONNACK => {
            in_properties(OF_CONNACK) || matches!(field, FLAGS | REASON_CODE | PROTOCOL_VERSION)
        }
        other => OF_OTHERS
            .iter()
            .any(|(name, fields)| *name == PACKETS[usize::from(other)] && fields.contains(&field)),
    }
}

/// Replaces both names by their numbers.
fn field_args(args: &mut [Arg]) -> Result<(), String> {
    let (packet_name, field_name) = (str_at(args, 0), str_at(args, 1));
    let is_named =
        |name: &str| !name.is_empty() && packet_name.eq_ignore_ascii_case(name.as_bytes());
    let packet = match read_ui(packet_name) {
        number @ 1..=15 => Some(number as u8),
        _ => PACKETS
            .iter()
            .position(|name| is_named(name))
            .map(|number| number as u8),
    };
    let shown = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
    let Some(packet) = packet else {
        return Err(format!("Unknown MQTT type '{}'", shown(packet_name)));
    };
    let named = NAMED
        .iter()
        .find(|(name, _)| field_name.eq_ignore_ascii_case(name.as_bytes()));
    let property = std::str::from_utf8(field_name).ok().and_then(|text| {
        let number: u8 = text.parse().ok()?;
        (number < FLAGS && number.to_string() == text).then_some(number)
    });
    let field = named.map(|(_, field)| *field).or(property);
    match field.filter(|field| has_field(packet, *field)) {
        Some(field) => {
            args[0] = Arg::Int(packet.into());
            args[1] = Arg::Int(field.into());
            Ok(())
        }
        None => Err(format!(
            "Unknown MQTT field name '{}' for packet type '{}'",
            shown(field_name),
            shown(packet_name)
        )),
    }
}

/// The wanted field.
#[derive(Clone, Copy)]
struct Wanted {
    packet: u8,
    field: u8,
}

/// Its value.
#[derive(Clone, Copy)]
enum Kept {
    Number(u32),
    Range(usize, usize),
}

#[derive(Clone, Copy)]
enum Fault {
    Invalid,
    /// More bytes may make it valid.
    Incomplete,
}

const PACKET_BYTES_MIN: usize = 2;

/// Reads a packet. Returns the wanted field.
fn read(packet: &[u8], wanted: Option<Wanted>) -> Result<Option<Kept>, Fault> {
    let [first, _, ..] = packet else {
        debug_assert!(packet.len() < PACKET_BYTES_MIN);
        return Err(Fault::Incomplete);
    };
    let (kind, flags) = (first >> 4, first & 15);
    // PUBREL, SUBSCRIBE and UNSUBSCRIBE must have one flag set, the others none.
    let flags_wanted = if matches!(kind, 6 | 8 | 10) { 2 } else { 0 };
    if kind == 0 || (kind != PUBLISH && flags != flags_wanted) {
        return Err(Fault::Invalid);
    }
    let mut reader = Reader {
        bytes: packet,
        at: 1,
        wanted: wanted
            .filter(|wanted| wanted.packet == kind)
            .map(|wanted| wanted.field),
        kept: None,
    };
    let remaining = reader.varint().ok_or(Fault::Invalid)? as usize;
    let start = reader.at;
    if packet.len() - start < remaining {
        return Err(Fault::Incomplete);
    }
    let whole = match kind {
        CONNECT => reader.connect(),
        CONNACK => reader.connack(),
        _ => None,
    };
    whole
        .filter(|()| reader.at - start == remaining)
        .map(|()| reader.kept)
        .ok_or(Fault::Invalid)
}

/// Flags of CONNECT (MQTT 5.0 §3.1.2.3).
const RESERVED: u8 = 0x01;
const WILL: u8 = 0x04;
const WILL_QOS: u8 = 0x18;
const WILL_RETAIN: u8 = 0x20;
const HAS_PASSWORD: u8 = 0x40;
const HAS_USERNAME: u8 = 0x80;

const VERSION_5: u8 = 5;

/// Reads a packet, never beyond its end.
struct Reader<'p> {
    bytes: &'p [u8],
    at: usize,
    wanted: Option<u8>,
    kept: Option<Kept>,
}

impl Reader<'_> {
    fn connect(&mut self) -> Option<()> {
        let (start, end) = self.text()?;
        let name = &self.bytes[start..end];
        if !name.eq_ignore_ascii_case(b"MQTT") && !name.eq_ignore_ascii_case(b"MQIsdp") {
            return None;
        }
        self.keep(PROTOCOL_NAME, Kept::Range(start, end));
        let version = self.byte()?;
        self.keep(PROTOCOL_VERSION, Kept::Number(version.into()));
        let flags = self.byte()?;
        self.keep(FLAGS, Kept::Number(flags.into()));
        let bad_flags =
            flags & RESERVED != 0 || flags & (WILL | WILL_QOS | WILL_RETAIN) == WILL_QOS;
        if !(3..=VERSION_5).contains(&version) || bad_flags {
            return None;
        }
        let keepalive = self.number(2)?;
        self.keep(KEEPALIVE, Kept::Number(keepalive));
        if version == VERSION_5 {
            self.properties(OF_CONNECT, true)?;
        }
        self.text_of(CLIENT_IDENTIFIER)?;
        if flags & WILL != 0 {
            if version == VERSION_5 {
                self.properties(OF_WILL, false)?;
            }
            self.text_of(WILL_TOPIC)?;
            self.text_of(WILL_PAYLOAD)?;
        }
        if flags & HAS_USERNAME != 0 {
            self.text_of(USERNAME)?;
        }
        if flags & HAS_PASSWORD != 0 {
            self.text_of(PASSWORD)?;
        }
        Some(())
    }

    /// A packet of more than two bytes is treated as version 5.
    fn connack(&mut self) -> Option<()> {
        let is_5 = match self.bytes.len() - self.at {
            0 | 1 => return None,
            2 => false,
            3.. => true,
        };
        self.keep(PROTOCOL_VERSION, Kept::Number(if is_5 { 5 } else { 4 }));
        let flags = self.byte().filter(|flags| flags & 0xfe == 0)?;
        self.keep(FLAGS, Kept::Number(flags.into()));
        let reason = self.byte()?;
        self.keep(REASON_CODE, Kept::Number(reason.into()));
        if is_5 {
            self.properties(OF_CONNACK, false)?;
        }
        Some(())
    }

    /// Reads a length and that many bytes of properties, each at most once. A missing number counts
    /// as 0.
    fn properties(&mut self, known: Properties, pair_authentication: bool) -> Option<()> {
        let length = self.varint()? as usize;
        let after = self
            .at
            .checked_add(length)
            .filter(|end| *end <= self.bytes.len())?;
        let whole = self.bytes;
        self.bytes = &whole[..after];
        let absent = known
            .iter()
            .find(|(id, form)| self.wanted == Some(*id) && form.is_number());
        if let Some((id, _)) = absent {
            self.keep(*id, Kept::Number(0));
        }
        let mut seen = 0_u64;
        let (mut method, mut data) = (false, false);
        while self.at < after {
            let id = self.byte()?;
            let (_, form) = known.iter().find(|(known, _)| *known == id)?;
            if *form != Form::Pair && seen >> id & 1 == 1 {
                return None;
            }
            seen |= 1 << id;
            let filled = self.property(id, *form)?;
            method |= id == AUTHENTICATION_METHOD && filled;
            data |= id == AUTHENTICATION_DATA && filled;
        }
        self.bytes = whole;
        (!pair_authentication || method || !data).then_some(())
    }

    /// Reads the value of a property. Returns whether it is not empty.
    fn property(&mut self, id: u8, form: Form) -> Option<bool> {
        let bounds = match form {
            Form::Flag => (1, 0, 1),
            Form::Two => (2, 0, u32::MAX),
            Form::TwoPositive => (2, 1, u32::MAX),
            Form::Four => (4, 0, u32::MAX),
            Form::FourPositive => (4, 1, u32::MAX),
            Form::Pair => {
                self.text()?;
                self.text()?;
                return Some(true);
            }
            Form::Text | Form::SomeText => {
                let (start, end) = self.text()?;
                self.keep(id, Kept::Range(start, end));
                return (form == Form::Text || start < end).then_some(start < end);
            }
        };
        let (width, low, high) = bounds;
        let number = self
            .number(width)
            .filter(|number| (low..=high).contains(number))?;
        self.keep(id, Kept::Number(number));
        Some(true)
    }

    fn keep(&mut self, field: u8, value: Kept) {
        if self.wanted == Some(field) {
            self.kept = Some(value);
        }
    }

    fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    /// A big-endian number.
    fn number(&mut self, width: usize) -> Option<u32> {
        let bytes = self.bytes.get(self.at..self.at + width)?;
        self.at += width;
        Some(
            bytes
                .iter()
                .fold(0, |sum, byte| sum << 8 | u32::from(*byte)),
        )
    }

    /// Reads at most four bytes of seven bits each, the low ones first. A number that the end of
    /// the input truncates counts as it is.
    fn varint(&mut self) -> Option<u32> {
        let mut number = 0;
        for shift in [0, 7, 14, 21] {
            let Some(byte) = self.byte() else {
                return Some(number);
            };
            number |= u32::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    /// The range of a text with a two-byte length before it.
    fn text(&mut self) -> Option<(usize, usize)> {
        let length = self.number(2)? as usize;
        let start = self.at;
        self.at = start
            .checked_add(length)
            .filter(|end| *end <= self.bytes.len())?;
        Some((start, self.at))
    }

    fn text_of(&mut self, field: u8) -> Option<()> {
        let (start, end) = self.text()?;
        self.keep(field, Kept::Range(start, end));
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{convert_text, none};

    /// CONNECT of version 3.1.1 with will, user and password; of version 5 with properties;
    /// CONNACKs of both.
    const CONNECT_311: &str = "102b00044d51545404c6003c0003636964 0005746f706963 00077061796c6f6164 000475736572 000470617373";
    const CONNECT_5: &str =
        "102300044d51545405040009 05110000000a 0003636964 07 1800000005 0101 000174 000170";
    const CONNACK_311: &str = "20020105";
    const CONNACK_5: &str = "200e0000 0b 210014 120003636964 2401";

    fn of(packet: &str, converter: &str) -> String {
        format!("bin({}),{converter}", packet.replace(' ', ""))
    }

    #[test]
    fn fields_of_both_versions() {
        for (packet, field, wanted) in [
            (CONNECT_311, "connect,flags", "198"),
            (CONNECT_311, "connect,protocol_name", "MQTT"),
            (CONNECT_311, "CONNECT,Protocol_Version", "4"),
            (CONNECT_311, "1,client_identifier", "cid"),
            (CONNECT_311, "1,keepalive", "60"),
            (CONNECT_311, "1,will_topic", "topic"),
            (CONNECT_311, "1,will_payload", "payload"),
            (CONNECT_311, "1,username", "user"),
            (CONNECT_311, "1,password", "pass"),
            (CONNECT_5, "1,17", "10"),
            (CONNECT_5, "1,24", "5"),
            (CONNECT_5, "1,1", "1"),
            (CONNECT_5, "1,2", "0"),
            (CONNECT_5, "1,will_topic", "t"),
            (CONNACK_311, "connack,flags", "1"),
            (CONNACK_311, "connack,reason_code", "5"),
            (CONNACK_311, "2,protocol_version", "4"),
            (CONNACK_5, "2,protocol_version", "5"),
            (CONNACK_5, "2,33", "20"),
            (CONNACK_5, "2,18", "cid"),
            (CONNACK_5, "2,36", "1"),
            (CONNACK_5, "2,37", "0"),
        ] {
            assert_eq!(
                convert_text(&of(packet, &format!("mqtt_field_value({field})"))),
                wanted,
                "{field}"
            );
        }
        for (packet, field) in [
            (CONNECT_311, "2,17"),
            (CONNECT_311, "2,reason_code"),
            (CONNECT_311, "1,17"),
            (CONNECT_5, "1,username"),
            (CONNECT_5, "1,38"),
            (CONNECT_5, "2,17"),
            (CONNACK_5, "2,31"),
        ] {
            none(&of(packet, &format!("mqtt_field_value({field})")));
        }
    }

    #[test]
    fn packets_are_valid_invalid_or_incomplete() {
        for (packet, wanted) in [
            (CONNECT_311, "1"),
            (CONNECT_5, "1"),
            (CONNACK_311, "1"),
            (CONNACK_5, "1"),
            ("20020205", "0"),
            ("2103010500", "0"),
            ("30020105", "0"),
            ("0002", "0"),
            ("10ffffffff01", "0"),
            // A reserved flag; another protocol; a length that does not fit.
            ("100d00044d51545404c7003c000163", "0"),
            ("100d00044d51545304c2003c000163", "0"),
            ("100e00044d51545404 02003c00016300", "0"),
        ] {
            assert_eq!(
                convert_text(&of(packet, "mqtt_is_valid")),
                wanted,
                "{packet}"
            );
        }
        for packet in ["10", "102b", "102b00044d51"] {
            none(&of(packet, "mqtt_is_valid"));
        }
    }
}
