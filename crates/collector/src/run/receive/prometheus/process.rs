//! One scrape: from a body to a request, and what the next scrape must know of it.

use std::collections::{HashMap, HashSet};
use std::io::Read;

use flate2::read::MultiGzDecoder;

use super::convert::Converter;
use super::fetch::Fetched;
use super::relabel;
use super::target::Target;
use super::text::{Exposition, Family, Labels, NAME, Sample, parse};
use crate::config::components::receivers::prometheus::Limits;
use crate::run::charge::Charge;
use crate::run::send::prometheus::STALE;

/// Facts of the last scrape.
#[derive(Default)]
pub(super) struct Series {
    /// Series that become stale when they are gone: those without times of their own.
    live: HashSet<Labels>,
    families: HashMap<String, Family>,
    /// Charges the bytes of both, about.
    _charge: Option<Charge>,
}

/// Bytes that a label takes in a set of series, besides its texts, about.
const LABEL_BYTES: usize = 64;

/// When a scrape was made, and how long it took.
#[derive(Clone, Copy)]
pub(super) struct Report {
    /// Milliseconds of the UNIX epoch.
    pub now_ms: i64,
    pub seconds: f64,
}

/// Result of a scrape.
pub(super) struct Scraped {
    pub series: Series,
    /// An `ExportMetricsServiceRequest`.
    pub request: Vec<u8>,
    /// Why nothing was scraped.
    pub failure: Option<String>,
}

/// The samples of a scrape, and their counts.
#[derive(Default)]
struct Samples {
    taken: Vec<(Sample, i64)>,
    live: HashSet<Labels>,
    families: HashMap<String, Family>,
    scraped: usize,
    kept: usize,
    added: usize,
    body_bytes: usize,
    charge: Option<Charge>,
}

/// Makes a request of an answer. May block.
pub(super) fn process(
    target: &Target,
    last: Series,
    fetched: Result<Fetched, String>,
    report: Report,
) -> Scraped {
    let mut samples = Samples::default();
    let read = fetched.and_then(|fetched| samples.read(target, &last, fetched, report.now_ms));
    let failure = read.err();
    if failure.is_some() {
        // All series of the last scrape become stale.
        (samples.taken, samples.live, samples.added) = (Vec::new(), HashSet::new(), 0);
        samples.charge = None;
    }
    let families = [&samples.families, &last.families];
    let trims_suffixes = target.shared.trims_suffixes;
    let mut converter = Converter::new(families, &target.origin, trims_suffixes);
    for (sample, time_ms) in &samples.taken {
        converter.add(sample, *time_ms);
    }
    for labels in last.live.difference(&samples.live) {
        converter.add(&stale(labels.clone()), report.now_ms);
    }
    let up = if failure.is_none() { 1.0 } else { 0.0 };
    for (name, value) in samples.report(target, up, report.seconds) {
        converter.add(&own(target, name, value), report.now_ms);
    }
    let request = converter.write();
    let mut families = std::mem::take(&mut samples.families);
    if failure.is_some() {
        families = last.families;
    }
    Scraped {
        series: Series {
            live: samples.live,
            families,
            _charge: samples.charge,
        },
        request,
        failure,
    }
}

/// The last request of a target that is gone: all of its series are stale.
pub(super) fn leave(target: &Target, last: Series, now_ms: i64) -> Vec<u8> {
    let none = HashMap::new();
    let families = [&last.families, &none];
    let mut converter = Converter::new(families, &target.origin, target.shared.trims_suffixes);
    for labels in &last.live {
        converter.add(&stale(labels.clone()), now_ms);
    }
    for (name, _) in Samples::default().report(target, 0.0, 0.0) {
        converter.add(&own(target, name, f64::from_bits(STALE)), now_ms);
    }
    converter.write()
}

fn stale(labels: Labels) -> Sample {
    Sample {
        labels,
        value: f64::from_bits(STALE),
        time_ms: None,
        exemplar: None,
    }
}

/// A sample of a target about itself.
fn own(target: &Target, name: &str, value: f64) -> Sample {
    let mut labels = target.labels.clone();
    labels.extend(target.shared.external_labels.clone());
    labels.insert(NAME.to_owned(), name.to_owned());
    Sample {
        labels,
        value,
        time_ms: None,
        exemplar: None,
    }
}

impl Samples {
    fn read(
        &mut self,
        target: &Target,
        last: &Series,
        fetched: Fetched,
        now_ms: i64,
    ) -> Result<(), String> {
        let shared = &target.shared;
        let format = fetched.format;
        let body = decoded(fetched, shared.body_bytes_max())?;
        self.body_bytes = body.len();
        let text = std::str::from_utf8(&body).map_err(|_| "the body is not UTF-8".to_owned())?;
        let Exposition { samples, families } = parse(text, format)?;
        self.families = families;
        self.scraped = samples.len();
        for mut sample in samples {
            merge(&mut sample.labels, &target.labels, shared.job.honors_labels);
            if !relabel::apply(&shared.metric_rules, &mut sample.labels) {
                continue;
            }
            self.kept += 1;
            check(&sample.labels, self.kept, shared.job.limits)?;
            sample.labels.extend(shared.external_labels.clone());
            let own_time = sample.time_ms.filter(|_| shared.job.honors_timestamps);
            if !last.live.contains(&sample.labels) {
                self.added += 1;
            }
            if own_time.is_none() {
                self.live.insert(sample.labels.clone());
            }
            self.taken.push((sample, own_time.unwrap_or(now_ms)));
        }
        let labels = self.live.iter().flatten();
        let bytes = labels.map(|(name, value)| name.len() + value.len() + LABEL_BYTES);
        let families = self.families.iter();
        let texts = families.map(|(name, family)| name.len() + family.bytes() + LABEL_BYTES);
        let bytes = bytes.chain(texts).sum::<usize>() as u64;
        let charge = shared.intake.memory.charge(bytes);
        self.charge = Some(charge.ok_or("there is no memory for the series of the target")?);
        Ok(())
    }

    /// The metrics of a target about itself.
    fn report(&self, target: &Target, up: f64, seconds: f64) -> Vec<(&'static str, f64)> {
        let job = &target.shared.job;
        let mut report = vec![
            ("up", up),
            ("scrape_duration_seconds", seconds),
            ("scrape_samples_scraped", self.scraped as f64),
            ("scrape_samples_post_metric_relabeling", self.kept as f64),
            ("scrape_series_added", self.added as f64),
        ];
        if target.shared.reports_extra {
            let limit = job.limits.samples.unwrap_or(0);
            report.extend([
                ("scrape_timeout_seconds", job.timeout_ns as f64 / 1e9),
                ("scrape_sample_limit", limit as f64),
                ("scrape_body_size_bytes", self.body_bytes as f64),
            ]);
        }
        report
    }
}

/// The bytes of a body.
fn decoded(fetched: Fetched, bytes_max: u64) -> Result<Vec<u8>, String> {
    if !fetched.is_gzip {
        return Ok(fetched.bytes);
    }
    let mut body = Vec::new();
    let decoder = MultiGzDecoder::new(&*fetched.bytes);
    let read = decoder.take(bytes_max + 1).read_to_end(&mut body);
    read.map_err(|error| format!("gzip: {error}"))?;
    if body.len() as u64 > bytes_max {
        return Err("body size limit exceeded".to_owned());
    }
    Ok(body)
}

/// Adds the labels of a target to those of a sample. Where both have one, the sample's is kept
/// (`honor_labels`), or gets another name.
fn merge(labels: &mut Labels, target: &Labels, honors_labels: bool) {
    for (name, value) in target {
        let Some(own) = labels.get(name).cloned() else {
            labels.insert(name.clone(), value.clone());
            continue;
        };
        if honors_labels {
            continue;
        }
        let mut other = format!("exported_{name}");
        while labels.contains_key(&other) || target.contains_key(&other) {
            other.insert_str(0, "exported_");
        }
        labels.insert(other, own);
        labels.insert(name.clone(), value.clone());
    }
}

/// Whether the labels of the sample of this number are within the limits.
fn check(labels: &Labels, number: usize, limits: Limits) -> Result<(), String> {
    let name = labels
        .get(NAME)
        .ok_or("a sample has no name after metric_relabel_configs")?;
    let is_beyond = |value: usize, limit: Option<usize>| limit.is_some_and(|limit| value > limit);
    if is_beyond(number, limits.samples) {
        return Err("sample limit exceeded".to_owned());
    }
    if is_beyond(labels.len(), limits.labels) {
        return Err(format!("label_limit exceeded (metric: {name:.50})"));
    }
    for (label, value) in labels {
        if is_beyond(label.len(), limits.label_name_bytes) {
            return Err(format!(
                "label_name_length_limit exceeded (metric: {name:.50})"
            ));
        }
        if is_beyond(value.len(), limits.label_value_bytes) {
            return Err(format!(
                "label_value_length_limit exceeded (metric: {name:.50})"
            ));
        }
    }
    Ok(())
}
