//! `… ssl crt-list`: lists of certificates.

use std::fmt::Write as _;

use proxy::ListView;

use super::{Asked, Command, Level, Reply, certificates_changed, command, refused, tls};

pub(in super::super) const COMMANDS: &[Command] = &[
    command(
        "show ssl crt-list",
        "[-n] [<list>]",
        Level::Admin,
        "show the list of crt-lists or the content of a crt-list file <list>",
        show,
    ),
    command(
        "add ssl crt-list",
        "<list> <cert> [opts]*",
        Level::Admin,
        "add to crt-list file <list> a line <cert> or a payload",
        add,
    ),
    command(
        "del ssl crt-list",
        "<list> <cert[:line]>",
        Level::Admin,
        "delete a line <cert> from crt-list file <list>",
        delete,
    ),
];

/// The options of a certificate in the order that HAProxy writes them.
const OPTIONS: [(&str, usize); 14] = [
    ("alpn", 1),
    ("no-alpn", 0),
    ("verify", 1),
    ("no-ca-names", 0),
    ("allow-0rtt", 0),
    ("ca-file", 1),
    ("crl-file", 1),
    ("ciphers", 1),
    ("ciphersuites", 1),
    ("curves", 1),
    ("ecdhe", 1),
    ("client-sigalgs", 1),
    ("sigalgs", 1),
    ("ssl-min-ver", 1),
];

fn show(asked: &Asked<'_>) -> Reply {
    let (with_lines, name) = match asked.rest {
        ["-n", name, ..] => (true, Some(*name)),
        ["-n"] => {
            return refused("'show ssl crt-list -n' expects a filename or a directory\n");
        }
        [name, ..] => (false, Some(*name)),
        [] => (false, None),
    };
    let Some(name) = name else {
        let mut out = String::new();
        for name in tls(asked).list_names() {
            let _ = writeln!(out, "{name}");
        }
        return Reply::Dump(out);
    };
    let name = without_slashes(name);
    match tls(asked).list(name) {
        None => refused("didn't find the specified filename\n"),
        Some(view) => Reply::Dump(format!("# {name}\n{}", lines(&view, with_lines))),
    }
}

fn lines(view: &ListView, with_lines: bool) -> String {
    let mut out = String::new();
    for (entry, updates) in &view.entries {
        out += &entry.certificate;
        if with_lines {
            let _ = write!(out, ":{}", entry.line);
        }
        let mut options = Vec::new();
        let ssl_max_ver = ("ssl-max-ver", 1);
        for (option, count) in OPTIONS.into_iter().chain([ssl_max_ver]) {
            if let Some(at) = entry.options.iter().position(|word| word == option) {
                let end = entry.options.len().min(at + 1 + count);
                options.push(entry.options[at..end].join(" "));
            }
        }
        match updates {
            Some(true) => options.push("ocsp-update on".to_owned()),
            Some(false) => options.push("ocsp-update off".to_owned()),
            None => {}
        }
        if !options.is_empty() {
            let _ = write!(out, " [{}]", options.join(" "));
        }
        for filter in &entry.filters {
            let _ = write!(out, " {filter}");
        }
        out.push('\n');
    }
    out
}

fn add(asked: &Asked<'_>) -> Reply {
    let payload = asked.payload.map(String::from_utf8_lossy);
    let (list, line) = match (asked.rest, payload) {
        ([list, ..], Some(payload)) => (*list, payload),
        ([list, line, ..], None) => (*list, (*line).into()),
        _ => {
            return refused("'add ssl crtlist' expects a filename and a certificate name\n");
        }
    };
    let list = without_slashes(list);
    let added = if line.trim_end_matches('\n').contains('\n') {
        Err("only one line of payload is supported!".to_owned())
    } else {
        tls(asked).add_to_list(list, line.trim_end_matches('\n'))
    };
    match certificates_changed(asked, added) {
        Ok((certificate, count)) => {
            let dots = ".".repeat(count);
            Reply::Dump(format!(
                "Inserting certificate '{certificate}' in crt-list '{list}'{dots}\nSuccess!\n"
            ))
        }
        Err(why) => Reply::Refused(format!("Can't edit the crt-list: {why}\n")),
    }
}

fn delete(asked: &Asked<'_>) -> Reply {
    let [list, certificate, ..] = asked.rest else {
        return refused("'del ssl crtlist' expects a filename and a certificate name\n");
    };
    let list = without_slashes(list);
    let (certificate, line) = match certificate.split_once(':') {
        None => (*certificate, Ok(0)),
        Some((certificate, line)) => (certificate, line.parse::<u32>()),
    };
    let deleted = match line {
        Err(_) => Err(format!(
            "wrong line number after colons in '{}'!",
            asked.rest[1]
        )),
        Ok(line) => {
            let line = Some(line).filter(|line| *line > 0);
            tls(asked).delete_from_list(list, certificate, line)
        }
    };
    match certificates_changed(asked, deleted) {
        Ok(()) => Reply::Said(format!(
            "Entry '{certificate}' deleted in crtlist '{list}'!\n"
        )),
        Err(why) => Reply::Refused(format!("Can't delete the entry: {why}\n")),
    }
}

/// A name of a list without the slashes at its end.
fn without_slashes(name: &str) -> &str {
    name.trim_end_matches('/')
}
