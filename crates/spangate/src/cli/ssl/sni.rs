//! `show ssl sni`: the names that clients may ask for, and `show ssl providers`.

use std::fmt::Write as _;

use tls::KeyKind;

use super::{Asked, Command, Level, Reply, command, refused, tls};

pub(in super::super) const COMMANDS: &[Command] = &[
    command(
        "show ssl sni",
        "[-f <frontend>] [-A]",
        Level::User,
        "display the list of SNI and their corresponding filename",
        show,
    ),
    command(
        "show ssl providers",
        "",
        Level::Operator,
        "show loaded SSL providers",
        |_| Reply::Dump("Loaded providers : \n\t- AWS-LC\n".to_owned()),
    ),
];

/// The certificates to show.
struct Filter<'a> {
    frontend: Option<&'a str>,
    /// Only certificates that expire before this time, in seconds after the UNIX epoch.
    ends_before_s: Option<u64>,
}

fn show(asked: &Asked<'_>) -> Reply {
    let filter = match filter(asked) {
        Ok(filter) => filter,
        Err(reply) => return reply,
    };
    let mut out = String::from(
        "# Frontend/Bind\tSNI\tNegative Filter\tType\tFilename\tNotAfter\tNotBefore\n",
    );
    for view in tls(asked).server_names(filter.frontend) {
        let Some(shown) = sample::shown_certificate(&view.der) else {
            continue;
        };
        let ends = shown.not_after_s;
        if filter.ends_before_s.is_some_and(|limit| ends >= limit) {
            continue;
        }
        let mut except = String::new();
        for name in &view.except {
            let _ = write!(except, "!{name} ");
        }
        if except.is_empty() {
            except.push('-');
        }
        let kind = match view.kind {
            KeyKind::Rsa => "rsa",
            KeyKind::Ecdsa => "ecdsa",
            KeyKind::Other => "dsa",
        };
        let _ = writeln!(
            out,
            "{}/{}\t{}\t{except}\t{kind}\t{}\t{}\t{}",
            view.frontend,
            view.origin,
            view.name,
            view.certificate,
            shown.not_after,
            shown.not_before
        );
    }
    Reply::Dump(out)
}

fn filter<'a>(asked: &Asked<'a>) -> Result<Filter<'a>, Reply> {
    let mut filter = Filter {
        frontend: None,
        ends_before_s: None,
    };
    let now_s = net::sys::now().wall_ns / 1_000_000_000;
    let mut offset_s = 0;
    let mut words = asked.rest.iter();
    while let Some(word) = words.next() {
        match *word {
            "-f" => {
                let Some(name) = words.next() else {
                    return Err(refused("'-f' requires a frontend name!\n"));
                };
                let proxies = &asked.subjects.runtime_config.config.proxies;
                let frontends = proxies.iter().filter(|proxy| proxy.is_frontend);
                let mut frontends = frontends.filter(|proxy| !proxy.is_removed);
                if !frontends.any(|proxy| proxy.name.as_bytes() == name.as_bytes()) {
                    return Err(refused("Couldn't find the specified frontend!\n"));
                }
                filter.frontend = Some(name);
            }
            "-A" => filter.ends_before_s = Some(now_s),
            "-t" => {
                let Some(text) = words.next() else {
                    return Err(refused("'-t' requires an offset argument!\n"));
                };
                match config::build::values::time_in(text, "s", 1_000_000) {
                    Ok(offset) if offset.is_zero() => {
                        return Err(refused("'-t' expects a positive value\n"));
                    }
                    Ok(offset) => offset_s = offset.as_secs(),
                    Err(_) => {
                        return Err(Reply::Refused(format!(
                            "'-t {text}' : unexpected character\n"
                        )));
                    }
                }
            }
            _ => {
                return Err(refused(
                    "Invalid parameters, 'show ssl sni' only supports '-f', '-A' or '-t' options!\n",
                ));
            }
        }
    }
    let limit = filter.ends_before_s.as_mut();
    if let Some(limit) = limit {
        *limit += offset_s;
    }
    Ok(filter)
}
