//! `tables`: the cost of a request that a stick table tracks, and the memory of an entry.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::Ipv4Addr;
use std::os::unix::net::UnixStream;
use std::path::Path;

use crate::Failure;
use crate::comparison::{self, Case, Comparison, Cost};
use crate::report::median;

/// The options.
pub const HELP: &str = comparison::help!(
    "CPU of requests that count three rates in a stick table, with one entry and with a million, and the memory of an entry, compared with HAProxy"
);

/// The entries of the large table.
const ENTRIES: u32 = 1_000_000;
/// How many entries one line of the runtime interface makes: HAProxy reads a line of one buffer.
const ENTRIES_A_LINE: u32 = 200;

/// The table of each case: three rates, as sites use them against floods.
const TABLE: &str = "    stick-table type ip size 2m expire 1h store http_req_rate(10s),http_err_rate(10s),bytes_out_rate(10s)";

/// The field of requests that names the client.
const FIELD: &str = "X-Client";

/// Makes requests of clients that the table knows, in any order.
const SCRIPT: &str = "math.randomseed(7)
request = function()
  local n = math.random(0, ENTRIES - 1)
  local client = string.format(\"10.%d.%d.%d\", math.floor(n / 65536), math.floor(n / 256) % 256, n % 256)
  return wrk.format(\"GET\", nil, { [\"FIELD\"] = client })
end
";

/// Runs the command.
///
/// # Errors
/// An option is invalid, a program is missing, or a proxy fails.
pub fn run(parser: lexopt::Parser) -> Result<(), Failure> {
    let comparison = Comparison::new(parser, "bench-tables")?;
    let script = comparison.dir().join("clients.lua");
    let text = SCRIPT.replace("ENTRIES", &ENTRIES.to_string());
    std::fs::write(&script, text.replace("FIELD", FIELD))?;
    let socket = comparison.dir().join("runtime.sock");
    let global = format!("    stats socket {} level admin", socket.display());
    let one = format!("{TABLE}\n    http-request track-sc0 src");
    let all = format!("{TABLE}\n    http-request track-sc0 req.hdr_ip({FIELD})");
    let mut progress = comparison.progress(3);
    let none = Case {
        name: "no table",
        script: Some(&script),
        ..Case::default()
    };
    let tracks_one = Case {
        name: "one entry",
        rules: &one,
        ..none
    };
    let tracks_all = Case {
        name: "a million",
        global: &global,
        rules: &all,
        ..none
    };
    let mut table = Vec::new();
    for case in [none, tracks_one] {
        table.push((
            case.name,
            comparison.case(&case, &mut progress, |_| Ok(()))?,
        ));
    }
    let mut memory = Vec::new();
    let costs = comparison.case(&tracks_all, &mut progress, |running| {
        let before = running.process.memory().private;
        fill(&socket)?;
        let taken = running.process.memory().private.saturating_sub(before);
        memory.push((running.name, taken as f64 / f64::from(ENTRIES)));
        Ok(())
    })?;
    table.push((tracks_all.name, costs));
    drop(progress);
    println!("Medians; CPU in microseconds per request, bytes of private memory.\n");
    print(&table, &memory);
    Ok(())
}

/// Makes all entries of the table.
fn fill(socket: &Path) -> Result<(), Failure> {
    let mut next = 0;
    while next < ENTRIES {
        let mut line = String::new();
        for number in next..(next + ENTRIES_A_LINE).min(ENTRIES) {
            let client = Ipv4Addr::from_bits(0x0a00_0000 + number);
            let _ = write!(line, "set table load key {client};");
        }
        next += ENTRIES_A_LINE;
        let answer = ask(socket, &line)?;
        if !answer.trim().is_empty() {
            return Err(format!("set table: {}", answer.trim()).into());
        }
    }
    let shown = ask(socket, "show table")?;
    if !shown.contains(&format!("used:{ENTRIES}")) {
        return Err(format!("the table is not full: {}", shown.trim()).into());
    }
    Ok(())
}

/// The answer of the runtime interface to a line.
fn ask(socket: &Path, line: &str) -> Result<String, Failure> {
    let mut stream = UnixStream::connect(socket)?;
    stream.write_all(format!("{line}\n").as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

fn print(table: &[(&str, Vec<Cost>)], memory: &[(&str, f64)]) {
    let first = |costs: &[Cost]| costs.first().map(|cost| cost.name);
    let peer = |costs: &[Cost]| costs.get(1).copied();
    println!(
        "{:<12}{:<10}{:>9}{:>9}{:>11}{:>12}{:>10}",
        "table", "proxy", "CPU us", "user us", "x haproxy", "B an entry", "x haproxy"
    );
    for (name, costs) in table {
        for cost in costs {
            let ratio = peer(costs).map(|peer| cost.cpu_us / peer.cpu_us);
            let bytes = |of: &str| {
                let runs = memory.iter().filter(|(name, _)| *name == of);
                median(runs.map(|(_, bytes)| *bytes).collect())
            };
            let is_full = *name == "a million";
            let of_peer = peer(costs).map(|peer| bytes(cost.name) / bytes(peer.name));
            println!(
                "{:<12}{:<10}{:>9.2}{:>9.2}{:>11}{:>12}{:>10}{}",
                if Some(cost.name) == first(costs) {
                    *name
                } else {
                    ""
                },
                cost.name,
                cost.cpu_us,
                cost.user_us,
                shown(ratio),
                if is_full {
                    format!("{:.0}", bytes(cost.name))
                } else {
                    String::new()
                },
                if is_full {
                    shown(of_peer)
                } else {
                    String::new()
                },
                if cost.errors > 0 { "  ! errors" } else { "" },
            );
        }
    }
}

fn shown(ratio: Option<f64>) -> String {
    ratio.map_or("-".into(), |ratio| format!("{ratio:.3}"))
}
