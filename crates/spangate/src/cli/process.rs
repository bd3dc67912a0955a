//! Commands that show the process itself, and commands of HAProxy for features that do not exist
//! here.

use std::fmt::Write as _;
use std::fs;

use config::model::{Bind, BindAddress};
use net::Addr;

use stats::nameserver;

use super::{Asked, Command, Level, Reply, command};

#[rustfmt::skip]
pub(super) const COMMANDS: &[Command] = &[
    command("show cli sockets", "", Level::User, "show the sockets of the runtime interface", sockets),
    command("show dev", "", Level::User, "show information for a bug report", dev),
    command("show libs", "", Level::Operator, "show the files that the program is loaded from", libs),
    command("show pools", "", Level::User, "show the memory of the process", pools),
    command("show resolvers", "[id]", Level::User, "show the counters of resolvers sections and their name servers", resolvers),
    command("show startup-logs", "", Level::Operator, "show the messages of the start", |_| Reply::Dump(crate::startup::messages())),
    command("show tasks", "", Level::User, "does not apply here", |_| does_not_apply("there are no tasks; see 'show sess', 'show activity' and 'show threads'")),
    command("show threads", "", Level::User, "show the threads and their CPU time", threads),
];

/// The refusal of a command for a feature that does not exist here.
pub(super) fn does_not_apply(why: &str) -> Reply {
    Reply::Refused(format!("This command does not apply here: {why}.\n"))
}

fn sockets(asked: &Asked<'_>) -> Reply {
    let config = &asked.subjects.runtime_config.config;
    Reply::Dump(socket_lines(&config.global.stats_sockets))
}

/// The lines of `show cli sockets`.
pub(crate) fn socket_lines(binds: &[Bind]) -> String {
    let line = |bind: &Bind| {
        let addr = match &bind.address {
            BindAddress::Addr(addr) => Some(addr.clone()),
            BindAddress::Quic(addr) => Some(net::Addr::Inet(*addr)),
            BindAddress::Fd(fd) => net::sys::local_addr(*fd).ok(),
        };
        let level = Level::of(bind).name();
        format!(
            "{} {level} all\n",
            addr.as_ref().map_or_else(|| "unknown".to_owned(), shown)
        )
    };
    let lines: String = binds.iter().map(line).collect();
    format!("# socket lvl processes\n{lines}")
}

/// An address with its family.
fn shown(addr: &Addr) -> String {
    match (addr, addr.ip()) {
        (_, Some(ip)) if ip.is_ipv4() => format!("ipv4@{addr}"),
        (_, Some(_)) => format!("ipv6@{addr}"),
        (Addr::Unix(path), _) => match path.strip_prefix(b"\0") {
            Some(name) => format!("abns@{}", String::from_utf8_lossy(name)),
            None => format!("unix@{}", String::from_utf8_lossy(path)),
        },
        _ => addr.to_string(),
    }
}

fn dev(asked: &Asked<'_>) -> Reply {
    let info = crate::build::info();
    let process = &asked.subjects.runtime_config.process;
    let mut out = format!(
        "HAProxy version {}\nSpangate version {}\nFeatures:\n  {}\n",
        info.version,
        env!("CARGO_PKG_VERSION"),
        info.features,
    );
    let system = fs::read_to_string("/proc/version").unwrap_or_default();
    let arguments: Vec<String> = std::env::args_os()
        .map(|argument| argument.to_string_lossy().escape_debug().to_string())
        .collect();
    // Writing to memory does not fail.
    let _ = write!(
        out,
        "System:\n  OS: {}\n  hostname: {}\n  cpus: {}\nProcess info:\n  pid: {}\n  cmdline: {}\n  threads: {}\n  fd limit: {}\n",
        system.trim_end(),
        asked.anonymiser.text(&process.hostname),
        std::thread::available_parallelism().map_or(0, usize::from),
        process.pid,
        arguments.join(" "),
        process.nbthread,
        asked.subjects.runtime_config.process.descriptors,
    );
    Reply::Dump(out)
}

fn resolvers(asked: &Asked<'_>) -> Reply {
    let config = &asked.subjects.runtime_config.config;
    let wanted = asked.rest.first().copied().filter(|name| !name.is_empty());
    if config.resolvers.is_empty() && wanted.is_none() {
        return Reply::Dump("No resolvers found\n".to_owned());
    }
    let rows = asked.subjects.shared.nameservers(config);
    let mut out = String::new();
    let sections = config.resolvers.iter().map(|section| &*section.name);
    for section in sections.filter(|section| wanted.is_none_or(|name| *section == name)) {
        let _ = writeln!(out, "Resolvers section {section}");
        for row in rows.iter().filter(|row| row.section == section) {
            let _ = writeln!(out, " nameserver {}:", row.name);
            for (counter, value) in nameserver::COUNTERS.iter().zip(row.values) {
                let _ = writeln!(out, "  {:<13}{value}", format!("{}:", counter.listed()));
            }
        }
    }
    match (wanted, out.is_empty()) {
        (Some(_), true) => Reply::Refused("Can't find that resolvers section\n".to_owned()),
        (_, _) => Reply::Dump(out),
    }
}

fn libs(_: &Asked<'_>) -> Reply {
    let Ok(maps) = fs::read_to_string("/proc/self/maps") else {
        return Reply::Refused("The files cannot be listed.\n".to_owned());
    };
    let mut files: Vec<(&str, u64, u64)> = Vec::new();
    for line in maps.lines() {
        let Some((range, path)) = line.split_once(' ').and_then(|(range, rest)| {
            let path = rest.find('/').map(|at| &rest[at..])?;
            Some((range, path))
        }) else {
            continue;
        };
        let hex = |text| u64::from_str_radix(text, 16).ok();
        let Some((start, end)) = range
            .split_once('-')
            .and_then(|(start, end)| Some((hex(start)?, hex(end)?)))
        else {
            continue;
        };
        match files.iter_mut().find(|(known, ..)| *known == path) {
            Some((_, first, last)) => (*first, *last) = ((*first).min(start), (*last).max(end)),
            None => files.push((path, start, end)),
        }
    }
    let line = |(path, start, end): (&str, u64, u64)| {
        format!(
            "{start:#014x}-{:#014x} ({:#09x}) {path}\n",
            end - 1,
            end - start
        )
    };
    Reply::Dump(files.into_iter().map(line).collect())
}

fn pools(_: &Asked<'_>) -> Reply {
    let Ok(status) = fs::read_to_string("/proc/self/status") else {
        return Reply::Refused("The memory cannot be read.\n".to_owned());
    };
    let of = |name: &str| {
        let mut lines = status.lines();
        let line = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.map_or("?", str::trim).to_owned()
    };
    Reply::Dump(format!(
        "Memory comes from the system's allocator, without pools.\n  - resident : {}\n  - resident at most : {}\n  - anonymous : {}\n",
        of("VmRSS"),
        of("VmHWM"),
        of("RssAnon"),
    ))
}

fn threads(_: &Asked<'_>) -> Reply {
    /// Times in `stat` are in hundredths of a second (proc_pid_stat(5)).
    const MS_A_TICK: u64 = 10;
    let Ok(tasks) = fs::read_dir("/proc/self/task") else {
        return Reply::Refused("The threads cannot be listed.\n".to_owned());
    };
    let mut lines: Vec<(u32, String)> = tasks
        .flatten()
        .filter_map(|task| {
            let id: u32 = task.file_name().to_str()?.parse().ok()?;
            let stat = fs::read_to_string(task.path().join("stat")).ok()?;
            let (name, rest) = stat.split_once('(')?.1.rsplit_once(')')?;
            let fields: Vec<&str> = rest.split_whitespace().collect();
            let ticks = |field: usize| fields.get(field)?.parse::<u64>().ok();
            let (user_ms, system_ms) = (ticks(11)? * MS_A_TICK, ticks(12)? * MS_A_TICK);
            let state = fields.first()?;
            let line = format!(
                "  Thread {name} : id={id} state={state} user_ms={user_ms} system_ms={system_ms}\n"
            );
            Some((id, line))
        })
        .collect();
    lines.sort_unstable();
    Reply::Dump(lines.into_iter().map(|(_, line)| line).collect())
}
