//! Checks the words after keywords that have no effect ([`Args`]).

use super::Shared;
use super::line::{Cursor, Parse};
use super::values;
use crate::keywords::arguments::Args;
use sample::Place;

impl Args {
    /// Consumes the arguments of `name`; the cursor is after the name.
    ///
    /// # Errors
    /// The first word that HAProxy refuses.
    pub fn check(&self, cursor: &mut Cursor<'_>, name: &str, shared: &mut Shared<'_>) -> Parse {
        match self {
            Args::None => Ok(()),
            Args::Word => argument(cursor, name).map(drop),
            Args::Any => {
                cursor.at = cursor.line.count();
                Ok(())
            }
            Args::Number(least, most) => number(cursor, name, *least, *most).map(drop),
            Args::Integer(least, most) => {
                number(cursor, name, *least, *most)?;
                let text = cursor.last();
                let is_whole = text.ends_with(|c: char| c.is_ascii_digit());
                within(cursor, name, is_whole, || "an integer".to_owned())
            }
            Args::Size(least) => {
                let text = argument(cursor, name)?;
                let size = values::size(text)
                    .map_err(|bad| cursor.fault(values::size_message(bad, text, name)))?;
                within(cursor, name, size >= *least, || format!("at least {least}"))
            }
            Args::Time => {
                argument(cursor, name)?;
                shared.time(&cursor.line, cursor.at - 1, name).map(drop)
            }
            Args::TimeWithin(least, most) => {
                argument(cursor, name)?;
                let time = shared.time(&cursor.line, cursor.at - 1, name)?.as_millis();
                let is_within = (u128::from(*least)..=u128::from(*most)).contains(&time);
                within(cursor, name, is_within, || {
                    format!("a time from {least} to {most} ms")
                })
            }
            Args::OneOf(words) => {
                let word = argument(cursor, name)?;
                one_of(cursor, name, words, word)
            }
            Args::Several(words) => {
                let mut word = argument(cursor, name)?;
                loop {
                    one_of(cursor, name, words, word)?;
                    if cursor.peek().is_empty() {
                        return Ok(());
                    }
                    word = cursor.take();
                }
            }
            Args::List(words) => {
                let list = argument(cursor, name)?;
                list.split(',')
                    .try_for_each(|word| one_of(cursor, name, words, word))
            }
            Args::Optional(args) => match cursor.peek() {
                "" => Ok(()),
                _ => args.check(cursor, name, shared),
            },
            Args::Sequence(all) => all
                .iter()
                .try_for_each(|args| args.check(cursor, name, shared)),
            Args::Sample => {
                argument(cursor, name)?;
                cursor.at -= 1;
                shared.next_expr(cursor, Place::ALL).map(drop)
            }
            Args::Address(parser) => parser(cursor, shared),
            Args::Own(parser) => parser(cursor),
        }
    }
}

/// Consumes an argument, which must exist.
fn argument<'a>(cursor: &mut Cursor<'a>, name: &str) -> Parse<&'a str> {
    cursor
        .line
        .need(cursor.at, || format!("'{name}' expects an argument."))?;
    Ok(cursor.take())
}

/// Parses a number like C's `atoi`, but refuses a word that does not begin with a number.
pub fn number(cursor: &mut Cursor<'_>, name: &str, least: i64, most: i64) -> Parse<i64> {
    let text = argument(cursor, name)?;
    let integer = super::line::leading_integer(text);
    if integer.is_empty() {
        return Err(cursor.fault(format!(
            "'{name}' expects an integer argument, got '{text}'."
        )));
    }
    // A number with too many digits counts as the limit.
    let number = integer.parse().unwrap_or(if text.starts_with('-') {
        i64::MIN
    } else {
        i64::MAX
    });
    within(
        cursor,
        name,
        (least..=most).contains(&number),
        || match most {
            i64::MAX => format!("a number of at least {least}"),
            _ => format!("a number from {least} to {most}"),
        },
    )?;
    Ok(number)
}

fn within(cursor: &Cursor<'_>, name: &str, is_within: bool, bounds: impl Fn() -> String) -> Parse {
    if is_within {
        Ok(())
    } else {
        Err(cursor.fault(format!(
            "'{name}' expects {}, got '{}'.",
            bounds(),
            cursor.last()
        )))
    }
}

fn one_of(cursor: &Cursor<'_>, name: &str, words: &[&str], word: &str) -> Parse {
    if words.contains(&word) {
        return Ok(());
    }
    let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    let (last, others) = match quoted.split_last() {
        Some((last, others)) => (last.as_str(), others.join(", ")),
        None => ("nothing", String::new()),
    };
    let known = match others.as_str() {
        "" => last.to_owned(),
        _ => format!("{others} or {last}"),
    };
    Err(cursor.fault(format!("'{name}' expects {known} but got '{word}'.")))
}
