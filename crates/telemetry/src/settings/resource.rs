//! Attributes of the resource, which describe the process.

/// The default of `service.name`.
const SERVICE_DEFAULT: &str = "unknown_service:spangate";
/// The most attributes of one variable.
const ATTRIBUTES_MAX: usize = 1024;

/// The attributes of `OTEL_RESOURCE_ATTRIBUTES` and `OTEL_SERVICE_NAME`, overridden by those that
/// were `written`, sorted by key. A faulty variable is reported to `warn` and ignored.
pub(super) fn attributes(
    written: &[(String, String)],
    environment: &dyn Fn(&str) -> Option<String>,
    mut warn: impl FnMut(String),
) -> Vec<(String, String)> {
    let mut all = vec![
        ("service.name".to_owned(), SERVICE_DEFAULT.to_owned()),
        ("telemetry.sdk.language".to_owned(), "rust".to_owned()),
        ("telemetry.sdk.name".to_owned(), "spangate".to_owned()),
        (
            "telemetry.sdk.version".to_owned(),
            env!("CARGO_PKG_VERSION").to_owned(),
        ),
    ];
    let set = |all: &mut Vec<(String, String)>, key: String, value: String| match all
        .iter_mut()
        .find(|(other, _)| *other == key)
    {
        Some((_, old)) => *old = value,
        None => all.push((key, value)),
    };
    if let Some(text) = environment("OTEL_RESOURCE_ATTRIBUTES") {
        match pairs(&text) {
            Ok(pairs) => pairs.into_iter().for_each(|(k, v)| set(&mut all, k, v)),
            Err(why) => warn(format!("OTEL_RESOURCE_ATTRIBUTES is not taken: {why}")),
        }
    }
    if let Some(name) = environment("OTEL_SERVICE_NAME").filter(|name| !name.is_empty()) {
        set(&mut all, "service.name".to_owned(), name);
    }
    for (key, value) in written {
        set(&mut all, key.clone(), value.clone());
    }
    all.sort();
    all
}

/// Comma-separated `key=value` pairs, percent-encoded, the form of resource attributes and OTLP
/// headers in variables.
pub(super) fn pairs(text: &str) -> Result<Vec<(String, String)>, String> {
    let mut pairs = Vec::new();
    for pair in text.split(',').filter(|pair| !pair.trim().is_empty()) {
        let Some((key, value)) = pair.split_once('=') else {
            return Err(format!("'{}' is no key=value", pair.escape_debug()));
        };
        let (key, value) = (key.trim(), value.trim());
        if key.is_empty() {
            return Err("a key is empty".to_owned());
        }
        if pairs.len() == ATTRIBUTES_MAX {
            return Err(format!("more than {ATTRIBUTES_MAX} pairs"));
        }
        pairs.push((decoded(key)?, decoded(value)?));
    }
    Ok(pairs)
}

fn decoded(text: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digit = |at: usize| tail.get(at).and_then(|byte| char::from(*byte).to_digit(16));
        let (Some(high), Some(low)) = (digit(0), digit(1)) else {
            return Err(format!("'{}' has a lone %", text.escape_debug()));
        };
        bytes.push((high << 4 | low) as u8);
        rest = &tail[2..];
    }
    String::from_utf8(bytes).map_err(|_| format!("'{}' is no UTF-8", text.escape_debug()))
}
