//! The statistics page: HTML without scripts, one table per proxy, written in pieces.
//!
//! Every text from the configuration and from the request is escaped. States are shown by words and
//! by colour.

use std::fmt::Write as _;

use crate::column::Column;
use crate::row::{Kind, Row};

const STYLE: &str = include_str!("page.css");

/// The values above the tables.
#[derive(Clone, Debug, Default)]
pub struct Facts<'a> {
    /// The product, with its version if that may be shown.
    pub product: &'a str,
    /// The node, if it is shown.
    pub node: Option<&'a str>,
    /// The description of the process, if it is shown.
    pub description: Option<&'a str>,
    /// Number of the process.
    pub pid: u32,
    /// Seconds since the start.
    pub uptime_s: u64,
    /// Current client connections, and their limit; 0 for no limit.
    pub connections: u32,
    /// See [`Facts::connections`].
    pub maxconn: u32,
    /// Client connections of the last second.
    pub connection_rate: u32,
    /// Requests since the start.
    pub requests: u64,
    /// Worker threads.
    pub threads: u32,
    /// Addresses of this page, escaped by the writer.
    pub links: Links,
    /// The result of an action: a class and a sentence.
    pub outcome: Option<Outcome>,
}

/// Addresses of the page in its forms.
#[derive(Clone, Debug, Default)]
pub struct Links {
    /// Their common prefix.
    pub uri: String,
    /// The current options of the page: `;up`, `;norefresh`, …
    pub options: String,
    /// The text that shown names must contain.
    pub scope: String,
    /// Whether servers that are down are hidden.
    pub hides_down: bool,
    /// Seconds between refreshes; 0 for none.
    pub refresh_s: u32,
    /// Whether the page is not refreshed now.
    pub norefresh: bool,
}

/// The result of an action on servers (management guide: the page's `;st=`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Outcome {
    Deny,
    Done,
    BadParameters,
    TooLarge,
    Nothing,
    Partial,
    Unknown,
    Invalid,
}

impl Outcome {
    const ALL: [(Outcome, &str, &str); 8] = [
        (Outcome::Deny, "DENY", "The action was denied."),
        (Outcome::Done, "DONE", "The action was done."),
        (
            Outcome::BadParameters,
            "ERRP",
            "Nothing was done: a parameter was wrong, or it applies to none of the servers.",
        ),
        (
            Outcome::TooLarge,
            "EXCD",
            "Nothing was done: the request was too large. Select fewer servers.",
        ),
        (Outcome::Nothing, "NONE", "Nothing was changed."),
        (
            Outcome::Partial,
            "PART",
            "The action was done for some of the servers only.",
        ),
        (
            Outcome::Unknown,
            "UNKN",
            "What the action came to is not known.",
        ),
        (Outcome::Invalid, "IVAL", "The request was not valid."),
    ];

    fn entry(self) -> (Outcome, &'static str, &'static str) {
        Outcome::ALL[self as usize]
    }

    /// Its four letters.
    #[must_use]
    pub fn code(self) -> &'static str {
        self.entry().1
    }

    /// The outcome with these four letters; other letters are unknown.
    #[must_use]
    pub fn of(code: &str) -> Outcome {
        let known = Outcome::ALL.iter().find(|(_, letters, _)| *letters == code);
        known.map_or(Outcome::Unknown, |(outcome, _, _)| *outcome)
    }
}

/// The actions on servers: their names in requests and on the page.
pub const ACTIONS: &[(&str, &str)] = &[
    ("ready", "Set to READY"),
    ("drain", "Set to DRAIN"),
    ("maint", "Set to MAINT"),
    ("dhlth", "Health: disable checks"),
    ("ehlth", "Health: enable checks"),
    ("hrunn", "Health: force UP"),
    ("hnolb", "Health: force NOLB"),
    ("hdown", "Health: force DOWN"),
    ("dagent", "Agent: disable checks"),
    ("eagent", "Agent: enable checks"),
    ("arunn", "Agent: force UP"),
    ("adown", "Agent: force DOWN"),
    ("shutdown", "Kill sessions"),
];

/// Writes text with the characters escaped that have a meaning in HTML.
pub fn escape(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    escape(text, &mut out);
    out
}

fn duration(seconds: u64) -> String {
    let (days, hours) = (seconds / 86_400, seconds / 3_600 % 24);
    let (minutes, rest) = (seconds / 60 % 60, seconds % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{rest}s"),
        (0, 0, _) => format!("{minutes}m{rest:02}s"),
        (0, _, _) => format!("{hours}h{minutes:02}m"),
        _ => format!("{days}d{hours:02}h"),
    }
}

/// A readable number: with `k`, `M`, `G` if it is large.
fn short(number: f64) -> String {
    let units = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e4, "k")];
    for (from, unit) in units {
        if number >= from {
            let divisor = if unit == "k" { 1e3 } else { from };
            return format!("{:.1}{unit}", number / divisor);
        }
    }
    format!("{number}")
}

/// The page before the tables.
pub fn head(facts: &Facts<'_>, out: &mut String) {
    // Writing to memory does not fail.
    let _ = write_head(facts, out);
}

fn write_head(facts: &Facts<'_>, out: &mut String) -> std::fmt::Result {
    let title = match facts.node {
        Some(node) => format!("Statistics for {}", escaped(node)),
        None => "Statistics".to_owned(),
    };
    write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n\
         <meta name=\"robots\" content=\"noindex,nofollow\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<header>\n<h1>{title}</h1>\n<p class=\"sub\">{}",
        escaped(facts.product)
    )?;
    if let Some(description) = facts.description {
        write!(out, " · {}", escaped(description))?;
    }
    out.push_str("</p>\n<dl class=\"cards\">\n");
    let maxconn = match facts.maxconn {
        0 => "no limit".to_owned(),
        max => format!("limit {max}"),
    };
    let cards = [
        (
            "Uptime",
            duration(facts.uptime_s),
            format!("process {}", facts.pid),
        ),
        ("Connections", facts.connections.to_string(), maxconn),
        (
            "New per second",
            facts.connection_rate.to_string(),
            "connections".to_owned(),
        ),
        (
            "Requests",
            short(facts.requests as f64),
            "since the start".to_owned(),
        ),
        ("Threads", facts.threads.to_string(), String::new()),
    ];
    for (name, value, note) in cards {
        writeln!(
            out,
            "<div><dt>{name}</dt><dd>{value}</dd><dd class=\"note\">{note}</dd></div>"
        )?;
    }
    out.push_str("</dl>\n");
    write_links(&facts.links, out)?;
    out.push_str("</header>\n");
    if let Some(outcome) = facts.outcome {
        let (_, code, text) = outcome.entry();
        let back = escaped(&format!("{}{}", facts.links.uri, facts.links.options));
        writeln!(
            out,
            "<p class=\"banner {}\" role=\"status\">{text} <a href=\"{back}\">OK</a></p>",
            code.to_ascii_lowercase()
        )?;
    }
    out.push_str("<main>\n");
    Ok(())
}

fn write_links(links: &Links, out: &mut String) -> std::fmt::Result {
    let uri = escaped(&links.uri);
    let scope = if links.scope.is_empty() {
        String::new()
    } else {
        escaped(&format!("?;scope={}", links.scope))
    };
    let (up, norefresh) = (
        if links.hides_down { ";up" } else { "" },
        if links.norefresh { ";norefresh" } else { "" },
    );
    out.push_str("<nav>\n");
    if links.hides_down {
        writeln!(
            out,
            "<a href=\"{uri}{norefresh}{scope}\">Show all servers</a>"
        )?
    } else {
        writeln!(
            out,
            "<a href=\"{uri};up{norefresh}{scope}\">Hide servers that are down</a>"
        )?
    }
    if links.refresh_s > 0 {
        if links.norefresh {
            writeln!(
                out,
                "<a href=\"{uri}{up}{scope}\">Refresh every {} s</a>",
                links.refresh_s
            )?
        } else {
            writeln!(
                out,
                "<a href=\"{uri}{up};norefresh{scope}\">Stop refreshing</a>"
            )?
        }
    }
    writeln!(
        out,
        "<a href=\"{uri}{up}{norefresh}{scope}\">Refresh now</a>"
    )?;
    for (option, name) in [("csv", "CSV"), ("json", "JSON")] {
        writeln!(out, "<a href=\"{uri};{option}{up}{scope}\">{name}</a>")?;
    }
    // A form's fields replace the query of its address, so the query's parameters must be fields
    // too.
    let (path, query) = links.uri.split_once('?').unwrap_or((&links.uri, ""));
    write!(out, "<form method=\"get\" action=\"{}\">", escaped(path))?;
    if !query.is_empty() {
        write!(
            out,
            "<input type=\"hidden\" name=\"{}\" value=\"\">",
            escaped(query)
        )?;
    }
    writeln!(
        out,
        "<label>Proxies <input name=\"scope\" maxlength=\"20\" size=\"12\" value=\"{}\" placeholder=\"all\"></label><button>Show</button></form>\n</nav>",
        escaped(&links.scope)
    )
}

/// A proxy's table.
#[derive(Clone, Copy, Debug)]
pub struct Table<'a> {
    /// The proxy's name and number.
    pub name: &'a str,
    /// See [`Table::name`].
    pub iid: u32,
    /// Free text about it.
    pub description: Option<&'a str>,
    /// The address of its form; None if servers cannot be changed.
    pub form: Option<&'a str>,
    /// Whether a row has latency percentiles.
    pub percentiles: bool,
}

const HEADINGS: &[(&str, &str)] = &[
    ("Queue", "Requests that wait: now, and the most at once"),
    ("Sessions", "Now, the most at once, and the limit"),
    ("Total", "Connections or streams since the start"),
    ("Rate", "Of the last second, and the most within a second"),
    ("In", "Bytes from clients"),
    ("Out", "Bytes from servers"),
    ("Denied", "Requests and responses that rules denied"),
    (
        "Errors",
        "Of requests, of connections to servers, of responses",
    ),
    ("Warnings", "Retries and redispatches"),
    ("2xx", "Responses"),
    ("3xx", "Responses"),
    ("4xx", "Responses"),
    ("5xx", "Responses"),
    (
        "Checks",
        "Failed health checks, changes to DOWN, and the time spent DOWN",
    ),
    (
        "Times",
        "Milliseconds in the queue, to connect, to respond, in all: averages",
    ),
    ("Last", "Since the last stream"),
];

/// Begins a proxy's table.
pub fn begin(table: &Table<'_>, out: &mut String) {
    // Writing to memory does not fail.
    let _ = write_begin(table, out);
}

fn write_begin(table: &Table<'_>, out: &mut String) -> std::fmt::Result {
    let name = escaped(table.name);
    write!(
        out,
        "<section id=\"{name}\">\n<h2><a href=\"#{name}\">{name}</a>"
    )?;
    if let Some(description) = table.description {
        write!(out, " <small>{}</small>", escaped(description))?;
    }
    out.push_str("</h2>\n");
    if let Some(form) = table.form {
        writeln!(out, "<form method=\"post\" action=\"{}\">", escaped(form))?;
    }
    out.push_str("<div class=\"scroll\"><table>\n<thead><tr><th scope=\"col\">Name</th><th scope=\"col\">State</th>");
    for (heading, about) in HEADINGS {
        write!(out, "<th scope=\"col\" title=\"{about}\">{heading}</th>")?;
    }
    if table.percentiles {
        out.push_str("<th scope=\"col\" title=\"Milliseconds: half, 90 % and 99 % of the requests were as fast or faster\">p50 / p90 / p99</th>");
    }
    out.push_str("<th scope=\"col\">Weight</th></tr></thead>\n<tbody>\n");
    Ok(())
}

/// The style of a state.
fn class(status: &str) -> &'static str {
    match status.split([' ', '/']).next().unwrap_or_default() {
        "OPEN" | "UP" if status.contains('/') && !status.contains('(') => "warn",
        "OPEN" | "UP" => "up",
        "no" => "plain",
        "DRAIN" | "NOLB" | "FULL" | "WAITING" => "warn",
        "MAINT" | "STOP" | "PAUSED" => "off",
        _ => "down",
    }
}

/// The fields of a check on the page: its status, code and duration, the meaning of the status, and
/// the last output.
type CheckColumns = [Column; 5];

const CHECK: CheckColumns = [
    Column::CheckStatus,
    Column::CheckCode,
    Column::CheckDuration,
    Column::CheckDesc,
    Column::LastChk,
];
const AGENT: CheckColumns = [
    Column::AgentStatus,
    Column::AgentCode,
    Column::AgentDuration,
    Column::AgentDesc,
    Column::LastAgt,
];

/// `L7OK/200 in 2 ms`, with its meaning as a tooltip; None if the server has no such check.
fn check(row: &Row<'_>, [status, code, duration, meaning, found]: CheckColumns) -> Option<String> {
    let name = row.text(status);
    if name.is_empty() {
        return None;
    }
    let mut shown = escaped(name);
    if row.get(code).is_some() {
        // Writing to memory does not fail.
        let _ = write!(shown, "/{}", row.number(code));
    }
    if row.get(duration).is_some() {
        let _ = write!(shown, " in {} ms", row.number(duration));
    }
    let mut reason = row.text(meaning).to_owned();
    if !row.text(found).is_empty() {
        let _ = write!(reason, ": {}", row.text(found));
    }
    let reason = escaped(&reason);
    Some(format!(" <small title=\"{reason}\">{shown}</small>"))
}

/// Latency percentiles of a frontend, server or backend, in milliseconds.
pub type Percentiles = [f64; 3];

/// A row. `selectable`: its server can be selected for an action.
pub fn row(
    row: &Row<'_>,
    selectable: bool,
    percentiles: Option<Option<Percentiles>>,
    out: &mut String,
) {
    // Writing to memory does not fail.
    let _ = write_row(row, selectable, percentiles, out);
}

fn write_row(
    row: &Row<'_>,
    selectable: bool,
    percentiles: Option<Option<Percentiles>>,
    out: &mut String,
) -> std::fmt::Result {
    let status = row.text(Column::Status);
    let kind = match row.kind {
        Kind::Frontend => "front",
        Kind::Backend => "back",
        Kind::Server => "server",
        Kind::Listener => "listener",
    };
    let name = match row.kind {
        Kind::Frontend => "Frontend".to_owned(),
        Kind::Backend => "Backend".to_owned(),
        Kind::Server | Kind::Listener => escaped(row.text(Column::Svname)),
    };
    write!(
        out,
        "<tr class=\"{kind} {}\"><th scope=\"row\">",
        class(status)
    )?;
    if selectable {
        write!(
            out,
            "<label><input type=\"checkbox\" name=\"s\" value=\"{name}\"> {name}</label>"
        )?;
    } else {
        out.push_str(&name);
    }
    let address = row.text(Column::Addr);
    if !address.is_empty() {
        write!(out, " <small>{}</small>", escaped(address))?;
    }
    let since = match row.get(Column::Lastchg) {
        Some(_) => format!(
            " <small>{}</small>",
            duration(row.number(Column::Lastchg) as u64)
        ),
        None => String::new(),
    };
    let checks: String = [CHECK, AGENT]
        .into_iter()
        .filter_map(|columns| check(row, columns))
        .collect();
    write!(
        out,
        "</th><td class=\"state\">{}{checks}{since}</td>",
        escaped(status)
    )?;
    let is_back = matches!(row.kind, Kind::Backend | Kind::Server);
    let text = |column| match row.get(column) {
        Some(_) => short(row.number(column)),
        None => "–".to_owned(),
    };
    let pair = |one, other| format!("{} / {}", text(one), text(other));
    let cells = [
        pair(Column::Qcur, Column::Qmax),
        format!(
            "{} / {}",
            pair(Column::Scur, Column::Smax),
            text(Column::Slim)
        ),
        text(Column::Stot),
        pair(Column::Rate, Column::RateMax),
        text(Column::Bin),
        text(Column::Bout),
        pair(Column::Dreq, Column::Dresp),
        format!(
            "{} / {}",
            pair(Column::Ereq, Column::Econ),
            text(Column::Eresp)
        ),
        pair(Column::Wretr, Column::Wredis),
        text(Column::Hrsp2xx),
        text(Column::Hrsp3xx),
        text(Column::Hrsp4xx),
        text(Column::Hrsp5xx),
        match row.get(Column::Downtime) {
            Some(_) => format!(
                "{} / {}",
                pair(Column::Chkfail, Column::Chkdown),
                duration(row.number(Column::Downtime) as u64)
            ),
            None => "–".to_owned(),
        },
        if is_back {
            format!(
                "{} / {}",
                pair(Column::Qtime, Column::Ctime),
                pair(Column::Rtime, Column::Ttime)
            )
        } else {
            "–".to_owned()
        },
        match row.get(Column::Lastsess) {
            Some(_) if row.number(Column::Lastsess) >= 0.0 => {
                duration(row.number(Column::Lastsess) as u64)
            }
            _ => "–".to_owned(),
        },
    ];
    for cell in cells {
        write!(out, "<td>{cell}</td>")?;
    }
    match percentiles {
        None => {}
        Some(None) => out.push_str("<td>–</td>"),
        Some(Some([p50, p90, p99])) => write!(out, "<td>{p50:.1} / {p90:.1} / {p99:.1}</td>")?,
    }
    if is_back {
        let share = format!("{}A {}B", row.number(Column::Act), row.number(Column::Bck));
        let throttle = match row.get(Column::Throttle) {
            Some(_) => format!(" at {}", row.number(Column::Throttle)) + " %",
            None => String::new(),
        };
        let share = match row.kind {
            Kind::Server if row.number(Column::Bck) > 0.0 => "backup".to_owned(),
            Kind::Server => "active".to_owned(),
            _ => share,
        };
        write!(
            out,
            "<td>{}{throttle} <small>{share}</small></td>",
            text(Column::Weight)
        )?;
    } else {
        out.push_str("<td>–</td>")
    }
    out.push_str("</tr>\n");
    Ok(())
}

/// Ends a proxy's table. Its form, if it has one, has the proxy after the servers and the action,
/// as on HAProxy's page.
pub fn end(table: &Table<'_>, out: &mut String) {
    out.push_str("</tbody>\n</table></div>\n");
    if table.form.is_some() {
        out.push_str("<p class=\"form\"><label>With the selected servers <select name=\"action\"><option value=\"\"></option>");
        for (value, name) in ACTIONS {
            // Writing to memory does not fail.
            let _ = write!(out, "<option value=\"{value}\">{name}</option>");
        }
        let _ = write!(
            out,
            "</select></label><input type=\"hidden\" name=\"b\" value=\"#{}\"> <button>Apply</button></p>\n</form>\n",
            table.iid
        );
    }
    out.push_str("</section>\n");
}

/// The page after the tables.
pub fn foot(out: &mut String) {
    out.push_str("</main>\n</body>\n</html>\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_name_becomes_markup() {
        let mut one = Row::new(Kind::Server);
        one.set(Column::Svname, "<s\"1>");
        one.set(Column::Status, "UP 1/3");
        let mut text = String::new();
        row(&one, true, None, &mut text);
        assert!(text.contains("value=\"&lt;s&quot;1&gt;\""), "{text}");
        assert!(!text.contains("<s\""), "{text}");
        assert!(text.starts_with("<tr class=\"server warn\">"), "{text}");
    }

    #[test]
    fn checks_tell_their_reason() {
        let mut one = Row::new(Kind::Server);
        one.set(Column::Status, "DOWN");
        one.set(Column::CheckStatus, "* L7STS");
        one.set(Column::CheckCode, 503_u32);
        one.set(Column::CheckDuration, 2_u64);
        one.set(Column::CheckDesc, "Layer7 wrong status");
        one.set(Column::LastChk, "a<b");
        one.set(Column::Chkfail, 4_u64);
        one.set(Column::Chkdown, 1_u64);
        one.set(Column::Downtime, 61_u32);
        let mut text = String::new();
        row(&one, false, None, &mut text);
        let check = "<small title=\"Layer7 wrong status: a&lt;b\">* L7STS/503 in 2 ms</small>";
        assert!(text.contains(check), "{text}");
        assert!(text.contains("<td>4 / 1 / 1m01s</td>"), "{text}");
    }

    #[test]
    fn a_page_is_well_formed() {
        let mut text = String::new();
        let links = Links {
            uri: "/haproxy?stats".to_owned(),
            scope: "a<b".to_owned(),
            ..Links::default()
        };
        head(
            &Facts {
                product: "Spangate",
                links,
                outcome: Some(Outcome::Done),
                ..Facts::default()
            },
            &mut text,
        );
        let table = Table {
            name: "be",
            iid: 3,
            description: None,
            form: Some("/haproxy?stats"),
            percentiles: true,
        };
        begin(&table, &mut text);
        row(&Row::new(Kind::Backend), false, Some(None), &mut text);
        end(&table, &mut text);
        foot(&mut text);
        for tag in [
            "html", "head", "body", "main", "section", "table", "form", "tr", "td", "th", "p",
            "dl", "nav",
        ] {
            let opened = text.matches(&format!("<{tag}>")).count()
                + text.matches(&format!("<{tag} ")).count();
            let closed = text.matches(&format!("</{tag}>")).count();
            assert_eq!(opened, closed, "{tag}");
        }
        assert!(text.contains("<input type=\"hidden\" name=\"stats\" value=\"\">"));
        assert!(text.contains("name=\"b\" value=\"#3\""));
        assert!(text.contains("a&lt;b"));
        assert!(text.contains("banner done"));
    }

    #[test]
    fn outcomes_and_their_letters() {
        for (outcome, code, _) in Outcome::ALL {
            assert_eq!(outcome.code(), code);
            assert_eq!(Outcome::of(code), outcome);
        }
        assert_eq!(Outcome::of("XXXX"), Outcome::Unknown);
    }
}
