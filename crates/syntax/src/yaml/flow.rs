//! Lines of flow lists and maps with less indentation than YAML requires.
//!
//! A `]` in the column of its key, or items further left, are errors in the specification (1.2.2,
//! section 7.4). Our parser refuses them; the libraries of most programs accept them. Such lines
//! are indented until the parser accepts the text: within a flow list or map, blanks at the start
//! of a line have no meaning, not even in quotes. Reported columns are those of the original text.

use std::borrow::Cow;
use std::collections::HashSet;

use super::At;

/// The blanks that are added before a line.
const PUSH_COLUMNS: usize = 256;
/// Most bytes of all indented texts of one parse, in units of the largest text.
const TEXTS_MAX: usize = 16;

/// The lines that are indented.
#[derive(Debug, Default)]
pub(super) struct Pushed {
    /// Line numbers, from 1.
    lines: HashSet<usize>,
    /// Bytes of all texts created so far.
    bytes: usize,
}

impl Pushed {
    /// The text with its indented lines.
    pub(super) fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.lines.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut out = String::with_capacity(text.len() + self.lines.len() * PUSH_COLUMNS);
        for (index, line) in text.split_inclusive('\n').enumerate() {
            if self.lines.contains(&(index + 1)) {
                out.extend(std::iter::repeat_n(' ', PUSH_COLUMNS));
            }
            out.push_str(line);
        }
        Cow::Owned(out)
    }

    /// The place in the original text.
    pub(super) fn unpushed(&self, at: At) -> At {
        if self.lines.contains(&at.line) {
            At {
                column: at.column.saturating_sub(PUSH_COLUMNS).max(1),
                ..at
            }
        } else {
            at
        }
    }

    /// Indents a line within a flow list or map, and the following lines in it. False if that
    /// cannot help.
    pub(super) fn push(&mut self, text: &str, line: usize, bytes_max: usize) -> bool {
        if self.lines.contains(&line) {
            return false;
        }
        let mut scan = Scan::default();
        for (index, content) in text.split_inclusive('\n').enumerate().skip(line - 1) {
            self.lines.insert(index + 1);
            if scan.line(content) {
                break;
            }
        }
        self.bytes += text.len() + self.lines.len() * PUSH_COLUMNS;
        self.bytes <= bytes_max.saturating_mul(TEXTS_MAX)
    }
}

/// The state of a scan of flow content.
#[derive(Default)]
struct Scan {
    depth: usize,
    quote: Option<char>,
}

impl Scan {
    /// Scans a line; true when the list or map in which the scan began ends.
    fn line(&mut self, line: &str) -> bool {
        let mut before = ' ';
        let mut chars = line.chars();
        while let Some(c) = chars.next() {
            match (self.quote, c) {
                (Some('"'), '\\') => {
                    chars.next();
                }
                (Some(quote), c) if c == quote => self.quote = None,
                (Some(_), _) => {}
                (None, '#') if before.is_whitespace() => return false,
                (None, '"' | '\'') if !before.is_alphanumeric() => self.quote = Some(c),
                (None, '[' | '{') => self.depth += 1,
                (None, ']' | '}') => match self.depth.checked_sub(1) {
                    Some(depth) => self.depth = depth,
                    None => return true,
                },
                (None, _) => {}
            }
            before = c;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Document, Rules, Value, parse};

    const RULES: Rules = Rules {
        bytes_max: 10_000,
        depth_max: 8,
        empty_is_absent: false,
    };

    fn document(text: &str) -> Document {
        let mut errors = Vec::new();
        let document = parse(text, &RULES, &mut errors);
        assert_eq!(errors, [], "{text}");
        document.unwrap_or_else(|| panic!("{text}"))
    }

    #[test]
    fn brackets_may_stand_where_the_key_does() {
        let texts = [
            "a:\n  b: [\n  ]\n  z: 1\n",
            "a:\n  b: {\n  }\n  z: 1\n",
            "a:\n  b: [\n    \"x\",\n    \"y\"\n  ]\n  z: 1\n",
            "a:\n  b: [\n  x,\n  'y]'\n  ]\n  z: 1\n",
            "a:\n  b: [\n  x,\n  'y\nz]'\n  ]\n  z: 1\n",
            "a:\n  b: [\n{c: [\n1\n], d: \"}\\\"\n  f\"}, # ]\n]\n  z: 1\n",
        ];
        for text in texts {
            let document = document(text);
            let a = document.root.get("a").expect("a");
            let z = a.get("z").unwrap_or_else(|| panic!("{text}"));
            assert_eq!(z.at.column, 6, "{text}");
        }
        let document = document("a:\n  b: [\n  x,\n  \"y  z\"\n  ]\n");
        let b = document.root.get("a").and_then(|a| a.get("b")).expect("b");
        let Value::List(items) = &b.value else {
            panic!("{b:?}");
        };
        let places: Vec<_> = items
            .iter()
            .map(|item| (item.at.line, item.at.column))
            .collect();
        assert_eq!(places, [(3, 3), (4, 3)]);
        assert!(matches!(&items[1].value, Value::Text(text) if text == "y  z"));
    }

    #[test]
    fn what_is_wrong_stays_wrong() {
        let mut errors = Vec::new();
        let text = "a:\n  b: [\n]\nc: ]\n";
        assert!(parse(text, &RULES, &mut errors).is_none());
        assert_eq!((errors[0].at.line, errors.len()), (4, 1));
        // A list that never ends is not retried forever.
        let text = format!("a:\n  b: [\n{}", "- [\n".repeat(1000));
        errors.clear();
        assert!(parse(&text, &RULES, &mut errors).is_none());
        assert_eq!(errors.len(), 1);
    }
}
