//! Sections `log-profile` (manual §8.3.5), and references to them.

use super::line::{Cursor, Line, Parse};
use super::{Shared, did_you_mean, unknown, values};
use crate::keywords::{self, other};
use crate::model::{LogProfile, StepName};
use crate::tree::{Section, Tree};
use sample::{LogOrigin, Place, Style};

/// The names of the profiles in the tree, in the order of [`crate::model::Config::log_profiles`].
pub fn names(tree: &Tree) -> Vec<String> {
    sections(tree)
        .map(|section| {
            section
                .name()
                .map_or_else(String::new, |name| name.text.to_string())
        })
        .collect()
}

/// Builds every profile.
pub fn build(tree: &Tree, shared: &mut Shared<'_>) -> Vec<LogProfile> {
    let mut profiles: Vec<LogProfile> = Vec::new();
    let mut places = Vec::new();
    for section in sections(tree) {
        let header = Line::new(&section.header);
        let mut profile = LogProfile::default();
        let result = name(&header).and_then(|name| {
            profile.name = name.to_owned();
            let twin = profiles.iter().position(|other| other.name == name);
            twin.map_or(Ok(()), |twin| {
                Err(header.fault(
                    1,
                    format!(
                        "log-profile section '{name}' has the same name as another log-profile section declared at {}.",
                        places[twin]
                    ),
                ))
            })
        });
        shared.settle(result);
        for line in section.statements.iter().map(Line::new) {
            let result = statement(&mut profile, &line, shared);
            shared.settle(result);
        }
        places.push(header.span(0).place());
        profiles.push(profile);
    }
    profiles
}

/// The index of the profile in the word taken last.
pub fn resolve(cursor: &Cursor<'_>, shared: &Shared<'_>) -> Parse<usize> {
    let name = cursor.last();
    let names = &shared.log_profiles;
    names.iter().position(|other| other == name).ok_or_else(|| {
        let hint = did_you_mean(name, names.iter().map(String::as_str));
        cursor.fault(format!("unknown log-profile '{name}'{hint}."))
    })
}

/// `profile <name>` after `do-log`.
pub fn option(cursor: &mut Cursor<'_>, shared: &Shared<'_>) -> Parse<Option<usize>> {
    let mut profile = None;
    while cursor.peek() == "profile" {
        cursor.take();
        cursor.value("a log-profile")?;
        profile = Some(resolve(cursor, shared)?);
    }
    Ok(profile)
}

fn sections(tree: &Tree) -> impl Iterator<Item = &Section> {
    let all = tree.sections.iter();
    all.filter(|section| section.kind() == "log-profile")
}

fn name<'a>(header: &Line<'a>) -> Parse<&'a str> {
    let name = header.need(1, || "missing name for log-profile section.".into())?;
    header.at_most(1)?;
    match values::bad_name_character(header.bytes(1)) {
        None => Ok(name),
        Some(bad) => Err(header.fault(
            1,
            format!("character '{bad}' is not permitted in 'log-profile' name '{name}'."),
        )),
    }
}

fn statement(profile: &mut LogProfile, line: &Line<'_>, shared: &mut Shared<'_>) -> Parse {
    match line.keyword() {
        "log-tag" => {
            line.need(1, || "'log-tag' expects a tag for use in syslog.".into())?;
            line.at_most(1)?;
            profile.tag = Some(line.octets(1));
            Ok(())
        }
        "on" => on(profile, line, shared),
        _ => {
            let table = other::table("log-profile").unwrap_or_default();
            debug_assert!(keywords::find(table, line.keyword()).is_none());
            Err(unknown(line, "log-profile", table.iter().map(|k| k.name)))
        }
    }
}

/// `on <step> [drop] [format <fmt>] [sd <fmt>]`
fn on(profile: &mut LogProfile, line: &Line<'_>, shared: &mut Shared<'_>) -> Parse {
    let word = line.arg(1);
    let name = match word {
        "error" => StepName::Error,
        "any" => StepName::Any,
        _ => StepName::At(step(word).ok_or_else(|| {
            let names = LogOrigin::STEPS.iter().map(|(name, _)| *name);
            let hint = did_you_mean(word, names.clone().chain(["error", "any"]));
            let names: Vec<&str> = names.collect();
            line.fault(
                1,
                format!(
                    "'on' expects a log step: {}, error or any{hint}.",
                    names.join(", ")
                ),
            )
        })?),
    };
    let step = profile.step_mut(name);
    let nothing = format!("'on {word}' expects 'drop', 'format' or 'sd'.");
    let mut cursor = Cursor { line: *line, at: 2 };
    while !cursor.peek().is_empty() {
        let option = cursor.take();
        let target = match option {
            "drop" if cursor.at == 3 => {
                step.drop = true;
                continue;
            }
            "format" => &mut step.format,
            "sd" => &mut step.sd,
            _ => return Err(cursor.fault(nothing)),
        };
        step.drop = false;
        line.need(cursor.at, || {
            format!("'on {word} {option}' expects a logformat string.")
        })?;
        let text = line.bytes(cursor.at);
        *target = Some(shared.styled(line, cursor.at, text, Place::LOG, Style::Log)?);
        cursor.at += 1;
    }
    match cursor.at {
        2 => Err(line.fault(2, nothing)),
        _ => Ok(()),
    }
}

/// The step of that name.
pub fn step(name: &str) -> Option<LogOrigin> {
    let found = LogOrigin::STEPS.iter().find(|(known, _)| *known == name);
    found.map(|(_, origin)| *origin)
}
