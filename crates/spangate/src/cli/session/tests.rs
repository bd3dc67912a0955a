use super::super::testing::{ask, subjects};
use super::*;
use config::model::Config;

fn asked(level: Level, sent: &str) -> String {
    ask(&subjects(Config::default()), level, sent)
}

fn admin(sent: &str) -> String {
    asked(Level::Admin, sent)
}

#[test]
fn one_line_or_many() {
    assert_eq!(admin("echo 1\necho 2\n"), "[info]: 1\n\n");
    assert_eq!(admin("echo 1;echo 2\n"), "[info]: 1\n\n[info]: 2\n\n");
    assert_eq!(admin(";echo 1;\n"), "\n[info]: 1\n\n\n");
    assert_eq!(admin("echo 1"), "", "no line without its end");
    assert_eq!(
        admin("prompt i\necho 1\necho 2\n"),
        "\n[info]: 1\n\n[info]: 2\n\n"
    );
    assert_eq!(
        admin("prompt i\necho 1\nprompt n\necho 2\n"),
        "\n[info]: 1\n\n\n"
    );
    assert_eq!(admin("echo 1;quit;echo 2\n"), "[info]: 1\n\n");
}

#[test]
fn prompts() {
    assert_eq!(
        admin("prompt\necho 1\necho 2;echo 3\nquit\n"),
        "\n> [info]: 1\n\n> [info]: 2\n\n[info]: 3\n\n> "
    );
    assert_eq!(admin("prompt\necho 1\nprompt\n"), "\n> [info]: 1\n\n> \n");
    assert_eq!(admin("prompt timed\n"), "\n[0:00:00:00]> ");
    assert!(admin("prompt x\n").starts_with("[err]: Usage: prompt "));
    let asked = admin("prompt\nshow version <<\nx\n");
    assert_eq!(asked, "\n> + ", "the payload is asked for");
}

#[test]
fn levels() {
    for (level, name) in [
        (Level::User, "user"),
        (Level::Operator, "operator"),
        (Level::Admin, "admin"),
    ] {
        let shown = asked(level, "show cli level\n");
        assert_eq!(shown, format!("[info]: {name}\n\n"));
    }
    assert_eq!(
        admin("operator;show cli level;user -;show cli level;operator\n"),
        "\n[info]: operator\n\n[info]: user\n\n[err]: Permission denied\n\n"
    );
}

#[test]
fn modes() {
    assert_eq!(
        admin("expert-mode;expert-mode on;expert-mode;user;expert-mode\n"),
        "[info]: expert-mode is OFF\n\n\n[info]: expert-mode is ON\n\n\n[err]: Permission denied\n\n"
    );
    assert_eq!(
        admin("experimental-mode on -;experimental-mode\n"),
        "[info]: experimental-mode is ON\n\n"
    );
}

#[test]
fn the_environment_is_shown() {
    let path = std::env::var("PATH").expect("there is one");
    assert_eq!(admin("show env PATH\n"), format!("PATH={path}\n\n"));
    assert!(admin("show env\n").contains(&format!("PATH={path}\n")));
    assert_eq!(
        admin("show env NO_SUCH_THING\n"),
        "[err]: Variable not found\n\n"
    );
    assert_eq!(
        asked(Level::User, "show env\n"),
        "[err]: Permission denied\n\n"
    );
}

#[test]
fn severities() {
    assert_eq!(
        admin("set severity-output number -;echo 1;set severity-output none;echo 1\n"),
        "[6]: 1\n\n\n1\n\n"
    );
    let refused = "[err]: one of 'none', 'number', 'string' is a required argument\n\n";
    assert_eq!(admin("set severity-output loud\n"), refused);
}

#[test]
fn timeouts() {
    assert_eq!(admin("set timeout cli 5\n"), "\n");
    assert_eq!(
        admin("set timeout cli\n"),
        "[err]: Expects an integer value.\n\n"
    );
    assert_eq!(
        admin("set timeout cli 10ms\n"),
        "[err]: Invalid timeout value.\n\n"
    );
    assert_eq!(
        admin("set timeout cli x\n"),
        "[err]: Invalid timeout value.\n\n"
    );
    assert_eq!(
        admin("set timeout x 1\n"),
        "[err]: 'set timeout' only supports 'cli'.\n\n"
    );
}

#[test]
fn what_is_too_large_ends_the_session() {
    let line = "x".repeat(2_000);
    let answer = admin(&format!("{line}\necho 1\n"));
    assert!(
        answer.starts_with("[err]: The command line is too big"),
        "{answer}"
    );
    assert_eq!(answer.lines().count(), 2);
    let answer = admin(&format!("echo <<\n{line}\n\necho 1\n"));
    assert!(
        answer.starts_with("[err]: The payload is too big"),
        "{answer}"
    );
    let words = "x ".repeat(65);
    let answer = admin(&format!("{words}\n"));
    assert!(answer.starts_with("[err]: Too many arguments."), "{answer}");
}

#[test]
fn unknown_commands_get_proposals() {
    let answer = admin("shwo version\n");
    assert!(
        answer.starts_with(
            "[info]: Unknown command: 'shwo', but maybe one of the following ones is a better match:\n"
        ),
        "{answer}"
    );
    assert!(answer.contains("\n  show version     "), "{answer}");
    assert!(!answer.contains("flt-otel"), "{answer}");
    assert!(answer.ends_with("disconnect\n\n"), "{answer}");
    let answer = admin("show cli\n");
    let named: Vec<&str> = answer
        .lines()
        .filter(|line| line.starts_with("  show"))
        .collect();
    assert!(
        named.iter().all(|line| line.starts_with("  show cli ")),
        "{answer}"
    );
    // A command that the level does not permit is not proposed.
    assert!(!asked(Level::User, "help\n").contains("flt-otel flush"));
    let help = admin("help set\n");
    assert!(help.contains("\n  set timeout [cli] <delay>"), "{help}");
    assert!(!help.contains("\n  show"), "{help}");
}
