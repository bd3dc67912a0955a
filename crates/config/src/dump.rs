//! `-dK<class>[,…]`: the implemented keywords, in the format of HAProxy's listings (management
//! guide §3, `-dK`).
//!
//! A keyword of HAProxy that this version lacks is listed in its place after `NOT_YET`. Tools that
//! skip comments only see the usable ones.

use crate::keywords::{
    self, Keyword, Places, State, actions, bind, checks, global, proxy, server, tls,
};
use sample::Place;
use sample::reference::{self, kind_name};
use std::fmt::Write as _;

/// The prefix of a keyword that is known but not implemented.
const NOT_YET: &str = "# not yet: ";

/// A class, its description, and the function for its lines if they are generated here.
type Class = (&'static str, &'static str, Option<fn() -> String>);

/// The classes in HAProxy's order.
const CLASSES: &[Class] = &[
    ("acl", "ACL keywords", Some(acl)),
    ("cfg", "configuration keywords", Some(cfg)),
    ("cli", "CLI keywords", None),
    ("cnv", "sample converter keywords", Some(cnv)),
    ("flt", "filter names", Some(String::new)),
    ("smp", "sample fetch functions", Some(smp)),
    ("svc", "service names", Some(String::new)),
];

/// The listing of classes, such as `acl,smp`, `all` or `help`. `commands` are the lines of the
/// runtime interface. An unknown class lists nothing, as in HAProxy.
#[must_use]
pub fn keywords(classes: &str, commands: &str) -> String {
    let mut out = String::new();
    let mut all = false;
    for wanted in classes.split(',') {
        all |= wanted == "all";
        if wanted == "help" {
            out.push_str("# List of supported keyword classes:\nall: list all keywords\n");
            for (name, what, _) in CLASSES {
                let _ = writeln!(out, "{name}: {what}");
            }
            continue;
        }
        for (name, what, lines) in CLASSES {
            if !all && *name != wanted {
                continue;
            }
            let what = match *name {
                "cnv" => "sample converter functions",
                _ => what,
            };
            let _ = writeln!(out, "# List of registered {what}:");
            match lines {
                Some(lines) => out.push_str(&lines()),
                None => out.push_str(commands),
            }
        }
    }
    out
}

/// Lines, sorted by their names.
struct Sorted {
    indent: &'static str,
    lines: Vec<(String, bool)>,
}

impl Sorted {
    fn new(indent: &'static str) -> Sorted {
        Sorted {
            indent,
            lines: Vec::new(),
        }
    }

    fn add(&mut self, line: impl Into<String>, is_served: bool) {
        self.lines.push((line.into(), is_served));
    }

    fn write(mut self, out: &mut String) {
        self.lines.sort();
        for (line, is_served) in self.lines {
            let mark = if is_served { "" } else { NOT_YET };
            let _ = writeln!(out, "{}{mark}{line}", self.indent);
        }
    }
}

fn acl() -> String {
    let (mut out, mut lines) = (String::new(), Sorted::new(""));
    for keyword in reference::acl_keywords() {
        let line = format!("{} = {} -m {}", keyword.name, keyword.fetch, keyword.method);
        lines.add(line, keyword.is_served);
    }
    lines.write(&mut out);
    out
}

fn cnv() -> String {
    let (mut out, mut lines) = (String::new(), Sorted::new(""));
    for entry in reference::converters() {
        let from = kind_name(entry.from.unwrap_or(entry.to));
        let to = kind_name(entry.to);
        lines.add(
            format!("{}{}: {to} => {from}", entry.name, args(&entry)),
            true,
        );
    }
    for name in reference::missing_converters() {
        lines.add(name, false);
    }
    lines.write(&mut out);
    out
}

fn smp() -> String {
    let mut out = places_legend();
    let mut lines = Vec::new();
    for entry in reference::fetches() {
        let mut line = String::from("[ ");
        for (place, _) in Place::moments() {
            line.push_str(if entry.places.meets(place) {
                "Y "
            } else {
                ". "
            });
        }
        let _ = writeln!(
            line,
            "] {}{}: {}",
            entry.name,
            args(&entry),
            kind_name(entry.to)
        );
        lines.push((entry.name, line));
    }
    for name in reference::missing_fetches() {
        lines.push((name, format!("{NOT_YET}{name}\n")));
    }
    lines.sort();
    out.extend(lines.into_iter().map(|(_, line)| line));
    out
}

/// The legend for the columns of [`smp`].
fn places_legend() -> String {
    let mut out = String::new();
    let count = Place::moments().len();
    for (index, (_, name)) in Place::moments().enumerate() {
        let (before, after) = ("/ ".repeat(index), "-".repeat(count - index));
        let _ = writeln!(
            out,
            "#{:width$}{before}_.{after} {name}",
            "",
            width = count + 1 - index
        );
    }
    let _ = writeln!(out, "# {} ", "/ ".repeat(count));
    let _ = writeln!(out, "#{} ", " |".repeat(count));
    out
}

fn args(entry: &reference::Entry) -> String {
    match entry.args.as_str() {
        "" => String::new(),
        args => format!("({args})"),
    }
}

/// In HAProxy's order.
const RULE_SETS: &[(Places, &str)] = &[
    (Places::TCP_CONNECTION, "tcp-request connection"),
    (Places::TCP_SESSION, "tcp-request session"),
    (Places::TCP_CONTENT, "tcp-request content"),
    (Places::TCP_RESPONSE, "tcp-response content"),
    (Places::HTTP_REQUEST, "http-request"),
    (Places::HTTP_RESPONSE, "http-response"),
    (Places::HTTP_AFTER_RESPONSE, "http-after-response"),
];

fn cfg() -> String {
    let mut out = String::from("global\n");
    table(&mut out, "", global::KEYWORDS);
    out.push_str("listen\n");
    table(&mut out, "", proxy::KEYWORDS);
    options(&mut out, "bind <addr> ", bind::KEYWORDS, Places::BIND);
    let server = "server <name> <addr> ";
    options(&mut out, server, server::KEYWORDS, Places::SERVER);
    table(&mut out, "option ", keywords::options::KEYWORDS);
    for (set, name) in RULE_SETS {
        let mut lines = Sorted::new("\t");
        add(&mut lines, &format!("{name} "), actions::of(*set));
        lines.write(&mut out);
    }
    out
}

/// The keywords of a table, without those that HAProxy removed.
fn table<P>(out: &mut String, prefix: &str, table: &[Keyword<P>]) {
    let mut lines = Sorted::new("\t");
    add(&mut lines, prefix, table.iter());
    lines.write(out);
}

/// The options of a kind of line, including those of shared tables.
fn options<P>(out: &mut String, prefix: &str, table: &[Keyword<P>], place: Places) {
    let mut lines = Sorted::new("\t");
    add(&mut lines, prefix, table.iter());
    let is_here = |places: Places| places.intersects(place);
    let of_tls = tls::OPTIONS.iter().filter(|row| is_here(row.places));
    add(&mut lines, prefix, of_tls);
    let of_checks = checks::OPTIONS.iter().filter(|row| is_here(row.places));
    add(&mut lines, prefix, of_checks);
    lines.write(out);
}

fn add<'t, P: 't>(lines: &mut Sorted, prefix: &str, table: impl Iterator<Item = &'t Keyword<P>>) {
    for keyword in table {
        let is_served = match keyword.state {
            State::Supported(_) | State::Partly(..) | State::NoEffect(_) => true,
            State::NotYet => false,
            State::Removed(_) => continue,
        };
        let more = match keyword.args.words() {
            0 => String::new(),
            words => format!(" +{words}"),
        };
        lines.add(format!("{prefix}{}{more}", keyword.name), is_served);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listings_have_haproxys_form() {
        let smp = keywords("smp", "");
        let lines: Vec<&str> = smp.lines().collect();
        assert_eq!(
            lines[1],
            "#                       _.---------------------- frontend tcp-request connection rule"
        );
        assert_eq!(
            lines[22],
            "#  / / / / / / / / / / / / / / / / / / / / / _.- CLI parser"
        );
        assert_eq!(lines[24], "# | | | | | | | | | | | | | | | | | | | | | | ");
        let src = "[ Y Y Y Y Y Y Y Y Y Y Y Y Y Y Y Y Y Y Y Y . . ] src: addr";
        assert!(lines.contains(&src), "{smp}");
        let all = keywords("all", "show info [WORKER]\n");
        for line in [
            "base_beg = base -m beg",
            "add(string): sint => sint",
            "\tbind <addr> name +1",
            "\thttp-request set-var*",
            "show info [WORKER]",
            "# List of registered service names:",
        ] {
            assert!(all.lines().any(|found| found == line), "{line}");
        }
        assert!(keywords("help", "").contains("\nsmp: sample fetch functions\n"));
        assert_eq!(keywords("nope", ""), "");
    }
}
