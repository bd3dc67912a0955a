//! Reads XML by the rules of Go's `encoding/xml` in its strict mode: document types are skipped,
//! namespace prefixes are dropped from names, and texts are UTF-8.

use crate::eval::Failure;

/// Limit of nested elements. Each takes two levels of the resulting value, so that the value stays
/// within the depth of an attribute.
const ELEMENT_DEPTH_MAX: usize = 24;
/// Limit of tags, attributes, texts and comments of one document.
const NODES_MAX: usize = 1 << 16;

/// A child of an element.
#[derive(Debug)]
pub enum Node {
    Element(Element),
    /// A text between tags, or a `CDATA` section, with its spaces.
    Text(String),
    /// A comment, a processing instruction or a directive.
    Other,
}

/// An element; names are without prefixes.
#[derive(Debug, Default)]
pub struct Element {
    pub name: String,
    pub attributes: Vec<(String, String)>,
    pub children: Vec<Node>,
}

/// Parses a document: one element with nothing after it.
pub fn document(text: &str) -> Result<Element, Failure> {
    let mut reader = Reader::new(text);
    while let Some(node) = reader.node()? {
        if let Node::Element(element) = node {
            return if reader.rest.is_empty() {
                Ok(element)
            } else {
                Err(Failure::Syntax)
            };
        }
    }
    Err(Failure::Syntax)
}

/// Parses a text with any number of top-level elements.
pub fn nodes(text: &str) -> Result<Vec<Node>, Failure> {
    let mut reader = Reader::new(text);
    let mut nodes = Vec::new();
    while let Some(node) = reader.node()? {
        nodes.push(node);
    }
    Ok(nodes)
}

struct Reader<'t> {
    rest: &'t str,
    /// Number of nodes left until the limit.
    left: usize,
}

/// A tag, or the text between two tags.
enum Token<'t> {
    /// The qualified name, and whether the tag is self-closing.
    Start(&'t str, Element, bool),
    End(&'t str),
    Text(String),
    Other,
}

impl<'t> Reader<'t> {
    fn new(text: &'t str) -> Reader<'t> {
        Reader {
            rest: text,
            left: NODES_MAX,
        }
    }

    /// The next complete node; none at the end.
    fn node(&mut self) -> Result<Option<Node>, Failure> {
        // Open elements with their qualified names.
        let mut open: Vec<(&'t str, Element)> = Vec::new();
        loop {
            let Some(token) = self.token()? else {
                return if open.is_empty() {
                    Ok(None)
                } else {
                    Err(Failure::Syntax)
                };
            };
            let node = match token {
                Token::Start(..) if open.len() >= ELEMENT_DEPTH_MAX => return Err(Failure::Depth),
                Token::Start(name, element, false) => {
                    open.push((name, element));
                    continue;
                }
                Token::Start(_, element, true) => Node::Element(element),
                Token::End(name) => match open.pop() {
                    Some((opened, element)) if opened == name => Node::Element(element),
                    _ => return Err(Failure::Syntax),
                },
                Token::Text(text) => Node::Text(text),
                Token::Other => Node::Other,
            };
            match open.last_mut() {
                Some((_, parent)) => parent.children.push(node),
                None => return Ok(Some(node)),
            }
        }
    }

    fn token(&mut self) -> Result<Option<Token<'t>>, Failure> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        self.count()?;
        if !self.take("<") {
            let end = self.rest.find('<').unwrap_or(self.rest.len());
            let (text, rest) = self.rest.split_at(end);
            self.rest = rest;
            if text.contains("]]>") {
                return Err(Failure::Syntax);
            }
            return Ok(Some(Token::Text(unescaped(text)?)));
        }
        if self.take("/") {
            let name = self.name()?;
            self.spaces();
            self.expect(">")?;
            return Ok(Some(Token::End(name)));
        }
        if self.take("?") {
            self.instruction()?;
            return Ok(Some(Token::Other));
        }
        if self.take("!--") {
            let comment = self.until("--")?;
            self.expect(">")?;
            checked(comment)?;
            return Ok(Some(Token::Other));
        }
        if self.take("![CDATA[") {
            let text = lines(self.until("]]>")?);
            checked(&text)?;
            return Ok(Some(Token::Text(text)));
        }
        if self.take("!") {
            self.directive()?;
            return Ok(Some(Token::Other));
        }
        self.start().map(Some)
    }

    fn start(&mut self) -> Result<Token<'t>, Failure> {
        let name = self.name()?;
        let mut element = Element {
            name: local(name).to_owned(),
            ..Element::default()
        };
        loop {
            self.spaces();
            if self.take("/") {
                self.expect(">")?;
                return Ok(Token::Start(name, element, true));
            }
            if self.take(">") {
                return Ok(Token::Start(name, element, false));
            }
            self.count()?;
            let attribute = self.name()?;
            self.spaces();
            self.expect("=")?;
            self.spaces();
            let value = if self.take("\"") {
                self.until("\"")?
            } else {
                self.expect("'")?;
                self.until("'")?
            };
            if value.contains('<') {
                return Err(Failure::Syntax);
            }
            let value = unescaped(value)?;
            element
                .attributes
                .push((local(attribute).to_owned(), value));
        }
    }

    /// Skips a processing instruction. A declaration of another version than 1.0, or of another
    /// encoding than UTF-8, is an error.
    fn instruction(&mut self) -> Result<(), Failure> {
        let target = self.name()?;
        let content = self.until("?>")?;
        if target != "xml" {
            return Ok(());
        }
        let version = declared(content, "version").is_none_or(|version| version == "1.0");
        let encoding = declared(content, "encoding")
            .is_none_or(|encoding| encoding.eq_ignore_ascii_case("utf-8"));
        (version && encoding).then_some(()).ok_or(Failure::Syntax)
    }

    /// Skips a directive such as `DOCTYPE`, with quoted texts and nested directives in it.
    fn directive(&mut self) -> Result<(), Failure> {
        let mut depth = 0_usize;
        loop {
            let at = self.rest.find(['<', '>', '"', '\'']);
            let at = at.ok_or(Failure::Syntax)?;
            self.rest = &self.rest[at..];
            if self.take("<!--") {
                self.until("-->")?;
            } else if self.take("<") {
                depth += 1;
            } else if self.take("\"") {
                self.until("\"")?;
            } else if self.take("'") {
                self.until("'")?;
            } else {
                self.expect(">")?;
                match depth.checked_sub(1) {
                    Some(outer) => depth = outer,
                    None => return Ok(()),
                }
            }
        }
    }

    /// A name, perhaps with a prefix.
    fn name(&mut self) -> Result<&'t str, Failure> {
        let is_name =
            |char: char| char.is_alphanumeric() || "_:.-".contains(char) || !char.is_ascii();
        let end = self.rest.find(|char| !is_name(char));
        let (name, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        let first = name.chars().next().ok_or(Failure::Syntax)?;
        let starts = first.is_alphabetic() || "_:".contains(first);
        if starts && name.matches(':').count() <= 1 {
            Ok(name)
        } else {
            Err(Failure::Syntax)
        }
    }

    fn count(&mut self) -> Result<(), Failure> {
        self.left = self.left.checked_sub(1).ok_or(Failure::Size)?;
        Ok(())
    }

    fn spaces(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\r', '\n', '\t']);
    }

    fn take(&mut self, sign: &str) -> bool {
        let rest = self.rest.strip_prefix(sign);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn expect(&mut self, sign: &str) -> Result<(), Failure> {
        self.take(sign).then_some(()).ok_or(Failure::Syntax)
    }

    fn until(&mut self, sign: &str) -> Result<&'t str, Failure> {
        let (text, rest) = self.rest.split_once(sign).ok_or(Failure::Syntax)?;
        self.rest = rest;
        Ok(text)
    }
}

/// A name without its prefix.
fn local(name: &str) -> &str {
    match name.split_once(':') {
        Some((prefix, local)) if !prefix.is_empty() && !local.is_empty() => local,
        _ => name,
    }
}

/// A parameter of the declaration `<?xml ?>`.
fn declared<'t>(content: &'t str, name: &str) -> Option<&'t str> {
    let (_, rest) = content.split_once(name)?;
    let rest = rest.trim_start().strip_prefix('=')?.trim_start();
    let quote = rest.chars().next().filter(|char| "'\"".contains(*char))?;
    rest[1..].split_once(quote).map(|(value, _)| value)
}

/// Normalizes line ends to `\n`.
fn lines(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

/// Checks that all characters are allowed in XML 1.0.
fn checked(text: &str) -> Result<(), Failure> {
    let is_one = |char: char| matches!(char, '\t' | '\n' | '\r' | ' '..='\u{fffd}' | '\u{10000}'..='\u{10ffff}');
    let right = text.chars().all(is_one);
    right.then_some(()).ok_or(Failure::Syntax)
}

/// Replaces character and entity references.
fn unescaped(text: &str) -> Result<String, Failure> {
    let text = lines(text);
    let mut parts = text.split('&');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, rest) = part.split_once(';').ok_or(Failure::Syntax)?;
        out.push(match name {
            "lt" => '<',
            "gt" => '>',
            "amp" => '&',
            "apos" => '\'',
            "quot" => '"',
            name => {
                let number = name.strip_prefix('#').ok_or(Failure::Syntax)?;
                let (digits, radix) = match number.strip_prefix('x') {
                    Some(digits) => (digits, 16),
                    None => (number, 10),
                };
                let only_digits = digits.chars().all(|char| char.is_digit(radix));
                let code = u32::from_str_radix(digits, radix)
                    .ok()
                    .filter(|code| only_digits && *code <= u32::from(char::MAX));
                let code = code.ok_or(Failure::Syntax)?;
                char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
            }
        });
        out.push_str(rest);
    }
    checked(&out)?;
    Ok(out)
}
