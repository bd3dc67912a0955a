//! `include` and `exclude`: which records are kept, where there are no conditions.

use otlp::Signal;
use otlp::scan::{Around, Attributes, Log, Malformed, Metric, RESOURCE_ATTRIBUTES};
use otlp::text::text_of;

use super::super::edit::{Kind, List};
use super::super::matching::{Attribute, Matcher, Texts, all, texts, wanted};
use crate::config::components::processors::filter::{Filter as Settings, Kept as KeptSettings};
use crate::config::components::processors::records::{LogMatching, MetricMatching, Severity};

/// The match of a signal.
#[derive(Debug)]
pub enum Kept {
    /// Everything.
    All,
    /// Of traces.
    Spans(Both<Matcher>),
    /// Of metrics.
    Metrics(Both<MetricMatcher>),
    /// Of logs.
    Logs(Both<LogMatcher>),
}

/// A match that records must have, and one that they must not have.
#[derive(Debug)]
pub struct Both<M> {
    include: Option<M>,
    exclude: Option<M>,
}

impl<M> Both<M> {
    fn new<S>(
        settings: &KeptSettings<S>,
        compile: impl Fn(&S) -> Result<M, String>,
    ) -> Result<Both<M>, String> {
        Ok(Both {
            include: settings.include.as_ref().map(&compile).transpose()?,
            exclude: settings.exclude.as_ref().map(&compile).transpose()?,
        })
    }

    fn keeps<E>(&self, mut matches: impl FnMut(&M) -> Result<bool, E>) -> Result<bool, E> {
        if let Some(include) = &self.include
            && !matches(include)?
        {
            return Ok(false);
        }
        match &self.exclude {
            Some(exclude) => Ok(!matches(exclude)?),
            None => Ok(true),
        }
    }
}

/// A match of metrics. The attributes of resources are looked at once per resource.
#[derive(Debug)]
pub struct MetricMatcher {
    names: Option<Texts>,
    resources: Vec<Attribute>,
}

/// A match of log records.
#[derive(Debug)]
pub struct LogMatcher {
    bodies: Option<Texts>,
    severity_texts: Option<Texts>,
    severity: Option<Severity>,
    resources: Vec<Attribute>,
    attributes: Vec<Attribute>,
}

impl Kept {
    /// Compiles the settings of a signal.
    ///
    /// # Errors
    /// Which expression cannot be compiled, and why.
    pub fn new(settings: &Settings, signal: Signal) -> Result<Kept, String> {
        let is_given = match signal {
            Signal::Traces => settings.spans.is_given(),
            Signal::Metrics => settings.kept_metrics.is_given(),
            Signal::Logs => settings.kept_logs.is_given(),
        };
        if !is_given {
            return Ok(Kept::All);
        }
        Ok(match signal {
            Signal::Traces => Kept::Spans(Both::new(&settings.spans, Matcher::new)?),
            Signal::Metrics => {
                Kept::Metrics(Both::new(&settings.kept_metrics, MetricMatcher::new)?)
            }
            Signal::Logs => Kept::Logs(Both::new(&settings.kept_logs, LogMatcher::new)?),
        })
    }

    /// Whether everything is kept.
    pub fn is_all(&self) -> bool {
        matches!(self, Kept::All)
    }

    /// Whether anything of a resource may be kept.
    pub fn keeps_resource(&self, resource: &[u8]) -> bool {
        let Kept::Metrics(both) = self else {
            return true;
        };
        let is_match = |matcher: &MetricMatcher| of_resource(&matcher.resources, resource);
        // No attributes exclude nothing.
        let include = both.include.as_ref().is_none_or(is_match);
        let excludes = |matcher: &MetricMatcher| !matcher.resources.is_empty() && is_match(matcher);
        include && !both.exclude.as_ref().is_some_and(excludes)
    }

    /// Whether a span is kept. `list` is for its attributes.
    ///
    /// # Errors
    /// The span is malformed.
    pub fn keeps_span<'a>(
        &self,
        around: Around<'_>,
        message: &'a [u8],
        list: &mut List<'a>,
    ) -> Result<bool, Malformed> {
        let Kept::Spans(both) = self else {
            return Ok(true);
        };
        list.read(message, Kind::Span.attributes_key())?;
        both.keeps(|matcher| matcher.matches(Kind::Span, around, message, list))
    }

    /// Whether a metric is kept.
    pub fn keeps_metric(&self, metric: &Metric<'_>) -> bool {
        let Kept::Metrics(both) = self else {
            return true;
        };
        let is_match = |matcher: &MetricMatcher| {
            let names = matcher.names.as_ref();
            names.is_none_or(|names| names.matches(metric.name))
        };
        // No names exclude nothing.
        let excludes = |matcher: &MetricMatcher| matcher.names.is_some() && is_match(matcher);
        both.include.as_ref().is_none_or(is_match) && !both.exclude.as_ref().is_some_and(excludes)
    }

    /// Whether a log record is kept.
    pub fn keeps_log(&self, resource: &[u8], log: &Log<'_>) -> bool {
        let Kept::Logs(both) = self else {
            return true;
        };
        let is_match = |matcher: &LogMatcher| matcher.matches(resource, log);
        both.include.as_ref().is_none_or(is_match) && !both.exclude.as_ref().is_some_and(is_match)
    }
}

fn of_resource(wanted: &[Attribute], resource: &[u8]) -> bool {
    let attributes = Attributes::new(resource, RESOURCE_ATTRIBUTES);
    all(wanted, |name| attributes.clone().get(name))
}

impl MetricMatcher {
    fn new(settings: &MetricMatching) -> Result<MetricMatcher, String> {
        Ok(MetricMatcher {
            names: texts(&settings.names, settings.regex)?,
            resources: wanted(&settings.resources, settings.regex)?,
        })
    }
}

impl LogMatcher {
    fn new(settings: &LogMatching) -> Result<LogMatcher, String> {
        let regex = settings.regex;
        Ok(LogMatcher {
            bodies: texts(&settings.bodies, regex)?,
            severity_texts: texts(&settings.severity_texts, regex)?,
            severity: settings.severity,
            resources: wanted(&settings.resources, regex)?,
            attributes: wanted(&settings.attributes, regex)?,
        })
    }

    fn matches(&self, resource: &[u8], log: &Log<'_>) -> bool {
        if let Some(bodies) = &self.bodies
            && !bodies.matches(&text_of(log.body()))
        {
            return false;
        }
        if let Some(texts) = &self.severity_texts
            && !texts.matches(log.severity_text)
        {
            return false;
        }
        if let Some(severity) = self.severity {
            let is_enough = if log.severity == 0 {
                severity.match_undefined
            } else {
                log.severity >= severity.min
            };
            if !is_enough {
                return false;
            }
        }
        of_resource(&self.resources, resource)
            && all(&self.attributes, |name| log.attributes().get(name))
    }
}
