//! `span_count`: so many spans at least, and at most where that is given.

/// Bounds of a trace's spans.
#[derive(Debug)]
pub struct SpanCount {
    pub min: u64,
    /// 0 is none.
    pub max: u64,
}

impl SpanCount {
    pub fn contains(&self, spans: u64) -> bool {
        spans >= self.min && (self.max == 0 || spans <= self.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_inclusive() {
        let within = |min, max| {
            (0..6)
                .filter(|n| SpanCount { min, max }.contains(*n))
                .collect::<Vec<_>>()
        };
        assert_eq!(within(2, 4), [2, 3, 4]);
        assert_eq!(within(3, 0), [3, 4, 5]);
        assert_eq!(within(0, 0).len(), 6);
    }
}
