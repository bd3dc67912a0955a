//! `patterns`: the load time of pattern sets, their size, and the time of a lookup.
//!
//! It measures only the library, in CPU time of one thread. It looks up existing and missing keys,
//! in an order in which no lookup profits from the previous one.

use std::fmt::Write as _;
use std::fs;
use std::hint::black_box;
use std::net::Ipv4Addr;

use lexopt::{Arg, ValueExt};
use sample::{Bytes, Compiler, Place, Reference, Value};

use crate::Failure;
use crate::sys::thread_time;
use crate::workdir::Workdir;

/// The options.
pub const HELP: &str = "[OPTIONS]: measures pattern sets: load time, bytes per entry, lookup time
--entries N        entries of each set (1000000)
--lookups N        lookups of each kind (1000000)";

struct Options {
    entries: u32,
    lookups: u32,
}

/// A kind of set.
struct Case {
    name: &'static str,
    /// The text up to the name of the file.
    converter: &'static str,
    key: fn(u32) -> String,
    /// The value that finds an entry; with a number beyond the last one, it finds none.
    value: fn(u32) -> Value<'static>,
}

const CASES: &[Case] = &[
    Case {
        name: "strings, str",
        converter: "str(),map_str(",
        key: host,
        value: |number| text(&host(number)),
    },
    Case {
        name: "strings, end",
        converter: "str(),map_end(",
        key: host,
        value: |number| text(&format!("www.{}", host(number))),
    },
    Case {
        name: "strings, dom",
        converter: "str(),map_dom(",
        key: host,
        value: |number| text(&format!("www.{}:80", host(number))),
    },
    Case {
        name: "paths, beg",
        converter: "str(),map_beg(",
        key: path,
        value: |number| text(&format!("{}index.html", path(number))),
    },
    Case {
        name: "IPv4 prefixes, ip",
        converter: "src,map_ip(",
        key: |number| format!("{}/{}", network(number), 24 + number % 9),
        value: |number| Value::Ipv4(network(number)),
    },
    Case {
        name: "IPv4 addresses, ip",
        converter: "src,map_ip(",
        key: |number| Ipv4Addr::from(scattered(number)).to_string(),
        value: |number| Value::Ipv4(Ipv4Addr::from(scattered(number))),
    },
    Case {
        name: "numbers, int",
        converter: "int(0),map_int(",
        key: |number| scattered(number).to_string(),
        value: |number| Value::Int(i64::from(scattered(number))),
    },
];

/// Runs the command.
///
/// # Errors
/// An option is invalid, or a set does not load.
pub fn run(parser: lexopt::Parser) -> Result<(), Failure> {
    let options = parse(parser)?;
    let folder = Workdir::new("patterns")?;
    println!(
        "{} entries each\n{:<20} {:>8} {:>12} {:>10} {:>10}",
        options.entries, "set", "load ms", "bytes/entry", "hit ns", "miss ns"
    );
    for case in CASES {
        let mut file = String::new();
        for number in 0..options.entries {
            let _ = writeln!(file, "{} v{}", (case.key)(number), number % 10);
        }
        fs::write(folder.path().join("set"), file)?;
        let mut compiler = Compiler::new();
        compiler.enter_line("bench", 1, folder.path());
        let before = thread_time();
        compiler.expr(&[&format!("{}set)", case.converter)], Place::ALL)?;
        let load = thread_time() - before;
        let (sets, _) = compiler.take_references();
        let set = sets.find("set").ok_or("no set was loaded")?;
        let hit = lookups(set, &options, |number| (case.value)(number));
        let miss = lookups(set, &options, |number| {
            (case.value)(options.entries + number)
        });
        println!(
            "{:<20} {:>8} {:>12} {:>10} {:>10}",
            case.name,
            load.as_millis(),
            set.bytes() / options.entries.max(1) as usize,
            hit,
            miss
        );
    }
    Ok(())
}

fn parse(mut parser: lexopt::Parser) -> Result<Options, Failure> {
    let mut options = Options {
        entries: 1_000_000,
        lookups: 1_000_000,
    };
    while let Some(arg) = parser.next()? {
        match arg {
            Arg::Long("entries") => options.entries = parser.value()?.parse()?,
            Arg::Long("lookups") => options.lookups = parser.value()?.parse()?,
            other => return Err(other.unexpected().into()),
        }
    }
    Ok(options)
}

/// Nanoseconds of a lookup. The values are built before the clock runs, one part at a time.
fn lookups(set: &Reference, options: &Options, value: impl Fn(u32) -> Value<'static>) -> u64 {
    const AT_ONCE: u32 = 10_000;
    let mut total = std::time::Duration::ZERO;
    let mut done = 0;
    while done < options.lookups {
        let some = AT_ONCE.min(options.lookups - done);
        let number =
            |at: u32| (u64::from(scattered(done + at)) % u64::from(options.entries.max(1))) as u32;
        let values: Vec<_> = (0..some).map(|at| value(number(at))).collect();
        let before = thread_time();
        for value in &values {
            set.look_up(0, value.borrow(), |_, value| {
                black_box(value.first());
            });
        }
        total += thread_time() - before;
        done += some;
    }
    (total.as_nanos() / u128::from(done.max(1))) as u64
}

/// A unique number without a visible order.
fn scattered(number: u32) -> u32 {
    number.wrapping_mul(0x9e37_79b1).rotate_left(7)
}

fn host(number: u32) -> String {
    format!("h{:x}.example{}.org", scattered(number), number % 100)
}

fn path(number: u32) -> String {
    format!("/app{}/{:x}/", number % 100, scattered(number))
}

fn network(number: u32) -> Ipv4Addr {
    // No other prefix of the set is within this one: the bits that differ come first.
    Ipv4Addr::from(number.reverse_bits())
}

fn text(text: &str) -> Value<'static> {
    Value::Str(Bytes::from(text)).detach()
}
