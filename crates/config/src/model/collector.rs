//! Sections `collector`.

use crate::tree::Span;
use std::time::Duration;

/// A section `collector`: an OpenTelemetry Collector's configuration that this process runs.
#[derive(Clone, Debug)]
pub struct CollectorSection {
    /// Its name.
    pub name: String,
    /// Where its header stands.
    pub span: Span,
    /// `config`: files that are merged in this order, each with its place; at least one.
    pub files: Vec<(String, Span)>,
    /// `strict`: a pipeline that cannot be started is an error, whatever its signal.
    pub strict: bool,
    /// `drop-part`: ids of components that are left out of all pipelines.
    pub drop_parts: Vec<String>,
    /// `feature-gates`: lists as they are written.
    pub feature_gates: Vec<String>,
    /// `threads`
    pub threads: u16,
    /// `root-wait`: a trace that began here is decided as long after its root has come, where the Collector's
    /// configuration does not say; zero: that shortens nothing.
    pub root_wait: Duration,
}
