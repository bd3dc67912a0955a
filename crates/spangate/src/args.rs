//! The command line: HAProxy's options (management guide §3).

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use crate::usage::{Opt, Shell, Value, file, flag, subcommands, with};

/// What an option does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Does {
    File,
    Check,
    Migrate,
    Condition,
    Version,
    Details,
    BareVersion,
    Branch,
    Usage,
    Documentation,
    Manual,
    Completions,
    Verbose,
    Quiet,
    Master,
    NotifyingMaster,
    MasterSocket,
    Foreground,
    Daemon,
    WarningsAreErrors,
    Remarks,
    AllowForks,
    Listing,
    Keywords,
    IgnoreResolution,
    Pidfile,
    Maxconn,
    ProxyMaxconn,
    Memory,
    LocalPeer,
    Directory,
    Finish,
    Terminate,
    OldSocket,
    Files,
    /// Accepted without effect: the feature that it turns off does not exist here (pollers,
    /// splicing, kernel TLS and the like).
    Nothing,
    /// An option of HAProxy that is not implemented here yet. It is refused, so that nobody relies
    /// on it.
    Later,
}

const fn joined(name: &'static str, value: &'static str, about: &'static str) -> Opt {
    let value = Value::Joined(value);
    Opt { name, value, about }
}

const fn pids(name: &'static str, about: &'static str) -> Opt {
    let value = Value::Numbers("[pid ]*");
    Opt { name, value, about }
}

/// The options, in the order of the help text.
#[rustfmt::skip]
const OPTIONS: &[(Does, Opt)] = &[
    (Does::File, file("-f", "<cfgfile|cfgdir>", "adds a configuration file, or the files of a directory")),
    (Does::Files, flag("--", "all following words are configuration files")),
    (Does::Version, flag("-v", "displays version")),
    (Does::Details, flag("-vv", "shows known build options")),
    (Does::BareVersion, flag("-vq", "only displays version")),
    (Does::Branch, flag("-vqs", "only displays short version")),
    (Does::Branch, flag("-vqb", "only displays branch")),
    (Does::Check, flag("-c", "checks the configuration files and exits")),
    (Does::Migrate, flag("--migrate", "prints the configuration with directives of older versions in today's words, and what changed")),
    (Does::Verbose, flag("-V", "with -c: prints a message if the files are valid")),
    (Does::Condition, with("-cc", "\"<condition>\"", "evaluates a condition and exits: 0 true, 1 false, 2 error")),
    (Does::Foreground, flag("-d", "stays in the foreground")),
    (Does::Foreground, flag("-db", "only disables background mode")),
    (Does::WarningsAreErrors, flag("-dW", "fails if any warning is emitted")),
    (Does::Remarks, flag("-dD", "also prints remarks on suspicious lines")),
    (Does::Listing, joined("-dC", "[key][,line]", "prints the configuration without comments; with a key, hashes replace names and addresses")),
    (Does::Keywords, joined("-dK", "{class[,...]}", "lists the known keywords (use 'help' for the classes)")),
    (Does::IgnoreResolution, flag("-dr", "ignores server address resolution failures")),
    (Does::Quiet, flag("-q", "quiet mode: displays no messages")),
    (Does::Daemon, flag("-D", "runs in the background")),
    (Does::Master, flag("-W", "master-worker mode: SIGUSR2 reloads")),
    (Does::NotifyingMaster, flag("-Ws", "master-worker mode that notifies the service manager")),
    (Does::MasterSocket, with("-S", "<bind>[,<bind options>...]", "address of the master's runtime interface")),
    (Does::Maxconn, with("-n", "<maxconn>", "sets the maximum total number of connections (uses ulimit -n)")),
    (Does::ProxyMaxconn, with("-N", "<maxpconn>", "sets the default maximum number of connections per proxy")),
    (Does::LocalPeer, with("-L", "<name>", "sets the local peer name (default: the host name)")),
    (Does::Memory, with("-m", "<max megs>", "limits the usable amount of memory (in MB)")),
    (Does::Pidfile, file("-p", "<pidfile>", "writes pids of all children to this file")),
    (Does::Directory, file("-C", "<dir>", "changes to this directory before it reads the files")),
    (Does::Finish, pids("-sf", "asks these processes to end after their open connections")),
    (Does::Terminate, pids("-st", "asks these processes to end at once")),
    (Does::OldSocket, file("-x", "<unix_socket>", "takes over the listening sockets of the process behind this socket")),
    (Does::Nothing, flag("-4", "no effect (would limit resolvers to IPv4)")),
    (Does::Nothing, joined("-dM", "[<byte>,...]", "no effect (would debug memory)")),
    (Does::Nothing, flag("-de", "no effect (would disable epoll)")),
    (Does::Nothing, flag("-dp", "no effect (would disable poll)")),
    (Does::Nothing, flag("-dS", "no effect (would disable splicing)")),
    (Does::Nothing, flag("-dF", "no effect (would disable fast forwarding)")),
    (Does::Nothing, flag("-dZ", "no effect (would disable zero-copy forwarding)")),
    (Does::Nothing, flag("-dT", "no effect (would disable kernel TLS)")),
    (Does::AllowForks, flag("-dI", "allows the process to start others, as 'insecure-fork-wanted'")),
    (Does::Later, flag("-dA", "collection of libraries")),
    (Does::Later, flag("-dG", "resolution without getaddrinfo()")),
    (Does::Later, flag("-dL", "dump of loaded libraries")),
    (Does::Later, flag("-dR", "listening without SO_REUSEPORT")),
    (Does::Later, flag("-dV", "TLS without verification")),
    (Does::Later, flag("-dc", "dump of the CPUs")),
    (Does::Later, flag("-dt", "traces")),
    (Does::Usage, flag("-h", "displays this text")),
    (Does::Usage, flag("--help", "displays this text")),
    (Does::Documentation, flag("--documentation", "prints the reference of all configuration keywords")),
    (Does::Manual, flag("--manual", "prints the manual page, for man(1)")),
    (Does::Completions, with("--completions", "bash|zsh|fish", "prints the completion script for a shell")),
];

/// The options that have an effect here.
pub(crate) fn options() -> impl Iterator<Item = &'static Opt> {
    let usable = OPTIONS.iter().filter(|(does, _)| *does != Does::Later);
    usable.map(|(_, option)| option)
}

/// The text of `-h`.
pub(crate) fn usage() -> String {
    let mut text = "Usage : spangate [-f <cfgfile|cfgdir>]* [ -vdVD ] [ -n <maxconn> ] [ -N <maxpconn> ]\n        \
                    [ -p <pidfile> ] [ -m <max megs> ] [ -C <dir> ] [-- <cfgfile>*]\n"
        .to_owned();
    for option in options() {
        text.push_str(&format!("        {}\n", option.line()));
    }
    for command in subcommands() {
        let first = command.about.lines().next().unwrap_or_default();
        text.push_str(&format!(
            "       spangate {} --help\n        {first}\n",
            command.name
        ));
    }
    text
}

/// The option that a word names. Where an option takes its value in the same word, the word only
/// has to begin with its name.
fn entry(word: &str) -> Option<&'static (Does, Opt)> {
    let exact = OPTIONS.iter().find(|(_, option)| option.name == word);
    exact.or_else(|| {
        let mut joined = OPTIONS
            .iter()
            .filter(|(_, option)| matches!(option.value, Value::Joined(_)));
        joined.find(|(_, option)| word.starts_with(option.name))
    })
}

/// What the command line asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Command {
    #[default]
    Run,
    Check,
    /// `--migrate`
    Migrate,
    Condition(String),
    Version {
        details: bool,
    },
    /// `-vq`, or with `branch` `-vqs` and `-vqb`: prints the version number alone.
    BareVersion {
        branch: bool,
    },
    Usage,
    Documentation,
    /// `--manual`
    Manual,
    /// `--completions`
    Completions(Shell),
}

/// How old processes are told to end (`-sf`, `-st`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OldProcesses {
    /// `-sf`: they finish their open connections first.
    pub gracefully: bool,
    pub pids: Vec<i32>,
}

/// Master-worker mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Master {
    /// `-W`.
    Plain,
    /// `-Ws`: the master notifies the service manager of its state.
    Notifying,
}

/// The parsed command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Args {
    pub command: Command,
    pub files: Vec<String>,
    pub verbose: bool,
    pub quiet: bool,
    /// `-d`, `-db`: stays in the foreground, whatever the configuration says.
    pub foreground: bool,
    pub daemon: bool,
    pub warnings_are_errors: bool,
    pub remarks: bool,
    /// `-dI`: forks are allowed.
    pub allows_forks: bool,
    /// The configuration was generated (`spangate proxy`), so advice about its keywords helps
    /// nobody.
    pub is_generated: bool,
    /// `-dC`: prints the files and starts nothing.
    pub listing: Option<config::listing::Form>,
    /// `-dK`: the classes of keywords to list after the files are read.
    pub keywords: Option<String>,
    pub ignore_resolution_failures: bool,
    pub pidfile: Option<String>,
    pub maxconn: Option<u32>,
    pub proxy_maxconn: Option<u32>,
    pub memory_megabytes: Option<u64>,
    pub local_peer: Option<String>,
    pub directory: Option<String>,
    pub old: Option<OldProcesses>,
    /// `-x`: the runtime interface of the process that hands over its listening sockets.
    pub old_socket: Option<String>,
    pub master: Option<Master>,
    /// `-S`: the addresses of the master's runtime interface.
    pub master_sockets: Vec<String>,
}

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
            let (does, option) = entry(&word).ok_or_else(|| format!("Unknown option '{word}'."))?;
            let rest = &word[option.name.len()..];
            match does {
                Does::File => args.files.push(value("file name")?),
                Does::Check => args.command = Command::Check,
                Does::Migrate => args.command = Command::Migrate,
                Does::Condition => args.command = Command::Condition(value("condition")?),
                Does::Version => args.command = Command::Version { details: false },
                Does::Details => args.command = Command::Version { details: true },
                Does::BareVersion => args.command = Command::BareVersion { branch: false },
                Does::Branch => args.command = Command::BareVersion { branch: true },
                Does::Usage => args.command = Command::Usage,
                Does::Documentation => args.command = Command::Documentation,
                Does::Manual => args.command = Command::Manual,
                Does::Completions => {
                    let name = value("shell")?;
                    let shell = Shell::named(&name)
                        .ok_or_else(|| format!("'{name}' is none of bash, zsh and fish."))?;
                    args.command = Command::Completions(shell);
                }
                Does::Verbose => args.verbose = true,
                Does::Quiet => args.quiet = true,
                Does::Master => args.master = Some(Master::Plain),
                Does::NotifyingMaster => args.master = Some(Master::Notifying),
                Does::MasterSocket => args.master_sockets.push(value("address")?),
                Does::Foreground => args.foreground = true,
                Does::Daemon => args.daemon = true,
                Does::WarningsAreErrors => args.warnings_are_errors = true,
                Does::AllowForks => args.allows_forks = true,
                Does::Remarks => args.remarks = true,
                Does::Listing => args.listing = Some(config::listing::Form::parse(rest)),
                Does::Keywords => args.keywords = Some(rest.to_owned()),
                Does::IgnoreResolution => args.ignore_resolution_failures = true,
                Does::Pidfile => args.pidfile = Some(value("file name")?),
                Does::Maxconn => args.maxconn = Some(number(&word, &value("number")?)?),
                Does::ProxyMaxconn => args.proxy_maxconn = Some(number(&word, &value("number")?)?),
                Does::Memory => args.memory_megabytes = Some(number(&word, &value("number")?)?),
                Does::LocalPeer => args.local_peer = Some(value("name")?),
                Does::Directory => args.directory = Some(value("directory")?),
                Does::OldSocket => {
                    args.old_socket = Some(value("socket")?).filter(|path| path != "/dev/null");
                }
                Does::Finish | Does::Terminate => {
                    let mut pids = Vec::new();
                    while let Some(Ok(pid)) = words.peek().map(|word| word.parse::<i32>()) {
                        pids.push(pid);
                        words.next();
                    }
                    args.old = Some(OldProcesses {
                        gracefully: *does == Does::Finish,
                        pids,
                    });
                }
                Does::Files => args.files.extend(words.by_ref()),
                Does::Nothing => {}
                Does::Later => {
                    let what = option.about;
                    return Err(format!(
                        "Option '{word}' ({what}) is known but not implemented yet."
                    ));
                }
            }
        }
        Ok(args)
    }
}

fn number<T: std::str::FromStr>(option: &str, word: &str) -> Result<T, String> {
    word.parse()
        .map_err(|_| format!("'{word}' after '{option}' is not a number."))
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
    fn values_in_the_same_word() {
        assert_eq!(parse("-dKcfg,acl").unwrap().keywords.unwrap(), "cfg,acl");
        assert!(parse("-dC").unwrap().listing.is_some());
        assert_eq!(parse("-dM55,x").unwrap(), Args::default());
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
        assert!(parse("-dt").unwrap_err().contains("(traces)"));
        assert!(parse("--completions sh").unwrap_err().contains("bash"));
        assert!(parse("-f").unwrap_err().contains("Missing file name"));
    }
}
