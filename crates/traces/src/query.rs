//! Typed queries, and their parser for the parameters of a URL.

use syntax::hex;

/// Most traces of a list.
pub const LIST_MAX: usize = 200;
/// The default number of traces of a list.
const LIST_DEFAULT: usize = 50;
/// Most columns of a heat map.
pub const COLUMNS_MAX: usize = 400;
const COLUMNS_DEFAULT: usize = 80;
/// Most rows of a heat map.
pub const ROWS_MAX: usize = 100;
const ROWS_DEFAULT: usize = 24;
/// Most bytes of a text in a query.
pub const PATTERN_BYTES_MAX: usize = 1024;

/// Selects traces: those that meet all conditions that are set.
///
/// Texts are compared as a whole; `*` stands for any characters. `service`, `name` and `route` must
/// match one and the same span of the trace.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceQuery {
    /// A span's `service.name`.
    pub service: Option<String>,
    /// The span's name.
    pub name: Option<String>,
    /// The span's `http.route`.
    pub route: Option<String>,
    /// The HTTP status of the trace's root.
    pub status: Option<StatusRange>,
    /// Whether a span has the status `Error`.
    pub error: Option<bool>,
    /// The shortest duration of the trace.
    pub min_ms: Option<f64>,
    /// The longest duration of the trace.
    pub max_ms: Option<f64>,
    /// The policy that decided.
    pub policy: Option<String>,
    /// The trace begins at this time or later.
    pub since_ms: Option<u64>,
    /// The trace begins before this time.
    pub until_ms: Option<u64>,
    /// Whether it was kept; a trace without a decision does not match.
    pub kept: Option<bool>,
    /// Rows of the list, up to [`LIST_MAX`].
    pub limit: usize,
}

impl Default for TraceQuery {
    fn default() -> TraceQuery {
        TraceQuery {
            service: None,
            name: None,
            route: None,
            status: None,
            error: None,
            min_ms: None,
            max_ms: None,
            policy: None,
            since_ms: None,
            until_ms: None,
            kept: None,
            limit: LIST_DEFAULT,
        }
    }
}

/// HTTP statuses: one, or a class of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusRange {
    /// The least.
    pub first: u16,
    /// The greatest.
    pub last: u16,
}

impl StatusRange {
    /// Parses `404`, `5xx` or `500-599`.
    #[must_use]
    pub fn parse(text: &str) -> Option<StatusRange> {
        let status = |text: &str| {
            let number: u16 = text.parse().ok()?;
            (100..1000).contains(&number).then_some(number)
        };
        if let Some(class) = text.strip_suffix("xx") {
            let first = status(&format!("{class}00"))?;
            return Some(StatusRange {
                first,
                last: first + 99,
            });
        }
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let (first, last) = (status(first)?, status(last)?);
        (first <= last).then_some(StatusRange { first, last })
    }
}

/// The query for a heat map.
#[derive(Clone, Debug, PartialEq)]
pub struct HeatMapQuery {
    /// The traces.
    pub filter: TraceQuery,
    /// The number of columns, up to [`COLUMNS_MAX`].
    pub columns: usize,
    /// The number of rows, up to [`ROWS_MAX`].
    pub rows: usize,
}

impl Default for HeatMapQuery {
    fn default() -> HeatMapQuery {
        HeatMapQuery {
            filter: TraceQuery::default(),
            columns: COLUMNS_DEFAULT,
            rows: ROWS_DEFAULT,
        }
    }
}

impl TraceQuery {
    /// Reads a query from the decoded names and values of a URL. An empty value sets no condition.
    ///
    /// # Errors
    /// Which parameter is unknown or has a wrong value.
    pub fn from_pairs<'a>(
        pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<TraceQuery, String> {
        let mut query = TraceQuery::default();
        for (name, value) in pairs {
            if !query.set(name, value)? {
                return Err(unknown(name));
            }
        }
        Ok(query)
    }

    /// Sets one parameter; false if there is none with this name.
    ///
    /// # Errors
    /// The fault in its value.
    pub fn set(&mut self, name: &str, value: &str) -> Result<bool, String> {
        if value.is_empty() {
            return Ok(PARAMETERS.contains(&name));
        }
        match name {
            "service" => self.service = Some(pattern(name, value)?),
            "name" => self.name = Some(pattern(name, value)?),
            "route" => self.route = Some(pattern(name, value)?),
            "policy" => self.policy = Some(pattern(name, value)?),
            "status" => {
                let range = StatusRange::parse(value);
                let why = || format!("'{name}' must be a status such as 404, 5xx or 500-599");
                self.status = Some(range.ok_or_else(why)?);
            }
            "error" => self.error = Some(flag(name, value)?),
            "kept" => self.kept = Some(flag(name, value)?),
            "min_ms" => self.min_ms = Some(duration(name, value)?),
            "max_ms" => self.max_ms = Some(duration(name, value)?),
            "since" => self.since_ms = Some(time(name, value)?),
            "until" => self.until_ms = Some(time(name, value)?),
            "limit" => self.limit = count(name, value, LIST_MAX)?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

const PARAMETERS: &[&str] = &[
    "service", "name", "route", "policy", "status", "error", "kept", "min_ms", "max_ms", "since",
    "until", "limit",
];

impl HeatMapQuery {
    /// Like [`TraceQuery::from_pairs`], with `columns` and `rows`.
    ///
    /// # Errors
    /// Which parameter is unknown or has a wrong value.
    pub fn from_pairs<'a>(
        pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<HeatMapQuery, String> {
        let mut query = HeatMapQuery::default();
        for (name, value) in pairs {
            match name {
                "columns" | "rows" if value.is_empty() => {}
                "columns" => query.columns = count(name, value, COLUMNS_MAX)?,
                "rows" => query.rows = count(name, value, ROWS_MAX)?,
                _ if query.filter.set(name, value)? => {}
                _ => return Err(unknown(name)),
            }
        }
        Ok(query)
    }
}

/// The identifier of a trace, in hexadecimal.
#[must_use]
pub fn trace_id(text: &str) -> Option<[u8; 16]> {
    if text.len() != 32 {
        return None;
    }
    hex::decode(text.as_bytes())?.try_into().ok()
}

fn unknown(name: &str) -> String {
    let shown: String = name.chars().take(40).collect();
    format!("'{}' is no parameter", shown.escape_debug())
}

fn pattern(name: &str, value: &str) -> Result<String, String> {
    if value.len() > PATTERN_BYTES_MAX {
        return Err(format!("'{name}' is longer than {PATTERN_BYTES_MAX} bytes"));
    }
    Ok(value.to_owned())
}

fn flag(name: &str, value: &str) -> Result<bool, String> {
    match value {
        "1" | "true" => Ok(true),
        "0" | "false" => Ok(false),
        _ => Err(format!("'{name}' must be 0 or 1")),
    }
}

fn duration(name: &str, value: &str) -> Result<f64, String> {
    let number = value.parse().ok();
    let number = number.filter(|number: &f64| number.is_finite() && *number >= 0.0);
    number.ok_or_else(|| format!("'{name}' must be a number of milliseconds"))
}

fn time(name: &str, value: &str) -> Result<u64, String> {
    let number = value.parse().ok();
    let number = number.filter(|number: &f64| *number >= 0.0 && *number < 1e15);
    let why = || format!("'{name}' must be a time in milliseconds of the UNIX epoch");
    Ok(number.ok_or_else(why)? as u64)
}

fn count(name: &str, value: &str, most: usize) -> Result<usize, String> {
    let number = value.parse().ok();
    let number = number.filter(|number| (1..=most).contains(number));
    number.ok_or_else(|| format!("'{name}' must be a number from 1 to {most}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_parameters_are_read() {
        let pairs = [
            ("service", "shop"),
            ("name", "GET *"),
            ("route", "/cart/{id}"),
            ("status", "5xx"),
            ("error", "1"),
            ("min_ms", "2.5"),
            ("max_ms", "100"),
            ("policy", "errors"),
            ("since", "1700000000000.5"),
            ("until", "1700000001000"),
            ("kept", "0"),
            ("limit", "7"),
        ];
        assert!(
            pairs
                .iter()
                .map(|(name, _)| *name)
                .all(|name| PARAMETERS.contains(&name))
        );
        assert_eq!(pairs.len(), PARAMETERS.len());
        let query = TraceQuery::from_pairs(pairs).unwrap();
        let expected = TraceQuery {
            service: Some("shop".into()),
            name: Some("GET *".into()),
            route: Some("/cart/{id}".into()),
            status: Some(StatusRange {
                first: 500,
                last: 599,
            }),
            error: Some(true),
            min_ms: Some(2.5),
            max_ms: Some(100.0),
            policy: Some("errors".into()),
            since_ms: Some(1_700_000_000_000),
            until_ms: Some(1_700_000_001_000),
            kept: Some(false),
            limit: 7,
        };
        assert_eq!(query, expected);
        let empty = pairs.map(|(name, _)| (name, ""));
        assert_eq!(TraceQuery::from_pairs(empty), Ok(TraceQuery::default()));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let refused = |name, value| HeatMapQuery::from_pairs([(name, value)]).unwrap_err();
        assert_eq!(refused("colour", "1"), "'colour' is no parameter");
        assert_eq!(refused("error", "yes"), "'error' must be 0 or 1");
        assert_eq!(
            refused("limit", "201"),
            "'limit' must be a number from 1 to 200"
        );
        assert_eq!(
            refused("columns", "0"),
            "'columns' must be a number from 1 to 400"
        );
        assert_eq!(
            refused("min_ms", "NaN"),
            "'min_ms' must be a number of milliseconds"
        );
        assert_eq!(
            refused("status", "5x"),
            "'status' must be a status such as 404, 5xx or 500-599"
        );
        assert!(refused("since", "-1").starts_with("'since' must be"));
        assert!(refused("name", &"x".repeat(1025)).ends_with("1024 bytes"));
    }

    #[test]
    fn statuses_are_one_or_a_range() {
        let parsed = |text| StatusRange::parse(text).map(|range| (range.first, range.last));
        assert_eq!(parsed("404"), Some((404, 404)));
        assert_eq!(parsed("4xx"), Some((400, 499)));
        assert_eq!(parsed("500-503"), Some((500, 503)));
        for wrong in ["", "xx", "0xx", "99", "1000", "10xx", "503-500", "-1", "a"] {
            assert_eq!(parsed(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn identifiers_are_32_digits() {
        assert_eq!(
            trace_id("000102030405060708090a0b0c0d0e0f"),
            Some([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15])
        );
        for wrong in [
            "",
            "00",
            "000102030405060708090a0b0c0d0e0g",
            "é01020304050607080990a0b0c0d0e0",
        ] {
            assert_eq!(trace_id(wrong), None, "{wrong}");
        }
    }
}
