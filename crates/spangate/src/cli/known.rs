//! Commands of HAProxy 3.5 that do not exist here yet (management guide §9.3).

/// The first words that identify each command.
const NOT_YET: &[&str] = &[
    "acme challenge_ready",
    "acme renew",
    "acme status",
    "add ssl ech",
    "debug counters",
    "debug dev abort",
    "debug dev bug",
    "debug dev check",
    "debug dev close",
    "debug dev deadlock",
    "debug dev delay-inj",
    "debug dev exec",
    "debug dev fd",
    "debug dev hex",
    "debug dev loop",
    "debug dev memstats",
    "debug dev panic",
    "debug dev sched",
    "debug dev stream",
    "debug dev sym",
    "debug dev task",
    "debug dev tkill",
    "debug dev trace",
    "debug dev warn",
    "debug dev write",
    "del ssl ech",
    "httpclient",
    "set ssl ech",
    "show cache",
    "show ssl ech",
    "show trace",
    "trace",
];

/// The command of this table with which a line begins.
pub(super) fn not_yet(words: &[&str]) -> Option<&'static str> {
    NOT_YET.iter().copied().find(|command| {
        let mut words = words.iter();
        command
            .split(' ')
            .all(|wanted| words.next().is_some_and(|word| *word == wanted))
    })
}
