//! The frames of messages (peers protocol 2.1, "Messages"): a class, a type, and for types from 128
//! on a length and a body.

use crate::{Malformed, varint};

/// The largest body that is accepted, bytes. Keys have at most as many (`stick-table … len`).
pub const BODY_BYTES_MAX: usize = 1 << 20;

const CLASS_CONTROL: u8 = 0;
const CLASS_ERROR: u8 = 1;
const CLASS_TABLES: u8 = 10;
const CLASS_RESERVED: u8 = 255;
/// Types from here on have a length and a body.
const HAS_BODY: u8 = 0x80;

/// A control message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Control {
    /// Asks for all entries.
    ResyncRequest = 0,
    /// All entries were sent by a peer that is up to date.
    ResyncFinished = 1,
    /// All entries were sent by a peer that is not up to date.
    ResyncPartial = 2,
    /// Answers one of the two above.
    ResyncConfirm = 3,
    /// Says that the peer is alive.
    Heartbeat = 4,
}

/// An error message; the connection ends after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Fault {
    /// A message was not understood.
    Protocol = 0,
    /// A message was too large.
    Size = 1,
}

/// A kind of update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpdateKind {
    /// It has its number; else its number is the one after the previous update's.
    pub has_id: bool,
    /// It says when the entry expires.
    pub is_timed: bool,
}

/// A received message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// See [`Control`].
    Control(Control),
    /// An entry of a table.
    Update(UpdateKind, &'a [u8]),
    /// Introduces the table of the updates that follow.
    Definition(&'a [u8]),
    /// Goes back to a table that was introduced.
    Switch(&'a [u8]),
    /// Acknowledges updates.
    Ack(&'a [u8]),
    /// A message of another kind, which is ignored.
    Other,
}

impl UpdateKind {
    fn kind(self) -> u8 {
        match (self.has_id, self.is_timed) {
            (true, false) => 0x80,
            (false, false) => 0x81,
            (true, true) => 0x85,
            (false, true) => 0x86,
        }
    }
}

const DEFINITION: u8 = 0x82;
const SWITCH: u8 = 0x83;
const ACK: u8 = 0x84;

/// The message at the start of `input` and its length; none if it is not there completely.
///
/// # Errors
/// What to answer before the connection ends.
pub fn next(input: &[u8]) -> Result<Option<(Message<'_>, usize)>, Fault> {
    let [class, kind, rest @ ..] = input else {
        return Ok(None);
    };
    let (mut body, mut length): (&[u8], usize) = (&[], 2);
    if *kind >= HAS_BODY {
        let Some((bytes, prefix)) = varint::get(rest).map_err(|Malformed| Fault::Protocol)? else {
            return Ok(None);
        };
        let bytes = usize::try_from(bytes)
            .ok()
            .filter(|bytes| *bytes <= BODY_BYTES_MAX);
        let bytes = bytes.ok_or(Fault::Size)?;
        let Some(found) = rest.get(prefix..prefix + bytes) else {
            return Ok(None);
        };
        body = found;
        length += prefix + bytes;
    }
    let update = |has_id, is_timed| Message::Update(UpdateKind { has_id, is_timed }, body);
    let message = match (*class, *kind) {
        (CLASS_CONTROL, 0) => Message::Control(Control::ResyncRequest),
        (CLASS_CONTROL, 1) => Message::Control(Control::ResyncFinished),
        (CLASS_CONTROL, 2) => Message::Control(Control::ResyncPartial),
        (CLASS_CONTROL, 3) => Message::Control(Control::ResyncConfirm),
        (CLASS_CONTROL, 4) => Message::Control(Control::Heartbeat),
        (CLASS_TABLES, 0x80) => update(true, false),
        (CLASS_TABLES, 0x81) => update(false, false),
        (CLASS_TABLES, 0x85) => update(true, true),
        (CLASS_TABLES, 0x86) => update(false, true),
        (CLASS_TABLES, DEFINITION) => Message::Definition(body),
        (CLASS_TABLES, SWITCH) => Message::Switch(body),
        (CLASS_TABLES, ACK) => Message::Ack(body),
        (CLASS_RESERVED, _) => return Err(Fault::Protocol),
        // As in HAProxy, also errors that the other side reports: it closes.
        _ => Message::Other,
    };
    Ok(Some((message, length)))
}

/// Appends a control message.
pub fn put_control(out: &mut Vec<u8>, control: Control) {
    out.extend([CLASS_CONTROL, control as u8]);
}

/// Appends an error message.
pub fn put_fault(out: &mut Vec<u8>, fault: Fault) {
    out.extend([CLASS_ERROR, fault as u8]);
}

/// Appends an update.
pub fn put_update(out: &mut Vec<u8>, kind: UpdateKind, body: &[u8]) {
    put(out, kind.kind(), body);
}

/// Appends the definition of a table.
pub fn put_definition(out: &mut Vec<u8>, body: &[u8]) {
    put(out, DEFINITION, body);
}

/// Appends an acknowledgement of the updates of a table up to a number. `table`: the number that
/// the other side gave to it.
pub fn put_ack(out: &mut Vec<u8>, table: u64, update: u32) {
    let mut body = Vec::with_capacity(varint::BYTES_MAX + size_of::<u32>());
    varint::put(&mut body, table);
    body.extend(update.to_be_bytes());
    put(out, ACK, &body);
}

fn put(out: &mut Vec<u8>, kind: u8, body: &[u8]) {
    out.extend([CLASS_TABLES, kind]);
    varint::put(out, body.len() as u64);
    out.extend_from_slice(body);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_back() {
        let mut out = Vec::new();
        put_control(&mut out, Control::Heartbeat);
        for has_id in [false, true] {
            for is_timed in [false, true] {
                put_update(&mut out, UpdateKind { has_id, is_timed }, b"body");
            }
        }
        put_definition(&mut out, &[7; 3000]);
        put_ack(&mut out, 1, 2);
        let mut seen = 0;
        let mut at = 0;
        while let Some((message, length)) = next(&out[at..]).expect("no fault") {
            for end in at..at + length {
                assert_eq!(next(&out[at..end]), Ok(None));
            }
            match (seen, message) {
                (0, Message::Control(Control::Heartbeat)) => {}
                (1..=4, Message::Update(kind, b"body")) => {
                    assert_eq!((kind.has_id, kind.is_timed), (seen > 2, seen % 2 == 0));
                }
                (5, Message::Definition(body)) => assert_eq!(body.len(), 3000),
                (6, Message::Ack(&[1, 0, 0, 0, 2])) => {}
                other => panic!("{other:?}"),
            }
            seen += 1;
            at += length;
        }
        assert_eq!((seen, at), (7, out.len()));
    }

    #[test]
    fn bounds() {
        assert_eq!(next(&[255, 0]), Err(Fault::Protocol));
        assert_eq!(next(&[3, 9]), Ok(Some((Message::Other, 2))));
        let mut large = vec![10, 0x80];
        varint::put(&mut large, BODY_BYTES_MAX as u64 + 1);
        assert_eq!(next(&large), Err(Fault::Size));
        assert_eq!(
            next(&[[10, 0x80].as_slice(), &[0xff; 20]].concat()),
            Err(Fault::Protocol)
        );
    }
}
