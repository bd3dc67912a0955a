//! Sections `collector`.

use crate::tree::Span;
use std::time::Duration;

/// A section `collector`: an OpenTelemetry Collector's configuration that this process runs.
#[derive(Clone, Debug)]
pub struct CollectorSection {
    /// Its name.
    pub name: String,
    /// The place of its header.
    pub span: Span,
    /// `config`: files that are merged in this order, each with its place; at least one.
    pub files: Vec<(String, Span)>,
    /// `strict`: a pipeline that cannot be started is an error, whatever its signal.
    pub strict: bool,
    /// `drop-part`: ids of components that are removed from all pipelines.
    pub drop_parts: Vec<String>,
    /// `feature-gates`: lists as written.
    pub feature_gates: Vec<String>,
    /// `threads`
    pub threads: u16,
    /// `root-wait`: a trace that began here is decided this long after its root span arrived,
    /// unless the Collector's configuration sets another time. Zero: the decision is not made
    /// earlier than usual.
    pub root_wait: Duration,
}
