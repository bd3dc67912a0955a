//! The manual page, in the macros of man(7).

use super::{Opt, Value, subcommands};

/// The manual page of section 8.
pub(crate) fn manual_page() -> String {
    let version = env!("CARGO_PKG_VERSION");
    let mut page = format!(
        ".TH SPANGATE 8 \"\" \"Spangate {version}\" \"System administration\"\n\
         .SH NAME\nspangate \\- reverse proxy that runs HAProxy's configuration, and trace collector\n\
         .SH SYNOPSIS\n.B spangate\n[\\fB\\-f\\fR \\fIcfgfile|cfgdir\\fR]... [\\fIoptions\\fR] [\\fB\\-\\-\\fR \\fIcfgfile\\fR...]\n"
    );
    for command in subcommands() {
        page.push_str(&format!(
            ".br\n.B spangate {}\n{}\n",
            escaped(command.name),
            escaped(command.synopsis)
        ));
    }
    page.push_str(
        ".SH DESCRIPTION\nReads HAProxy's configuration language and serves HTTP and TCP accordingly. \
         Options, messages, signals and exit statuses are those of HAProxy.\n.SH OPTIONS\n",
    );
    for option in crate::args::options() {
        push_option(&mut page, option);
    }
    for command in subcommands() {
        page.push_str(&format!(
            ".SH COMMAND {}\n{}\n",
            escaped(&command.name.to_uppercase()),
            escaped(command.about)
        ));
        for (word, about) in command.words {
            page.push_str(&format!(
                ".TP\n.B {}\n{}\n",
                escaped(word),
                protected(&escaped(about))
            ));
        }
        for option in command.options {
            push_option(&mut page, option);
        }
    }
    page.push_str(SIGNALS);
    page
}

/// Signals and exit statuses (management guide, sections 4 and 5).
const SIGNALS: &str = ".SH SIGNALS\n\
.TP\n.B SIGUSR1\nThe listeners close, open requests finish, and then the process ends.\n\
.TP\n.B SIGTERM, SIGINT\nThe process ends at once.\n\
.TP\n.B SIGUSR2\nTo the master of \\fB\\-W\\fR or \\fB\\-Ws\\fR: the configuration is loaded again. No request is lost.\n\
.SH EXIT STATUS\n0: success. 1: an error, or a false condition of \\fB\\-cc\\fR. 2: a condition of \\fB\\-cc\\fR that cannot be evaluated.\n";

fn push_option(page: &mut String, option: &Opt) {
    let value = match option.value {
        Value::None => String::new(),
        Value::Joined(text) => format!("\\fI{}\\fR", escaped(text)),
        Value::Next(text) | Value::File(text) | Value::Numbers(text) => {
            format!(" \\fI{}\\fR", escaped(text))
        }
    };
    page.push_str(&format!(
        ".TP\n\\fB{}\\fR{value}\n{}\n",
        escaped(option.name),
        protected(&escaped(option.about))
    ));
}

/// Escapes backslashes and hyphens, so that they show as they are.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\e").replace('-', "\\-")
}

/// Protects a line of text that begins with a control character.
fn protected(line: &str) -> String {
    if line.starts_with(['.', '\'']) {
        format!("\\&{line}")
    } else {
        line.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_every_option_and_command() {
        let page = manual_page();
        for option in crate::args::options() {
            let name = format!("\\fB{}\\fR", escaped(option.name));
            assert!(page.contains(&name), "{name}");
        }
        for command in subcommands() {
            assert!(page.contains(&format!(".SH COMMAND {}", command.name.to_uppercase())));
        }
    }

    #[test]
    fn no_text_becomes_a_macro() {
        assert_eq!(protected(&escaped(".so a-b\\")), "\\&.so a\\-b\\e");
    }
}
