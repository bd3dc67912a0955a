//! Commands of HAProxy 3.5 that are not there yet (management guide §9.3).

/// Their first words, as far as they name the command.
const NOT_YET: &[&str] = &[
    "acme challenge_ready",
    "acme renew",
    "acme status",
    "add backend",
    "add ssl ech",
    "clear table",
    "debug counters",
    "debug dev",
    "del backend",
    "del ssl ech",
    "disable dynamic-cookie backend",
    "enable dynamic-cookie backend",
    "httpclient",
    "set anon",
    "set dynamic-cookie-key backend",
    "set profiling",
    "set ssl ech",
    "set table",
    "set var",
    "show anon",
    "show cache",
    "show errors",
    "show quic",
    "show ssl ech",
    "show ssl ocsp-updates",
    "show trace",
    "trace",
    "update ssl ocsp-response",
];

/// The command that a line begins with, if it is one of them.
pub(super) fn not_yet(words: &[&str]) -> Option<&'static str> {
    NOT_YET.iter().copied().find(|command| {
        let mut words = words.iter();
        command
            .split(' ')
            .all(|wanted| words.next().is_some_and(|word| *word == wanted))
    })
}
