//! Samples, conditions, times and carriers in the lines of a filter's file.

use super::super::line::{Line, Parse};
use super::filter::FilterBuild;
use http::FieldName;
use memchr::memmem;
use sample::{Condition, Expr, Place, Style, VarRef};
use telemetry::program::{Carrier, Time, Value};
use telemetry::propagation::Format;

impl FilterBuild<'_, '_, '_> {
    /// The index of the line's condition, which is the end of everything before it.
    pub fn end(line: &Line<'_>, from: usize) -> usize {
        let words = line.words().iter().enumerate().skip(from);
        words
            .filter(|(_, word)| matches!(word.text.as_str(), "if" | "unless"))
            .map(|(at, _)| at)
            .next()
            .unwrap_or(line.count())
    }

    /// The condition at word `at`; None at the end of the line.
    pub fn condition(&mut self, line: &Line<'_>, at: usize) -> Parse<Option<Condition>> {
        let acls = self
            .proxy
            .acls
            .overlaid(&self.acls)
            .overlaid(&self.scope_acls);
        self.proxy.shared.condition(&acls, line, at, Place::ALL)
    }

    /// The expression in word `at`.
    pub fn expr(&mut self, line: &Line<'_>, at: usize) -> Parse<Expr> {
        let shared = &mut self.proxy.shared;
        let result = shared.compiler.expr(&[line.bytes(at)], Place::ALL);
        shared.warnings(line, at);
        let context = format!("'{}'", line.keyword());
        result
            .map(|(expr, _)| expr)
            .map_err(|error| line.expr_fault(at, &error, &context))
    }

    /// The value in the words from `from` to `to`.
    pub fn value(&mut self, line: &Line<'_>, from: usize, to: usize) -> Parse<Value> {
        if from >= to {
            return Err(line.fault(from, format!("'{}' expects a sample.", line.keyword())));
        }
        let text = line.arg(from);
        if text.contains("%[") {
            if to > from + 1 {
                return Err(line.fault(from + 1, "a log format is one word: put it in quotes."));
            }
            return self.format(line, from);
        }
        let mut exprs = Vec::with_capacity(to - from);
        for at in from..to {
            exprs.push(self.expr(line, at)?);
        }
        Ok(match (exprs.len(), exprs.pop()) {
            (1, Some(expr)) => constant(expr),
            (_, last) => {
                exprs.extend(last);
                Value::Several(exprs)
            }
        })
    }

    /// The log format in word `at`; `%[…]` around one with aliases is removed.
    fn format(&mut self, line: &Line<'_>, at: usize) -> Parse<Value> {
        let text = line.bytes(at);
        let inner = text
            .strip_prefix(b"%[")
            .and_then(|text| text.strip_suffix(b"]"));
        let has = |text: &[u8], part: &str| memmem::find(text, part.as_bytes()).is_some();
        let text = match inner {
            Some(inner) if has(inner, "%") && !has(inner, "%[") => inner.trim_ascii(),
            _ => text,
        };
        let shared = &mut self.proxy.shared;
        let format = shared.styled(line, at, text, Place::ALL, Style::Plain)?;
        Ok(match format.constant() {
            Some(text) => Value::Text(text.into()),
            None => Value::Format(format),
        })
    }

    /// `time [s|ms|us|ns] <sample>`; its first word was passed. Returns the time and the index of
    /// the word after it.
    pub fn time(&mut self, line: &Line<'_>, at: usize) -> Parse<(Time, usize)> {
        let unit = match line.arg(at) {
            "s" => Some(1_000_000_000),
            "ms" => Some(1_000_000),
            "us" => Some(1000),
            "ns" => Some(1),
            _ => None,
        };
        let at = at + usize::from(unit.is_some());
        line.need(at, || "'time' expects a sample.".into())?;
        let value = Value::One(self.expr(line, at)?);
        let unit_ns = unit.unwrap_or(1_000_000_000);
        Ok((Time { unit_ns, value }, at + 1))
    }

    /// The carrier into which `inject` writes or from which `extract` reads: the words from `at`
    /// on. `name`: the prefix of the fields' names.
    pub fn carrier(&mut self, line: &Line<'_>, name: &str, at: usize) -> Parse<Carrier> {
        let (mut headers, mut vars, mut formats) = (false, false, Vec::new());
        for at in at..line.count() {
            let word = line.arg(at);
            let twice = match word {
                "use-headers" => std::mem::replace(&mut headers, true),
                "use-vars" => std::mem::replace(&mut vars, true),
                _ => {
                    let format = format_named(word).ok_or_else(|| {
                        line.fault(
                            at,
                            format!("'{word}': expected 'use-headers', 'use-vars', 'w3c', 'b3', 'b3multi' or 'jaeger'."),
                        )
                    })?;
                    let twice = formats.contains(&format);
                    formats.push(format);
                    twice
                }
            };
            if twice {
                return Err(line.fault(at, format!("'{word}' already defined.")));
            }
        }
        // A name that begins with a dash selects the standard header names.
        if name.starts_with('-') && (headers || (!vars && formats.is_empty())) {
            headers = false;
            if !formats.contains(&Format::W3c) {
                formats.insert(0, Format::W3c);
            }
        }
        let prefixed = headers || (!vars && formats.is_empty());
        let key =
            |key: &str| FieldName::new(format!("{name}-{key}").to_ascii_lowercase().as_bytes());
        Ok(Carrier {
            name: name.to_ascii_lowercase().into(),
            headers: prefixed.then(|| KEYS.map(key)),
            formats,
            vars: if vars {
                Some(self.context_vars(line, name)?)
            } else {
                None
            },
        })
    }

    /// The variables of a context: `txn.<name>.<key>`. Characters that names of variables cannot
    /// have are replaced.
    pub fn context_vars(&mut self, line: &Line<'_>, name: &str) -> Parse<[VarRef; 3]> {
        let name: String = name
            .to_ascii_lowercase()
            .chars()
            .map(|c| match c {
                '-' => 'D',
                ' ' => 'S',
                c => c,
            })
            .collect();
        let compiler = &mut self.proxy.shared.compiler;
        let mut var = |key: &str| {
            compiler
                .var(&format!("txn.{name}.{key}"))
                .map_err(|error| line.fault(1, format!("'{name}': {}.", error.message)))
        };
        Ok([var(KEYS[0])?, var(KEYS[1])?, var(KEYS[2])?])
    }
}

/// The field names of W3C.
const KEYS: [&str; 3] = ["traceparent", "tracestate", "baggage"];

/// The format that a word names.
fn format_named(word: &str) -> Option<Format> {
    Some(match word {
        "w3c" => Format::W3c,
        "b3" => Format::B3Single,
        "b3multi" => Format::B3Multi,
        "jaeger" => Format::Jaeger,
        _ => return None,
    })
}

/// A value from an expression; a constant text becomes a constant.
fn constant(expr: Expr) -> Value {
    match expr.constant_text() {
        Some(text) => Value::Text(text.into()),
        None => Value::One(expr),
    }
}
