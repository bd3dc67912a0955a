//! The folder of the report.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{Findings, html};
use crate::all::EXPERIMENTS;

/// The folder of the page's parts, one per experiment.
const PARTS: &str = "parts";

/// Writes the files of an experiment into `dir`, and the page of all experiments that have run.
/// Returns the page's path.
///
/// # Errors
/// A file cannot be written.
pub fn write(findings: &Findings, dir: &Path) -> io::Result<PathBuf> {
    let parts = dir.join(PARTS);
    fs::create_dir_all(&parts)?;
    let name = findings.name;
    fs::write(dir.join(format!("{name}.txt")), findings.text())?;
    fs::write(dir.join(format!("{name}.json")), findings.json())?;
    for (number, plot) in findings.plots.iter().enumerate() {
        let file = format!("{name}-{}.svg", number + 1);
        fs::write(dir.join(file), plot.svg())?;
    }
    fs::write(parts.join(format!("{name}.html")), html::part(findings))?;
    let all: Vec<(&str, String)> = EXPERIMENTS
        .iter()
        .filter_map(|experiment| {
            let part = fs::read_to_string(parts.join(format!("{}.html", experiment.name)));
            Some((experiment.name, part.ok()?))
        })
        .collect();
    let page = dir.join("index.html");
    fs::write(&page, html::page(&all))?;
    Ok(page)
}
