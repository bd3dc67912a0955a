//! Typed values of nodes. An error says what a node must be, and what it is.
//!
//! Nothing that an unset variable left is the zero of the type wanted, as in the Collector.

use crate::config::source::{Key, Node, Value};

/// `true` or `false`.
pub(crate) fn flag(node: &Node) -> Result<bool, String> {
    match &node.value {
        Value::Bool(value) => Ok(*value),
        Value::Null => Ok(false),
        _ => Err(format!("must be true or false, not {}", node.shown())),
    }
}

/// A whole number.
pub(crate) fn int(node: &Node) -> Result<i128, String> {
    match &node.value {
        Value::Int(value) => Ok(*value),
        Value::Null => Ok(0),
        // Beyond 2^53 a float is no exact number any more.
        Value::Float(value) if value.fract() == 0.0 && value.abs() < 9e15 => Ok(*value as i128),
        Value::Text(text) if text.parse::<i128>().is_ok() => Err(format!(
            "must be a whole number: write {text} without quotes"
        )),
        _ => Err(format!("must be a whole number, not {}", node.shown())),
    }
}

/// Whole numbers, each with its node.
pub(crate) fn ints(node: &Node) -> Result<Vec<(&Node, i128)>, String> {
    match &node.value {
        Value::Null => Ok(Vec::new()),
        Value::List(items) => {
            let items = items.iter();
            items.map(|item| Ok((item, int(item)?))).collect()
        }
        _ => Err(format!(
            "must be a list of whole numbers, not {}",
            node.shown()
        )),
    }
}

/// A number.
pub(crate) fn number(node: &Node) -> Result<f64, String> {
    match &node.value {
        Value::Int(value) => Ok(*value as f64),
        Value::Float(value) => Ok(*value),
        Value::Null => Ok(0.0),
        Value::Text(text) if text.parse::<f64>().is_ok() => {
            Err(format!("must be a number: write {text} without quotes"))
        }
        _ => Err(format!("must be a number, not {}", node.shown())),
    }
}

/// A text.
pub(crate) fn text(node: &Node) -> Result<&str, String> {
    node.text().ok_or_else(|| match &node.value {
        Value::Bool(_) | Value::Int(_) | Value::Float(_) => {
            format!("must be text: write {} in quotes", node.shown())
        }
        _ => format!("must be text, not {}", node.shown()),
    })
}

/// Texts, each with its node.
pub(crate) fn texts(node: &Node) -> Result<Vec<(&Node, String)>, String> {
    match &node.value {
        Value::Null => Ok(Vec::new()),
        Value::List(items) => {
            let items = items.iter();
            items
                .map(|item| Ok((item, text(item)?.to_owned())))
                .collect()
        }
        Value::Text(text) if text.is_empty() => Ok(Vec::new()),
        Value::Text(text) => {
            let words = text.split(',').map(|word| (node, word.trim().to_owned()));
            Ok(words.collect())
        }
        _ => Err(format!("must be a list of texts, not {}", node.shown())),
    }
}

/// Pairs of texts.
pub(crate) fn pairs(node: &Node) -> Result<Vec<(String, String)>, String> {
    let value = |node: &Node| {
        if node.is_null() {
            Ok(String::new())
        } else {
            text(node).map(str::to_owned)
        }
    };
    let of = |name: &str, node: &Node| {
        let value = value(node).map_err(|reason| format!("'{name}' {reason}"))?;
        Ok((name.to_owned(), value))
    };
    match &node.value {
        Value::Null => Ok(Vec::new()),
        Value::Map(entries) => {
            let entries = entries.iter();
            entries.map(|(key, node)| of(&key.text, node)).collect()
        }
        Value::List(items) => {
            let pair = |item: &Node| {
                let only = |(key, _): &(Key, Node)| matches!(&*key.text, "name" | "value");
                let name = item.get("name").and_then(Node::text);
                let name = name.filter(|_| item.entries().iter().all(only));
                let name = name.ok_or("must hold maps of 'name' and 'value'")?;
                let null = Node::new(item.at, Value::Null);
                of(name, item.get("value").unwrap_or(&null))
            };
            items.iter().map(pair).collect()
        }
        _ => Err(format!("must be a map of texts, not {}", node.shown())),
    }
}

/// Nanoseconds: a duration in Go's notation, or a bare number of them.
pub(crate) fn duration_ns(node: &Node) -> Result<u64, String> {
    let nanoseconds = match &node.value {
        Value::Null => return Ok(0),
        Value::Int(value) => Some(*value),
        Value::Text(text) => go_duration(text),
        _ => None,
    };
    let Some(nanoseconds) = nanoseconds else {
        return Err(format!(
            "must be a duration such as 300ms, 5s or 1m30s, not {}",
            node.shown()
        ));
    };
    if nanoseconds < 0 {
        return Err(format!("must not be negative, but is {}", node.shown()));
    }
    let fits = i64::try_from(nanoseconds).ok().map(i64::unsigned_abs);
    fits.ok_or_else(|| format!("is too long: {}", node.shown()))
}

/// A list of durations, in nanoseconds.
pub(crate) fn durations_ns(node: &Node) -> Result<Vec<u64>, String> {
    match &node.value {
        Value::Null => Ok(Vec::new()),
        Value::List(items) => items.iter().map(duration_ns).collect(),
        _ => Err(format!("must be a list of durations, not {}", node.shown())),
    }
}

const UNITS: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Go's `time.ParseDuration`: a sign, and numbers with a unit each.
fn go_duration(text: &str) -> Option<i128> {
    let (sign, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    let mut total: i128 = 0;
    let mut parts = 0;
    while !rest.is_empty() {
        let digits = |byte: u8| byte.is_ascii_digit() || byte == b'.';
        let end = rest.bytes().take_while(|byte| digits(*byte)).count();
        let (number, after) = rest.split_at(end);
        let letters = after.char_indices();
        let unit_end = letters
            .filter(|(_, c)| c.is_ascii_digit() || *c == '.')
            .map(|(at, _)| at)
            .next()
            .unwrap_or(after.len());
        let (unit, after) = after.split_at(unit_end);
        let (_, nanoseconds) = UNITS.iter().find(|(name, _)| *name == unit)?;
        total = total.checked_add(scaled(number, *nanoseconds)?)?;
        parts += 1;
        rest = after;
    }
    (parts > 0).then_some(sign * total)
}

/// A decimal number times a unit, cut to whole nanoseconds.
fn scaled(number: &str, unit: u64) -> Option<i128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
        return None;
    }
    let unit = i128::from(unit);
    let whole = match whole {
        "" => 0,
        whole => i128::from(whole.parse::<u64>().ok()?),
    };
    // More digits than a nanosecond has are none.
    let fraction = &fraction[..fraction.len().min(18)];
    let parts = match fraction {
        "" => 0,
        fraction => i128::from(fraction.parse::<u64>().ok()?),
    };
    let tenths = 10_i128.pow(u32::try_from(fraction.len()).ok()?);
    Some(whole * unit + parts * unit / tenths)
}
