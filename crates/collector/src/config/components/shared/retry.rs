//! `retry_on_failure`: what becomes of data that could not be sent.

use std::time::Duration;

pub use export::Retry;

use crate::config::options::{Kind, Opt, Section, Table, opt};

/// Options of `retry_on_failure`.
#[rustfmt::skip]
pub(crate) const TABLE: Table = &[OPTIONS];
#[rustfmt::skip]
pub(crate) const OPTIONS: &[Opt] = &[
    opt("enabled", Kind::Flag, "true", "data that could not be sent are sent again"),
    opt("initial_interval", Kind::Duration, "5s", "wait after the first failure"),
    opt("randomization_factor", Kind::Number(0.0, 1.0), "0.5", "share of a wait by which it may be shorter or longer"),
    opt("multiplier", Kind::Number(0.0, f64::MAX), "1.5", "growth from wait to wait"),
    opt("max_interval", Kind::Duration, "30s", "the longest wait"),
    opt("max_elapsed_time", Kind::Duration, "5m", "data are given up after this time; 0: never"),
];

/// From its section; nothing where it is disabled.
pub(crate) fn retry(section: &Section<'_>) -> Option<Retry> {
    if !section.flag("enabled") {
        return None;
    }
    let time = |name| Duration::from_nanos(section.duration_ns(name));
    let elapsed_max = time("max_elapsed_time");
    let retry = Retry {
        first: time("initial_interval"),
        multiplier: section.number("multiplier"),
        spread: section.number("randomization_factor"),
        delay_max: time("max_interval"),
        asked_max: Duration::MAX,
        elapsed_max: (!elapsed_max.is_zero()).then_some(elapsed_max),
    };
    let longest = retry.delay_max.max(retry.first);
    if retry.elapsed_max.is_some_and(|most| most < longest) {
        let message = "must not be less than 'initial_interval' or 'max_interval'";
        section.error("max_elapsed_time", message);
    }
    Some(retry)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use export::Delays;

    use crate::config::exporter;

    #[tokio::test(start_paused = true)]
    async fn waits_grow_and_end() {
        for name in ["otlphttp", "prometheusremotewrite"] {
            let exporter = exporter(&format!(
                "{name}: {{ endpoint: 'http://x', retry_on_failure: {{ initial_interval: 1s, randomization_factor: 0, \
                 multiplier: 2, max_interval: 4s, max_elapsed_time: 20s }} }}"
            ));
            let mut delays = Delays::new(exporter.retry());
            let mut all = Vec::new();
            while let Some(wait) = delays.next(None) {
                all.push(wait.as_secs());
                tokio::time::advance(wait).await;
            }
            assert_eq!(all, [1, 2, 4, 4, 4, 4]);
            let asked = Some(Duration::from_secs(9));
            assert_eq!(Delays::new(exporter.retry()).next(asked), asked);
            let asked = Some(Duration::from_secs(21));
            assert_eq!(Delays::new(exporter.retry()).next(asked), None);
        }
    }
}
