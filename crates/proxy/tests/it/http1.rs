//! The peers' own HTTP/1: enough to write what they plan and to check what they get; shares nothing
//! with crate `http`.

/// A head as read.
#[derive(Clone, Debug, Default)]
pub struct Head {
    pub start: String,
    pub fields: Vec<(String, String)>,
}

impl Head {
    /// The first value of a field; names in lower case.
    pub fn get(&self, name: &str) -> Option<&str> {
        let field = self
            .fields
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name));
        field.map(|(_, value)| value.as_str())
    }

    pub fn has_token(&self, name: &str, token: &str) -> bool {
        let fields = self
            .fields
            .iter()
            .filter(|(known, _)| known.eq_ignore_ascii_case(name));
        fields
            .flat_map(|(_, value)| value.split(','))
            .any(|known| known.trim().eq_ignore_ascii_case(token))
    }

    /// The status of a response.
    pub fn status(&self) -> u16 {
        self.start
            .split(' ')
            .nth(1)
            .and_then(|code| code.parse().ok())
            .unwrap_or(0)
    }
}

/// How a body is delimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    Length(usize),
    Chunked,
    UntilClose,
    /// Not HTTP any more.
    Tunnel,
}

/// What comes next in a peer's input.
#[derive(Debug)]
pub enum Item {
    Head(Head, Body),
    Data(Vec<u8>),
    End,
    /// More bytes are needed.
    More,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Head,
    Plain(usize),
    UntilClose,
    ChunkSize,
    Chunk(usize),
    ChunkEnd,
    Trailers,
}

/// Takes messages apart.
#[derive(Debug)]
pub struct Reader {
    state: State,
    pub buffer: Vec<u8>,
}

impl Default for Reader {
    fn default() -> Self {
        Reader {
            state: State::Head,
            buffer: Vec::new(),
        }
    }
}

impl Reader {
    /// Nothing of a next message has come.
    pub fn is_between(&self) -> bool {
        self.state == State::Head && self.buffer.is_empty()
    }

    pub fn in_head(&self) -> bool {
        self.state == State::Head
    }

    pub fn is_until_close(&self) -> bool {
        self.state == State::UntilClose
    }

    /// The next item. `body_of` says how the body of a message with this head ends.
    pub fn next(
        &mut self,
        body_of: impl Fn(&Head) -> Result<Body, String>,
    ) -> Result<Item, String> {
        match self.state {
            State::Head => {
                let Some(end) = find(&self.buffer, b"\r\n\r\n") else {
                    return Ok(Item::More);
                };
                let head = parse(&self.buffer[..end])?;
                self.buffer.drain(..end + 4);
                let body = body_of(&head)?;
                self.state = match body {
                    Body::Length(bytes) => State::Plain(bytes),
                    Body::Chunked => State::ChunkSize,
                    Body::UntilClose | Body::Tunnel => State::UntilClose,
                };
                Ok(Item::Head(head, body))
            }
            State::Plain(0) => {
                self.state = State::Head;
                Ok(Item::End)
            }
            State::Plain(left) => Ok(self.data(left, State::Plain)),
            State::UntilClose => Ok(self.data(usize::MAX, |_| State::UntilClose)),
            State::ChunkSize => {
                let Some(line) = self.line() else {
                    return Ok(Item::More);
                };
                let size =
                    usize::from_str_radix(&line, 16).map_err(|_| format!("chunk size {line:?}"))?;
                self.state = if size == 0 {
                    State::Trailers
                } else {
                    State::Chunk(size)
                };
                self.next(body_of)
            }
            State::Chunk(left) => Ok(self.data(left, |left| match left {
                0 => State::ChunkEnd,
                left => State::Chunk(left),
            })),
            State::ChunkEnd => match self.line() {
                None => Ok(Item::More),
                Some(line) if line.is_empty() => {
                    self.state = State::ChunkSize;
                    self.next(body_of)
                }
                Some(line) => Err(format!("after a chunk: {line:?}")),
            },
            State::Trailers => match self.line() {
                None => Ok(Item::More),
                Some(line) if line.is_empty() => {
                    self.state = State::Head;
                    Ok(Item::End)
                }
                Some(_) => self.next(body_of),
            },
        }
    }

    fn data(&mut self, left: usize, then: impl Fn(usize) -> State) -> Item {
        let count = left.min(self.buffer.len());
        if count == 0 {
            return Item::More;
        }
        self.state = then(left - count);
        Item::Data(self.buffer.drain(..count).collect())
    }

    fn line(&mut self) -> Option<String> {
        let end = find(&self.buffer, b"\r\n")?;
        let line = String::from_utf8_lossy(&self.buffer[..end]).into_owned();
        self.buffer.drain(..end + 2);
        Some(line)
    }
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

fn parse(bytes: &[u8]) -> Result<Head, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "a head that is not text".to_string())?;
    let mut lines = text.split("\r\n");
    let start = lines.next().unwrap_or_default().to_string();
    let fields = lines.map(|line| {
        let (name, value) = line
            .split_once(':')
            .ok_or_else(|| format!("no field: {line:?}"))?;
        Ok((name.to_string(), value.trim().to_string()))
    });
    Ok(Head {
        start,
        fields: fields.collect::<Result<_, String>>()?,
    })
}

/// How the body of a message ends by its own fields; `otherwise` where none says.
pub fn framing(head: &Head, otherwise: Body) -> Result<Body, String> {
    if head.get("transfer-encoding").is_some() {
        return match head.get("content-length") {
            None if head.has_token("transfer-encoding", "chunked") => Ok(Body::Chunked),
            _ => Err(format!("framing of {head:?}")),
        };
    }
    match head.get("content-length") {
        Some(length) => length
            .parse()
            .map(Body::Length)
            .map_err(|_| format!("length {length:?}")),
        None => Ok(otherwise),
    }
}

/// Writes a body in chunks of `piece` bytes.
pub fn write_chunked(body: &[u8], piece: usize, out: &mut Vec<u8>) {
    for chunk in body.chunks(piece.max(1)) {
        out.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        out.extend_from_slice(chunk);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"0\r\n\r\n");
}
