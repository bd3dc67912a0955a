//! Names of metrics and labels, as Prometheus' translator of OTLP makes them (`otlptranslator`;
//! OpenTelemetry specification, "Prometheus and OpenMetrics Compatibility").

use super::point::Instrument;
use crate::config::components::exporters::prometheus::Translation;

/// Units of OTLP (UCUM), and the words that Prometheus' names have for them.
pub(in crate::run) const UNITS: [(&str, &str); 24] = [
    ("d", "days"),
    ("h", "hours"),
    ("min", "minutes"),
    ("s", "seconds"),
    ("ms", "milliseconds"),
    ("us", "microseconds"),
    ("ns", "nanoseconds"),
    ("By", "bytes"),
    ("KiBy", "kibibytes"),
    ("MiBy", "mebibytes"),
    ("GiBy", "gibibytes"),
    ("TiBy", "tibibytes"),
    ("KBy", "kilobytes"),
    ("MBy", "megabytes"),
    ("GBy", "gigabytes"),
    ("TBy", "terabytes"),
    ("m", "meters"),
    ("V", "volts"),
    ("A", "amperes"),
    ("J", "joules"),
    ("W", "watts"),
    ("g", "grams"),
    ("Cel", "celsius"),
    ("Hz", "hertz"),
];

/// The same of units after a slash.
const PER_UNITS: [(&str, &str); 7] = [
    ("s", "second"),
    ("m", "minute"),
    ("h", "hour"),
    ("d", "day"),
    ("w", "week"),
    ("mo", "month"),
    ("y", "year"),
];

/// Makes names.
pub(super) struct Namer {
    namespace: String,
    translation: Translation,
}

impl Namer {
    pub(super) fn new(namespace: &str, translation: Translation) -> Namer {
        let namespace = if translation.utf8 {
            namespace.to_owned()
        } else {
            namespace.replace(|c| !is_metric_char(c) && c != '_', "_")
        };
        Namer {
            namespace,
            translation,
        }
    }

    /// The name of a metric; none where nothing is left of its name.
    pub(super) fn metric(&self, name: &str, unit: &str, instrument: Instrument) -> Option<String> {
        if name.is_empty() {
            return None;
        }
        let Translation { suffixes, utf8 } = self.translation;
        let made = match (utf8, suffixes) {
            (true, true) => with_suffixes(self.in_namespace(name), unit, instrument),
            (true, false) => self.in_namespace(name),
            (false, true) => self.normalized(name, unit, instrument),
            (false, false) => {
                let is_valid = |c: char| is_metric_char(c) || c == '_';
                let name = name.split(|c| !is_valid(c)).filter(|part| !part.is_empty());
                self.in_namespace(&name.collect::<Vec<_>>().join("_"))
            }
        };
        if utf8 {
            return Some(made);
        }
        let made = if made.starts_with(|c: char| c.is_ascii_digit()) {
            format!("_{made}")
        } else {
            made
        };
        (made == name || made.contains(|c| c != '_')).then_some(made)
    }

    /// The unit as [`Namer::metric`] puts it into names; none where it puts none.
    pub(super) fn unit(&self, unit: &str) -> Option<String> {
        if !self.translation.suffixes {
            return None;
        }
        let Unit { main, per } = Unit::of(unit);
        let (main, per) = (clean(&main), clean(&per));
        let parts = [main.trim_end_matches('_'), per.trim_end_matches('_')];
        let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        (!parts.is_empty()).then(|| parts.join("_"))
    }

    /// The name of a label; none where nothing is left of an attribute's key.
    pub(super) fn label(&self, key: &str) -> Option<String> {
        if self.translation.utf8 || key.is_empty() {
            return Some(key.to_owned()).filter(|key| !key.is_empty());
        }
        let is_reserved = key.len() > 4 && key.starts_with("__") && key.ends_with("__");
        let is_valid = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let replaced = key.replace(|c| !is_valid(c), "_");
        let label = collapsed(&replaced);
        let label = if is_reserved {
            format!("__{}__", label.trim_matches('_'))
        } else if label.starts_with(|c: char| c.is_ascii_digit()) {
            format!("key_{label}")
        } else if label.starts_with('_') {
            format!("key{label}")
        } else {
            label
        };
        (label == key || label.contains(|c| c != '_')).then_some(label)
    }

    /// The name of the metric that has the attributes of resources.
    pub(super) fn target_info(&self) -> String {
        match self.label(&self.namespace) {
            Some(namespace) => format!("{namespace}_target_info"),
            None => "target_info".to_owned(),
        }
    }

    fn in_namespace(&self, name: &str) -> String {
        if self.namespace.is_empty() {
            name.to_owned()
        } else {
            format!("{}_{name}", self.namespace)
        }
    }

    fn normalized(&self, name: &str, unit: &str, instrument: Instrument) -> String {
        let tokens = name.split(|c| !is_metric_char(c));
        let mut tokens: Vec<&str> = tokens.filter(|token| !token.is_empty()).collect();
        let units = Unit::of(unit);
        let (main, per) = (clean(&units.main), clean(&units.per));
        let per = match per.as_str() {
            "per_" => "",
            per => per.strip_suffix('_').unwrap_or(per),
        };
        let mut main = if tokens.contains(&&*main) { "" } else { &main };
        if !per.is_empty() {
            main = main.strip_suffix('_').unwrap_or(main);
        }
        let per = if tokens.contains(&per) { "" } else { per };
        tokens.extend([main, per].into_iter().filter(|part| !part.is_empty()));
        if let Some(suffix) = type_suffix(unit, instrument) {
            tokens.retain(|token| *token != suffix);
            tokens.push(suffix);
        }
        if !self.namespace.is_empty() {
            tokens.insert(0, &self.namespace);
        }
        tokens.join("_")
    }
}

/// What names of such a metric end with. Only gauges are ratios: counts of things have the unit
/// `1` too.
fn type_suffix(unit: &str, instrument: Instrument) -> Option<&'static str> {
    match instrument {
        Instrument::Counter => Some("total"),
        Instrument::Gauge if unit == "1" => Some("ratio"),
        _ => None,
    }
}

/// The name with suffixes, and otherwise as it is.
fn with_suffixes(mut name: String, unit: &str, instrument: Instrument) -> String {
    let suffix = type_suffix(unit, instrument);
    if let Some(suffix) = suffix {
        trim(&mut name, suffix);
    }
    let Unit { main, per } = Unit::of(unit);
    if !per.is_empty() {
        trim(&mut name, &per);
    }
    if !name.ends_with(&main) {
        name = format!("{name}_{main}");
    }
    for suffix in [Some(per.as_str()), suffix].into_iter().flatten() {
        if !suffix.is_empty() {
            name = format!("{name}_{suffix}");
        }
    }
    name
}

/// Removes a suffix and the character before it, where the name has more than these.
fn trim(name: &mut String, suffix: &str) {
    let Some(rest) = name.strip_suffix(suffix) else {
        return;
    };
    let mut rest = rest.chars();
    if rest.next_back().is_some() && !rest.as_str().is_empty() {
        name.truncate(rest.as_str().len());
    }
}

/// A unit in Prometheus' words; what it lacks is empty.
struct Unit {
    main: String,
    /// With `per_` before it.
    per: String,
}

impl Unit {
    fn of(unit: &str) -> Unit {
        let (main, per) = unit.split_once('/').unwrap_or((unit, ""));
        let word = |unit: &str, words: &[(&str, &str)]| {
            let unit = unit.trim();
            // An annotation such as `{requests}` is no unit.
            if unit.contains(['{', '}']) {
                return String::new();
            }
            let found = words.iter().find(|(own, _)| *own == unit);
            found.map_or(unit, |(_, word)| word).to_owned()
        };
        let main = match main.trim() {
            "1" => String::new(),
            "%" => "percent".to_owned(),
            main => word(main, &UNITS),
        };
        let per = word(per, &PER_UNITS);
        Unit {
            main,
            per: if per.is_empty() {
                per
            } else {
                format!("per_{per}")
            },
        }
    }
}

/// Characters that stay in the names of metrics; `_` separates their parts.
fn is_metric_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == ':'
}

/// A unit without what names cannot have.
fn clean(unit: &str) -> String {
    let unit = collapsed(&unit.replace(|c| !is_metric_char(c), "_"));
    unit.strip_prefix('_').map(str::to_owned).unwrap_or(unit)
}

/// One underscore in the place of several.
fn collapsed(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c != '_' || !out.ends_with('_') {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const ESCAPED: Translation = Translation {
        suffixes: true,
        utf8: false,
    };

    #[test]
    fn names_of_metrics_have_units_and_types() {
        let namer = Namer::new("", ESCAPED);
        for (name, unit, instrument, wanted) in [
            (
                "http.server.duration",
                "s",
                Instrument::Histogram,
                "http_server_duration_seconds",
            ),
            ("requests", "1", Instrument::Counter, "requests_total"),
            (
                "total.requests",
                "{request}",
                Instrument::Counter,
                "requests_total",
            ),
            ("memory.used", "By", Instrument::Gauge, "memory_used_bytes"),
            (
                "memory.used.bytes",
                "By",
                Instrument::Gauge,
                "memory_used_bytes",
            ),
            ("cpu.use", "1", Instrument::Gauge, "cpu_use_ratio"),
            (
                "queue.length",
                "1",
                Instrument::UpDownCounter,
                "queue_length",
            ),
            ("speed", "km/h", Instrument::Gauge, "speed_km_per_hour"),
            (
                "io",
                "By/s",
                Instrument::Counter,
                "io_bytes_per_second_total",
            ),
            ("part", "%", Instrument::Gauge, "part_percent"),
            ("a__b.-c", "", Instrument::Gauge, "a_b_c"),
            ("2xx", "", Instrument::Gauge, "_2xx"),
            ("job:rate", "", Instrument::Gauge, "job:rate"),
            ("größe", "", Instrument::Gauge, "gr_e"),
            ("odd", "m__/", Instrument::Gauge, "odd_m_"),
        ] {
            let made = namer.metric(name, unit, instrument);
            assert_eq!(made.as_deref(), Some(wanted), "{name} {unit}");
        }
        for nothing in ["", "...", "é"] {
            assert_eq!(namer.metric(nothing, "", Instrument::Gauge), None);
        }
    }

    #[test]
    fn a_namespace_stands_before_each_name() {
        let namer = Namer::new("test-space", ESCAPED);
        let made = namer.metric("a.b", "", Instrument::Counter);
        assert_eq!(made.as_deref(), Some("test_space_a_b_total"));
        assert_eq!(namer.target_info(), "test_space_target_info");
        assert_eq!(Namer::new("", ESCAPED).target_info(), "target_info");
    }

    #[test]
    fn each_strategy_makes_its_names() {
        for (suffixes, utf8, wanted, label) in [
            (true, false, "n_a_b_seconds_total", "c_d"),
            (false, false, "n_a_b", "c_d"),
            (true, true, "n_a.b_seconds_total", "c.d"),
            (false, true, "n_a.b", "c.d"),
        ] {
            let namer = Namer::new("n", Translation { suffixes, utf8 });
            let made = namer.metric("a.b", "s", Instrument::Counter);
            assert_eq!(made.as_deref(), Some(wanted));
            assert_eq!(namer.label("c.d").as_deref(), Some(label));
        }
        let utf8 = Namer::new(
            "",
            Translation {
                suffixes: true,
                utf8: true,
            },
        );
        for (name, unit, instrument, wanted) in [
            ("a.total", "1", Instrument::Counter, "a_total"),
            ("a_seconds", "s", Instrument::Gauge, "a_seconds"),
            ("a.ratio", "1", Instrument::Gauge, "a_ratio"),
            (
                "é.per_second",
                "By/s",
                Instrument::Gauge,
                "é_bytes_per_second",
            ),
            ("total", "", Instrument::Counter, "total_total"),
        ] {
            let made = utf8.metric(name, unit, instrument);
            assert_eq!(made.as_deref(), Some(wanted), "{name} {unit}");
        }
    }

    #[test]
    fn names_of_labels_are_sanitized() {
        let namer = Namer::new("", ESCAPED);
        for (key, wanted) in [
            ("http.method", Some("http_method")),
            ("a__b", Some("a_b")),
            ("1st", Some("key_1st")),
            ("_foo", Some("key_foo")),
            ("__name__", Some("__name__")),
            ("__x", Some("key_x")),
            ("é", Some("key_")),
            ("_é_é__", Some("key_")),
            ("__é__", None),
            ("", None),
        ] {
            assert_eq!(namer.label(key).as_deref(), wanted, "{key}");
        }
    }

    #[test]
    fn units_are_words() {
        let namer = Namer::new("", ESCAPED);
        for (unit, wanted) in [
            ("s", Some("seconds")),
            ("By/s", Some("bytes_per_second")),
            ("1", None),
            ("{x}", None),
            ("/s", Some("per_second")),
        ] {
            assert_eq!(namer.unit(unit).as_deref(), wanted, "{unit}");
        }
    }
}
