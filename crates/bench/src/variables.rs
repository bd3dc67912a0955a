//! `variables`: what an access to a variable costs, for more and more of them.

use std::fmt::Write;

use crate::Failure;
use crate::comparison::{self, Comparison, Cost};

/// The options.
pub const HELP: &str = comparison::help!(
    "CPU of requests that set N variables, each the sum of the ten before it, beside HAProxy"
);

/// How many variables.
const COUNTS: &[u32] = &[0, 25, 100, 1000];

/// Each adds this many before it.
const ADDED: u32 = 10;

/// Runs the command.
///
/// # Errors
/// When an option is not understood, a program is missing, or a proxy fails.
pub fn run(parser: lexopt::Parser) -> Result<(), Failure> {
    let comparison = Comparison::new(parser, "bench-variables")?;
    println!(
        "Medians, CPU microseconds for each request; ns: what an access (a set or a lookup) adds to it.\n"
    );
    println!(
        "{:<12}{:<10}{:<10}{:>9}{:>9}{:>9}{:>10}",
        "variables", "accesses", "proxy", "CPU us", "user us", "ns", "x haproxy"
    );
    let mut idle: Vec<Cost> = Vec::new();
    for &count in COUNTS {
        let costs = comparison.case(&rules(count), &[])?;
        if count == 0 {
            idle.clone_from(&costs);
        }
        let haproxy = costs.iter().find(|cost| cost.name == "haproxy");
        for (index, (cost, idle)) in costs.iter().zip(&idle).enumerate() {
            let added_ns = (cost.cpu_us - idle.cpu_us) * 1000.0 / f64::from(accesses(count).max(1));
            println!(
                "{:<12}{:<10}{:<10}{:>9.2}{:>9.2}{:>9}{:>10}{}",
                if index == 0 {
                    count.to_string()
                } else {
                    String::new()
                },
                if index == 0 {
                    accesses(count).to_string()
                } else {
                    String::new()
                },
                cost.name,
                cost.cpu_us,
                cost.user_us,
                if count == 0 {
                    "-".into()
                } else {
                    format!("{added_ns:.1}")
                },
                haproxy.map_or("-".into(), |peer| format!(
                    "{:.3}",
                    cost.cpu_us / peer.cpu_us
                )),
                if cost.errors > 0 { "  ! errors" } else { "" },
            );
        }
    }
    Ok(())
}

/// Sets and lookups of a request.
fn accesses(count: u32) -> u32 {
    (0..count).map(|number| 1 + number.min(ADDED)).sum()
}

fn rules(count: u32) -> String {
    let mut text = String::new();
    for number in 0..count {
        let _ = write!(text, "    http-request set-var(txn.v{number}) int(1)");
        for before in number.saturating_sub(ADDED)..number {
            let _ = write!(text, ",add(txn.v{before})");
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_variable_adds_the_ten_before_it() {
        let text = rules(12);
        assert_eq!(text.lines().count(), 12);
        assert_eq!(text.matches("(txn.v").count() as u32, accesses(12));
        let last = text.lines().last().unwrap();
        assert!(
            last.contains("set-var(txn.v11)")
                && last.contains("add(txn.v1)")
                && !last.contains("add(txn.v0)")
        );
    }
}
