//! Thrift's two protocols, read in place ("Thrift Binary protocol encoding", "Thrift Compact
//! protocol encoding").
//!
//! The crate `thrift` would copy every text, and takes memory for a length before it has seen the
//! bytes; here nothing is allocated, and a length that is longer than what is left is an error.

use std::fmt;

use super::SPAN_PARTS_MAX;

/// Structures, lists and maps within each other that are passed over.
const DEPTH_MAX: u32 = 64;

/// How values are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    Binary,
    Compact,
}

/// What a value is. Sets are lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Bool,
    Byte,
    I16,
    I32,
    I64,
    Double,
    Bytes,
    Struct,
    List,
    Map,
    Uuid,
}

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    Truncated,
    Number,
    Type,
    TooDeep,
    Message,
    TooMany,
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Fault::Truncated => "the Thrift ends inside a value",
            Fault::Number => "a number in Thrift is too long",
            Fault::Type => "a value in Thrift has the wrong type",
            Fault::TooDeep => "the Thrift is nested too deeply",
            Fault::Message => "this is no Thrift message that is taken",
            Fault::TooMany => "a span has too many tags, logs and references",
        })
    }
}

/// A field of a structure.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    pub id: i16,
    pub kind: Kind,
    /// The value of a truth value whose field says it.
    flag: Option<bool>,
}

/// What is left.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    protocol: Protocol,
    /// Elements of the span that is being read.
    parts: usize,
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8], protocol: Protocol) -> Reader<'a> {
        Reader {
            rest: bytes,
            protocol,
            parts: 0,
        }
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], Fault> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(Fault::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(Fault::Truncated)?;
        self.rest = rest;
        Ok(*taken)
    }

    fn byte(&mut self) -> Result<u8, Fault> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn varint(&mut self) -> Result<u64, Fault> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Fault::Number)
    }

    /// A number of 16, 32 or 64 bits.
    fn number(&mut self, bytes: usize) -> Result<i64, Fault> {
        if self.protocol == Protocol::Compact {
            let zigzag = self.varint()?;
            return Ok((zigzag >> 1) as i64 ^ -((zigzag & 1) as i64));
        }
        Ok(match bytes {
            2 => i64::from(i16::from_be_bytes(self.array()?)),
            4 => i64::from(i32::from_be_bytes(self.array()?)),
            _ => i64::from_be_bytes(self.array()?),
        })
    }

    /// An `i32`.
    pub fn i32(&mut self) -> Result<i32, Fault> {
        i32::try_from(self.number(4)?).map_err(|_| Fault::Number)
    }

    /// An `i64`.
    pub fn i64(&mut self) -> Result<i64, Fault> {
        self.number(8)
    }

    /// A `double`.
    pub fn double(&mut self) -> Result<f64, Fault> {
        let bytes = self.array()?;
        Ok(match self.protocol {
            Protocol::Binary => f64::from_be_bytes(bytes),
            Protocol::Compact => f64::from_le_bytes(bytes),
        })
    }

    /// A `string` or `binary`.
    pub fn bytes(&mut self) -> Result<&'a [u8], Fault> {
        let len = self.length()?;
        self.take(len)
    }

    /// A length, of bytes or of elements that take a byte each at least.
    fn length(&mut self) -> Result<usize, Fault> {
        let len = match self.protocol {
            Protocol::Binary => usize::try_from(self.number(4)?).map_err(|_| Fault::Number)?,
            Protocol::Compact => usize::try_from(self.varint()?).map_err(|_| Fault::Number)?,
        };
        if len > self.rest.len() {
            Err(Fault::Truncated)
        } else {
            Ok(len)
        }
    }

    /// The value of a field that is a `bool`.
    pub fn flag(&mut self, field: &Field) -> Result<bool, Fault> {
        match field.flag {
            Some(flag) => Ok(flag),
            None => Ok(self.byte()? != 0),
        }
    }

    /// The name of the method that a message calls; what follows is the structure of its arguments.
    pub fn call(&mut self) -> Result<&'a [u8], Fault> {
        match self.protocol {
            Protocol::Compact => {
                let [id, version] = self.array()?;
                if id != 0x82 || version & 0x1f != 1 {
                    return Err(Fault::Message);
                }
                self.varint()?;
                self.bytes()
            }
            Protocol::Binary if self.rest.first().is_some_and(|first| first & 0x80 != 0) => {
                let [0x80, 0x01, _, _] = self.array()? else {
                    return Err(Fault::Message);
                };
                let name = self.bytes()?;
                self.number(4)?;
                Ok(name)
            }
            // Without a version, as old clients write it.
            Protocol::Binary => {
                let name = self.bytes()?;
                self.byte()?;
                self.number(4)?;
                Ok(name)
            }
        }
    }

    /// The next field of a structure; none at its end. `last` is the number of the field before, 0
    /// at the beginning.
    pub fn field(&mut self, last: &mut i16) -> Result<Option<Field>, Fault> {
        let head = self.byte()?;
        if head == 0 {
            return Ok(None);
        }
        let (id, kind, flag) = match self.protocol {
            Protocol::Binary => (i16::from_be_bytes(self.array()?), kind(head)?, None),
            Protocol::Compact => {
                let (delta, low) = (head >> 4, head & 0x0f);
                let id = match delta {
                    0 => i16::try_from(self.number(2)?).map_err(|_| Fault::Number)?,
                    delta => last.checked_add(i16::from(delta)).ok_or(Fault::Number)?,
                };
                let flag = (low <= 2).then_some(low == 1);
                (id, compact_kind(low)?, flag)
            }
        };
        *last = id;
        Ok(Some(Field { id, kind, flag }))
    }

    /// The kind of a list's elements, and how many there are.
    pub fn list(&mut self) -> Result<(Kind, usize), Fault> {
        let head = self.byte()?;
        let len = match self.protocol {
            Protocol::Binary => self.length()?,
            Protocol::Compact if head >> 4 == 15 => self.length()?,
            Protocol::Compact => usize::from(head >> 4),
        };
        // An empty list may be one of nothing.
        if len == 0 {
            return Ok((Kind::Struct, 0));
        }
        let kind = match self.protocol {
            Protocol::Binary => kind(head)?,
            Protocol::Compact => compact_kind(head & 0x0f)?,
        };
        Ok((kind, len))
    }

    /// The length of a list of structures.
    pub fn structs(&mut self) -> Result<usize, Fault> {
        match self.list()? {
            (Kind::Struct, len) => Ok(len),
            _ => Err(Fault::Type),
        }
    }

    /// The length of a list within a span, or within a process.
    pub fn parts(&mut self) -> Result<usize, Fault> {
        let len = self.structs()?;
        self.parts += len;
        if self.parts > SPAN_PARTS_MAX {
            Err(Fault::TooMany)
        } else {
            Ok(len)
        }
    }

    /// Another span begins.
    pub fn begin_span(&mut self) {
        self.parts = 0;
    }

    /// Passes over the value of a field.
    pub fn skip(&mut self, field: &Field) -> Result<(), Fault> {
        match field.flag {
            Some(_) => Ok(()),
            None => self.skip_value(field.kind, DEPTH_MAX),
        }
    }

    fn skip_value(&mut self, kind: Kind, depth: u32) -> Result<(), Fault> {
        let depth = depth.checked_sub(1).ok_or(Fault::TooDeep)?;
        match kind {
            Kind::Bool | Kind::Byte => drop(self.byte()?),
            Kind::I16 => drop(self.number(2)?),
            Kind::I32 => drop(self.number(4)?),
            Kind::I64 => drop(self.number(8)?),
            Kind::Double => drop(self.take(8)?),
            Kind::Uuid => drop(self.take(16)?),
            Kind::Bytes => drop(self.bytes()?),
            Kind::Struct => {
                let mut last = 0;
                while let Some(field) = self.field(&mut last)? {
                    if field.flag.is_none() {
                        self.skip_value(field.kind, depth)?;
                    }
                }
            }
            Kind::List => {
                let (kind, len) = self.list()?;
                for _ in 0..len {
                    self.skip_value(kind, depth)?;
                }
            }
            Kind::Map => self.skip_map(depth)?,
        }
        Ok(())
    }

    fn skip_map(&mut self, depth: u32) -> Result<(), Fault> {
        let (keys, values, len) = match self.protocol {
            Protocol::Binary => {
                let [keys, values] = self.array()?;
                match self.length()? {
                    0 => return Ok(()),
                    len => (kind(keys)?, kind(values)?, len),
                }
            }
            Protocol::Compact => match self.length()? {
                0 => return Ok(()),
                len => {
                    let kinds = self.byte()?;
                    (compact_kind(kinds >> 4)?, compact_kind(kinds & 0x0f)?, len)
                }
            },
        };
        for _ in 0..len {
            self.skip_value(keys, depth)?;
            self.skip_value(values, depth)?;
        }
        Ok(())
    }
}

fn kind(number: u8) -> Result<Kind, Fault> {
    Ok(match number {
        2 => Kind::Bool,
        3 => Kind::Byte,
        4 => Kind::Double,
        6 => Kind::I16,
        8 => Kind::I32,
        10 => Kind::I64,
        11 => Kind::Bytes,
        12 => Kind::Struct,
        13 => Kind::Map,
        14 | 15 => Kind::List,
        16 => Kind::Uuid,
        _ => return Err(Fault::Type),
    })
}

fn compact_kind(number: u8) -> Result<Kind, Fault> {
    Ok(match number {
        1 | 2 => Kind::Bool,
        3 => Kind::Byte,
        4 => Kind::I16,
        5 => Kind::I32,
        6 => Kind::I64,
        7 => Kind::Double,
        8 => Kind::Bytes,
        9 | 10 => Kind::List,
        11 => Kind::Map,
        12 => Kind::Struct,
        13 => Kind::Uuid,
        _ => return Err(Fault::Type),
    })
}
