//! The command line: HAProxy's options (management guide §3).

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

/// What `-h` prints.
pub(crate) const USAGE: &str = "\
Usage : spangate [-f <cfgfile|cfgdir>]* [ -vdVD ] [ -n <maxconn> ] [ -N <maxpconn> ]
        [ -p <pidfile> ] [ -m <max megs> ] [ -C <dir> ] [-- <cfgfile>*]
        -v displays version ; -vv shows known build options.
        -vq/-vqs/-vqb only displays version, short version, branch.
        -c checks the configuration files and exits ; -V says so when they are valid.
        -cc \"<condition>\" evaluates a condition and exits: 0 true, 1 false, 2 error.
        -d stays in the foreground ; -db only disables background mode.
        -4, -dM[<byte>,...], -de, -dp, -dS, -dF, -dZ, -dT and -dI are accepted: what they turn off does not exist here.
        -dW fails on a configuration warning ; -dD shows remarks too.
        -dC[key][,line] shows the configuration without comments ; with a key names and addresses are hashes
        -dK{class[,...]} lists the known keywords (use 'help' for the classes)
        -dr ignores server address resolution failures
        -q quiet mode : don't display messages
        -D goes daemon
        -W master-worker mode ; -Ws tells the service manager as well. SIGUSR2 reloads.
        -S <bind>[,<bind options>...] runtime interface of the master
        -n sets the maximum total # of connections (uses ulimit -n)
        -N sets the default, per-proxy maximum # of connections
        -L set local peer name (default to hostname)
        -m limits the usable amount of memory (in MB)
        -p writes pids of all children to this file
        -C changes to this directory before the files are read
        -sf/-st [pid ]* finishes/terminates old pids.
        -x <unix_socket> takes the listening sockets over from the process at this socket
        --documentation prints the reference of all configuration keywords.
       spangate collect --help
        runs the configuration of an OpenTelemetry Collector.
       spangate tracegen --help
        sends traces, as a load for whatever takes OTLP.
";

/// What to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Command {
    #[default]
    Run,
    Check,
    Condition(String),
    Version {
        details: bool,
    },
    /// `-vq`, or with `branch` `-vqs` and `-vqb`: a number alone.
    BareVersion {
        branch: bool,
    },
    Usage,
    Documentation,
}

/// How old processes are told to go (`-sf`, `-st`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OldProcesses {
    /// `-sf`: they finish what they serve.
    pub gracefully: bool,
    pub pids: Vec<i32>,
}

/// Master-worker mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Master {
    /// `-W`.
    Plain,
    /// `-Ws`: the service manager is told what happens.
    Notifying,
}

/// The command line, understood.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Args {
    pub command: Command,
    pub files: Vec<String>,
    pub verbose: bool,
    pub quiet: bool,
    /// `-d`, `-db`: never detach, whatever the configuration says.
    pub foreground: bool,
    pub daemon: bool,
    pub warnings_are_errors: bool,
    pub remarks: bool,
    /// `-dC`: the files are shown, and nothing is started.
    pub listing: Option<config::listing::Form>,
    /// `-dK`: the classes of keywords to list once the files are read.
    pub keywords: Option<String>,
    pub ignore_resolution_failures: bool,
    pub pidfile: Option<String>,
    pub maxconn: Option<u32>,
    pub proxy_maxconn: Option<u32>,
    pub memory_megabytes: Option<u64>,
    pub local_peer: Option<String>,
    pub directory: Option<String>,
    pub old: Option<OldProcesses>,
    /// `-x`: the runtime interface of a process whose listening sockets are taken over.
    pub old_socket: Option<String>,
    pub master: Option<Master>,
    /// `-S`: where the master's runtime interface listens.
    pub master_sockets: Vec<String>,
}

/// Options that turn off what does not exist here: resolvers of their own, pollers, splicing, fast forwarding, kernel TLS, the check
/// before a fork.
const MOOT: &[&str] = &["-4", "-de", "-dp", "-dS", "-dF", "-dZ", "-dT", "-dI"];

/// Options that are known and do nothing yet: refused, so that nobody counts on them.
const LATER: &[(&str, &str)] = &[
    ("-dA", "collection of libraries"),
    ("-dG", "resolution without getaddrinfo()"),
    ("-dL", "dump of loaded libraries"),
    ("-dR", "listening without SO_REUSEPORT"),
    ("-dV", "TLS without verification"),
    ("-dc", "dump of the CPUs"),
    ("-dt", "traces"),
];

impl Args {
    /// Parses the arguments after the program's name.
    ///
    /// # Errors
    /// The message to print.
    pub fn parse(words: impl Iterator<Item = OsString>) -> Result<Args, String> {
        let text = |word: OsString| String::from_utf8_lossy(&word.into_vec()).into_owned();
        let mut words = words.map(text).peekable();
        let mut args = Args::default();
        while let Some(word) = words.next() {
            let mut value = |what: &str| {
                words
                    .next()
                    .ok_or_else(|| format!("Missing {what} after '{word}'."))
            };
            match word.as_str() {
                "-f" => args.files.push(value("file name")?),
                "-c" => args.command = Command::Check,
                "-cc" => args.command = Command::Condition(value("condition")?),
                "-v" => args.command = Command::Version { details: false },
                "-vv" => args.command = Command::Version { details: true },
                "-h" | "--help" => args.command = Command::Usage,
                "--documentation" => args.command = Command::Documentation,
                "-V" => args.verbose = true,
                "-q" => args.quiet = true,
                "-W" => args.master = Some(Master::Plain),
                "-Ws" => args.master = Some(Master::Notifying),
                "-d" | "-db" => args.foreground = true,
                "-D" => args.daemon = true,
                "-dW" => args.warnings_are_errors = true,
                "-dD" => args.remarks = true,
                "-dr" => args.ignore_resolution_failures = true,
                "-vq" => args.command = Command::BareVersion { branch: false },
                "-vqs" | "-vqb" => args.command = Command::BareVersion { branch: true },
                _ if word.starts_with("-dC") => {
                    args.listing = Some(config::listing::Form::parse(&word[3..]));
                }
                _ if word.starts_with("-dK") => args.keywords = Some(word[3..].to_owned()),
                _ if MOOT.contains(&word.as_str()) => {}
                _ if word.starts_with("-dM") => {}
                "-p" => args.pidfile = Some(value("file name")?),
                "-n" => args.maxconn = Some(number(&word, &value("number")?)?),
                "-N" => args.proxy_maxconn = Some(number(&word, &value("number")?)?),
                "-m" => args.memory_megabytes = Some(number(&word, &value("number")?)?),
                "-L" => args.local_peer = Some(value("name")?),
                "-C" => args.directory = Some(value("directory")?),
                "-S" => args.master_sockets.push(value("address")?),
                "-x" => args.old_socket = Some(value("socket")?).filter(|path| path != "/dev/null"),
                "-sf" | "-st" => {
                    let mut pids = Vec::new();
                    while let Some(Ok(pid)) = words.peek().map(|word| word.parse::<i32>()) {
                        pids.push(pid);
                        words.next();
                    }
                    args.old = Some(OldProcesses {
                        gracefully: word == "-sf",
                        pids,
                    });
                }
                "--" => args.files.extend(words.by_ref()),
                _ => return Err(unknown(&word)),
            }
        }
        Ok(args)
    }
}

fn number<T: std::str::FromStr>(option: &str, word: &str) -> Result<T, String> {
    word.parse()
        .map_err(|_| format!("'{word}' after '{option}' is not a number."))
}

fn unknown(word: &str) -> String {
    match LATER.iter().find(|(option, _)| *option == word) {
        Some((option, what)) => {
            format!("Option '{option}' ({what}) is known but not implemented yet.")
        }
        None => format!("Unknown option '{word}'."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Args, String> {
        Args::parse(line.split_whitespace().map(OsString::from))
    }

    #[test]
    fn the_line_of_the_regression_suite() {
        let args = parse("-d -dM -dI -dW -f h1/cfg").unwrap();
        assert!(args.foreground && args.warnings_are_errors);
        assert_eq!(args.files, ["h1/cfg"]);
        assert_eq!(args.command, Command::Run);
    }

    #[test]
    fn old_processes_end_at_the_first_word_that_is_no_number() {
        let args = parse("-sf 12 34 -f a -- b c").unwrap();
        assert_eq!(
            args.old,
            Some(OldProcesses {
                gracefully: true,
                pids: vec![12, 34]
            })
        );
        assert_eq!(args.files, ["a", "b", "c"]);
    }

    #[test]
    fn what_is_not_there_yet_says_so() {
        assert!(
            parse("-dV -f a")
                .unwrap_err()
                .contains("not implemented yet")
        );
        assert!(parse("-zz").unwrap_err().contains("Unknown option"));
        assert!(parse("-f").unwrap_err().contains("Missing file name"));
    }
}
