//! `env`: the variable `OTEL_RESOURCE_ATTRIBUTES`, pairs such as `a=b,c=d` whose values may be
//! written as in URLs.

use syntax::escape::{Plus, unescaped};

use super::Found;
use crate::config::components::processors::action::AttributeValue;
use crate::config::components::processors::resource_detection::Env;

/// Characters of a key or a value.
const TEXT_MAX: usize = 256;

/// What the variable tells.
///
/// # Errors
/// It is not what it should be.
pub fn detect(
    settings: &Env,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<(Found, Vec<String>), String> {
    let names = ["OTEL_RESOURCE_ATTRIBUTES", "OTEL_RESOURCE"];
    let texts = names.iter().filter_map(|name| variable(name));
    let mut texts = texts
        .map(|text| text.trim().to_owned())
        .filter(|text| !text.is_empty());
    let Some(text) = texts.next() else {
        return Ok((Found::new(), Vec::new()));
    };
    let mut found = Found::new();
    // A comma at the end ends the last pair.
    for pair in text.strip_suffix(',').unwrap_or(&text).split(',') {
        let (key, value) =
            parsed(pair).ok_or_else(|| format!("'{pair}' is no pair of a key and a value"))?;
        found.retain(|(known, _)| *known != key);
        found.push((key, AttributeValue::Text(value)));
    }
    let any = |patterns: &[String], key: &str| patterns.iter().any(|pattern| is_like(key, pattern));
    found.retain(|(key, _)| {
        (settings.included.is_empty() || any(&settings.included, key))
            && !any(&settings.excluded, key)
    });
    Ok((found, Vec::new()))
}

fn parsed(pair: &str) -> Option<(String, String)> {
    let (key, value) = pair.split_once('=')?;
    let (key, value) = (key.trim(), value.trim());
    let fits = |text: &str| text.len() <= TEXT_MAX && text.is_ascii();
    if key.is_empty() || !fits(key) || !fits(value) {
        return None;
    }
    let value = String::from_utf8(unescaped(value, Plus::Space)?).ok()?;
    Some((key.to_owned(), value))
}

/// Whether a key is like a pattern, in which `*` stands for any characters and `?` for one.
fn is_like(key: &str, pattern: &str) -> bool {
    let (key, pattern): (Vec<char>, Vec<char>) = (key.chars().collect(), pattern.chars().collect());
    let (mut at, mut of, mut star) = (0, 0, None);
    while at < key.len() {
        match pattern.get(of) {
            Some('*') => {
                star = Some((at, of));
                of += 1;
            }
            Some(char) if *char == '?' || *char == key[at] => {
                at += 1;
                of += 1;
            }
            _ => match &mut star {
                // The last star takes one character more.
                Some((from, star)) => {
                    *from += 1;
                    (at, of) = (*from, *star + 1);
                }
                None => return false,
            },
        }
    }
    pattern[of..].iter().all(|char| *char == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detected(
        text: &str,
        included: &[&str],
        excluded: &[&str],
    ) -> Result<Vec<(String, String)>, String> {
        let texts = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect();
        let settings = Env {
            included: texts(included),
            excluded: texts(excluded),
        };
        let variable = |name: &str| (name == "OTEL_RESOURCE_ATTRIBUTES").then(|| text.to_owned());
        let (found, _) = detect(&settings, &variable)?;
        let pairs = found.into_iter().map(|(key, value)| match value {
            AttributeValue::Text(text) => (key, text),
            other => panic!("{other:?}"),
        });
        Ok(pairs.collect())
    }

    #[test]
    fn pairs_of_the_variable() {
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!(detected("", &[], &[]), Ok(vec![]));
        let two = vec![pair("a.b", "c d"), pair("e", "f=g")];
        assert_eq!(detected(" a.b = c%20d ,e=f=g,", &[], &[]), Ok(two));
        assert_eq!(detected("a=1,a=2", &[], &[]), Ok(vec![pair("a", "2")]));
        for bad in ["a", "a=1,,b=2", "=1", "a=%4", "a=%zz", "é=1"] {
            assert!(detected(bad, &[], &[]).is_err(), "{bad}");
        }
    }

    #[test]
    fn keys_are_chosen_by_patterns() {
        let keys = |included: &[&str], excluded: &[&str]| {
            let found = detected(
                "service.name=a,service.version=b,host=c",
                included,
                excluded,
            );
            found
                .unwrap()
                .into_iter()
                .map(|(key, _)| key)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            keys(&["service.*"], &[]),
            ["service.name", "service.version"]
        );
        assert_eq!(keys(&["*"], &["*.?ame", "h*t"]), ["service.version"]);
        assert_eq!(keys(&["host*x", "h"], &[]), Vec::<String>::new());
    }
}
