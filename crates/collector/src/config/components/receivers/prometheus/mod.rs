//! `prometheus`: scrapes targets, as Prometheus' `scrape_configs` say.

pub mod client;
pub mod discovery;
pub mod relabel;

use self::client::HttpClient;
use self::discovery::{FileSd, HttpSd, TargetGroup};
use self::relabel::RelabelConfig;
use super::{Receiver, ReceiverSettings};
use crate::config::components::{Entry, Parse, Signal, name};
use crate::config::options::{COUNT_MAX, Kind, Opt, Section, opt, required};

/// A receiver that scrapes.
#[derive(Clone, Debug, PartialEq)]
pub struct PrometheusReceiver {
    /// At least one.
    pub jobs: Vec<Job>,
    /// Labels of all series.
    pub external_labels: Vec<(String, String)>,
    /// Names of metrics lose the suffixes of their types and units.
    pub trims_suffixes: bool,
    /// Limits and sizes are series too.
    pub reports_extra: bool,
}

/// A job: targets that are scraped in the same way.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Its name.
    pub name: String,
    /// Time between two scrapes of a target; not zero.
    pub interval_ns: u64,
    /// A scrape fails after this time.
    pub timeout_ns: u64,
    /// Path of the URL.
    pub metrics_path: String,
    /// `http` or `https`
    pub scheme: String,
    /// Parameters of the URL.
    pub params: Vec<(String, Vec<String>)>,
    /// Labels of a sample count before those of its target.
    pub honors_labels: bool,
    /// Times of samples count.
    pub honors_timestamps: bool,
    /// Bodies may be compressed.
    pub is_compressed: bool,
    /// How targets are asked.
    pub client: HttpClient,
    /// Targets that are written.
    pub groups: Vec<TargetGroup>,
    /// Targets of files.
    pub files: Vec<FileSd>,
    /// Targets of servers.
    pub servers: Vec<HttpSd>,
    /// Rules for targets.
    pub relabel: Vec<RelabelConfig>,
    /// Rules for samples.
    pub metric_relabel: Vec<RelabelConfig>,
    /// Limits of a scrape.
    pub limits: Limits,
}

/// Limits of a scrape; none: it has no limit of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Samples after relabeling.
    pub samples: Option<usize>,
    /// Labels of a sample.
    pub labels: Option<usize>,
    /// Bytes of a label's name.
    pub label_name_bytes: Option<usize>,
    /// Bytes of a label's value.
    pub label_value_bytes: Option<usize>,
    /// Targets of the job.
    pub targets: Option<usize>,
    /// Bytes of the body, decompressed.
    pub body_bytes: Option<u64>,
}

impl ReceiverSettings for PrometheusReceiver {}

#[rustfmt::skip]
const LIMITS: &[Opt] = &[
    opt("sample_limit", Kind::Int(0, COUNT_MAX), "0", "samples of a scrape after relabeling; more fail it; 0: no limit but 500000"),
    opt("label_limit", Kind::Int(0, COUNT_MAX), "0", "labels of a sample; more fail the scrape; 0: no limit but 1000"),
    opt("label_name_length_limit", Kind::Int(0, COUNT_MAX), "0", "bytes of a label's name; more fail the scrape; 0: no limit"),
    opt("label_value_length_limit", Kind::Int(0, COUNT_MAX), "0", "bytes of a label's value; more fail the scrape; 0: no limit"),
    opt("target_limit", Kind::Int(0, COUNT_MAX), "0", "targets of a job; with more all scrapes fail; 0: no limit but 10000"),
    opt("body_size_limit", Kind::Text, "0", "bytes of a body, decompressed, such as `10MB`; more fail the scrape; 0: 64 MiB"),
];

const NOT_BUILT_IN: &str = "this discovery is not built in";
const FORMATS: &str = "targets are asked for OpenMetrics 1.0 and for the text format";
const NO_NATIVE: &str = "native histograms come in protobuf only, which targets are not asked for";

const fn absent(name: &'static str) -> Opt {
    opt(name, Kind::Any, "", "targets of a platform").refused(NOT_BUILT_IN)
}

#[rustfmt::skip]
const DISCOVERIES: &[Opt] = &[
    absent("dns_sd_configs"), absent("azure_sd_configs"), absent("consul_sd_configs"), absent("digitalocean_sd_configs"), absent("docker_sd_configs"), absent("dockerswarm_sd_configs"),
    absent("ec2_sd_configs"), absent("eureka_sd_configs"), absent("gce_sd_configs"), absent("hetzner_sd_configs"), absent("ionos_sd_configs"), absent("kubernetes_sd_configs"),
    absent("kuma_sd_configs"), absent("lightsail_sd_configs"), absent("linode_sd_configs"), absent("marathon_sd_configs"), absent("nerve_sd_configs"), absent("nomad_sd_configs"),
    absent("openstack_sd_configs"), absent("ovhcloud_sd_configs"), absent("puppetdb_sd_configs"), absent("scaleway_sd_configs"), absent("serverset_sd_configs"), absent("stackit_sd_configs"),
    absent("triton_sd_configs"), absent("uyuni_sd_configs"), absent("vultr_sd_configs"), absent("aws_sd_configs"),
];
#[rustfmt::skip]
const JOB: &[Opt] = &[
    required("job_name", Kind::Text, "its name"),
    opt("scrape_interval", Kind::Duration, "", "time between two scrapes of a target; that of `global` where it is not written"),
    opt("scrape_timeout", Kind::Duration, "", "a scrape fails after this time; that of `global`, or `scrape_interval` where that is less"),
    opt("metrics_path", Kind::Text, "/metrics", "path of the URL"),
    opt("scheme", Kind::Word(&["http", "https"]), "http", "`http` or `https`"),
    opt("params", Kind::Any, "", "parameters of the URL: lists by their names"),
    opt("honor_labels", Kind::Flag, "false", "labels of a sample count before those of its target, which else rename them to `exported_…`"),
    opt("honor_timestamps", Kind::Flag, "true", "times of samples count"),
    opt("track_timestamps_staleness", Kind::Flag, "false", "series with times of their own become stale too").refused("only series without times become stale"),
    opt("enable_compression", Kind::Flag, "true", "bodies may be compressed with gzip"),
    opt("scrape_protocols", Kind::Any, "", "formats that are asked for").no_effect(FORMATS),
    opt("fallback_scrape_protocol", Kind::Text, "", "the format of a target that names none").no_effect("what is not OpenMetrics is read as the text format"),
    opt("scrape_native_histograms", Kind::Flag, "false", "native histograms").refused(NO_NATIVE),
    opt("always_scrape_classic_histograms", Kind::Flag, "true", "classic histograms of a native one").no_effect(NO_NATIVE),
    opt("convert_classic_histograms_to_nhcb", Kind::Flag, "false", "classic histograms become native ones").refused(NO_NATIVE),
    opt("native_histogram_bucket_limit", Kind::Any, "", "buckets of native histograms").no_effect(NO_NATIVE),
    opt("native_histogram_min_bucket_factor", Kind::Any, "", "their growth").no_effect(NO_NATIVE),
    opt("metric_name_validation_scheme", Kind::Text, "utf8", "which names are taken").no_effect("all names are"),
    opt("keep_dropped_targets", Kind::Any, "", "targets that are shown").no_effect("none are"),
    opt("scrape_failure_log_file", Kind::Text, "", "where failures are logged").refused("failures are in the own log"),
    opt("static_configs", Kind::Sections(&[discovery::STATIC]), "", "targets"),
    opt("file_sd_configs", Kind::Sections(&[discovery::FILE]), "", "files that list targets"),
    opt("http_sd_configs", Kind::Sections(&[discovery::HTTP, client::OPTIONS]), "", "servers that list targets"),
    opt("relabel_configs", Kind::Sections(&[relabel::OPTIONS]), "", "rules for the labels of targets"),
    opt("metric_relabel_configs", Kind::Sections(&[relabel::OPTIONS]), "", "rules for the labels of samples"),
];
#[rustfmt::skip]
const GLOBAL: &[Opt] = &[
    opt("scrape_interval", Kind::Duration, "1m", "time between two scrapes of a target"),
    opt("scrape_timeout", Kind::Duration, "10s", "a scrape fails after this time"),
    opt("external_labels", Kind::Pairs, "", "labels of all series"),
    opt("evaluation_interval", Kind::Duration, "1m", "of rules").no_effect("there are no rules"),
    opt("scrape_protocols", Kind::Any, "", "formats that are asked for").no_effect(FORMATS),
];
const NO_RULES: &str = "the Collector has none either";
#[rustfmt::skip]
const CONFIG: &[Opt] = &[
    opt("global", Kind::Section(&[GLOBAL]), "", "what counts for all jobs"),
    opt("scrape_configs", Kind::Sections(&[JOB, LIMITS, client::OPTIONS, DISCOVERIES]), "", "jobs; one or more"),
    opt("scrape_config_files", Kind::Any, "", "files of jobs").refused("jobs are written in 'scrape_configs'"),
    opt("rule_files", Kind::Any, "", "rules").refused(NO_RULES),
    opt("alerting", Kind::Any, "", "alerts").refused(NO_RULES),
    opt("remote_write", Kind::Any, "", "where samples are sent").refused(NO_RULES),
    opt("remote_read", Kind::Any, "", "where samples are read").refused(NO_RULES),
    opt("storage", Kind::Any, "", "where samples are kept").refused(NO_RULES),
];
const GONE: &str = "the Collector took it out: its processor 'metricstarttime' makes start times";
#[rustfmt::skip]
const OPTIONS: &[Opt] = &[
    required("config", Kind::Section(&[CONFIG]), "Prometheus' configuration; a dollar is written `$$`"),
    opt("trim_metric_suffixes", Kind::Flag, "false", "names of metrics lose the suffixes of their types and units"),
    opt("report_extra_scrape_metrics", Kind::Flag, "false", "timeouts, limits and sizes of scrapes are metrics too"),
    opt("use_start_time_metric", Kind::Flag, "false", "start times from a metric").refused(GONE),
    opt("start_time_metric_regex", Kind::Text, "", "its name").refused(GONE),
    opt("target_allocator", Kind::Any, "", "a server that hands out jobs").refused("jobs are written in 'config'"),
    opt("api_server", Kind::Any, "", "Prometheus' API").refused("there is no API"),
];

pub(crate) const ENTRY: Entry = Entry {
    names: &[name("prometheus")],
    doc: "scrapes targets: Prometheus' text format and OpenMetrics",
    takes: &[Signal::Metrics],
    carries: &[Signal::Metrics],
    options: &[OPTIONS],
    parse: Parse::Receiver(parse),
};

fn parse(section: &Section<'_>) -> Receiver {
    let config = section.section("config");
    let global = config.section("global");
    let written = config.sections("scrape_configs");
    let jobs: Vec<Job> = written.iter().map(|one| job(one, &global)).collect();
    if jobs.is_empty() {
        config.fault("no Prometheus scrape_configs or target_allocator set");
    }
    for (place, job) in jobs.iter().enumerate() {
        if jobs[..place].iter().any(|other| other.name == job.name) {
            let message = format!(
                "found multiple scrape configs with job name \"{}\"",
                job.name
            );
            config.error("scrape_configs", &message);
        }
    }
    Receiver::new(PrometheusReceiver {
        jobs,
        external_labels: global.pairs("external_labels"),
        trims_suffixes: section.flag("trim_metric_suffixes"),
        reports_extra: section.flag("report_extra_scrape_metrics"),
    })
}

fn job(section: &Section<'_>, global: &Section<'_>) -> Job {
    let interval_ns = match section.duration_ns("scrape_interval") {
        0 => global.duration_ns("scrape_interval"),
        interval => interval,
    };
    let timeout_ns = match section.duration_ns("scrape_timeout") {
        0 => global.duration_ns("scrape_timeout").min(interval_ns),
        timeout => timeout,
    };
    if interval_ns == 0 {
        section.error("scrape_interval", "requires positive value");
    }
    if timeout_ns > interval_ns {
        let message = "scrape timeout greater than scrape interval";
        section.error("scrape_timeout", message);
    }
    let name = section.text("job_name");
    if name.is_empty() {
        section.fault("job_name is empty");
    }
    Job {
        interval_ns,
        timeout_ns,
        metrics_path: section.text("metrics_path"),
        scheme: section.text("scheme"),
        params: params(section),
        honors_labels: section.flag("honor_labels"),
        honors_timestamps: section.flag("honor_timestamps"),
        is_compressed: section.flag("enable_compression"),
        client: client::client(section),
        groups: discovery::groups(section),
        files: discovery::files(section),
        servers: discovery::servers(section),
        relabel: relabel::rules(section, "relabel_configs"),
        metric_relabel: relabel::rules(section, "metric_relabel_configs"),
        limits: limits(section),
        name,
    }
}

fn params(section: &Section<'_>) -> Vec<(String, Vec<String>)> {
    let entries = section
        .written("params")
        .map_or(&[][..], |node| node.entries());
    let params = entries.iter().map(|(key, node)| {
        let values = node.items().iter().filter_map(|item| item.text());
        (key.text.clone(), values.map(str::to_owned).collect())
    });
    params.collect()
}

fn limits(section: &Section<'_>) -> Limits {
    let text = section.text("body_size_limit");
    let body_bytes = bytes(&text).unwrap_or_else(|| {
        section.error("body_size_limit", &format!("'{text}' is no size"));
        0
    });
    Limits {
        samples: section.int_unless_zero("sample_limit"),
        labels: section.int_unless_zero("label_limit"),
        label_name_bytes: section.int_unless_zero("label_name_length_limit"),
        label_value_bytes: section.int_unless_zero("label_value_length_limit"),
        targets: section.int_unless_zero("target_limit"),
        body_bytes: (body_bytes > 0).then_some(body_bytes),
    }
}

/// A number of bytes with a unit of powers of 1024, as in Prometheus (`10MB`, `1GiB`).
fn bytes(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit());
    let (number, unit) = text.split_at(digits.unwrap_or(text.len()));
    let unit = unit.replace('i', "");
    let units = ["B", "KB", "MB", "GB", "TB"];
    let power = match unit.as_str() {
        "" => 0,
        unit => units.iter().position(|one| *one == unit)?,
    };
    let number: u64 = number.parse().ok()?;
    number.checked_mul(1 << (10 * power))
}
