//! The results of an experiment, and the folder `report/` that shows them: text, JSON and plots of
//! each experiment, and one page of all.
//!
//! An experiment fills in [`Findings`]; all files are generated from it. The page is assembled from
//! parts that earlier runs left, so that experiments can run one at a time.

mod folder;
mod html;
mod json;
mod machine;
mod options;
mod svg;
#[cfg(test)]
mod tests;
mod text;

use std::time::Duration;

use serde_json::Value;

use crate::Failure;
use crate::clock;

pub use machine::Machine;
pub(crate) use options::help;
pub use options::{Options, value};

/// The results of an experiment.
#[derive(Clone, Debug)]
pub struct Findings {
    /// The command, and the name of its files.
    pub name: &'static str,
    /// The heading.
    pub title: &'static str,
    /// The published experiment, and its result.
    pub published: &'static str,
    /// How each number was measured, one paragraph each.
    pub method: Vec<String>,
    /// The machine.
    pub machine: Machine,
    /// Programs by name, with their versions.
    pub versions: Vec<(String, String)>,
    /// The start, since the UNIX epoch.
    pub begun: Duration,
    /// The duration.
    pub took: Duration,
    /// Omissions with their reasons, and doubts about the figures.
    pub notes: Vec<String>,
    /// The figures.
    pub tables: Vec<Table>,
    /// The figures as pictures.
    pub plots: Vec<Plot>,
    /// Every run, for programs.
    pub runs: Value,
}

/// A table of figures.
#[derive(Clone, Debug)]
pub struct Table {
    /// Its heading.
    pub title: String,
    /// The columns' names; for figures, with the unit.
    pub columns: Vec<&'static str>,
    /// Each row has as many cells as there are columns.
    pub rows: Vec<Vec<Cell>>,
}

/// The content of a cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Text.
    Text(String),
    /// A figure, and its number of decimals.
    Number(f64, usize),
    /// Nothing was measured.
    None,
}

/// A plot of figures.
#[derive(Clone, Debug)]
pub struct Plot {
    /// Its heading.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The figures.
    pub series: Vec<Series>,
}

/// An axis of a plot.
#[derive(Clone, Debug)]
pub struct Axis {
    /// Its name with the unit.
    pub label: &'static str,
    /// Its scale.
    pub scale: Scale,
}

/// The scale of an axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Linear, from 0 on.
    Linear,
    /// By powers of ten; values that are not above 0 are omitted.
    Log,
    /// The values are indexes in this list.
    Names(Vec<String>),
}

/// Related figures: a line, or bars if the x axis has names and there is one figure each.
#[derive(Clone, Debug)]
pub struct Series {
    /// Its name.
    pub name: String,
    /// x and y.
    pub points: Vec<(f64, f64)>,
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Cell::Text(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Cell::Text(text)
    }
}

impl From<u64> for Cell {
    fn from(number: u64) -> Self {
        Cell::Number(number as f64, 0)
    }
}

impl Cell {
    /// A figure with `decimals`, if there is one.
    pub fn maybe(number: Option<f64>, decimals: usize) -> Self {
        number.map_or(Cell::None, |number| Cell::Number(number, decimals))
    }
}

impl Axis {
    /// An axis with this scale.
    pub fn new(label: &'static str, scale: Scale) -> Self {
        Self { label, scale }
    }
}

impl Findings {
    /// Begins an experiment: inspects the machine; there are no figures yet.
    pub fn begin(name: &'static str, title: &'static str, published: &'static str) -> Self {
        Self {
            name,
            title,
            published,
            method: Vec::new(),
            machine: Machine::look(),
            versions: Vec::new(),
            begun: clock::since_epoch(),
            took: Duration::ZERO,
            notes: Vec::new(),
            tables: Vec::new(),
            plots: Vec::new(),
            runs: Value::Null,
        }
    }

    /// Ends the experiment: prints its tables and writes its files.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn end(mut self, options: &Options) -> Result<(), Failure> {
        self.took = clock::since_epoch().saturating_sub(self.begun);
        print!("{}", self.text());
        let page = folder::write(&self, &options.report)?;
        println!("Report: {}", page.display());
        Ok(())
    }
}

/// The note for an omitted program: the first line of the problem that says more than that the
/// program ended.
pub fn skipped(name: &str, problem: &Failure) -> String {
    let problem = problem.to_string();
    let mut lines = problem.lines().filter(|line| !line.trim().is_empty());
    let (first, second) = (lines.next().unwrap_or_default(), lines.next());
    let more = second
        .map(|line| format!(": {}", line.trim()))
        .unwrap_or_default();
    format!("{name} is left out: {first}{more}")
}

/// A time in the format of RFC 3339, in UTC, to the second.
fn date(since_epoch: Duration) -> String {
    let seconds = i64::try_from(since_epoch.as_secs()).unwrap_or_default();
    jiff::Timestamp::from_second(seconds)
        .map_or_else(|error| error.to_string(), |at| at.to_string())
}

/// A figure as text, with separated thousands.
fn number(value: f64, decimals: usize) -> String {
    let plain = format!("{value:.decimals$}");
    let (whole, fraction) = plain.split_at(plain.find('.').unwrap_or(plain.len()));
    let (sign, digits) = whole.split_at(usize::from(whole.starts_with('-')));
    let mut grouped = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) && digits.len() > 4 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    format!("{sign}{grouped}{fraction}")
}
