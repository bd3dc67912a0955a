//! Completions for shells.

use super::{Opt, Value, subcommands};

/// A shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shell {
    Bash,
    Zsh,
    Fish,
}

impl Shell {
    /// The shell of this name.
    pub(crate) fn named(name: &str) -> Option<Shell> {
        match name {
            "bash" => Some(Shell::Bash),
            "zsh" => Some(Shell::Zsh),
            "fish" => Some(Shell::Fish),
            _ => None,
        }
    }
}

/// The script that the shell loads.
pub(crate) fn completions(shell: Shell) -> String {
    match shell {
        Shell::Bash => bash(),
        Shell::Zsh => zsh(),
        Shell::Fish => fish(),
    }
}

fn names<'a>(options: impl Iterator<Item = &'a Opt>) -> String {
    let names: Vec<&str> = options.map(|option| option.name).collect();
    names.join(" ")
}

/// Options whose value is a file, as alternatives of a shell's `case`.
fn files<'a>(options: impl Iterator<Item = &'a Opt>) -> Vec<&'a str> {
    let files = options.filter(|option| matches!(option.value, Value::File(_)));
    files.map(|option| option.name).collect()
}

fn bash() -> String {
    let commands: Vec<&str> = subcommands().map(|command| command.name).collect();
    let mut words = String::new();
    for command in subcommands() {
        let own: Vec<&str> = command.words.iter().map(|(word, _)| *word).collect();
        words.push_str(&format!(
            "        {}) words=\"{} {}\" ;;\n",
            command.name,
            own.join(" "),
            names(command.options.iter())
        ));
    }
    let of_commands = subcommands().flat_map(|command| command.options);
    let mut files = files(crate::args::options().chain(of_commands));
    files.sort_unstable();
    files.dedup();
    format!(
        "# Completion of spangate for bash.\n_spangate() {{\n    local current=${{COMP_WORDS[COMP_CWORD]}} words\n\
    \x20   case ${{COMP_WORDS[COMP_CWORD-1]}} in\n        {files})\n            COMPREPLY=($(compgen -f -- \"$current\"))\n            return ;;\n    esac\n\
    \x20   case ${{COMP_WORDS[1]}} in\n{words}        *)\n            words=\"{options}\"\n            [ \"$COMP_CWORD\" -eq 1 ] && words=\"{commands} $words\" ;;\n    esac\n\
    \x20   COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n}}\ncomplete -o filenames -F _spangate spangate\n",
        files = files.join("|"),
        options = names(crate::args::options()),
        commands = commands.join(" "),
    )
}

/// A text for single quotes, in which brackets and colons of zsh's `_arguments` have no special
/// meaning.
fn zsh_quoted(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('\'', "'\\''");
    let text = text.replace('[', "\\[").replace(']', "\\]");
    text.replace(':', "\\:")
}

fn zsh_spec(option: &Opt) -> String {
    let about = zsh_quoted(option.about);
    let name = option.name;
    match option.value {
        Value::None => format!("'*{name}[{about}]'"),
        Value::Joined(_) => format!("'*{name}-[{about}]: :'"),
        Value::Next(value) | Value::Numbers(value) => {
            format!("'*{name}[{about}]:{}: '", zsh_quoted(value))
        }
        Value::File(value) => format!("'*{name}[{about}]:{}:_files'", zsh_quoted(value)),
    }
}

fn zsh() -> String {
    let specs = |options: &mut dyn Iterator<Item = &Opt>| {
        let specs: Vec<String> = options.map(zsh_spec).collect();
        specs.join(" \\\n            ")
    };
    let mut arms = String::new();
    let mut commands = String::new();
    for command in subcommands() {
        let about = command.about.lines().next().unwrap_or_default();
        commands.push_str(&format!(
            "        '{}:{}'\n",
            command.name,
            zsh_quoted(about)
        ));
        let own: Vec<&str> = command.words.iter().map(|(word, _)| *word).collect();
        let own = if own.is_empty() {
            String::new()
        } else {
            format!("'1:command:({})' \\\n            ", own.join(" "))
        };
        arms.push_str(&format!(
            "    {})\n        shift words\n        (( CURRENT-- ))\n        _arguments {own}{} ;;\n",
            command.name,
            specs(&mut command.options.iter())
        ));
    }
    format!(
        "#compdef spangate\nlocal -a commands\ncommands=(\n{commands})\ncase $words[2] in\n{arms}    *)\n        (( CURRENT == 2 )) && _describe command commands\n        \
         _arguments {} ;;\nesac\n",
        specs(&mut crate::args::options())
    )
}

fn fish_line(condition: &str, option: &Opt) -> String {
    // fish distinguishes `-x` (one letter), `-old` (one dash) and `--long`.
    let (kind, name) = match option.name.strip_prefix("--") {
        Some(long) => ("-l", long),
        None => match &option.name[1..] {
            short if short.len() == 1 => ("-s", short),
            old => ("-o", old),
        },
    };
    let value = match option.value {
        Value::None | Value::Joined(_) => "",
        Value::Next(_) | Value::Numbers(_) => " -x",
        Value::File(_) => " -r -F",
    };
    format!(
        "complete -c spangate -n '{condition}' {kind} {name}{value} -d '{}'\n",
        option.about.replace('\\', "\\\\").replace('\'', "\\'")
    )
}

fn fish() -> String {
    let names: Vec<&str> = subcommands().map(|command| command.name).collect();
    let without_command = if names.is_empty() {
        "true".to_owned()
    } else {
        format!("not __fish_seen_subcommand_from {}", names.join(" "))
    };
    let mut script = "# Completion of spangate for fish.\n".to_owned();
    for option in crate::args::options() {
        script.push_str(&fish_line(&without_command, option));
    }
    for command in subcommands() {
        let about = command.about.lines().next().unwrap_or_default();
        script.push_str(&fish_word(&without_command, command.name, about));
        let condition = format!("__fish_seen_subcommand_from {}", command.name);
        for (word, about) in command.words {
            script.push_str(&fish_word(&condition, word, about));
        }
        for option in command.options {
            script.push_str(&fish_line(&condition, option));
        }
    }
    script
}

fn fish_word(condition: &str, word: &str, about: &str) -> String {
    let about = about.replace('\'', "\\'");
    format!("complete -c spangate -n '{condition}' -a {word} -d '{about}'\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shell_knows_every_option() {
        for shell in ["bash", "zsh", "fish"] {
            let script = completions(Shell::named(shell).expect(shell));
            let of_commands = subcommands().flat_map(|command| command.options);
            for option in crate::args::options().chain(of_commands) {
                let name = match shell {
                    "fish" => option.name.trim_start_matches('-'),
                    _ => option.name,
                };
                assert!(script.contains(name), "{shell}: {name}");
            }
        }
        assert_eq!(Shell::named("sh"), None);
    }

    #[test]
    fn quotes_in_descriptions_end_no_string() {
        let option = super::super::flag("--it", "it's [one]: \\");
        assert_eq!(zsh_spec(&option), "'*--it[it'\\''s \\[one\\]\\: \\\\]'");
        assert_eq!(
            fish_line("true", &option),
            "complete -c spangate -n 'true' -l it -d 'it\\'s [one]: \\\\'\n"
        );
    }
}
