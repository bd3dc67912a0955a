//! Options of `bind` and server lines, one by one.

use super::item::{self, key_of};
use super::{Change, Written};
use crate::build::values;
use crate::keywords::arguments::Args;
use crate::keywords::{Keyword, Places, State, bind, checks, server, tls};
use crate::tree::Statement;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::LazyLock;

/// The options of a line by name.
pub(super) type Options<'t> = BTreeMap<String, Value<'t>>;

/// An option and its arguments.
#[derive(Clone, Debug)]
pub(super) struct Value<'t> {
    statement: &'t Statement,
    words: Range<usize>,
    /// The words of earlier lines, where each line of the option adds to the ones before.
    before: Vec<Range<usize>>,
    /// In one form for all ways to write it; None for the default.
    key: Option<Vec<u8>>,
}

/// A kind of line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Listener,
    Server,
}

/// An option of the tables.
#[derive(Clone, Copy)]
struct Known {
    /// The number of its arguments.
    words: usize,
    /// Its arguments end at the next option.
    is_open: bool,
    has_effect: bool,
}

static LISTENER: LazyLock<HashMap<&'static str, Known>> = LazyLock::new(|| {
    let mut table = HashMap::new();
    add(&mut table, bind::KEYWORDS, Places::BIND);
    add(&mut table, tls::OPTIONS, Places::BIND);
    table
});

static SERVER: LazyLock<HashMap<&'static str, Known>> = LazyLock::new(|| {
    let mut table = HashMap::new();
    add(&mut table, server::KEYWORDS, Places::SERVER);
    add(&mut table, tls::OPTIONS, Places::SERVER);
    add(&mut table, checks::OPTIONS, Places::SERVER);
    table
});

fn add<P: Copy>(table: &mut HashMap<&'static str, Known>, from: &[Keyword<P>], place: Places) {
    for keyword in from
        .iter()
        .filter(|keyword| keyword.places.intersects(place))
    {
        let known = Known {
            words: keyword.args.words(),
            is_open: matches!(keyword.args, Args::Any),
            has_effect: !matches!(keyword.state, State::NoEffect(_)),
        };
        table.insert(keyword.name.trim_end_matches('*'), known);
    }
}

/// Options that `no-…` only cancels. For others, `no-…` is a value, because `global` or the program
/// sets them.
const CANCELLED: &[&str] = &[
    "agent-check",
    "backup",
    "check",
    "check-send-proxy",
    "check-ssl",
    "outlier-ejection",
    "send-proxy",
    "send-proxy-v2",
    "send-proxy-v2-ssl",
    "send-proxy-v2-ssl-cn",
    "ssl",
    "tfo",
    "verifyhost",
];

/// Other options that cancel one.
const CANCELS: &[(&str, &str)] = &[("enabled", "disabled"), ("stick", "non-stick")];

/// Options of which a line may have several.
const ADDED_UP: &[&str] = &["crt", "crt-list", "default-crt"];

/// Options with a time in milliseconds.
const TIMES: &[&str] = &[
    "agent-inter",
    "downinter",
    "fastinter",
    "idle-ping",
    "inter",
    "pool-purge-delay",
    "slowstart",
    "tcp-ut",
];

/// Words after `source <address>` that have an argument.
const OF_SOURCE: &[&str] = &["interface", "usesrc"];

/// Values of a server's options that it has without them.
const SERVER_DEFAULTS: &[(&str, &str)] = &[
    ("fall", "3"),
    ("inter", "2000"),
    ("maxconn", "0"),
    ("maxqueue", "0"),
    ("minconn", "0"),
    ("pool-purge-delay", "5000"),
    ("rise", "2"),
    ("weight", "1"),
];

impl Kind {
    fn find(self, word: &str) -> Option<Known> {
        let table = match self {
            Kind::Listener => &*LISTENER,
            Kind::Server => &*SERVER,
        };
        let stem = word.split('(').next().unwrap_or_default();
        table.get(word).or_else(|| table.get(stem)).copied()
    }

    /// Adds the options of a line from word `at` on to those of `options`.
    pub fn read<'t>(self, statement: &'t Statement, mut at: usize, options: &mut Options<'t>) {
        let mut own: Vec<String> = Vec::new();
        while at < statement.words.len() {
            let start = at;
            let word = statement.arg(start);
            let known = self.find(word);
            at = self.end(statement, start, known);
            if known.is_some_and(|known| !known.has_effect) {
                continue;
            }
            if let Some((_, cancelled)) = CANCELS.iter().find(|(option, _)| *option == word) {
                options.remove(*cancelled);
                continue;
            }
            let base = word.strip_prefix("no-");
            let name = match base.filter(|base| self.find(base).is_some()) {
                Some(base) if CANCELLED.contains(&base) => {
                    options.remove(base);
                    continue;
                }
                Some(base) => base,
                None => word,
            };
            let mut value = self.value(statement, start..at);
            // Each line starts anew.
            if ADDED_UP.contains(&name)
                && own.iter().any(|own| own == name)
                && let Some(earlier) = options.get(name)
            {
                value = value.after(earlier);
            }
            own.push(name.to_owned());
            options.insert(name.to_owned(), value);
        }
    }

    /// The end of the option at `start`.
    fn end(self, statement: &Statement, start: usize, known: Option<Known>) -> usize {
        let count = statement.words.len();
        let Some(known) = known else {
            return start + 1;
        };
        let mut at = (start + 1 + known.words).min(count);
        if known.is_open {
            while at < count && self.find(statement.arg(at)).is_none() {
                at += 1;
            }
        }
        while statement.arg(start) == "source" && OF_SOURCE.contains(&statement.arg(at)) {
            at = (at + 2).min(count);
        }
        at
    }

    fn value(self, statement: &Statement, words: Range<usize>) -> Value<'_> {
        let name = statement.arg(words.start);
        let text = statement.arg(words.start + 1);
        let is_short = words.len() == 2;
        let time = values::time(text)
            .ok()
            .filter(|_| is_short && TIMES.contains(&name));
        let text = time.map_or_else(|| text.to_owned(), |time| time.as_millis().to_string());
        let is_default = self == Kind::Server
            && is_short
            && SERVER_DEFAULTS
                .iter()
                .any(|(known, value)| *known == name && *value == text);
        let key = match time {
            _ if is_default => None,
            Some(time) => Some(time.as_micros().to_be_bytes().to_vec()),
            None => Some(key_of(
                statement.words.get(words.clone()).unwrap_or_default(),
            )),
        };
        Value {
            statement,
            words,
            before: Vec::new(),
            key,
        }
    }
}

impl<'t> Value<'t> {
    /// This value, in addition to an earlier one of the same line.
    fn after(mut self, earlier: &Value<'t>) -> Value<'t> {
        self.before.clone_from(&earlier.before);
        self.before.push(earlier.words.clone());
        let earlier = earlier.key.clone().unwrap_or_default();
        self.key = Some([earlier, self.key.unwrap_or_default()].concat());
        self
    }

    fn written(&self) -> Written {
        let ranges = self.before.iter().chain([&self.words]);
        let parts: Vec<String> = ranges
            .map(|words| item::part(self.statement, words.clone()))
            .collect();
        let text = parts.join(" ");
        // A variable with several words is shown at its first word.
        let text = if text.is_empty() {
            format!("{} …", self.statement.arg(self.words.start))
        } else {
            text
        };
        Written {
            text,
            place: item::place(self.statement.span()),
        }
    }
}

/// A difference between the options of two lines.
pub(super) struct Difference {
    pub option: String,
    pub change: Change,
}

/// The options that differ, by name.
pub(super) fn compare(old: &Options<'_>, new: &Options<'_>) -> Vec<Difference> {
    super::names(old, new)
        .into_iter()
        .filter_map(|name| difference(name, old.get(name), new.get(name)))
        .collect()
}

fn difference(name: &str, old: Option<&Value<'_>>, new: Option<&Value<'_>>) -> Option<Difference> {
    let key = |value: Option<&Value<'_>>| value.and_then(|value| value.key.clone());
    if key(old) == key(new) {
        return None;
    }
    Some(Difference {
        option: name.to_owned(),
        change: Change::between(old.map(Value::written), new.map(Value::written))?,
    })
}
