//! Findings as a page: one self-contained file, light or dark like the reader's system.

use std::fmt::Write;

use super::text::shown;
use super::{Findings, Table, date};

const STYLE: &str = include_str!("report.css");

/// The page of experiments: each name with its part.
pub fn page(parts: &[(&str, String)]) -> String {
    let mut links = String::new();
    let mut body = String::new();
    for (name, part) in parts {
        let _ = write!(links, "<a href=\"#{name}\">{name}</a> ");
        body.push_str(part);
    }
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>Spangate: the experiments</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<header>\n\
         <h1>Spangate: the experiments</h1>\n\
         <p>Each reproduces a published experiment and runs all programs in turn in the same run. Compare ratios within one \
         experiment, not figures of different runs. CPU is the user and system time of the whole process tree: the throughput of a closed \
         loop also depends on the CPU that the load generator uses, but the CPU per request does not.</p>\n\
         <nav aria-label=\"Experiments\">{links}</nav>\n</header>\n<main>\n{body}</main>\n</body>\n</html>\n"
    )
}

/// The part of an experiment.
pub fn part(findings: &Findings) -> String {
    let mut out = format!(
        "<section id=\"{name}\" aria-labelledby=\"{name}-title\">\n<h2 id=\"{name}-title\">{title}</h2>\n\
         <p><b>Published:</b> {published}</p>\n",
        name = findings.name,
        title = escaped(findings.title),
        published = escaped(findings.published)
    );
    list(&mut out, "notes", &findings.notes);
    out.push_str("<div class=\"plots\">\n");
    for plot in &findings.plots {
        let _ = writeln!(
            out,
            "<figure>\n<figcaption>{}</figcaption>\n{}</figure>",
            escaped(&plot.title),
            plot.svg()
        );
    }
    out.push_str("</div>\n");
    findings.tables.iter().for_each(|one| table(&mut out, one));
    out.push_str("<h3>How it was measured</h3>\n");
    for paragraph in &findings.method {
        let _ = writeln!(out, "<p>{}</p>", escaped(paragraph));
    }
    let machine = &findings.machine;
    let _ = writeln!(
        out,
        "<p>{} to {}. {}, {} cores, {} MiB of memory; {}; load average {} at the start.</p>",
        date(findings.begun),
        date(findings.begun + findings.took),
        escaped(&machine.processor),
        machine.cores,
        machine.memory_mib,
        escaped(&machine.system),
        escaped(&machine.load)
    );
    let versions = findings.versions.iter();
    let versions: Vec<String> = versions
        .map(|(name, version)| format!("{name}: {version}"))
        .collect();
    list(&mut out, "versions", &versions);
    let _ = write!(
        out,
        "<p><a href=\"{name}.txt\">text</a> <a href=\"{name}.json\">JSON with every run</a></p>\n</section>\n",
        name = findings.name
    );
    out
}

fn table(out: &mut String, table: &Table) {
    let class = |place: usize| {
        if table.is_text(place) {
            ""
        } else {
            " class=\"number\""
        }
    };
    let _ = write!(
        out,
        "<div class=\"table\" tabindex=\"0\" role=\"region\" aria-label=\"{title}\">\n<table>\n<caption>{title}</caption>\n<thead><tr>",
        title = escaped(&table.title)
    );
    for (place, name) in table.columns.iter().enumerate() {
        let _ = write!(
            out,
            "<th scope=\"col\"{}>{}</th>",
            class(place),
            escaped(name)
        );
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for row in &table.rows {
        out.push_str("<tr>");
        for (place, cell) in row.iter().enumerate() {
            let _ = write!(out, "<td{}>{}</td>", class(place), escaped(&shown(cell)));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody>\n</table>\n</div>\n");
}

fn list(out: &mut String, class: &str, items: &[String]) {
    if items.is_empty() {
        return;
    }
    let _ = write!(out, "<ul class=\"{class}\">");
    for item in items {
        let _ = write!(out, "<li>{}</li>", escaped(item));
    }
    out.push_str("</ul>\n");
}

/// Escapes text for HTML and SVG.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            other => out.push(other),
        }
    }
    out
}
