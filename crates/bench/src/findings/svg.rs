//! Plots as SVG: lines for numbers, bars for names. The colours follow the reader's system, light
//! or dark.

use std::fmt::Write;

use super::html::escaped;
use super::{Axis, Plot, Scale, Series};

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 380.0;
/// The area of the figures: left, top, right, bottom.
const AREA: (f64, f64, f64, f64) = (72.0, 14.0, 570.0, 326.0);
/// The share of a name's width that its bars take.
const BARS_SHARE: f64 = 0.8;
/// Approximate number of marks on an axis.
const MARKS: f64 = 6.0;
/// Most decimals of a number beside a mark.
const MARK_DECIMALS: usize = 6;
/// Colours of the series, light and dark; they repeat if there are more series.
const COLOURS: &[(&str, &str)] = &[
    ("#0b57d0", "#8ab4f8"),
    ("#b3261e", "#f28b82"),
    ("#1e7d34", "#81c995"),
    ("#7b3fa8", "#d7aefb"),
    ("#a35a00", "#fcad70"),
    ("#00707f", "#78d9ec"),
    ("#5f6368", "#bdc1c6"),
    ("#b0185b", "#ff8bcb"),
];

/// A range of values, which is mapped to 0 to 1.
struct Range {
    log: bool,
    low: f64,
    high: f64,
}

impl Range {
    fn of(scale: &Scale, values: impl Iterator<Item = f64>) -> Self {
        let log = *scale == Scale::Log;
        if let Scale::Names(names) = scale {
            return Self {
                log,
                low: -0.5,
                high: names.len().max(1) as f64 - 0.5,
            };
        }
        let (low, high) = values
            .filter(|value| value.is_finite() && (!log || *value > 0.0))
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
                (value.min(low), value.max(high))
            });
        match (log, low <= high) {
            // There are no values.
            (true, false) => Self {
                log,
                low: 1.0,
                high: 10.0,
            },
            (false, false) => Self {
                log,
                low: 0.0,
                high: 1.0,
            },
            (true, true) => Self {
                log,
                low: low / 1.2,
                high: high * 1.2,
            },
            (false, true) => Self {
                log,
                low: low.min(0.0),
                high: if high > 0.0 { high * 1.05 } else { 1.0 },
            },
        }
    }

    fn place(&self, value: f64) -> Option<f64> {
        if !value.is_finite() || self.log && value <= 0.0 {
            return None;
        }
        let at = |value: f64| if self.log { value.log10() } else { value };
        Some((at(value) - at(self.low)) / (at(self.high) - at(self.low)))
    }

    /// Round values at about equal distances.
    fn marks(&self) -> Vec<f64> {
        if self.log {
            let (low, high) = (
                self.low.log10().floor() as i32,
                self.high.log10().ceil() as i32,
            );
            let steps: &[f64] = if high - low > 3 {
                &[1.0]
            } else {
                &[1.0, 2.0, 5.0]
            };
            let all = (low..=high)
                .flat_map(|power| steps.iter().map(move |step| step * 10_f64.powi(power)));
            return all
                .filter(|mark| (self.low..=self.high).contains(mark))
                .collect();
        }
        let rough = (self.high - self.low) / MARKS;
        let power = 10_f64.powf(rough.log10().floor());
        let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * power);
        let step = steps
            .into_iter()
            .find(|step| *step >= rough)
            .unwrap_or(rough);
        let first = (self.low / step).ceil() as i64;
        (first..)
            .map(|number| number as f64 * step)
            .take_while(|mark| *mark <= self.high)
            .collect()
    }
}

impl Plot {
    /// The complete plot.
    pub fn svg(&self) -> String {
        let values = |axis: fn(&(f64, f64)) -> f64| {
            self.series
                .iter()
                .flat_map(move |series| series.points.iter().map(axis))
        };
        let x = Range::of(&self.x.scale, values(|point| point.0));
        let y = Range::of(&self.y.scale, values(|point| point.1));
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">\n<style>\n{}</style>\n\
             <rect class=\"plot-back\" width=\"{WIDTH}\" height=\"{HEIGHT}\"/>\n",
            escaped(&self.title),
            style()
        );
        self.axes(&mut out, &x, &y);
        for (number, series) in self.series.iter().enumerate() {
            let colour = number % COLOURS.len();
            let _ = writeln!(out, "<g class=\"plot-c{colour}\">");
            match &self.x.scale {
                Scale::Names(names) => self.bars(&mut out, number, names, &x, &y),
                Scale::Linear | Scale::Log => lines(&mut out, series, &x, &y),
            }
            let (left, top) = (AREA.2 + 16.0, AREA.1 + 12.0 + 20.0 * number as f64);
            let _ = write!(
                out,
                "<rect class=\"plot-fill\" x=\"{left}\" y=\"{}\" width=\"12\" height=\"12\"/>\
                 <text class=\"plot-text\" x=\"{}\" y=\"{top}\">{}</text>\n</g>\n",
                top - 10.0,
                left + 18.0,
                escaped(&series.name)
            );
        }
        out.push_str("</svg>\n");
        out
    }

    fn axes(&self, out: &mut String, x: &Range, y: &Range) {
        let (left, top, right, bottom) = AREA;
        let marks = y
            .marks()
            .into_iter()
            .filter_map(|mark| Some((mark, y.place(mark)?)));
        for (mark, place) in marks {
            let at = bottom - place * (bottom - top);
            let _ = writeln!(
                out,
                "<path class=\"plot-grid\" d=\"M{left} {at:.1}H{right}\"/><text class=\"plot-text\" text-anchor=\"end\" x=\"{}\" y=\"{:.1}\">{}</text>",
                left - 6.0,
                at + 4.0,
                mark_text(mark)
            );
        }
        let marks: Vec<(f64, String)> = match &self.x.scale {
            Scale::Names(names) => (0..)
                .map(f64::from)
                .zip(names.iter().map(|name| escaped(name)))
                .collect(),
            Scale::Linear | Scale::Log => x
                .marks()
                .into_iter()
                .map(|mark| (mark, mark_text(mark)))
                .collect(),
        };
        for (mark, text) in marks {
            let at = left + x.place(mark).unwrap_or_default() * (right - left);
            let _ = writeln!(
                out,
                "<path class=\"plot-grid\" d=\"M{at:.1} {bottom}v5\"/><text class=\"plot-text\" text-anchor=\"middle\" x=\"{at:.1}\" y=\"{}\">{text}</text>",
                bottom + 18.0
            );
        }
        let middle = (top + bottom) / 2.0;
        let _ = writeln!(
            out,
            "<path class=\"plot-axis\" d=\"M{left} {top}V{bottom}H{right}\"/>\
             <text class=\"plot-text\" text-anchor=\"middle\" x=\"{}\" y=\"{}\">{}</text>\
             <text class=\"plot-text\" text-anchor=\"middle\" transform=\"translate(14 {middle}) rotate(-90)\">{}</text>",
            (left + right) / 2.0,
            bottom + 42.0,
            label(&self.x),
            label(&self.y)
        );
    }

    fn bars(&self, out: &mut String, number: usize, names: &[String], x: &Range, y: &Range) {
        let (left, top, right, bottom) = AREA;
        let room = (right - left) / names.len().max(1) as f64 * BARS_SHARE;
        let width = room / self.series.len() as f64;
        let series = &self.series[number];
        for &(place, value) in &series.points {
            let (Some(across), Some(up)) = (x.place(place), y.place(value)) else {
                continue;
            };
            let begin = left + across * (right - left) - room / 2.0 + width * number as f64;
            let height = up * (bottom - top);
            let _ = writeln!(
                out,
                "<rect class=\"plot-fill\" x=\"{begin:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"><title>{}: {value}</title></rect>",
                bottom - height,
                escaped(&series.name)
            );
        }
    }
}

fn lines(out: &mut String, series: &Series, x: &Range, y: &Range) {
    let (left, top, right, bottom) = AREA;
    let (mut path, mut dots) = (String::new(), String::new());
    for &(across, up) in &series.points {
        let (Some(at), Some(height)) = (x.place(across), y.place(up)) else {
            continue;
        };
        let (at, height) = (left + at * (right - left), bottom - height * (bottom - top));
        let _ = write!(
            path,
            "{}{at:.1} {height:.1}",
            if path.is_empty() { 'M' } else { 'L' }
        );
        let name = escaped(&series.name);
        let _ = write!(
            dots,
            "<circle class=\"plot-fill\" cx=\"{at:.1}\" cy=\"{height:.1}\" r=\"3\"><title>{name}: {across}, {up}</title></circle>"
        );
    }
    let _ = writeln!(out, "<path class=\"plot-line\" d=\"{path}\"/>{dots}");
}

fn label(axis: &Axis) -> String {
    let log = if axis.scale == Scale::Log {
        " (log)"
    } else {
        ""
    };
    escaped(&format!("{}{log}", axis.label))
}

fn mark_text(value: f64) -> String {
    let decimals = (0..MARK_DECIMALS).find(|decimals| {
        let power = 10_f64.powi(i32::try_from(*decimals).unwrap_or_default());
        ((value * power).round() - value * power).abs() < 1e-6 * (value * power).abs()
    });
    super::number(
        value,
        decimals.unwrap_or(if value == 0.0 { 0 } else { MARK_DECIMALS }),
    )
}

fn style() -> String {
    let colours = |pick: fn(&(&'static str, &'static str)) -> &'static str| {
        let all = COLOURS.iter().map(pick).enumerate();
        all.fold(String::new(), |mut text, (number, colour)| {
            let _ = write!(text, ".plot-c{number}{{color:{colour}}}");
            text
        })
    };
    format!(
        "{}.plot-back{{fill:#fff}}.plot-text{{fill:#1c1e21;font:12px system-ui,sans-serif}}.plot-grid{{stroke:#dde1e7}}\
         .plot-axis{{stroke:#5f6368;fill:none}}.plot-line{{stroke:currentColor;stroke-width:2;fill:none}}.plot-fill{{fill:currentColor}}\
         .plot-c1,.plot-c3,.plot-c5,.plot-c7{{stroke-dasharray:6 3}}\n\
         @media(prefers-color-scheme:dark){{{}.plot-back{{fill:#15171a}}.plot-text{{fill:#e4e6ea}}.plot-grid{{stroke:#2c3037}}\
         .plot-axis{{stroke:#9aa0a6}}}}\n",
        colours(|colour| colour.0),
        colours(|colour| colour.1)
    )
}
