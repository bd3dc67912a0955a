//! The first lines of a connection (peers protocol 2.1, "Handshake"): the side that connects sends
//! a hello of three lines, the other one answers with a status.

/// The name of the protocol.
const PROTOCOL: &str = "HAProxyS";
const MAJOR: u32 = 2;
/// The newest version, and the one that is offered to peers that do not know it.
const MINOR: u32 = 1;
const MINOR_OLD: u32 = 0;

/// The longest line, with its end.
pub const LINE_BYTES_MAX: usize = 1024;

/// The state of a peer's last connection; from 200 on a status of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status(pub u32);

impl Status {
    /// No connection was tried.
    pub const NONE: Status = Status(0);
    /// A connection is under way.
    pub const CONNECTING: Status = Status(100);
    /// The connection is there, its status is not.
    pub const CONNECTED: Status = Status(110);
    /// Handshake succeeded.
    pub const SUCCESS: Status = Status(200);
    /// Try again later.
    pub const TRY_AGAIN: Status = Status(300);
    /// Protocol error.
    pub const PROTOCOL: Status = Status(501);
    /// Bad version.
    pub const VERSION: Status = Status(502);
    /// The hello was for another peer.
    pub const HOST: Status = Status(503);
    /// The peer that sent the hello is not known.
    pub const PEER: Status = Status(504);

    /// Its line in the handshake.
    #[must_use]
    pub fn line(self) -> String {
        format!("{}\n", self.0)
    }

    /// Reads a line; text that is no number is 0, as in HAProxy.
    #[must_use]
    pub fn parse(line: &[u8]) -> Status {
        let digits = line.iter().take_while(|byte| byte.is_ascii_digit());
        let number = digits.fold(0_u32, |number, digit| {
            number
                .saturating_mul(10)
                .saturating_add(u32::from(digit - b'0'))
        });
        Status(number)
    }

    /// Its name in `show peers`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Status::NONE => "NONE",
            Status::CONNECTING => "CONN",
            Status::CONNECTED => "HSHK",
            Status::SUCCESS => "ESTA",
            Status::TRY_AGAIN => "RETR",
            Status::PROTOCOL => "PROT",
            Status::VERSION => "VERS",
            Status::HOST => "NAME",
            Status::PEER => "UNKN",
            _ => "NONE",
        }
    }
}

/// The hello for a peer.
#[must_use]
pub fn hello(to: &str, from: &str, pid: u32, is_old: bool) -> String {
    let minor = if is_old { MINOR_OLD } else { MINOR };
    format!("{PROTOCOL} {MAJOR}.{minor}\n{to}\n{from} {pid} 1\n")
}

/// Takes a line off the start of `input`, without its end; none if it is not there completely.
///
/// # Errors
/// The line is too long.
pub fn take_line(input: &mut Vec<u8>) -> Result<Option<Vec<u8>>, Status> {
    let Some(end) = input
        .iter()
        .take(LINE_BYTES_MAX)
        .position(|byte| *byte == b'\n')
    else {
        return if input.len() >= LINE_BYTES_MAX {
            Err(Status::PROTOCOL)
        } else {
            Ok(None)
        };
    };
    let mut line: Vec<u8> = input.drain(..=end).collect();
    line.pop();
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    Ok(Some(line))
}

/// A hello while its lines arrive.
#[derive(Debug, Default)]
pub struct Greeting {
    lines: usize,
    is_old: bool,
}

/// What a hello says.
#[derive(Debug, PartialEq, Eq)]
pub struct Greeted {
    /// The name of the peer that sent it.
    pub peer: String,
    /// It knows only version 2.0.
    pub is_old: bool,
}

impl Greeting {
    /// Reads the next line. `local`: the name of this process.
    ///
    /// # Errors
    /// The status to answer.
    pub fn line(&mut self, line: &[u8], local: &str) -> Result<Option<Greeted>, Status> {
        self.lines += 1;
        match self.lines {
            1 => {
                let version = line.strip_prefix(PROTOCOL.as_bytes());
                let version = version.and_then(|rest| rest.strip_prefix(b" "));
                let minor = minor(version.ok_or(Status::PROTOCOL)?).ok_or(Status::VERSION)?;
                self.is_old = minor == MINOR_OLD;
                Ok(None)
            }
            2 if line == local.as_bytes() => Ok(None),
            2 => Err(Status::HOST),
            _ => {
                let end = line.iter().position(|byte| *byte == b' ');
                let name = &line[..end.ok_or(Status::PROTOCOL)?];
                let name = std::str::from_utf8(name).map_err(|_| Status::PEER)?;
                Ok(Some(Greeted {
                    peer: name.to_owned(),
                    is_old: self.is_old,
                }))
            }
        }
    }
}

/// The minor number of a version that is known.
fn minor(text: &[u8]) -> Option<u32> {
    let (major, minor) = std::str::from_utf8(text).ok()?.split_once('.')?;
    let number = |text: &str| {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<u32>().ok().filter(|_| is_number)
    };
    let minor = number(minor)?;
    (number(major)? == MAJOR && minor <= MINOR).then_some(minor)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn greet(text: &str) -> Result<Option<Greeted>, Status> {
        let mut input = text.as_bytes().to_vec();
        let mut greeting = Greeting::default();
        let mut result = Ok(None);
        while let Some(line) = take_line(&mut input)? {
            result = Ok(greeting.line(&line, "me")?);
        }
        result
    }

    #[test]
    fn a_hello_is_understood() {
        let text = hello("me", "you", 42, false);
        assert_eq!(text, "HAProxyS 2.1\nme\nyou 42 1\n");
        let greeted = |is_old| Greeted {
            peer: "you".into(),
            is_old,
        };
        assert_eq!(greet(&text), Ok(Some(greeted(false))));
        assert_eq!(greet(&hello("me", "you", 1, true)), Ok(Some(greeted(true))));
        assert_eq!(greet(&text.replace('\n', "\r\n")), Ok(Some(greeted(false))));
        assert_eq!(greet("HAProxyS 2.1\nme\n"), Ok(None));
    }

    #[test]
    fn other_hellos_have_their_status() {
        assert_eq!(greet("GET / HTTP/1.1\n"), Err(Status::PROTOCOL));
        for version in ["2.2", "1.0", "3.0", "2", "2.", ".1", "2.1x", "+2.1"] {
            assert_eq!(
                greet(&format!("HAProxyS {version}\n")),
                Err(Status::VERSION)
            );
        }
        assert_eq!(greet("HAProxyS 2.0\nother\n"), Err(Status::HOST));
        assert_eq!(greet("HAProxyS 2.0\nme\nyou\n"), Err(Status::PROTOCOL));
        let long = "x".repeat(LINE_BYTES_MAX);
        assert_eq!(greet(&long), Err(Status::PROTOCOL));
        assert_eq!(greet(&long[1..]), Ok(None));
    }

    #[test]
    fn statuses() {
        assert_eq!(
            Status::parse(Status::TRY_AGAIN.line().trim().as_bytes()),
            Status::TRY_AGAIN
        );
        assert_eq!(Status::parse(b"abc"), Status::NONE);
        assert_eq!(Status::parse(b"99999999999999"), Status(u32::MAX));
    }
}
