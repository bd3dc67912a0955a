//! Effects of small changes, as lines of text.

use super::{Applies, Change, Comparison, Effect, Subject, compare};
use crate::condition::BuildInfo;
use crate::environment::Environment;
use crate::load;
use crate::reader::Input;
use crate::tree::Tree;

mod lines;
mod nothing;
mod proxies;
mod sections;

fn tree(name: &str, text: &str) -> Tree {
    let input = Input {
        name: name.to_owned(),
        text: text.as_bytes().to_vec(),
    };
    load::tree(&[input], &BuildInfo::default(), &mut Environment::new()).0
}

fn comparison(old: &str, new: &str) -> Comparison {
    compare(&tree("old", old), &tree("new", new))
}

/// Each effect as a line: section, mark, subject, texts.
fn effects(old: &str, new: &str) -> Vec<String> {
    let found = comparison(old, new);
    found.effects.iter().map(line).collect()
}

/// The same for two `listen` sections with these lines.
fn in_listen(old: &str, new: &str) -> Vec<String> {
    let section = |lines: &str| format!("listen l\n{lines}\n");
    let found = effects(&section(old), &section(new));
    let own = found.iter();
    own.map(|line| line.trim_start_matches("listen l ").to_owned())
        .collect()
}

fn line(effect: &Effect) -> String {
    let section = format!("{} {}", effect.section.kind, effect.section.name);
    let subject = match &effect.subject {
        Subject::Section => "section".to_owned(),
        Subject::Mode => "mode".to_owned(),
        Subject::Listener { address } => format!("listener {address}"),
        Subject::ListenerOption { address, option } => format!("listener {address} {option}"),
        Subject::Server { server } => format!("server {server}"),
        Subject::ServerAddress { server } => format!("server {server} address"),
        Subject::ServerOption { server, option } => format!("server {server} {option}"),
        Subject::Acl { acl } => format!("acl {acl}"),
        Subject::Rule { list } => format!("list {list}"),
        Subject::Setting { setting } => format!("setting {setting}"),
    };
    let change = match &effect.change {
        Change::Added(new) => format!("+{}: {}", new.place.line, new.text),
        Change::Removed(old) => format!("-{}: {}", old.place.line, old.text),
        Change::Changed { old, new } => format!(
            "{}~{}: {} → {}",
            old.place.line, new.place.line, old.text, new.text
        ),
        Change::Moved { old, new } => {
            format!("{}>{}: {}", old.place.line, new.place.line, new.text)
        }
    };
    let used_by: Vec<String> = effect
        .used_by
        .iter()
        .map(|rule| format!(" [{}: {}]", rule.place.line, rule.text))
        .collect();
    let restart = match effect.applies {
        Applies::InPlace => "",
        Applies::Restart(_) => " !",
    };
    let section = section.trim_end();
    format!("{section} {subject} {change}{}{restart}", used_by.concat())
}
