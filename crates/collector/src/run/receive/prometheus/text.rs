//! Parses what a target exposes: Prometheus' text format (version 0.0.4) and OpenMetrics (1.0).
//!
//! A line that breaks the format fails the whole scrape, as in Prometheus.

use std::collections::{BTreeMap, HashMap};

/// Samples of a scrape. A larger exposition fails.
pub(super) const SAMPLES_MAX: usize = 500_000;
/// Labels of a sample, its name among them.
const LABELS_MAX: usize = 1000;
/// The label of a sample's name.
pub(super) const NAME: &str = "__name__";

/// Labels by their names. No value is empty.
pub(super) type Labels = BTreeMap<String, String>;

/// The format of an exposition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Prometheus' text format.
    Text,
    /// OpenMetrics.
    OpenMetrics,
}

/// The samples of a target, and what it says of their families.
#[derive(Debug, Default, PartialEq)]
pub struct Exposition {
    /// In their order.
    pub(super) samples: Vec<Sample>,
    /// By name.
    pub(super) families: HashMap<String, Family>,
}

/// A sample.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sample {
    /// With the name.
    pub labels: Labels,
    pub value: f64,
    /// Milliseconds of the UNIX epoch, where it is exposed.
    pub time_ms: Option<i64>,
    pub exemplar: Option<Exemplar>,
}

/// An example of what a sample counts.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Exemplar {
    pub labels: Labels,
    pub value: f64,
    /// Milliseconds of the UNIX epoch, where it is exposed.
    pub time_ms: Option<i64>,
}

/// Metadata of a family, as the target gives them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Family {
    pub kind: Kind,
    pub help: String,
    pub unit: String,
}

impl Family {
    /// Bytes of its texts.
    pub fn bytes(&self) -> usize {
        self.help.len() + self.unit.len()
    }
}

/// Types of families.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    Counter,
    Gauge,
    Histogram,
    GaugeHistogram,
    Summary,
    Info,
    StateSet,
    #[default]
    Unknown,
}

/// The words of types.
const KINDS: [(&str, Kind); 9] = [
    ("counter", Kind::Counter),
    ("gauge", Kind::Gauge),
    ("histogram", Kind::Histogram),
    ("gaugehistogram", Kind::GaugeHistogram),
    ("summary", Kind::Summary),
    ("info", Kind::Info),
    ("stateset", Kind::StateSet),
    ("unknown", Kind::Unknown),
    ("untyped", Kind::Unknown),
];

impl Kind {
    /// Its word.
    pub fn word(self) -> &'static str {
        let found = KINDS.iter().find(|(_, kind)| *kind == self);
        found.map_or("unknown", |(word, _)| word)
    }
}

/// Parses an exposition.
///
/// # Errors
/// The line and the fault.
pub fn parse(text: &str, format: Format) -> Result<Exposition, String> {
    let mut exposition = Exposition::default();
    let mut is_over = false;
    for (index, line) in text.split('\n').enumerate() {
        let failed = |why: &str| format!("line {}: {why}", index + 1);
        if is_over {
            // Nothing but the end of the last line.
            if line.is_empty() {
                continue;
            }
            return Err(failed("unexpected data after # EOF"));
        }
        is_over = match format {
            Format::Text => text_line(line, &mut exposition).map(|()| false),
            Format::OpenMetrics => open_line(line, &mut exposition),
        }
        .map_err(|why| failed(&why))?;
        if exposition.samples.len() > SAMPLES_MAX {
            return Err(failed("there are more samples than are taken"));
        }
    }
    if format == Format::OpenMetrics && !is_over {
        return Err("data does not end with # EOF".to_owned());
    }
    Ok(exposition)
}

fn text_line(line: &str, exposition: &mut Exposition) -> Result<(), String> {
    let line = line.strip_suffix('\r').unwrap_or(line);
    let line = line.trim_start_matches([' ', '\t']);
    if line.is_empty() {
        return Ok(());
    }
    let Some(comment) = line.strip_prefix('#') else {
        exposition.samples.push(sample(line, Format::Text)?);
        return Ok(());
    };
    let comment = comment.trim_start_matches([' ', '\t']);
    // Other comments say nothing.
    if let Some((word @ ("HELP" | "TYPE"), rest)) = comment.split_once([' ', '\t']) {
        about(word, rest.trim_start_matches([' ', '\t']), exposition)?;
    }
    Ok(())
}

/// Reads a line of OpenMetrics. Returns whether it is the end.
fn open_line(line: &str, exposition: &mut Exposition) -> Result<bool, String> {
    let Some(comment) = line.strip_prefix('#') else {
        exposition.samples.push(sample(line, Format::OpenMetrics)?);
        return Ok(false);
    };
    let comment = comment.strip_prefix(' ').unwrap_or_default();
    match comment.split_once(' ') {
        None if comment == "EOF" => Ok(true),
        Some((word @ ("HELP" | "TYPE" | "UNIT"), rest)) => {
            about(word, rest, exposition).map(|()| false)
        }
        _ => Err("expected HELP, TYPE, UNIT or EOF after #".to_owned()),
    }
}

/// Reads what a comment says of a family.
fn about(word: &str, rest: &str, exposition: &mut Exposition) -> Result<(), String> {
    let mut cursor = Cursor(rest);
    let name = if rest.starts_with('"') {
        cursor.quoted()?
    } else {
        cursor.until([' ', '\t']).to_owned()
    };
    if name.is_empty() {
        return Err(format!("{word} has no name"));
    }
    let told = cursor.0.trim_start_matches([' ', '\t']);
    let family = exposition.families.entry(name).or_default();
    match word {
        "HELP" => family.help = unescaped(told)?,
        "UNIT" => told.clone_into(&mut family.unit),
        _ => {
            let told = told.trim_end();
            let kind = KINDS.iter().find(|(word, _)| *word == told);
            let (_, kind) = kind.ok_or_else(|| "invalid metric type".to_owned())?;
            family.kind = *kind;
        }
    }
    Ok(())
}

fn sample(line: &str, format: Format) -> Result<Sample, String> {
    let mut cursor = Cursor(line);
    let mut labels = Labels::new();
    let name = cursor.name(true);
    if !name.is_empty() {
        labels.insert(NAME.to_owned(), name.to_owned());
    }
    cursor.blanks();
    if cursor.takes('{') {
        cursor.labels(&mut labels, true)?;
    }
    if !labels.contains_key(NAME) {
        return Err("a sample has no name".to_owned());
    }
    let value = cursor.number()?;
    let time_ms = cursor.time_ms(format)?;
    let exemplar = match format {
        Format::OpenMetrics if cursor.takes('#') => Some(cursor.exemplar()?),
        _ => None,
    };
    if !cursor.0.is_empty() {
        return Err("unexpected text after a sample".to_owned());
    }
    labels.retain(|_, value| !value.is_empty());
    Ok(Sample {
        labels,
        value,
        time_ms,
        exemplar,
    })
}

/// The rest of a line.
struct Cursor<'a>(&'a str);

impl<'a> Cursor<'a> {
    fn blanks(&mut self) {
        self.0 = self.0.trim_start_matches([' ', '\t']);
    }

    fn takes(&mut self, wanted: char) -> bool {
        let rest = self.0.strip_prefix(wanted);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    /// The text before one of some characters, or the end.
    fn until(&mut self, ends: [char; 2]) -> &'a str {
        let end = self.0.find(ends).unwrap_or(self.0.len());
        let (text, rest) = self.0.split_at(end);
        self.0 = rest;
        text
    }

    /// A name without quotes; empty where there is none. That of a metric may have colons.
    fn name(&mut self, is_metric: bool) -> &'a str {
        let belongs = |(index, c): (usize, char)| {
            let is_letter = c.is_ascii_alphabetic() || c == '_' || is_metric && c == ':';
            is_letter || index > 0 && c.is_ascii_digit()
        };
        let mut chars = self.0.char_indices();
        let end = chars.find(|one| !belongs(*one)).map(|(index, _)| index);
        let (name, rest) = self.0.split_at(end.unwrap_or(self.0.len()));
        self.0 = rest;
        name
    }

    /// A text in quotes.
    fn quoted(&mut self) -> Result<String, String> {
        if !self.takes('"') {
            return Err("expected a text in quotes".to_owned());
        }
        let mut is_escaped = false;
        for (index, c) in self.0.char_indices() {
            if is_escaped {
                is_escaped = false;
            } else if c == '\\' {
                is_escaped = true;
            } else if c == '"' {
                let text = unescaped(&self.0[..index]);
                self.0 = &self.0[index + 1..];
                return text;
            }
        }
        Err("a text in quotes does not end".to_owned())
    }

    /// Labels after a brace, and the brace behind them. A text in quotes alone is the metric's name.
    fn labels(&mut self, labels: &mut Labels, has_name: bool) -> Result<(), String> {
        loop {
            self.blanks();
            if self.takes('}') {
                return Ok(());
            }
            let is_quoted = self.0.starts_with('"');
            let name = if is_quoted {
                self.quoted()?
            } else {
                self.name(false).to_owned()
            };
            self.blanks();
            let (name, value) = if self.takes('=') {
                self.blanks();
                (name, self.quoted()?)
            } else if is_quoted && has_name {
                (NAME.to_owned(), name)
            } else {
                return Err("expected = after the name of a label".to_owned());
            };
            if name.is_empty() {
                return Err("a label has no name".to_owned());
            }
            if labels.len() >= LABELS_MAX {
                return Err(format!("a sample has more than {LABELS_MAX} labels"));
            }
            if labels.insert(name, value).is_some() {
                return Err("a label is there twice".to_owned());
            }
            self.blanks();
            if !self.takes(',') && !self.0.starts_with('}') {
                return Err("expected , or } after a label".to_owned());
            }
        }
    }

    /// A number, and the blanks around it.
    fn number(&mut self) -> Result<f64, String> {
        self.blanks();
        let text = self.until([' ', '\t']);
        self.blanks();
        let number = text.parse();
        number.map_err(|_| "a value is no number".to_owned())
    }

    /// The time of a sample, where there is one: milliseconds in the text format, seconds in
    /// OpenMetrics.
    fn time_ms(&mut self, format: Format) -> Result<Option<i64>, String> {
        if self.0.is_empty() || self.0.starts_with('#') {
            return Ok(None);
        }
        let text = self.until([' ', '\t']);
        self.blanks();
        let wrong = || "a timestamp is no number".to_owned();
        let time = match format {
            Format::Text => text.parse().map_err(|_| wrong())?,
            Format::OpenMetrics => {
                let seconds: f64 = text.parse().map_err(|_| wrong())?;
                if !seconds.is_finite() {
                    return Err(wrong());
                }
                (seconds * 1000.0) as i64
            }
        };
        Ok(Some(time))
    }

    fn exemplar(&mut self) -> Result<Exemplar, String> {
        self.blanks();
        if !self.takes('{') {
            return Err("expected { after #".to_owned());
        }
        let mut labels = Labels::new();
        self.labels(&mut labels, false)?;
        Ok(Exemplar {
            labels,
            value: self.number()?,
            time_ms: self.time_ms(Format::OpenMetrics)?,
        })
    }
}

/// A text without its escapes.
fn unescaped(text: &str) -> Result<String, String> {
    if !text.contains('\\') {
        return Ok(text.to_owned());
    }
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => out.push('\n'),
            Some(c @ ('\\' | '"')) => out.push(c),
            // Prometheus leaves others as they are.
            Some(other) => out.extend(['\\', other]),
            None => return Err("an escape does not end".to_owned()),
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        let pairs = pairs.iter();
        pairs
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    fn one(text: &str, format: Format) -> Sample {
        let mut exposition = parse(text, format).expect(text);
        assert_eq!(exposition.samples.len(), 1);
        exposition.samples.remove(0)
    }

    #[test]
    fn the_text_format_is_read() {
        let text = "# a comment\n\n# HELP a What\\nit \\\\ is\n# TYPE a counter\n \ta{b=\"c\\\"\\\\\\n\",d=\"\",} 1.5e3 -5\t\r\n";
        let exposition = parse(text, Format::Text).expect("an exposition");
        let family = &exposition.families["a"];
        assert_eq!(
            (family.kind, &*family.help),
            (Kind::Counter, "What\nit \\ is")
        );
        let sample = &exposition.samples[0];
        assert_eq!(sample.labels, labels(&[(NAME, "a"), ("b", "c\"\\\n")]));
        assert_eq!((sample.value, sample.time_ms), (1500.0, Some(-5)));
        assert!(one("a NaN", Format::Text).value.is_nan());
        assert_eq!(one("a:b_1 +Inf", Format::Text).value, f64::INFINITY);
        // A metric with any name.
        let named = one("{\"a.b\", \"c d\"=\"e\"} 1", Format::Text);
        assert_eq!(named.labels, labels(&[(NAME, "a.b"), ("c d", "e")]));
    }

    #[test]
    fn openmetrics_is_read_to_its_end() {
        let text = "# TYPE a counter\n# UNIT a seconds\na_total{b=\"c\"} 2 1.5 # {trace_id=\"x\"} 0.5 2\na_created{b=\"c\"} 1\n# EOF\n";
        let exposition = parse(text, Format::OpenMetrics).expect("an exposition");
        assert_eq!(exposition.families["a"].unit, "seconds");
        let sample = &exposition.samples[0];
        assert_eq!((sample.value, sample.time_ms), (2.0, Some(1500)));
        let exemplar = sample.exemplar.as_ref().expect("an exemplar");
        assert_eq!(exemplar.labels, labels(&[("trace_id", "x")]));
        assert_eq!((exemplar.value, exemplar.time_ms), (0.5, Some(2000)));
        assert_eq!(exposition.samples.len(), 2);
        assert!(parse("# EOF", Format::OpenMetrics).is_ok());
    }

    #[test]
    fn what_breaks_a_format_is_refused() {
        for text in [
            "a",
            "a b",
            "a 1 2 3",
            "a{b} 1",
            "a{b=\"c} 1",
            "a{b=\"c\" d=\"e\"} 1",
            "a{b=\"c\",b=\"d\"} 1",
            "a{=\"c\"} 1",
            "{b=\"c\"} 1",
            "1a 1",
            "a{b=c} 1",
            "# TYPE a other",
            "a{b=\"c\\",
            "a{",
            "a 0x1",
            "a 1 # {} 1",
            "ä 1",
            "# HELP a \\",
        ] {
            assert!(parse(text, Format::Text).is_err(), "{text}");
        }
        for text in [
            "",
            "a 1\n",
            "# EOF\na 1\n",
            "\n# EOF\n",
            "# other\n# EOF\n",
            "a 1 # x\n# EOF\n",
            "a 1 1 # {b=\"c\"}\n# EOF",
            "a 1 inf\n# EOF",
            "#EOF\n",
        ] {
            assert!(parse(text, Format::OpenMetrics).is_err(), "{text}");
        }
    }

    #[test]
    fn samples_and_labels_are_bounded() {
        let many = "a 1\n".repeat(SAMPLES_MAX + 1);
        assert!(parse(&many, Format::Text).is_err());
        let labels: String = (0..LABELS_MAX)
            .map(|number| format!("l{number}=\"v\","))
            .collect();
        assert!(parse(&format!("a{{{labels}}} 1"), Format::Text).is_err());
    }
}
