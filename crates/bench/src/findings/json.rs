//! Findings as JSON for programs.

use serde_json::{Value, json};

use super::{Cell, Findings, Plot, Table, date};

impl Findings {
    /// Everything, including every run.
    pub fn json(&self) -> String {
        let machine = &self.machine;
        let versions: serde_json::Map<String, Value> = self
            .versions
            .iter()
            .map(|(name, version)| (name.clone(), version.as_str().into()))
            .collect();
        let all = json!({
            "experiment": self.name,
            "title": self.title,
            "published": self.published,
            "begun": date(self.begun),
            "seconds": self.took.as_secs(),
            "machine": {
                "processor": machine.processor,
                "cores": machine.cores,
                "memory_mib": machine.memory_mib,
                "system": machine.system,
                "load_average_at_start": machine.load,
            },
            "versions": versions,
            "method": self.method,
            "notes": self.notes,
            "tables": self.tables.iter().map(table).collect::<Vec<_>>(),
            "plots": self.plots.iter().map(plot).collect::<Vec<_>>(),
            "runs": self.runs,
        });
        format!("{all:#}\n")
    }
}

fn table(table: &Table) -> Value {
    let value = |cell: &Cell| match cell {
        Cell::Text(text) => json!(text),
        Cell::Number(number, _) => json!(number),
        Cell::None => Value::Null,
    };
    let rows = table
        .rows
        .iter()
        .map(|row| row.iter().map(value).collect::<Vec<_>>());
    json!({ "title": table.title, "columns": table.columns, "rows": rows.collect::<Vec<_>>() })
}

fn plot(plot: &Plot) -> Value {
    let series = plot
        .series
        .iter()
        .map(|series| json!({ "name": series.name, "points": series.points }));
    json!({ "title": plot.title, "x": plot.x.label, "y": plot.y.label, "series": series.collect::<Vec<_>>() })
}
