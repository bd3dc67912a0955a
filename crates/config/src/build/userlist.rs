//! `userlist` sections: users, their passwords and groups (manual §12.2).

use super::line::{Cursor, Line, Parse};
use super::values::bad_name_character;
use super::{Shared, unknown};
use crate::keywords::other;
use crate::tree::{Section, Span};
use sample::auth::{Hash, NotAHash, Password, User, Userlist};
use std::collections::HashMap;
use std::sync::Arc;
use syntax::octets::Octets;

/// The first characters of texts that lock an account on purpose (shadow(5)).
const LOCKS: [char; 2] = ['!', '*'];

/// Users and groups as written; their references are resolved at the end of the section.
#[derive(Default)]
struct Draft {
    users: Vec<(User, Span)>,
    /// Groups by name: the users that each group names, and its place.
    groups: Vec<(Octets, Vec<Octets>, Span)>,
}

/// Reads a section, and declares it to the expression compiler.
pub fn section(section: &Section, shared: &mut Shared<'_>) {
    let header = Line::new(&section.header);
    let name = match name(&header, "userlist").and_then(|name| header.at_most(1).map(|()| name)) {
        Ok(name) => name,
        Err(fault) => return shared.settle(Err(fault)),
    };
    if shared.userlists.contains(&name.to_owned()) {
        let message = format!("ignoring duplicated userlist '{name}'.");
        let fault = header.fault(1, message).as_warning();
        return shared.settle(Err(fault));
    }
    let mut draft = Draft::default();
    for line in section.statements.iter().map(Line::new) {
        let result = match line.keyword() {
            "user" => user(&mut draft, &line, name, shared),
            "group" => group(&mut draft, &line, name),
            _ => {
                let known = other::table("userlist").unwrap_or_default();
                Err(unknown(&line, "userlist", known.iter().map(|k| k.name)))
            }
        };
        shared.settle(result);
    }
    let groups = draft
        .groups
        .iter()
        .map(|(group, ..)| group.clone())
        .collect();
    let list = Userlist::new(draft.resolve(name, shared), groups);
    shared.compiler.declare_userlist(name, Arc::new(list));
    shared.userlists.push(name.to_owned());
}

fn name<'a>(line: &Line<'a>, kind: &str) -> Parse<&'a str> {
    let name = line.need(1, || format!("'{kind}' expects <name> as arguments."))?;
    match bad_name_character(line.bytes(1)) {
        Some(bad) if kind != "user" => Err(line.fault(
            1,
            format!("character '{bad}' is not permitted in '{kind}' name '{name}'."),
        )),
        _ => Ok(name),
    }
}

/// `user <name> [password|insecure-password <password>] [groups <group>,…]`
fn user(draft: &mut Draft, line: &Line<'_>, list: &str, shared: &mut Shared<'_>) -> Parse {
    let name = name(line, "user")?;
    if draft
        .users
        .iter()
        .any(|(user, _)| *user.name == *line.bytes(1))
    {
        let message = format!("ignoring duplicated user '{name}' in userlist '{list}'.");
        return Err(line.fault(1, message).as_warning());
    }
    let mut user = User {
        name: line.octets(1),
        password: Password::Never,
        groups: Vec::new(),
    };
    let mut cursor = Cursor { line: *line, at: 2 };
    while !cursor.peek().is_empty() {
        match cursor.take() {
            "password" => {
                let text = cursor.value("<password>")?;
                user.password = match Hash::parse(text) {
                    Ok(hash) => Password::Hash(hash),
                    // As in HAProxy, such a text is no error.
                    Err(NotAHash::OfNoPassword(why)) => {
                        if !text.starts_with(LOCKS) {
                            let message = format!(
                                "no password matches the encrypted password used for user '{name}': {why}."
                            );
                            shared.settle(Err(cursor.fault(message).as_warning()));
                        }
                        Password::Never
                    }
                    Err(NotAHash::Unknown(why)) => {
                        return Err(cursor.fault(format!(
                            "the encrypted password used for user '{name}' is not supported by crypt(3): {why}."
                        )));
                    }
                };
            }
            "insecure-password" => {
                user.password = Password::Plain(cursor.octets("<password>")?);
            }
            "groups" => user.groups = names(&cursor.octets("<groups>")?),
            _ => {
                return Err(cursor.fault(
                    "'user' only supports 'password', 'insecure-password' and 'groups' options.",
                ));
            }
        }
    }
    draft.users.push((user, line.span(1)));
    Ok(())
}

/// `group <name> [users <user>,…]`
fn group(draft: &mut Draft, line: &Line<'_>, list: &str) -> Parse {
    let name = name(line, "group")?;
    if draft
        .groups
        .iter()
        .any(|(group, ..)| **group == *line.bytes(1))
    {
        let message = format!("ignoring duplicated group '{name}' in userlist '{list}'.");
        return Err(line.fault(1, message).as_warning());
    }
    let mut users = None;
    let mut cursor = Cursor { line: *line, at: 2 };
    while !cursor.peek().is_empty() {
        match cursor.take() {
            "users" if users.is_some() => {
                let message = format!("'users' option already defined in 'group' name '{name}'.");
                return Err(cursor.fault(message));
            }
            "users" => users = Some(names(&cursor.octets("<users>")?)),
            _ => return Err(cursor.fault("'group' only supports 'users' option.")),
        }
    }
    let users = users.unwrap_or_default();
    draft.groups.push((line.octets(1), users, line.span(1)));
    Ok(())
}

fn names(text: &[u8]) -> Vec<Octets> {
    let names = text.split(|byte| *byte == b',');
    names
        .filter(|name| !name.is_empty())
        .map(Octets::from)
        .collect()
}

impl Draft {
    /// The users, each with the groups that it names and those that name it.
    fn resolve(self, list: &str, shared: &mut Shared<'_>) -> Vec<User> {
        let mut users: Vec<User> = Vec::new();
        for (user, span) in self.users {
            for group in &user.groups {
                if !self.groups.iter().any(|(known, ..)| known == group) {
                    let message = format!(
                        "userlist '{list}': no such group '{group}' specified in user '{}'",
                        user.name
                    );
                    shared.diagnostics.alert(&span, message);
                }
            }
            users.push(user);
        }
        let places: HashMap<Octets, usize> = users
            .iter()
            .enumerate()
            .map(|(place, user)| (user.name.clone(), place))
            .collect();
        for (group, members, span) in self.groups {
            for member in members {
                match places.get(&member) {
                    Some(place) if users[*place].groups.contains(&group) => {}
                    Some(place) => users[*place].groups.push(group.clone()),
                    None => {
                        let message = format!(
                            "userlist '{list}': no such user '{member}' specified in group '{group}'"
                        );
                        shared.diagnostics.alert(&span, message);
                    }
                }
            }
        }
        users
    }
}
