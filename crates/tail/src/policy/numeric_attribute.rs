//! `numeric_attribute`: an attribute within bounds. One that is no integer reads as 0, as in the
//! Collector.

use otlp::scan::Any;

/// Inclusive bounds.
#[derive(Clone, Copy, Debug)]
pub struct Range {
    pub min: i64,
    pub max: i64,
}

impl Range {
    pub fn new(min: Option<i64>, max: Option<i64>) -> Range {
        Range {
            min: min.unwrap_or(i64::MIN),
            max: max.unwrap_or(i64::MAX),
        }
    }

    pub fn matches(&self, value: Any<'_>) -> bool {
        let value = match value {
            Any::Int(value) => value,
            _ => 0,
        };
        (self.min..=self.max).contains(&value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_within_bounds() {
        let range = Range::new(Some(400), Some(599));
        let matches = |n| range.matches(Any::Int(n));
        assert_eq!(
            [399, 400, 599, 600].map(matches),
            [false, true, true, false]
        );
        assert!(!range.matches(Any::Double(500.0)));
        assert!(!range.matches(Any::Text(b"500")));
        let open = Range::new(None, Some(10));
        assert!(
            open.matches(Any::Int(i64::MIN)) && open.matches(Any::Double(500.0)),
            "it reads as 0"
        );
    }
}
