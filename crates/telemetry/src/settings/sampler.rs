//! Samplers: which traces are kept.

use super::exporter::kind;
use super::read::Options;

/// Which traces are kept, decided at the start of a span.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sampler {
    /// `always_on`.
    AlwaysOn,
    /// `always_off`.
    AlwaysOff,
    /// `trace_id_ratio_based`: this share of all traces, 0 to 1.
    Ratio(f64),
    /// `parent_based`: according to the parent's sampled flag.
    ParentBased(ParentBased),
    /// `composite`: by the threshold of `tracestate`'s `ot` entry.
    Composite(Composable),
}

/// `parent_based`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ParentBased {
    /// Decides about a span without a parent.
    pub delegate: Delegate,
    /// Whether a span with a sampled remote parent is kept.
    pub remote_sampled: bool,
    /// Whether a span with a remote parent that is not sampled is kept.
    pub remote_not_sampled: bool,
    /// Whether a span with a sampled parent of this process is kept.
    pub local_sampled: bool,
    /// Whether a span with a parent of this process that is not sampled is kept.
    pub local_not_sampled: bool,
}

impl ParentBased {
    /// Follows the parent's flag.
    #[must_use]
    pub fn new(delegate: Delegate) -> ParentBased {
        ParentBased {
            delegate,
            remote_sampled: true,
            remote_not_sampled: false,
            local_sampled: true,
            local_not_sampled: false,
        }
    }
}

/// The sampler for root spans.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Delegate {
    /// All are kept.
    AlwaysOn,
    /// None is kept.
    AlwaysOff,
    /// This share of all traces, 0 to 1.
    Ratio(f64),
}

/// `composable` of a `composite` sampler.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Composable {
    /// `probability`: this share of all traces, 0 to 1.
    Probability(f64),
    /// `always_on`.
    AlwaysOn,
    /// `always_off`.
    AlwaysOff,
    /// `parent_threshold`: the parent's threshold; for traces that begin here, this share.
    ParentThreshold(f64),
}

/// Reads a definition.
pub(super) fn sampler(options: &Options<'_>) -> Option<Sampler> {
    let (kind, at) = kind(options)?;
    let sampler = match kind.to_ascii_lowercase().as_str() {
        "always_on" => Sampler::AlwaysOn,
        "always_off" => Sampler::AlwaysOff,
        "trace_id_ratio_based" => Sampler::Ratio(ratio(options)?),
        "parent_based" => Sampler::ParentBased(parent_based(options)?),
        "composite" => Sampler::Composite(composite(options)?),
        _ => {
            options.error(
                at,
                format!(
                    "unknown sampler type '{kind}': one of always_on, always_off, trace_id_ratio_based, parent_based, composite"
                ),
            );
            return None;
        }
    };
    options.end();
    Some(sampler)
}

/// The mandatory `ratio`.
fn ratio(options: &Options<'_>) -> Option<f64> {
    if options.node("ratio").is_none() {
        let message = format!("{}: 'ratio' is missing", options.what);
        options.error(options.node.at, message);
    }
    options.ratio("ratio")
}

fn parent_based(options: &Options<'_>) -> Option<ParentBased> {
    let delegates = [
        ("always_on", Some(Delegate::AlwaysOn)),
        ("always_off", Some(Delegate::AlwaysOff)),
        ("trace_id_ratio_based", None),
    ];
    let delegate = match options.choice("delegate", &delegates) {
        Some(Some(delegate)) => delegate,
        Some(None) => Delegate::Ratio(ratio(options)?),
        None if options.node("delegate").is_none() => {
            let message = format!("{}: 'delegate' is missing", options.what);
            options.error(options.node.at, message);
            return None;
        }
        None => return None,
    };
    let kept = |key: &str, default: bool| {
        let words = [("always_on", true), ("always_off", false)];
        options.choice(key, &words).unwrap_or(default)
    };
    Some(ParentBased {
        delegate,
        remote_sampled: kept("remote_sampled", true),
        remote_not_sampled: kept("remote_not_sampled", false),
        local_sampled: kept("local_sampled", true),
        local_not_sampled: kept("local_not_sampled", false),
    })
}

fn composite(options: &Options<'_>) -> Option<Composable> {
    #[derive(Clone, Copy)]
    enum Kind {
        Probability,
        On,
        Off,
        Threshold,
    }
    let kinds = [
        ("probability", Kind::Probability),
        ("always_on", Kind::On),
        ("always_off", Kind::Off),
        ("parent_threshold", Kind::Threshold),
    ];
    let kind = match options.choice("composable", &kinds) {
        Some(kind) => kind,
        None if options.node("composable").is_none() => Kind::Probability,
        None => return None,
    };
    Some(match kind {
        Kind::Probability => Composable::Probability(ratio(options)?),
        Kind::On => Composable::AlwaysOn,
        Kind::Off => Composable::AlwaysOff,
        Kind::Threshold => Composable::ParentThreshold(ratio(options)?),
    })
}
