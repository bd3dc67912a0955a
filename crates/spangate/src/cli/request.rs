//! Turns bytes into command lines (management guide §9.3).
//!
//! A line holds commands separated by `;`. A backslash escapes the next character, also a line
//! feed. If the last command of a line ends with the word `<<`, that command's payload follows, up
//! to an empty line; after `<<END`, up to the line `END`.

/// Most words of a command, as in HAProxy.
pub(super) const WORDS_MAX: usize = 64;
/// Most bytes of the word that ends a payload.
const END_BYTES_MAX: usize = 64;
const PAYLOAD: &[u8] = b"<<";

/// How much a connection may send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub line_bytes: usize,
    pub payload_bytes: usize,
}

/// A line and its payload.
#[derive(Debug, PartialEq)]
pub(crate) struct Request {
    /// At least one command, which may be empty.
    pub commands: Vec<Vec<u8>>,
    /// The payload of the last command.
    pub payload: Option<Vec<u8>>,
    /// The word that ended the payload, if the line announced one.
    payload_end: Option<Vec<u8>>,
}

impl Request {
    /// The received text from a command on.
    pub fn line_from(&self, place: usize) -> Vec<u8> {
        let mut line = self.commands[place..].join(&b';');
        line.extend(self.payload_lines().unwrap_or_default());
        line
    }

    /// The text after the last command: the announcement of a payload and the payload, if there is
    /// one.
    pub fn payload_lines(&self) -> Option<Vec<u8>> {
        let end = self.payload_end.as_deref()?;
        let mut lines = [PAYLOAD, end, b"\n"].concat();
        if let Some(payload) = &self.payload {
            lines.extend_from_slice(payload);
            lines.push(b'\n');
        }
        lines.extend_from_slice(end);
        lines.push(b'\n');
        Some(lines)
    }
}

/// A connection sent more than its limit and must be closed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum TooLarge {
    Line,
    Payload,
}

impl TooLarge {
    pub fn message(self) -> &'static str {
        match self {
            TooLarge::Line => {
                "The command line is too big for the buffer size. Please change 'tune.bufsize' in the configuration to use a bigger command.\n"
            }
            TooLarge::Payload => {
                "The payload is too big. Please change 'tune.cli.max-payload-size' in the configuration to use a bigger payload.\n"
            }
        }
    }
}

/// Received bytes that are not read as requests yet.
#[derive(Debug)]
pub(crate) struct Input {
    limits: Limits,
    bytes: Vec<u8>,
    /// The offset up to which no end of a line was found.
    searched: usize,
    /// The line whose payload is being received.
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    commands: Vec<Vec<u8>>,
    end: Vec<u8>,
    payload: Vec<u8>,
}

impl Input {
    pub fn new(limits: Limits) -> Self {
        Input {
            limits,
            bytes: Vec::new(),
            searched: 0,
            open: None,
        }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Whether the next line belongs to a payload.
    pub fn awaits_payload(&self) -> bool {
        self.open.is_some() && self.bytes.is_empty()
    }

    /// The received bytes that are no request yet.
    pub fn rest(&mut self) -> Vec<u8> {
        self.searched = 0;
        std::mem::take(&mut self.bytes)
    }

    /// The next complete request.
    pub fn next(&mut self) -> Result<Option<Request>, TooLarge> {
        if self.open.is_none() {
            let Some(line) = self.line()? else {
                return Ok(None);
            };
            let (commands, end) = split(&line);
            let Some(end) = end else {
                return Ok(Some(Request {
                    commands,
                    payload: None,
                    payload_end: None,
                }));
            };
            self.open = Some(Open {
                commands,
                end,
                payload: Vec::new(),
            });
        }
        self.payload()
    }

    /// The next line, without its end.
    fn line(&mut self) -> Result<Option<Vec<u8>>, TooLarge> {
        let mut at = self.searched;
        while let Some(byte) = self.bytes.get(at) {
            match byte {
                b'\n' => {
                    if at >= self.limits.line_bytes {
                        return Err(TooLarge::Line);
                    }
                    let mut line: Vec<u8> = self.bytes.drain(..=at).collect();
                    line.pop();
                    line.pop_if(|last| *last == b'\r');
                    self.searched = 0;
                    return Ok(Some(line));
                }
                // The escaped character has not arrived yet.
                b'\\' if at + 1 == self.bytes.len() => break,
                b'\\' => at += 2,
                _ => at += 1,
            }
        }
        self.searched = at;
        if at >= self.limits.line_bytes {
            Err(TooLarge::Line)
        } else {
            Ok(None)
        }
    }

    fn payload(&mut self) -> Result<Option<Request>, TooLarge> {
        let mut taken = 0;
        let mut ended = false;
        if let Some(open) = &mut self.open {
            let mut from = self.searched;
            while let Some(len) = self.bytes[from..].iter().position(|byte| *byte == b'\n') {
                let line_end = from + len;
                let line = &self.bytes[taken..line_end];
                ended = line == open.end;
                if !ended {
                    open.payload.extend_from_slice(line);
                    open.payload.push(b'\n');
                }
                taken = line_end + 1;
                from = taken;
                if ended || open.payload.len() > self.limits.payload_bytes {
                    break;
                }
            }
            let waiting = if ended { 0 } else { self.bytes.len() - taken };
            if open.payload.len() + waiting > self.limits.payload_bytes {
                return Err(TooLarge::Payload);
            }
        }
        self.bytes.drain(..taken);
        if !ended {
            self.searched = self.bytes.len();
            return Ok(None);
        }
        self.searched = 0;
        Ok(self.open.take().map(|open| {
            let mut payload = open.payload;
            payload.pop();
            Request {
                commands: open.commands,
                payload: (!payload.is_empty()).then_some(payload),
                payload_end: Some(open.end),
            }
        }))
    }
}

/// The commands of a line, and the word that ends the payload after it.
fn split(line: &[u8]) -> (Vec<Vec<u8>>, Option<Vec<u8>>) {
    let mut commands = vec![Vec::new()];
    let mut bytes = line.iter();
    while let Some(&byte) = bytes.next() {
        if byte == b';' {
            commands.push(Vec::new());
            continue;
        }
        if let Some(command) = commands.last_mut() {
            command.push(byte);
            if byte == b'\\' {
                command.extend(bytes.next());
            }
        }
    }
    let end = commands.last_mut().and_then(|last| {
        let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
        let word = last.iter().rposition(is_blank).map_or(0, |at| at + 1);
        let end = last[word..].strip_prefix(PAYLOAD)?.to_vec();
        let fits = end.len() <= END_BYTES_MAX;
        fits.then(|| {
            last.truncate(word);
            end
        })
    });
    (commands, end)
}

/// The words of a command, with escapes resolved. None: more than [`WORDS_MAX`].
pub(crate) fn words(command: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut words: Vec<Vec<u8>> = Vec::new();
    let mut in_word = false;
    let mut bytes = command.iter();
    while let Some(&byte) = bytes.next() {
        if matches!(byte, b' ' | b'\t') {
            in_word = false;
            continue;
        }
        if !in_word {
            if words.len() == WORDS_MAX {
                return None;
            }
            words.push(Vec::new());
            in_word = true;
        }
        let literal = match byte {
            b'\\' => bytes.next().copied(),
            byte => Some(byte),
        };
        if let Some(word) = words.last_mut() {
            word.extend(literal);
        }
    }
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        line_bytes: 64,
        payload_bytes: 32,
    };

    /// The requests of these bytes, which arrive in parts of every size: commands with `|` between
    /// them, `<` and the payload.
    fn requests(bytes: &str) -> Vec<String> {
        let shown = |part_bytes: usize| {
            let mut input = Input::new(LIMITS);
            let mut all = Vec::new();
            for part in bytes.as_bytes().chunks(part_bytes) {
                input.push(part);
                loop {
                    match input.next() {
                        Ok(Some(request)) => all.push(show(&request)),
                        Ok(None) => break,
                        Err(error) => {
                            all.push(format!("{error:?}"));
                            return all;
                        }
                    }
                }
            }
            all
        };
        let whole = shown(bytes.len());
        for part_bytes in 1..bytes.len() {
            assert_eq!(shown(part_bytes), whole, "in parts of {part_bytes}");
        }
        whole
    }

    fn show(request: &Request) -> String {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let commands: Vec<String> = request.commands.iter().map(|one| text(one)).collect();
        let payload = request.payload.as_deref();
        let payload = payload.map_or_else(String::new, |payload| format!("<{}", text(payload)));
        commands.join("|") + &payload
    }

    #[test]
    fn lines_and_commands() {
        assert_eq!(
            requests("show info\nhelp\r\nrest"),
            ["show info", "help"],
            "a line counts from its end on"
        );
        assert_eq!(requests("a;b\\;c ;;\n"), ["a|b\\;c ||"]);
        assert_eq!(requests("a\\\nb\n"), ["a\\\nb"]);
        assert_eq!(requests("\n"), [""]);
        assert_eq!(requests("a\\\\;b\n"), ["a\\\\|b"]);
        let long = "x".repeat(LIMITS.line_bytes);
        assert_eq!(requests(&format!("{long}\n")), ["Line"]);
        assert_eq!(requests(&long), ["Line"]);
        assert_eq!(requests(&format!("{}\n", &long[1..])), [&long[1..]]);
    }

    #[test]
    fn payloads() {
        assert_eq!(
            requests("a;set x <<\none\ntwo;three\n\nnext\n"),
            ["a|set x <one\ntwo;three", "next"]
        );
        assert_eq!(
            requests("set x <<%E%\none\n\ntwo\n%E%\nnext\n"),
            ["set x <one\n\ntwo", "next"]
        );
        assert_eq!(requests("set x <<\n\nnext\n"), ["set x ", "next"]);
        assert_eq!(requests("set x<<\n"), ["set x<<"], "no word of its own");
        assert_eq!(requests("set << x\n"), ["set << x"], "not the last word");
        assert_eq!(requests("set <<;b\n"), ["set <<|b"], "not the last command");
        assert_eq!(requests("set x <<\nopen"), Vec::<String>::new());
        let fits = "y".repeat(LIMITS.payload_bytes - 1);
        assert_eq!(
            requests(&format!("a <<\n{fits}\n\n")),
            [format!("a <{fits}")]
        );
        assert_eq!(requests(&format!("a <<\n{fits}yy\n\n")), ["Payload"]);
        assert_eq!(requests(&format!("a <<\n{fits}yy")), ["Payload"]);
        let long = "E".repeat(END_BYTES_MAX + 1);
        assert_eq!(split(format!("<<{long}").as_bytes()).1, None);
    }

    #[test]
    fn requests_can_be_sent_on() {
        for line in [
            "a;b c\\;d\n",
            "a;b <<\none\n\n",
            "a;b <<END\none\n\ntwo\nEND\n",
            "a;b <<\n\n",
        ] {
            let mut input = Input::new(LIMITS);
            input.push(line.as_bytes());
            let request = input.next().expect("it fits").expect("it is whole");
            let mut sent = request.line_from(0);
            if request.payload_lines().is_none() {
                sent.push(b'\n');
            }
            assert_eq!(String::from_utf8_lossy(&sent), line);
            assert!(request.line_from(1).starts_with(b"b "));
        }
        let mut input = Input::new(LIMITS);
        input.push(b"a\nrest");
        assert!(input.next().is_ok_and(|request| request.is_some()));
        assert_eq!(input.rest(), b"rest");
    }

    #[test]
    fn words_and_backslashes() {
        let words = |line: &str| {
            let words = words(line.as_bytes())?;
            let text = |word: Vec<u8>| String::from_utf8(word).expect("text");
            Some(words.into_iter().map(text).collect::<Vec<_>>())
        };
        let wanted = |words: &[&str]| Some(words.iter().map(|&word| word.to_owned()).collect());
        assert_eq!(words(" a \tb  "), wanted(&["a", "b"]));
        assert_eq!(
            words("a\\ b \\\\c \\;d e\\"),
            wanted(&["a b", "\\c", ";d", "e"])
        );
        assert_eq!(
            words("\"a b\""),
            wanted(&["\"a", "b\""]),
            "quotes mean nothing"
        );
        assert_eq!(words(""), wanted(&[]));
        assert_eq!(
            words(&"x ".repeat(WORDS_MAX)).map(|words| words.len()),
            Some(WORDS_MAX)
        );
        assert_eq!(words(&"x ".repeat(WORDS_MAX + 1)), None);
    }
}
