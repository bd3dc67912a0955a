//! `instrument`

use super::super::line::{Fault, Line, Parse};
use super::filter::FilterBuild;
use super::span::attributes;
use crate::tree::Span;
use sample::{Condition, Expr};
use telemetry::metrics::{Aggregation, DEFAULT_BOUNDS, Instrument, Kind};
use telemetry::program::{TextId, Update, Value};

/// An instrument that a scope defines.
#[derive(Debug)]
pub struct Known {
    /// Its index in the program.
    pub number: u32,
    /// The recorded value.
    pub value: Expr,
}

/// An update whose instrument may be defined further down.
#[derive(Debug)]
pub struct Pending {
    /// The scope of the update.
    scope: usize,
    name: String,
    span: Span,
    /// The value that the same scope records.
    own: Option<Expr>,
    attributes: Vec<(TextId, Value)>,
    condition: Option<Condition>,
}

/// `aggr exp_histogram`: the defaults of the SDKs.
const EXPONENTIAL: Aggregation = Aggregation::ExponentialHistogram {
    max_size: 160,
    max_scale: 20,
};
/// The longest unit, in bytes.
const UNIT_BYTES_MAX: usize = 63;
/// The longest name, in bytes.
const NAME_BYTES_MAX: usize = 255;

/// `instrument <type> <name> …` or `instrument update <name> …`
pub fn instrument(build: &mut FilterBuild<'_, '_, '_>, line: &Line<'_>) -> Parse {
    const USAGE: &str = "'instrument {cnt_int|hist_int|udcnt_int|gauge_int} <name> [aggr <aggregation>] [desc <text>] [unit <text>] value <sample> [bounds <numbers>]' or 'instrument update <name> [attr <key> <sample> …]'";
    line.need(2, || {
        format!("'instrument' : wrong number of arguments. Usage: {USAGE}")
    })?;
    match line.arg(1) {
        "update" => update(build, line),
        "cnt_int" => create(build, line, Kind::Counter),
        "hist_int" => create(build, line, Kind::Histogram),
        "udcnt_int" => create(build, line, Kind::UpDownCounter),
        "gauge_int" => create(build, line, Kind::Gauge),
        word => Err(line.fault(
            1,
            format!("unknown type '{word}' of an instrument. Usage: {USAGE}"),
        )),
    }
}

fn create(build: &mut FilterBuild<'_, '_, '_>, line: &Line<'_>, kind: Kind) -> Parse {
    let name = instrument_name(line)?;
    let end = FilterBuild::end(line, 3);
    let (mut aggregation, mut description, mut unit) = (None, None, None);
    let (mut value, mut bounds) = (None, None);
    let mut at = 3;
    while at < end {
        let word = line.arg(at);
        let text = if at + 1 < end {
            line.arg(at + 1)
        } else {
            return Err(line.fault(at + 1, format!("'{word}' expects an argument.")));
        };
        let twice = match word {
            "aggr" => aggregation
                .replace(aggregation_named(line, at + 1)?)
                .is_some(),
            "desc" => description.replace(text).is_some(),
            "unit" if text.len() > UNIT_BYTES_MAX || !text.is_ascii() => {
                return Err(line.fault(
                    at + 1,
                    format!("a unit has at most {UNIT_BYTES_MAX} ASCII characters."),
                ));
            }
            "unit" => unit.replace(text).is_some(),
            "value" => value.replace(build.number(line, at + 1)?).is_some(),
            "bounds" if kind != Kind::Histogram => {
                return Err(line.fault(at, "'bounds' are for 'hist_int' only."));
            }
            "bounds" => bounds.replace(numbers(line, at + 1)?).is_some(),
            _ => {
                return Err(line.fault(
                    at,
                    format!("'{word}' : expected 'aggr', 'desc', 'unit', 'value' or 'bounds'."),
                ));
            }
        };
        if twice {
            return Err(line.fault(at, format!("'{word}' already defined.")));
        }
        at += 2;
    }
    // The condition is checked and then ignored: an update registers the instrument even where the
    // condition does not hold.
    build.condition(line, end)?;
    let value = value.ok_or_else(|| line.fault(end, "'instrument' expects 'value <sample>'."))?;
    let key = name.to_ascii_lowercase();
    build.scope_instruments.insert(key.clone(), value.clone());
    let said = (
        aggregation.is_some(),
        bounds.is_some(),
        description.is_some(),
        unit.is_some(),
    );
    let aggregation = match bounds {
        Some(bounds) => Aggregation::ExplicitHistogram(bounds),
        None => aggregation.unwrap_or(Aggregation::Default),
    };
    let made = Instrument {
        name: name.to_owned(),
        kind,
        description: description.unwrap_or_default().to_owned(),
        unit: unit.unwrap_or_default().to_owned(),
        aggregation,
    };
    if let Some(known) = build.instruments.get(&key) {
        let other = &build.program.instruments[known.number as usize];
        let way = std::mem::discriminant::<Aggregation>;
        let differs = match said {
            _ if other.kind != made.kind => "type",
            (true, ..) if way(&other.aggregation) != way(&made.aggregation) => "aggregation",
            (_, true, ..) if other.aggregation != made.aggregation => "aggregation",
            (_, _, true, _) if other.description != made.description => "description",
            (.., true) if other.unit != made.unit => "unit",
            _ => return Ok(()),
        };
        let message = format!("instrument '{name}' is already defined with another {differs}.");
        return Err(line.fault(2, message));
    }
    let number = build.program.instruments.len() as u32;
    build.program.instruments.push(made);
    build.instruments.insert(key, Known { number, value });
    Ok(())
}

/// The name: a letter, then letters, digits and `_.-/`.
fn instrument_name<'a>(line: &Line<'a>) -> Parse<&'a str> {
    let name = line.arg(2);
    let allowed = |c: char| c.is_ascii_alphanumeric() || "_.-/".contains(c);
    if name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(allowed)
        && name.len() <= NAME_BYTES_MAX
    {
        Ok(name)
    } else {
        Err(line.fault(
            2,
            format!(
                "invalid name '{name}' of an instrument: a letter, then letters, digits and '_.-/'."
            ),
        ))
    }
}

fn aggregation_named(line: &Line<'_>, at: usize) -> Parse<Aggregation> {
    Ok(match line.arg(at) {
        "default" => Aggregation::Default,
        "drop" => Aggregation::Drop,
        "sum" => Aggregation::Sum,
        "last_value" => Aggregation::LastValue,
        "histogram" => Aggregation::ExplicitHistogram(DEFAULT_BOUNDS.to_vec()),
        "exp_histogram" => EXPONENTIAL,
        word => {
            return Err(line.fault(
                at,
                format!("unknown aggregation '{word}': expected 'default', 'drop', 'sum', 'last_value', 'histogram' or 'exp_histogram'."),
            ));
        }
    })
}

fn numbers(line: &Line<'_>, at: usize) -> Parse<Vec<f64>> {
    let bad = |text: &str| {
        line.fault(
            at,
            format!("'bounds' expects numbers from 0 on, got '{text}'."),
        )
    };
    let mut bounds = Vec::new();
    for text in line.arg(at).split_ascii_whitespace() {
        match text.parse::<f64>() {
            Ok(number) if number >= 0.0 && number.is_finite() => bounds.push(number),
            _ => return Err(bad(text)),
        }
    }
    bounds.sort_by(f64::total_cmp);
    if bounds.is_empty() {
        return Err(bad(""));
    }
    if bounds.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(line.fault(at, "'bounds' has the same number twice."));
    }
    Ok(bounds)
}

impl FilterBuild<'_, '_, '_> {
    /// The single expression of an instrument.
    fn number(&mut self, line: &Line<'_>, at: usize) -> Parse<Expr> {
        let text = line.bytes(at);
        let inner = text
            .strip_prefix(b"%[")
            .and_then(|text| text.strip_suffix(b"]"));
        let shared = &mut self.proxy.shared;
        let words = [inner.unwrap_or(text)];
        let result = shared.compiler.expr(&words, sample::Place::ALL);
        shared.warnings(line, at);
        result
            .map(|(expr, _)| expr)
            .map_err(|error| line.expr_fault(at, &error, "'instrument'"))
    }
}

/// `instrument update <name> [attr <key> <sample> …] [{if|unless} <condition>]`
fn update(build: &mut FilterBuild<'_, '_, '_>, line: &Line<'_>) -> Parse {
    let name = instrument_name(line)?.to_ascii_lowercase();
    let end = FilterBuild::end(line, 3);
    if end > 3 && line.arg(3) != "attr" {
        return Err(line.fault(
            3,
            format!("'{}' : expected 'attr <key> <sample> …'.", line.arg(3)),
        ));
    }
    let attributes = attributes(build, line, 3, end)?;
    let condition = build.condition(line, end)?;
    let pending = Pending {
        scope: build.program.scopes.len(),
        own: None,
        span: line.span(2),
        name,
        attributes,
        condition,
    };
    build.pending_updates.push(pending);
    Ok(())
}

/// Ends a scope: its updates record the values of its own `instrument` lines.
pub fn end_scope(build: &mut FilterBuild<'_, '_, '_>) {
    let scope = build.program.scopes.len();
    for update in build
        .pending_updates
        .iter_mut()
        .filter(|update| update.scope == scope)
    {
        update.own = build.scope_instruments.get(&update.name).cloned();
    }
}

/// Assigns each update its instrument.
pub fn resolve(build: &mut FilterBuild<'_, '_, '_>) {
    for pending in std::mem::take(&mut build.pending_updates) {
        let Some(known) = build.instruments.get(&pending.name) else {
            let message = format!("no scope defines the instrument '{}'.", pending.name);
            build.settle(Err(Fault::new(pending.span, message)));
            continue;
        };
        let update = Update {
            instrument: known.number,
            value: pending.own.unwrap_or_else(|| known.value.clone()),
            attributes: pending.attributes,
            condition: pending.condition,
        };
        build.program.scopes[pending.scope].updates.push(update);
    }
}
