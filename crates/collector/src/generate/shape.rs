//! What generated traces look like.

/// The shape of traces and requests.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// Services that there are.
    pub services: u32,
    /// Processes of each service.
    pub instances: u32,
    /// Spans of a trace.
    pub spans: u32,
    /// Attributes of a span: the first ten as servers of HTTP have them, more without a meaning.
    pub attributes: u32,
    /// Bytes of the value of those that have no meaning.
    pub attribute_bytes: u32,
    /// Attributes whose value no other span has, beside these.
    pub unique_attributes: u32,
    /// Per cent of traces with a span that failed.
    pub errors_percent: f64,
    /// How long traces take.
    pub latency: Latency,
    /// Per cent of traces that take [`Shape::slow_ms`] or longer.
    pub slow_percent: f64,
    /// Milliseconds of a slow trace, at least.
    pub slow_ms: u64,
    /// Per cent of spans that come [`Shape::late_by_ns`] later than the rest of their trace.
    pub late_percent: f64,
    /// How much later.
    pub late_by_ns: u64,
    /// Spans of a request.
    pub batch_spans: u32,
    /// A request that is not full goes after this time.
    pub batch_delay_ns: u64,
    /// A request has whole traces; else spans of one process each, as an SDK sends them.
    pub whole_traces: bool,
}

impl Default for Shape {
    fn default() -> Shape {
        Shape {
            services: 24,
            instances: 2,
            spans: 8,
            attributes: 10,
            attribute_bytes: 12,
            unique_attributes: 0,
            errors_percent: 2.0,
            latency: Latency::default(),
            slow_percent: 2.0,
            slow_ms: 2000,
            late_percent: 0.0,
            late_by_ns: 15_000_000_000,
            batch_spans: 512,
            batch_delay_ns: 5_000_000_000,
            whole_traces: false,
        }
    }
}

/// A mix of durations: so many per cent of traces take up to so many milliseconds, and longer than
/// those of the part before.
#[derive(Clone, Debug, PartialEq)]
pub struct Latency(Vec<(u64, f64)>);

/// Parts of a mix.
const PARTS_MAX: usize = 64;
/// A day.
const LATENCY_MS_MAX: u64 = 86_400_000;

impl Default for Latency {
    fn default() -> Latency {
        Latency(vec![(20, 50.0), (100, 30.0), (400, 20.0)])
    }
}

impl Latency {
    /// Reads `MS:PERCENT,MS:PERCENT`, in the order of their times.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Latency, String> {
        let part = |part: &str| -> Option<(u64, f64)> {
            let (ms, percent) = part.trim().split_once(':')?;
            let (ms, percent) = (ms.parse().ok()?, percent.parse().ok()?);
            ((1..=LATENCY_MS_MAX).contains(&ms) && percent > 0.0).then_some((ms, percent))
        };
        let parts: Option<Vec<_>> = text.split(',').take(PARTS_MAX + 1).map(part).collect();
        let parts = parts.filter(|parts| parts.len() <= PARTS_MAX);
        let parts = parts.ok_or_else(|| format!("'{text}' is no list of MS:PERCENT"))?;
        if !parts.is_sorted_by(|one, next| one.0 < next.0) {
            return Err("the times must grow".into());
        }
        let sum: f64 = parts.iter().map(|part| part.1).sum();
        if (sum - 100.0).abs() < 0.01 {
            Ok(Latency(parts))
        } else {
            Err(format!("{sum} per cent in all, not 100"))
        }
    }

    /// A duration in milliseconds: that of the trace at `percent` of all, and `random` for where in
    /// its part.
    pub(super) fn draw_ms(&self, percent: f64, random: u64) -> u64 {
        let (mut below, mut from_ms) = (0.0, 0);
        for (to_ms, share) in &self.0 {
            below += share;
            if percent < below {
                return from_ms + 1 + random % (to_ms - from_ms);
            }
            from_ms = *to_ms;
        }
        from_ms.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixes_are_read_and_drawn() {
        let mix = Latency::parse("10:50, 100:49.5,3000:0.5").unwrap();
        assert_eq!(mix.draw_ms(0.0, 0), 1);
        assert_eq!(mix.draw_ms(49.9, 9), 10);
        assert_eq!(mix.draw_ms(50.0, 0), 11);
        assert_eq!(mix.draw_ms(99.6, 2899), 3000);
        assert_eq!(mix.draw_ms(100.0, 7), 3000);
        for wrong in [
            "",
            "10",
            "10:x",
            "0:100",
            "10:50,5:50",
            "10:50",
            "10:-1,20:101",
        ] {
            assert!(Latency::parse(wrong).is_err(), "{wrong}");
        }
    }
}
