//! Diagnostics: faults of a configuration. They are collected as values while all of it is read,
//! and rendered in HAProxy's format.
//!
//! Nothing here prints. The place of a message (`parsing [file:line] : `) comes from its span,
//! never from its text, and the text has no line feed. The source line follows, with a caret below
//! the word. The number of stored diagnostics is limited; all of them are counted.

use crate::tree::Span;
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::sync::Arc;
use syntax::octets::readable;

/// Most diagnostics of each severity that are stored; further ones are only counted. Less severe
/// ones never displace an error.
pub const MAX_DIAGNOSTICS: usize = 1000;

/// Most stored messages without a place that differ only in names, such as one per proxy.
pub const MAX_ALIKE: usize = 10;

/// Most bytes of a stored message or advice; a word of the configuration may be much longer.
pub const MAX_MESSAGE_BYTES: usize = 4096;

/// Most columns of a source line below a message; a longer line is cut around the word with `...`.
pub const EXCERPT_COLUMNS: usize = 120;

/// The severity, from harmless to fatal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Shown only in diagnostic mode (`-dD`).
    Diag,
    /// Information.
    Notice,
    /// The configuration works, but may not do what its author expects. Fatal with `-dW` and
    /// `zero-warning`.
    Warning,
    /// The configuration is refused.
    Alert,
}

impl Severity {
    /// The label at the start of a line, padded like in HAProxy.
    pub fn label(self) -> &'static str {
        match self {
            Severity::Diag => "[DIAG]     ",
            Severity::Notice => "[NOTICE]   ",
            Severity::Warning => "[WARNING]  ",
            Severity::Alert => "[ALERT]    ",
        }
    }
}

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The severity.
    pub severity: Severity,
    /// The place; None for a message without a line.
    pub span: Option<Span>,
    /// The message with HAProxy's final dot, without the place.
    pub message: String,
    /// Advice on separate lines below the excerpt ("Did you mean …?").
    pub help: Vec<String>,
}

/// How diagnostics are rendered.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rendering {
    /// The process id in the brackets of every line.
    pub pid: u32,
    /// `-dD`: show [`Severity::Diag`] as well.
    pub diag: bool,
    /// `-q`: nothing is shown.
    pub quiet: bool,
}

/// All diagnostics of a run, in the order of their discovery.
#[derive(Clone, Debug, Default)]
pub struct Diagnostics {
    items: Vec<Diagnostic>,
    /// The number found, by severity.
    found: [usize; SEVERITIES],
    /// The number stored, by severity.
    kept: [usize; SEVERITIES],
    /// Whether the last one that was added is stored.
    last_is_kept: bool,
    memory: Box<Memory>,
}

/// State for the detection of repeated messages.
#[derive(Clone, Debug, Default)]
struct Memory {
    /// Messages without a place, by their text without the names.
    alike: HashMap<String, Alike>,
    /// The places and messages that [`Diagnostics::add_once`] has added.
    told: HashSet<(Place, String)>,
}

/// The number of severities.
const SEVERITIES: usize = Severity::Alert as usize + 1;

/// Messages that differ only in names.
#[derive(Clone, Debug)]
struct Alike {
    severity: Severity,
    first: String,
    count: usize,
}

/// The identity of a place: the address of the source, the line and the range in it.
type Place = (usize, u32, u32, u32);

impl Diagnostics {
    /// An empty collection.
    pub fn new() -> Self {
        Self::default()
    }

    /// An error at `span`: the configuration is refused.
    pub fn alert(&mut self, span: &Span, message: impl Into<String>) -> &mut Self {
        self.add(Severity::Alert, Some(span), message)
    }

    /// A warning at `span`.
    pub fn warning(&mut self, span: &Span, message: impl Into<String>) -> &mut Self {
        self.add(Severity::Warning, Some(span), message)
    }

    /// A remark at `span`.
    pub fn notice(&mut self, span: &Span, message: impl Into<String>) -> &mut Self {
        self.add(Severity::Notice, Some(span), message)
    }

    /// A remark at `span` for diagnostic mode only.
    pub fn diag(&mut self, span: &Span, message: impl Into<String>) -> &mut Self {
        self.add(Severity::Diag, Some(span), message)
    }

    /// Adds a message of any severity. A message about the whole configuration or a missing file
    /// has no place.
    pub fn add(
        &mut self,
        severity: Severity,
        span: Option<&Span>,
        message: impl Into<String>,
    ) -> &mut Self {
        let message = bounded(message.into());
        let index = severity as usize;
        self.found[index] += 1;
        let is_repeated = span.is_none() && self.is_one_of_many(severity, &message);
        self.last_is_kept = !is_repeated && self.kept[index] < MAX_DIAGNOSTICS;
        if self.last_is_kept {
            self.kept[index] += 1;
            self.items.push(Diagnostic {
                severity,
                span: span.cloned(),
                message,
                help: Vec::new(),
            });
        }
        self
    }

    /// Like [`Diagnostics::add`], unless the same message was added for this place before. Returns
    /// whether it is new.
    pub fn add_once(&mut self, severity: Severity, span: &Span, message: String) -> bool {
        let place = (
            Arc::as_ptr(&span.source).addr(),
            span.line,
            span.start,
            span.end,
        );
        let is_new = self.memory.told.insert((place, message.clone()));
        if is_new {
            self.add(severity, Some(span), message);
        }
        is_new
    }

    /// Counts messages that differ only in the text between quotes. Returns whether the limit is
    /// exceeded.
    fn is_one_of_many(&mut self, severity: Severity, message: &str) -> bool {
        let shape: Vec<&str> = message.split('\'').step_by(2).collect();
        let alike = self
            .memory
            .alike
            .entry(shape.join("\'"))
            .or_insert_with(|| Alike {
                severity,
                first: message.to_owned(),
                count: 0,
            });
        alike.count += 1;
        alike.count > MAX_ALIKE
    }

    /// Adds a line of advice to the message added last: `diagnostics.alert(span, "…").help("Did you
    /// mean …?")`.
    pub fn help(&mut self, help: impl Into<String>) -> &mut Self {
        if self.last_is_kept
            && let Some(last) = self.items.last_mut()
        {
            last.help.push(bounded(help.into()));
        }
        self
    }

    /// Appends everything of `other`.
    pub fn append(&mut self, other: Diagnostics) {
        for index in 0..SEVERITIES {
            // Diagnostics that were only counted stay counted.
            self.found[index] += other.found[index] - other.kept[index];
        }
        for item in other.items {
            self.add(item.severity, item.span.as_ref(), item.message);
            for help in item.help {
                self.help(help);
            }
        }
    }

    /// The number of errors.
    pub fn alerts(&self) -> usize {
        self.found[Severity::Alert as usize]
    }

    /// The number of warnings.
    pub fn warnings(&self) -> usize {
        self.found[Severity::Warning as usize]
    }

    /// Whether the configuration must be refused. `zero_warning`: warnings count too (`-dW`,
    /// `zero-warning`).
    pub fn refuses(&self, zero_warning: bool) -> bool {
        self.alerts() > 0 || (zero_warning && self.warnings() > 0)
    }

    /// The stored messages, in the order of their discovery.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.items.iter()
    }

    /// The number of messages of a severity that were counted but not stored.
    pub fn left_out(&self, severity: Severity) -> usize {
        self.found[severity as usize] - self.kept[severity as usize]
    }

    /// Renders every message in HAProxy's format, each with its excerpt.
    pub fn render(&self, how: &Rendering) -> String {
        let mut out = String::new();
        if how.quiet {
            return out;
        }
        for item in &self.items {
            if item.severity != Severity::Diag || how.diag {
                render_item(&mut out, item, how.pid);
            }
        }
        let mut alike: Vec<&Alike> = self.memory.alike.values().collect();
        alike.retain(|alike| alike.count > MAX_ALIKE);
        alike.sort_by(|one, other| one.first.cmp(&other.first));
        let mut repeated = 0;
        for alike in alike {
            let more = alike.count - MAX_ALIKE;
            let message = format!("{more} more messages like: {}", alike.first);
            line(&mut out, alike.severity, how.pid, &message);
            repeated += more;
        }
        let shown = [Severity::Notice, Severity::Warning, Severity::Alert];
        let diag = how.diag.then_some(Severity::Diag);
        let left_out = shown.into_iter().chain(diag).map(|one| self.left_out(one));
        let left_out = left_out.sum::<usize>().saturating_sub(repeated);
        if left_out > 0 {
            let message = format!("{left_out} more messages left out.");
            line(&mut out, Severity::Notice, how.pid, &message);
        }
        out
    }

    /// The final lines of HAProxy for a refused configuration: each file with errors, and that they
    /// are fatal. Empty if the configuration is not refused.
    pub fn render_closing(&self, how: &Rendering, zero_warning: bool) -> String {
        let mut out = String::new();
        if how.quiet || !self.refuses(zero_warning) {
            return out;
        }
        for name in self.files_in_error() {
            line(
                &mut out,
                Severity::Alert,
                how.pid,
                &format!("Error(s) found in configuration file : {name}"),
            );
        }
        if self.alerts() > 0 {
            line(
                &mut out,
                Severity::Alert,
                how.pid,
                "Fatal errors found in configuration.",
            );
        } else {
            line(
                &mut out,
                Severity::Alert,
                how.pid,
                "Some warnings were found and 'zero-warning' is set. Aborting.",
            );
        }
        out
    }

    fn files_in_error(&self) -> Vec<&str> {
        let with_alert = self
            .items
            .iter()
            .filter(|item| item.severity == Severity::Alert)
            .filter_map(|item| item.span.as_ref());
        let mut names: Vec<&str> = Vec::new();
        for name in with_alert.map(|span| span.source.name.as_str()) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }
}

fn render_item(out: &mut String, item: &Diagnostic, pid: u32) {
    match &item.span {
        Some(span) => {
            line(
                out,
                item.severity,
                pid,
                &format!("parsing [{}] : {}", span.place(), item.message),
            );
            excerpt(out, span);
        }
        None => line(out, item.severity, pid, &item.message),
    }
    for help in &item.help {
        let _ = writeln!(out, "  {}", printable(help));
    }
}

fn line(out: &mut String, severity: Severity, pid: u32, message: &str) {
    let _ = writeln!(
        out,
        "{}({pid}) : config : {}",
        severity.label(),
        printable(message)
    );
}

fn bounded(mut message: String) -> String {
    if message.len() > MAX_MESSAGE_BYTES {
        message.truncate(message.floor_char_boundary(MAX_MESSAGE_BYTES));
        message.push_str("...");
    }
    message
}

/// Writes the source line without its indentation, and carets below the span.
fn excerpt(out: &mut String, span: &Span) {
    let written = span.excerpt();
    let indent = written.len() - written.trim_ascii_start().len();
    if indent == written.len() {
        return;
    }
    let shown = readable(&written[indent..]).to_string();
    // A range may begin or end within a character.
    let column = |byte: u32| {
        let end = (byte as usize).clamp(indent, written.len());
        let before = readable(&written[indent..end]).to_string();
        let common = shown
            .bytes()
            .zip(before.bytes())
            .take_while(|(a, b)| a == b);
        let end = shown.floor_char_boundary(common.count());
        shown[..end].chars().count()
    };
    let (start, end) = (column(span.start), column(span.end));
    let total = shown.chars().count();
    // A long line is cut so that the start of the word is in the middle.
    let cut = if start >= EXCERPT_COLUMNS - 6 {
        start - EXCERPT_COLUMNS / 2
    } else {
        0
    };
    let room = EXCERPT_COLUMNS - 6;
    let text: String = shown.chars().skip(cut).take(room).collect();
    let (before, after) = (
        if cut > 0 { "..." } else { "" },
        if total - cut > room { "..." } else { "" },
    );
    let _ = writeln!(out, "  {before}{}{after}", printable(&text));
    let width = end
        .saturating_sub(start)
        .clamp(1, room.saturating_sub(start - cut).max(1));
    if span.end > span.start || span.start > 0 {
        let _ = writeln!(
            out,
            "  {:pad$}{}",
            "",
            "^".repeat(width),
            pad = before.len() + start - cut
        );
    }
}

/// Text that is safe for a terminal: control characters become `?`, white space becomes a space.
fn printable(text: &str) -> String {
    let safe = |c: char| match c {
        '\t' | '\n' | '\r' | '\x0b' | '\x0c' => ' ',
        c if c.is_control() => '?',
        c => c,
    };
    text.chars().map(safe).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Source;
    use std::sync::Arc;

    fn span(text: &str, start: u32, end: u32) -> Span {
        Span {
            source: Arc::new(Source::new("a.cfg", text.into())),
            line: 1,
            start,
            end,
        }
    }

    #[test]
    fn a_message_stands_above_its_line_and_carets() {
        let mut diagnostics = Diagnostics::new();
        diagnostics
            .alert(&span("\tmode htp", 6, 9), "unknown mode 'htp'.")
            .help("Did you mean 'http'?");
        assert_eq!(
            diagnostics.render(&Rendering {
                pid: 7,
                ..Rendering::default()
            }),
            "[ALERT]    (7) : config : parsing [a.cfg:1] : unknown mode 'htp'.\n  mode htp\n       ^^^\n  Did you mean 'http'?\n"
        );
    }

    #[test]
    fn severities_have_haproxys_labels_and_diag_waits_for_its_mode() {
        let mut diagnostics = Diagnostics::new();
        for severity in [
            Severity::Alert,
            Severity::Warning,
            Severity::Notice,
            Severity::Diag,
        ] {
            diagnostics.add(severity, None, "m.");
        }
        let shown = diagnostics.render(&Rendering {
            pid: 1,
            diag: true,
            quiet: false,
        });
        assert_eq!(
            shown,
            "[ALERT]    (1) : config : m.\n[WARNING]  (1) : config : m.\n[NOTICE]   (1) : config : m.\n[DIAG]     (1) : config : m.\n"
        );
        assert!(!diagnostics.render(&Rendering::default()).contains("DIAG"));
        assert_eq!(
            diagnostics.render(&Rendering {
                quiet: true,
                ..Rendering::default()
            }),
            ""
        );
        assert_eq!((diagnostics.alerts(), diagnostics.warnings()), (1, 1));
    }

    #[test]
    fn closing_lines_name_each_file_once() {
        let mut diagnostics = Diagnostics::new();
        assert_eq!(diagnostics.render_closing(&Rendering::default(), true), "");
        diagnostics.warning(&span("x", 0, 1), "w.");
        assert!(!diagnostics.refuses(false));
        assert!(
            diagnostics
                .render_closing(&Rendering::default(), true)
                .contains("zero-warning")
        );
        diagnostics
            .alert(&span("x", 0, 1), "a.")
            .alert(&span("x", 0, 1), "b.");
        assert_eq!(
            diagnostics.render_closing(
                &Rendering {
                    pid: 3,
                    ..Rendering::default()
                },
                false
            ),
            "[ALERT]    (3) : config : Error(s) found in configuration file : a.cfg\n\
             [ALERT]    (3) : config : Fatal errors found in configuration.\n"
        );
    }

    #[test]
    fn a_long_line_is_cut_around_the_word() {
        let text = format!("{} here {}", "a".repeat(1000), "b".repeat(1000));
        let mut diagnostics = Diagnostics::new();
        diagnostics.alert(&span(&text, 1001, 1005), "m.");
        let shown = diagnostics.render(&Rendering::default());
        let lines: Vec<&str> = shown.lines().collect();
        assert!(lines[1].len() <= EXCERPT_COLUMNS + 2, "{}", lines[1].len());
        let at = lines[2].find('^').unwrap();
        assert_eq!(&lines[1][at..at + 4], "here");
        assert_eq!(lines[2].trim(), "^^^^");
    }

    #[test]
    fn what_is_kept_is_bounded_and_what_is_found_is_counted() {
        let mut diagnostics = Diagnostics::new();
        let place = span("x", 0, 1);
        for _ in 0..MAX_DIAGNOSTICS + 5 {
            diagnostics.alert(&place, "m");
        }
        assert_eq!(
            (
                diagnostics.alerts(),
                diagnostics.iter().len(),
                diagnostics.left_out(Severity::Alert)
            ),
            (MAX_DIAGNOSTICS + 5, MAX_DIAGNOSTICS, 5)
        );
        assert!(
            diagnostics
                .render(&Rendering::default())
                .ends_with("5 more messages left out.\n")
        );
    }

    #[test]
    fn what_is_not_shown_displaces_nothing() {
        let mut diagnostics = Diagnostics::new();
        let place = span("x", 0, 1);
        for _ in 0..2 * MAX_DIAGNOSTICS {
            diagnostics
                .diag(&place, "invisible")
                .notice(&place, "harmless");
        }
        diagnostics.alert(&place, "the fault").help("help");
        let shown = diagnostics.render(&Rendering::default());
        assert!(shown.contains("the fault") && shown.contains("  help"));
        assert!(shown.ends_with("1000 more messages left out.\n"), "{shown}");
    }

    #[test]
    fn messages_that_differ_in_a_name_are_counted() {
        let mut diagnostics = Diagnostics::new();
        for number in 0..MAX_ALIKE + 90 {
            let message = format!("missing timeouts for backend 'b{number}'.");
            let added = diagnostics.add(Severity::Warning, None, message);
            added.help("help");
        }
        let shown = diagnostics.render(&Rendering::default());
        assert_eq!(diagnostics.warnings(), MAX_ALIKE + 90);
        assert_eq!(shown.matches("missing timeouts").count(), MAX_ALIKE + 1);
        assert_eq!(shown.matches("help").count(), MAX_ALIKE);
        assert!(
            shown.ends_with("90 more messages like: missing timeouts for backend 'b0'.\n"),
            "{shown}"
        );
    }

    #[test]
    fn the_same_fault_of_a_place_is_told_once() {
        let mut diagnostics = Diagnostics::new();
        let place = span("x y", 0, 1);
        let other = Span {
            start: 2,
            ..place.clone()
        };
        for at in [&place, &place, &other] {
            diagnostics.add_once(Severity::Alert, at, "m".into());
        }
        assert_eq!(diagnostics.alerts(), 2);
    }

    #[test]
    fn a_terminal_gets_no_control_characters() {
        let mut diagnostics = Diagnostics::new();
        diagnostics.alert(&span("a \u{1b}[31m b", 2, 3), "bad '\u{1b}'.");
        assert!(!diagnostics.render(&Rendering::default()).contains('\u{1b}'));
    }
}
