//! Findings as text for a terminal.

use std::fmt::Write;

use super::{Cell, Findings, Table, date, number};

/// Columns of a paragraph.
const WIDTH: usize = 100;
/// The gap between two columns.
const GAP: &str = "  ";

impl Findings {
    /// Everything except plots and single runs.
    pub fn text(&self) -> String {
        let mut out = format!(
            "{}\n{}\n\n",
            self.title,
            "=".repeat(self.title.chars().count())
        );
        paragraph(&mut out, &format!("Published: {}", self.published));
        out.push('\n');
        for table in &self.tables {
            out.push_str(&table.text());
            out.push('\n');
        }
        let told = self.notes.iter().map(|note| format!("Note: {note}"));
        let told = told.chain(self.method.iter().map(|text| format!("Method: {text}")));
        told.for_each(|text| paragraph(&mut out, &text));
        let machine = &self.machine;
        let _ = writeln!(
            out,
            "\n{}, {} s. {}, {} cores, {} MiB; {}; load average {} at the start.",
            date(self.begun),
            self.took.as_secs(),
            machine.processor,
            machine.cores,
            machine.memory_mib,
            machine.system,
            machine.load
        );
        for (name, version) in &self.versions {
            let _ = writeln!(out, "{name}: {version}");
        }
        out
    }
}

impl Table {
    fn text(&self) -> String {
        let cells: Vec<Vec<String>> = self
            .rows
            .iter()
            .map(|row| row.iter().map(shown).collect())
            .collect();
        let widths: Vec<usize> = self
            .columns
            .iter()
            .enumerate()
            .map(|(place, name)| {
                let column = cells.iter().filter_map(|row| row.get(place));
                let longest = column.map(|cell| cell.chars().count()).max();
                longest.unwrap_or_default().max(name.chars().count())
            })
            .collect();
        let mut out = format!("{}\n", self.title);
        let names: Vec<String> = self.columns.iter().map(|name| (*name).to_owned()).collect();
        for row in std::iter::once(&names).chain(&cells) {
            let line: Vec<String> = row
                .iter()
                .zip(&widths)
                .enumerate()
                .map(|(place, (cell, &width))| {
                    if self.is_text(place) {
                        format!("{cell:<width$}")
                    } else {
                        format!("{cell:>width$}")
                    }
                })
                .collect();
            let _ = writeln!(out, "{}", line.join(GAP).trim_end());
        }
        out
    }

    /// Whether a column has text, which is aligned to the left.
    pub(super) fn is_text(&self, column: usize) -> bool {
        let mut cells = self.rows.iter().filter_map(|row| row.get(column));
        cells.any(|cell| matches!(cell, Cell::Text(_)))
    }
}

/// Text in lines of at most [`WIDTH`] columns; lines after the first are indented.
fn paragraph(out: &mut String, text: &str) {
    let mut used = 0;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if used > 0 && used + 1 + length > WIDTH {
            out.push_str("\n  ");
            used = 2;
        } else if used > 0 {
            out.push(' ');
            used += 1;
        }
        out.push_str(word);
        used += length;
    }
    out.push('\n');
}

/// A cell as text.
pub(super) fn shown(cell: &Cell) -> String {
    match cell {
        Cell::Text(text) => text.clone(),
        Cell::Number(value, decimals) => number(*value, *decimals),
        Cell::None => "-".to_owned(),
    }
}
