//! What an experiment found, and the folder `report/` that shows it: text, JSON and plots of each experiment, and one page of all.
//!
//! An experiment fills in [`Findings`]; everything else is written from that. The page is put together from the parts that
//! earlier runs left, so that experiments can run one at a time.

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

/// What an experiment found.
#[derive(Clone, Debug)]
pub struct Findings {
    /// The command, and the name of its files.
    pub name: &'static str,
    /// The heading.
    pub title: &'static str,
    /// What the published experiment was, and what came of it.
    pub published: &'static str,
    /// How each number was measured, a paragraph each.
    pub method: Vec<String>,
    /// Where it ran.
    pub machine: Machine,
    /// Programs by name, each with the version that it tells.
    pub versions: Vec<(String, String)>,
    /// When it began, since the UNIX epoch.
    pub begun: Duration,
    /// How long it took.
    pub took: Duration,
    /// What was left out, and why; what makes figures doubtful.
    pub notes: Vec<String>,
    /// The figures.
    pub tables: Vec<Table>,
    /// The figures as pictures.
    pub plots: Vec<Plot>,
    /// Every single run, for programs.
    pub runs: Value,
}

/// A table of figures.
#[derive(Clone, Debug)]
pub struct Table {
    /// Its heading.
    pub title: String,
    /// The columns' names; those of figures with the unit.
    pub columns: Vec<&'static str>,
    /// As many cells each as there are columns.
    pub rows: Vec<Vec<Cell>>,
}

/// What stands in a table.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Words.
    Text(String),
    /// A figure, and how many decimals are shown.
    Number(f64, usize),
    /// Nothing was measured.
    None,
}

/// A picture of figures.
#[derive(Clone, Debug)]
pub struct Plot {
    /// Its heading.
    pub title: String,
    /// What goes to the right.
    pub x: Axis,
    /// What goes up.
    pub y: Axis,
    /// The figures.
    pub series: Vec<Series>,
}

/// An axis of a plot.
#[derive(Clone, Debug)]
pub struct Axis {
    /// What it is, with the unit.
    pub label: &'static str,
    /// How values lie on it.
    pub scale: Scale,
}

/// How values lie on an axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scale {
    /// At equal distances from 0 on.
    Linear,
    /// By powers of ten; what is not above 0 is left out.
    Log,
    /// The values are the places in this list.
    Names(Vec<String>),
}

/// Figures that belong together: a line, or bars where the x axis has names and there is one figure each.
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
    /// A figure with `decimals`, where there is one.
    pub fn maybe(number: Option<f64>, decimals: usize) -> Self {
        number.map_or(Cell::None, |number| Cell::Number(number, decimals))
    }
}

impl Axis {
    /// An axis of that scale.
    pub fn new(label: &'static str, scale: Scale) -> Self {
        Self { label, scale }
    }
}

impl Findings {
    /// An experiment that begins now: it looks at the machine, and has no figures yet.
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

    /// The experiment is over: prints its tables and writes its files.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn end(mut self, options: &Options) -> Result<(), Failure> {
        self.took = clock::since_epoch().saturating_sub(self.begun);
        print!("{}", self.text());
        let page = folder::write(&self, &options.report)?;
        println!("Report: {}", page.display());
        Ok(())
    }
}

/// The note for a program that takes no part: the first line of the problem that tells more than that it ended.
pub fn skipped(name: &str, problem: &Failure) -> String {
    let problem = problem.to_string();
    let mut lines = problem.lines().filter(|line| !line.trim().is_empty());
    let (first, second) = (lines.next().unwrap_or_default(), lines.next());
    let more = second
        .map(|line| format!(": {}", line.trim()))
        .unwrap_or_default();
    format!("{name} is left out: {first}{more}")
}

/// A time as RFC 3339 has it, in UTC, to the second.
fn date(since_epoch: Duration) -> String {
    let seconds = i64::try_from(since_epoch.as_secs()).unwrap_or_default();
    jiff::Timestamp::from_second(seconds)
        .map_or_else(|error| error.to_string(), |at| at.to_string())
}

/// A figure as it is shown; thousands are set apart.
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
