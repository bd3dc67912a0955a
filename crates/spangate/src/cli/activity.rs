//! `show activity`, `show profiling`, `set profiling`: the work of the workers.

use std::fmt::Write as _;

use net::activity::Activity;

use super::process::does_not_apply;
use super::servers::number;
use super::{Asked, Command, Level, Reply, command};

#[rustfmt::skip]
pub(super) const COMMANDS: &[Command] = &[
    command("show activity", "[-1|0|thread_num]", Level::Operator, "show activity counters of the process and its workers", activity),
    command("set profiling", "<what> {auto|on|off}", Level::Admin, "does not apply here", set_profiling),
    command("show profiling", "[<what>|<#lines>|<opts>]*", Level::Admin, "show what is profiled (nothing)", show_profiling),
];

/// There is no internal profiling. Programs look for these lines.
const PROFILING: &str = "\
Per-task CPU profiling              : off           # set profiling tasks {on|auto|off}
Memory usage profiling              : off           # set profiling memory {on|off}
";

fn set_profiling(asked: &Asked<'_>) -> Reply {
    let Some((what, values)) = asked.rest.split_first() else {
        return Reply::Refused("Expects either 'tasks' or 'memory'.\n".to_owned());
    };
    match (*what, values.first().copied()) {
        ("tasks" | "memory", Some("off")) | ("tasks", Some("no-lock" | "no-memory")) => Reply::Done,
        ("tasks", Some("on" | "auto" | "lock" | "memory")) => does_not_apply(
            "there are no tasks to profile; 'perf record' can profile the threads 'worker-<n>'",
        ),
        ("memory", Some("on")) => does_not_apply("memory comes from the system's allocator"),
        ("tasks", _) => Reply::Refused(
            "Expects a combination of either 'on', 'auto', 'off', 'lock', 'no-lock', 'memory' or 'no-memory'.\n"
                .to_owned(),
        ),
        ("memory", _) => Reply::Refused("Expects either 'on' or 'off'.\n".to_owned()),
        _ => Reply::Refused("Expects either 'tasks' or 'memory'.\n".to_owned()),
    }
}

/// `show profiling [all|status|tasks|memory] [byaddr|bytime|byctx|aggr|<lines>]*`
fn show_profiling(asked: &Asked<'_>) -> Reply {
    let mut has_status = true;
    for word in asked.rest {
        match *word {
            "all" | "status" => has_status = true,
            "tasks" | "memory" => has_status = false,
            "byaddr" | "bytime" | "byctx" | "aggr" => {}
            word if word.bytes().all(|byte| byte.is_ascii_digit()) => {}
            _ => {
                return Reply::Refused(
                    "Expects either 'all', 'status', 'tasks', 'memory', 'byaddr', 'bytime', 'byctx', 'aggr' or a max number of output lines.\n"
                        .to_owned(),
                );
            }
        }
    }
    if has_status {
        Reply::Dump(PROFILING.to_owned())
    } else {
        Reply::Done
    }
}

/// How the values of the workers make one.
#[derive(Clone, Copy)]
enum Total {
    Sum,
    Average,
}

/// A line with a value for each worker.
struct Line {
    name: &'static str,
    total: Total,
    value: fn(&Activity, net::Now) -> u64,
}

/// The names are HAProxy's, except `events`.
const LINES: &[Line] = &[
    Line {
        name: "loops",
        total: Total::Sum,
        value: |worker, _| worker.rounds(),
    },
    Line {
        name: "events",
        total: Total::Sum,
        value: |worker, _| worker.events(),
    },
    Line {
        name: "curr_rq",
        total: Total::Sum,
        value: |worker, _| u64::from(worker.waiting()),
    },
    Line {
        name: "cpu_ms_tot",
        total: Total::Sum,
        value: |worker, _| worker.cpu_ns() / 1_000_000,
    },
    Line {
        name: "avg_cpu_pct",
        total: Total::Average,
        value: |worker, now| u64::from(100 - worker.idle_percent(now)),
    },
    Line {
        name: "avg_loop_us",
        total: Total::Average,
        value: |worker, _| {
            (worker.cpu_ns() / 1_000)
                .checked_div(worker.rounds())
                .unwrap_or(0)
        },
    },
    Line {
        name: "accepted",
        total: Total::Sum,
        value: |worker, _| worker.accepted(),
    },
];

/// The columns of `show activity`.
#[derive(Clone, Copy)]
enum Columns {
    /// The total, and each worker.
    All,
    Total,
    /// A worker, from 0 on.
    One(usize),
}

/// `show activity [-1|0|<thread>]`; without an argument, all columns.
fn activity(asked: &Asked<'_>) -> Reply {
    let subjects = asked.subjects;
    let process = &subjects.runtime_config.process;
    let wanted = asked.rest.first().map_or(-1, |word| number(word));
    let columns = match usize::try_from(wanted) {
        Err(_) if wanted == -1 => Columns::All,
        Ok(0) => Columns::Total,
        Ok(thread) if thread <= process.nbthread as usize => Columns::One(thread - 1),
        Ok(_) | Err(_) => {
            return Reply::Refused("Thread ID number must be between -1 and nbthread\n".to_owned());
        }
    };
    let now = net::sys::now();
    let time = |ns: u64| {
        let us = ns / 1_000;
        format!("{}.{:06}", us / 1_000_000, us % 1_000_000)
    };
    let mut out = format!(
        "thread_id: 1 (1..{})\ndate_now: {}\nuptime_now: {}\n",
        process.nbthread,
        time(now.wall_ns),
        time(now.mono_ns - process.started.mono_ns),
    );
    let workers = subjects.shared.activities();
    for line in LINES {
        let values: Vec<u64> = workers
            .iter()
            .map(|worker| (line.value)(worker, now))
            .collect();
        // Writing to memory does not fail.
        let _ = writeln!(
            out,
            "{}: {}",
            line.name,
            shown(&values, line.total, columns)
        );
    }
    if !matches!(columns, Columns::One(_)) {
        of_process(asked, now, &mut out);
    }
    Reply::Dump(out)
}

fn shown(values: &[u64], total: Total, columns: Columns) -> String {
    let sum: u64 = values.iter().sum();
    let total = match total {
        Total::Sum => sum,
        Total::Average => sum / values.len().max(1) as u64,
    };
    match columns {
        Columns::One(worker) => values.get(worker).copied().unwrap_or(0).to_string(),
        Columns::All if values.len() > 1 => {
            let values: Vec<String> = values.iter().map(u64::to_string).collect();
            format!("{total} [ {} ]", values.join(" "))
        }
        Columns::All | Columns::Total => total.to_string(),
    }
}

/// The counters that are not kept for each worker.
fn of_process(asked: &Asked<'_>, now: net::Now, out: &mut String) {
    let shared = &asked.subjects.shared;
    let did = shared.activity(now.ms());
    // Writing to memory does not fail.
    let _ = write!(
        out,
        "accepted_1s: {}\nsessions_1s: {}\nrequests: {}\nclients: {}\nstreams: {}\npanics: {}\n",
        did.connection_rate,
        did.session_rate,
        did.requests,
        shared.clients(),
        shared.streams_now(&asked.subjects.runtime_config.config),
        shared.panics(),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_threads() {
        let shown = |total, columns| shown(&[4, 7], total, columns);
        assert_eq!(shown(Total::Sum, Columns::All), "11 [ 4 7 ]");
        assert_eq!(shown(Total::Average, Columns::Total), "5");
        assert_eq!(shown(Total::Sum, Columns::One(1)), "7");
    }
}
