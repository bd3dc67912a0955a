//! Arguments of the keywords for HAProxy's thread placement. They have no effect here: the kernel's
//! scheduler places the threads (manual §3.1).

use super::line::{Cursor, Parse};

/// Most thread groups in HAProxy.
const GROUPS_MAX: u32 = 32;
/// Most threads in HAProxy.
const THREADS_MAX: u32 = 1024;
/// Bits of a mask of `cpu-map`.
const MASK_BITS: u32 = 64;
/// Most CPUs of a set in HAProxy.
const CPUS_MAX: u32 = 1024;

/// `cpu-map [auto:]<thread-group>[/<thread-set>] <cpu-set>[,…] […]`
pub fn cpu_map(cursor: &mut Cursor<'_>) -> Parse {
    if cursor.line.count() < cursor.at + 2 {
        return Err(cursor.line.fault(
            cursor.at,
            format!(
                "cpu-map expects a thread group number  ('all', 'odd', 'even', a number from 1 to {MASK_BITS} or a range),  \
                 followed by a list of CPU ranges with numbers from 0 to {}.",
                MASK_BITS - 1
            ),
        ));
    }
    let threads = cursor.take();
    let threads = threads.strip_prefix("auto:").unwrap_or(threads);
    for part in threads.splitn(2, '/') {
        numbers(cursor, part)?;
    }
    while !cursor.peek().is_empty() {
        cpus(cursor)?;
    }
    Ok(())
}

/// `all`, `odd`, `even`, a number or a range.
fn numbers(cursor: &Cursor<'_>, text: &str) -> Parse {
    if matches!(text, "all" | "odd" | "even") {
        return Ok(());
    }
    let (low, high) = text.split_once('-').unwrap_or((text, text));
    let number = |text: &str| text.parse::<u32>().ok();
    let is_known = number(low).is_some_and(|low| (1..=MASK_BITS).contains(&low))
        && (high.is_empty() || number(high).is_some_and(|high| high <= MASK_BITS));
    if is_known {
        Ok(())
    } else {
        Err(cursor.fault(format!(
        "cpu-map : '{text}' is not a valid number/range. It supports numbers from 1 to {MASK_BITS}."
    )))
    }
}

/// One word of CPU numbers and ranges, separated by commas.
fn cpus(cursor: &mut Cursor<'_>) -> Parse {
    let name = cursor.line.keyword();
    for part in cursor.take().split(',') {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        let is_range =
            low.parse::<u32>().is_ok() && (high.is_empty() || high.parse::<u32>().is_ok());
        if !is_range {
            return Err(cursor.fault(format!("{name} : '{part}' is not a CPU range.")));
        }
        let within = |text: &str| text.parse::<u32>().is_ok_and(|number| number < CPUS_MAX);
        if !within(low) || !(high.is_empty() || within(high)) {
            let most = CPUS_MAX - 1;
            return Err(cursor.fault(format!("{name} : supports CPU numbers from 0 to {most}.")));
        }
    }
    Ok(())
}

/// `cpu-set reset|drop-cpu|only-cpu|… [<set>] …`
pub fn cpu_set(cursor: &mut Cursor<'_>) -> Parse {
    const WHAT: [&str; 5] = ["cpu", "node", "cluster", "core", "thread"];
    const KNOWN: &str = "(only 'reset', 'only-cpu', 'drop-cpu', 'only-node', 'drop-node', 'only-cluster', 'drop-cluster', \
                         'only-core', 'drop-core', 'only-thread', 'drop-thread' supported)";
    cursor.line.need(cursor.at, || {
        format!("'cpu-set' requires a directive and an optional value {KNOWN}.")
    })?;
    while !cursor.peek().is_empty() {
        let word = cursor.take();
        let what = word.strip_prefix("drop-").or(word.strip_prefix("only-"));
        match what {
            _ if word == "reset" => {}
            Some(what) if WHAT.contains(&what) => {
                cursor.line.need(cursor.at, || {
                    format!("'cpu-set {word}': missing {what} set.")
                })?;
                cpus(cursor)?;
            }
            _ => {
                return Err(cursor.fault(format!(
                    "'cpu-set' passed an unknown directive '{word}' {KNOWN}."
                )));
            }
        }
    }
    Ok(())
}

/// `cpu-policy <policy> [threads-per-core 1|auto]`
pub fn cpu_policy(cursor: &mut Cursor<'_>) -> Parse {
    const POLICIES: [&str; 13] = [
        "none",
        "performance",
        "group-by-ccx",
        "group-by-2-ccx",
        "group-by-3-ccx",
        "group-by-4-ccx",
        "group-by-cluster",
        "group-by-2-clusters",
        "group-by-3-clusters",
        "group-by-4-clusters",
        "efficiency",
        "resource",
        "first-usable-node",
    ];
    let policy = cursor.take();
    if !POLICIES.contains(&policy) {
        return Err(cursor.fault(format!(
            "'cpu-policy' passed an unknown CPU policy '{policy}'. Supported values are: {}.",
            POLICIES.join(", ")
        )));
    }
    match cursor.take() {
        "" => Ok(()),
        "threads-per-core" => match cursor.take() {
            "1" | "auto" => Ok(()),
            value => Err(cursor.fault(format!(
                "'cpu-policy' passed an unknown value '{value}' to keyword 'threads-per-core', known values are 1 or auto."
            ))),
        },
        word => Err(cursor.fault(format!(
            "'cpu-policy' passed an unknown keyword '{word}', the only known values are threads-per-core."
        ))),
    }
}

/// `cpu-affinity <way> [<option>]`
pub fn cpu_affinity(cursor: &mut Cursor<'_>) -> Parse {
    const WAYS: [&str; 5] = ["per-core", "per-group", "per-thread", "per-ccx", "auto"];
    let way = cursor.take();
    if !WAYS.contains(&way) {
        return Err(cursor.fault(format!(
            "'cpu-affinity' parsed an unknown directive '{way}'. Known values are : {}",
            WAYS.join(" ")
        )));
    }
    match (way, cursor.peek()) {
        ("per-group", "auto" | "loose") => {
            cursor.take();
            Ok(())
        }
        _ => Ok(()),
    }
}

/// `thread-group <group> [<first>[-<last>] …]`
pub fn group(cursor: &mut Cursor<'_>) -> Parse {
    let text = cursor.take();
    let Ok(group) = text.parse::<i64>() else {
        return Err(cursor.fault(format!(
            "'thread-group' passed a missing or unparsable integer value in '{text}'."
        )));
    };
    if !(1..=i64::from(GROUPS_MAX)).contains(&group) {
        return Err(cursor.fault(format!(
            "'thread-group' thread-group number must be between 1 and {GROUPS_MAX} (was {group})."
        )));
    }
    while !cursor.peek().is_empty() {
        let word = cursor.take();
        let (low, high) = word.split_once('-').unwrap_or((word, word));
        let known = |text: &str| {
            text.parse::<u32>()
                .is_ok_and(|thread| (1..=THREADS_MAX).contains(&thread))
        };
        if !known(low) || !known(high) {
            return Err(cursor.fault(format!(
                "'thread-group {group}' passed an unparsable or invalid thread number '{word}' (valid range is 1 to {THREADS_MAX})."
            )));
        }
    }
    Ok(())
}

/// `shards <number>|by-thread|by-group` of a `bind` line
pub fn shards(cursor: &mut Cursor<'_>) -> Parse {
    let text = cursor.value("an integer")?;
    let end = text.bytes().take_while(u8::is_ascii_digit).count();
    let is_number = text[..end]
        .parse()
        .is_ok_and(|shards| (1..=THREADS_MAX).contains(&shards));
    if is_number || matches!(text, "by-thread" | "by-group") {
        Ok(())
    } else {
        Err(cursor.fault(format!(
            "'shards' : invalid value {text}, allowed range is 1..{THREADS_MAX} or 'by-thread'."
        )))
    }
}

/// `thread [<group>/]<set>[,…]` of a `bind` line
pub fn set(cursor: &mut Cursor<'_>) -> Parse {
    let text = cursor.value("a thread set")?;
    let fault = |part: &str| {
        cursor.fault(format!(
            "'thread' : invalid thread set specification '{part}' in '{text}'."
        ))
    };
    let (group, threads) = match text.split_once('/') {
        Some((group, threads)) => (Some(group), threads),
        None => (None, text),
    };
    if let Some(group) = group
        && !group
            .parse::<u32>()
            .is_ok_and(|group| (1..=GROUPS_MAX).contains(&group))
    {
        return Err(fault(group));
    }
    for part in threads.split(',') {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        let known = |text: &str| {
            matches!(text, "" | "all" | "odd" | "even")
                || text
                    .parse::<u32>()
                    .is_ok_and(|thread| (1..=THREADS_MAX).contains(&thread))
        };
        if !known(low) || !known(high) {
            return Err(fault(part));
        }
    }
    Ok(())
}

/// `tune.streams-elasticity <percentage>`: 0, or at least 100.
pub fn elasticity(cursor: &mut Cursor<'_>) -> Parse {
    let text = cursor.take();
    match text.parse::<u32>() {
        Ok(0 | 100..) => Ok(()),
        // The number has too many digits.
        Err(_) if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) => Ok(()),
        _ => Err(cursor.fault(
            "'tune.streams-elasticity' expects 0 or a positive percentage value of 100 or above.",
        )),
    }
}

/// An integer that is not 0.
pub fn not_zero(cursor: &mut Cursor<'_>) -> Parse {
    let name = cursor.line.keyword();
    let text = cursor.take();
    let digits = text.strip_prefix('-').unwrap_or(text);
    let end = digits.bytes().take_while(u8::is_ascii_digit).count();
    if digits[..end].bytes().any(|digit| digit != b'0') {
        Ok(())
    } else {
        Err(cursor.fault(format!("'{name}' expects a positive integer.")))
    }
}
