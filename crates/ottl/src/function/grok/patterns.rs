//! The patterns that have names: the default set of go-grok (README of OTTL's functions,
//! "ExtractGrokPatterns"). What each name matches is given there; the sets of single products are not
//! here.

/// A group of an IPv6 address.
const HEXTET: &str = "[0-9A-Fa-f]{1,4}";
/// A number up to 255.
const OCTET: &str = "(?:25[0-5]|2[0-4][0-9]|[01]?[0-9]?[0-9])";
/// Groups of an IPv6 address.
const HEXTETS: usize = 8;

/// The pattern of a name. It may have other names in it.
pub fn find(name: &str) -> Option<String> {
    match name {
        "IPV4" => return Some(format!("(?:{OCTET}\\.){{3}}{OCTET}")),
        "IPV6" => return Some(ipv6()),
        _ => {}
    }
    let found = PATTERNS.iter().find(|(known, _)| *known == name);
    found.map(|(_, pattern)| (*pattern).to_owned())
}

/// All names.
#[cfg(test)]
pub fn names() -> impl Iterator<Item = &'static str> {
    PATTERNS
        .iter()
        .map(|(name, _)| *name)
        .chain(["IPV4", "IPV6"])
}

/// All ways to write an IPv6 address: with groups left out after each number of groups, with an
/// IPv4 address at the end, and perhaps with a zone.
fn ipv6() -> String {
    let v4 = format!("(?:{OCTET}\\.){{3}}{OCTET}");
    let mut forms = vec![format!("(?:{HEXTET}:){{7}}(?:{HEXTET}|:)")];
    forms.push(format!("(?:{HEXTET}:){{6}}(?::{HEXTET}|{v4}|:)"));
    for before in (0..HEXTETS - 2).rev() {
        let start = match before {
            0 => ":".to_owned(),
            before => format!("(?:{HEXTET}:){{{before}}}"),
        };
        let after = HEXTETS - 1 - before;
        let after_v4 = HEXTETS - 3 - before;
        forms.push(format!(
            "{start}(?:(?::{HEXTET}){{1,{after}}}|(?::{HEXTET}){{0,{after_v4}}}:{v4}|:)"
        ));
    }
    format!("(?:{})(?:%.+)?", forms.join("|"))
}

#[rustfmt::skip]
const PATTERNS: &[(&str, &str)] = &[
    // Words and numbers.
    ("WORD", r"\b\w+\b"),
    ("NOTSPACE", r"\S+"),
    ("SPACE", r"\s*"),
    ("DATA", ".*?"),
    ("GREEDYDATA", ".*"),
    ("INT", "[+-]?[0-9]+"),
    ("NUMBER", "(?:%{BASE10NUM})"),
    ("BASE10NUM", r"(?:[+-]?[0-9]+(?:\.[0-9]+)?|\.[0-9]+)"),
    ("BASE16NUM", "[+-]?(?:0x)?[0-9A-Fa-f]+"),
    ("BASE16FLOAT", r"[+-]?(?:0x)?[0-9A-Fa-f]+(?:\.[0-9A-Fa-f]*)?"),
    ("POSINT", r"\b[1-9][0-9]*\b"),
    ("NONNEGINT", r"\b[0-9]+\b"),
    ("BOOL", "true|false"),
    ("QUOTEDSTRING", r#""(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'"#),
    ("QS", "%{QUOTEDSTRING}"),
    ("UUID", "[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"),
    ("URN", r"urn:[0-9A-Za-z][0-9A-Za-z-]{0,31}:[0-9A-Za-z()+,.:=@;$_!*'/?#-]+"),
    ("LOGLEVEL", "(?i)(?:alert|trace|debug|notice|info(?:rmation)?|warn(?:ing)?|err(?:or)?|crit(?:ical)?|fatal|severe|emerg(?:ency)?)"),
    // Networks.
    ("IP", "(?:%{IPV6}|%{IPV4})"),
    ("HOSTNAME", r"\b[0-9A-Za-z][0-9A-Za-z-]{0,62}(?:\.[0-9A-Za-z][0-9A-Za-z-]{0,62})*(?:\.?|\b)"),
    ("IPORHOST", "(?:%{IP}|%{HOSTNAME})"),
    ("HOSTPORT", "%{IPORHOST}:%{POSINT}"),
    ("EMAILLOCALPART", "[a-zA-Z][a-zA-Z0-9_.+-=:]+"),
    ("EMAILADDRESS", "%{EMAILLOCALPART}@%{HOSTNAME}"),
    ("USERNAME", "[a-zA-Z0-9._-]+"),
    ("USER", "%{USERNAME}"),
    ("MAC", "(?:%{CISCOMAC}|%{WINDOWSMAC}|%{COMMONMAC})"),
    ("CISCOMAC", r"[0-9A-Fa-f]{4}(?:\.[0-9A-Fa-f]{4}){2}"),
    ("WINDOWSMAC", "[0-9A-Fa-f]{2}(?:-[0-9A-Fa-f]{2}){5}"),
    ("COMMONMAC", "[0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2}){5}"),
    // Paths.
    ("PATH", "(?:%{UNIXPATH}|%{WINPATH})"),
    ("UNIXPATH", r"(?:/[\w_%!$@:.,+~-]+)+"),
    ("WINPATH", r"[A-Za-z]+:(?:\\[^\\?*]+)+"),
    ("TTY", r"/dev/(?:pts|tty[pq]?)\w*/?[0-9]+"),
    ("URIPROTO", r"[A-Za-z][A-Za-z0-9+\-.]+"),
    ("URIHOST", "%{IPORHOST}(?::%{POSINT})?"),
    ("URIPATH", r"(?:/[A-Za-z0-9$.+!*'(){},~:;=@#%&_\-]+)+"),
    ("URIQUERY", r"[A-Za-z0-9$.+!*'|(){},~@#%&/=:;_?\-\[\]<>]*"),
    ("URIPARAM", r"\?%{URIQUERY}"),
    ("URIPATHPARAM", r"%{URIPATH}(?:\?%{URIQUERY})?"),
    ("URI", r"%{URIPROTO}://(?:%{USER}(?::[^@]*)?@)?%{URIHOST}(?:%{URIPATH}(?:\?%{URIQUERY})?)?"),
    // Dates and times.
    ("MONTH", r"\b(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sep(?:tember)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)\b"),
    ("MONTHNUM", "(?:0[1-9]|1[0-2])"),
    ("MONTHDAY", "(?:0[1-9]|[12][0-9]|3[01]|[1-9])"),
    ("DAY", r"\b(?:Mon(?:day)?|Tue(?:sday)?|Wed(?:nesday)?|Thu(?:rsday)?|Fri(?:day)?|Sat(?:urday)?|Sun(?:day)?)\b"),
    ("YEAR", r"(?:\d\d){1,2}"),
    ("HOUR", "(?:2[0-3]|[01]?[0-9])"),
    ("MINUTE", "[0-5][0-9]"),
    ("SECOND", "(?:[0-5][0-9]|60)(?:[:.,][0-9]+)?"),
    ("TIME", "%{HOUR}:%{MINUTE}(?::%{SECOND})?"),
    ("DATE", "%{DATE_US}|%{DATE_EU}"),
    ("DATE_US", "%{MONTHNUM}[/-]%{MONTHDAY}[/-]%{YEAR}"),
    ("DATE_EU", "%{MONTHDAY}[./-]%{MONTHNUM}[./-]%{YEAR}"),
    ("DATESTAMP", "%{DATE}[- ]%{TIME}"),
    ("ISO8601_TIMEZONE", "(?:Z|[+-]%{HOUR}:?%{MINUTE})"),
    ("ISO8601_SECOND", "%{SECOND}"),
    ("TIMESTAMP_ISO8601", "%{YEAR}-%{MONTHNUM}-%{MONTHDAY}[T ]%{HOUR}:?%{MINUTE}(?::?%{SECOND})?%{ISO8601_TIMEZONE}?"),
    ("TZ", "(?:[PMACE][SED]T|UTC)"),
    ("DATESTAMP_RFC822", "%{DAY} %{MONTH} %{MONTHDAY} %{YEAR} %{TIME} %{TZ}"),
    ("DATESTAMP_RFC2822", "%{DAY}, %{MONTHDAY} %{MONTH} %{YEAR} %{TIME} %{ISO8601_TIMEZONE}"),
    ("DATESTAMP_OTHER", "%{DAY} %{MONTH} %{MONTHDAY} %{TIME} %{TZ} %{YEAR}"),
    ("DATESTAMP_EVENTLOG", "%{YEAR}%{MONTHNUM}%{MONTHDAY}%{HOUR}%{MINUTE}%{SECOND}"),
    ("HTTPDATE", "%{MONTHDAY}/%{MONTH}/%{YEAR}:%{TIME} %{INT}"),
    // Syslog.
    ("SYSLOGTIMESTAMP", "%{MONTH} +%{MONTHDAY} %{TIME}"),
    ("PROG", r"[!-Z\\^-~]+"),
    ("SYSLOGPROG", r"%{PROG}(?:\[\d+\])?"),
    ("SYSLOGHOST", "%{IPORHOST}"),
    ("SYSLOGFACILITY", "<%{NONNEGINT}.%{NONNEGINT}>"),
    ("SYSLOGBASE", "%{SYSLOGTIMESTAMP:timestamp} (?:%{SYSLOGFACILITY} )?%{SYSLOGHOST:host.hostname} %{SYSLOGPROG}:"),
];
