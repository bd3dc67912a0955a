//! Directives that HAProxy 2.1 and later refuse: suggests the replacement, with the arguments of
//! the line if they can be converted. The suggestion is printed and never applied.

/// Converts the words of a directive to another directive.
pub type Rewrite = fn(&[&str]) -> Option<String>;

/// `monitor-net <network>`
pub fn monitor_net(words: &[&str]) -> Option<String> {
    let network = words.first()?;
    Some(format!(
        "http-request return status 200 if {{ src {network} }}"
    ))
}

/// Another directive with the same words.
pub fn joined(directive: &str, words: &[&str]) -> Option<String> {
    let mut out = directive.to_owned();
    for word in words {
        out.push(' ');
        out.push_str(&quoted(word));
    }
    Some(out)
}

/// `reqadd X-A:\ b [cond]`: a whole header line.
pub fn add(set: &str, words: &[&str]) -> Option<String> {
    let (line, condition) = words.split_first()?;
    let (name, value) = line.split_once(':')?;
    // The text was literal before, and is a log format now.
    let value = value.trim().replace('%', "%%");
    joined(
        &format!("{set} add-header {name} {}", quoted(&value)),
        condition,
    )
}

/// `reqdel ^X-A:.* [cond]`: header lines by a regular expression.
pub fn delete(set: &str, words: &[&str]) -> Option<String> {
    let (pattern, condition) = words.split_first()?;
    let (name, rest) = header(pattern)?;
    // A pattern for the value would need a condition on the value.
    match rest.trim_start_matches(' ') {
        "" | ".*" | ".*$" => joined(&format!("{set} del-header {name}"), condition),
        _ => None,
    }
}

/// `reqrep ^X-A:\ a(.*) X-A:\ b\1 [cond]`: a header line by a regular expression.
pub fn replace(set: &str, flags: &str, words: &[&str]) -> Option<String> {
    let [pattern, with, condition @ ..] = words else {
        return None;
    };
    let (name, value) = header(pattern)?;
    let (new_name, new_value) = with.split_once(':')?;
    if !new_name.eq_ignore_ascii_case(name) {
        return None;
    }
    let (value, new_value) = (
        value.trim_start(),
        new_value.trim_start().replace('%', "%%"),
    );
    let words = format!(
        "{set} replace-header {name} {} {}",
        quoted(&format!("{flags}^{value}")),
        quoted(&new_value)
    );
    joined(&words, condition)
}

/// `reqrep ^([^\ :]*)\ /a/(.*) \1\ /b/\2`: the target, after a group for the method.
pub fn replace_target(words: &[&str]) -> Option<String> {
    let [pattern, with, condition @ ..] = words else {
        return None;
    };
    let method = [
        "^([^ :]*) ",
        "^([^ ]*) ",
        "^([^ :]+) ",
        "^([^ ]+) ",
        "([^ ]*) ",
    ];
    let target = method
        .iter()
        .find_map(|method| pattern.strip_prefix(method))?;
    let with = with.strip_prefix("\\1 ")?;
    if !target.starts_with('/') || target.contains(' ') || with.contains(' ') {
        return None;
    }
    let with = renumbered(with)?.replace('%', "%%");
    let words = format!(
        "http-request replace-pathq {} {}",
        quoted(&format!("^{target}")),
        quoted(&with)
    );
    joined(&words, condition)
}

/// Renumbers the references of a pattern whose first group was removed.
fn renumbered(with: &str) -> Option<String> {
    let mut out = String::new();
    let mut rest = with.chars();
    while let Some(letter) = rest.next() {
        out.push(letter);
        if letter == '\\' {
            match rest.next()? {
                '1' => return None,
                digit @ '2'..='9' => out.push(char::from(digit as u8 - 1)),
                other => out.push(other),
            }
        }
    }
    Some(out)
}

/// `reqdeny ^X-A:\ bad [cond]`: a header line by a regular expression.
pub fn decide(action: &str, fetch: &str, flags: &str, words: &[&str]) -> Option<String> {
    let (pattern, condition) = words.split_first()?;
    let (name, value) = header(pattern)?;
    let value = quoted(&format!("^{}", value.trim_start()));
    let test = format!("{{ {fetch}({name}) -m reg {flags}{value} }}");
    match condition {
        [] => Some(format!("{action} if {test}")),
        ["if", rest @ ..] => joined(&format!("{action} if {test}"), rest),
        _ => None,
    }
}

/// Splits a pattern that begins with a literal header name into the name and the pattern of the
/// value.
fn header(pattern: &str) -> Option<(&str, &str)> {
    let (name, value) = pattern.strip_prefix('^')?.split_once(':')?;
    let is_name = !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    is_name.then_some((name, value))
}

/// A word in the syntax of a configuration file.
pub fn quoted(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_graphic() && !b"\"'\\#$".contains(&byte);
    match word {
        "" => "\"\"".into(),
        _ if word.bytes().all(plain) => word.into(),
        // In single quotes, every character except the closing quote is literal.
        _ if !word.contains('\'') => format!("'{word}'"),
        _ => {
            let escaped = word
                .replace('\\', "\\\\")
                .replace('"', "\\\"")
                .replace('$', "\\$");
            format!("\"{escaped}\"")
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::keywords::{State, find, proxy::KEYWORDS};

    #[test]
    fn only_removed_directives_are_rewritten() {
        for row in KEYWORDS.iter().filter(|row| row.instead.is_some()) {
            assert!(matches!(row.state, State::Removed(_)), "{}", row.name);
        }
    }

    #[test]
    fn the_words_of_the_line_are_carried_over() {
        let cases = [
            (
                "block",
                &["if", "bad"][..],
                Some("http-request deny if bad"),
            ),
            ("clitimeout", &["10s"], Some("timeout client 10s")),
            ("redispatch", &[], Some("option redispatch")),
            (
                "monitor-net",
                &["10.0.0.0/8"],
                Some("http-request return status 200 if { src 10.0.0.0/8 }"),
            ),
            (
                "reqadd",
                &["X-A: b 100%", "if", "c"],
                Some("http-request add-header X-A 'b 100%%' if c"),
            ),
            ("rspadd", &["no colon"], None),
            (
                "reqidel",
                &["^X-Forwarded-For:.*"],
                Some("http-request del-header X-Forwarded-For"),
            ),
            (
                "rspdel",
                &["^Server:.*", "if", "x"],
                Some("http-response del-header Server if x"),
            ),
            ("reqdel", &["^X-(A|B):.*"], None),
            (
                "reqrep",
                &["^([^ :]*) /static/(.*)", "\\1 /\\2"],
                Some("http-request replace-pathq ^/static/(.*) '/\\1'"),
            ),
            (
                "reqrep",
                &["^Host: www.(.*)", "Host: \\1"],
                Some("http-request replace-header Host ^www.(.*) '\\1'"),
            ),
            ("reqirep", &["^Host: a", "Other: b"], None),
            (
                "rspirep",
                &["^Location: http://(.*)", "Location: https://\\1"],
                Some("http-response replace-header Location (?i)^http://(.*) 'https://\\1'"),
            ),
            (
                "reqideny",
                &["^User-Agent: evil", "if", "x"],
                Some("http-request deny if { req.fhdr(User-Agent) -m reg -i ^evil } x"),
            ),
            ("reqdeny", &["^[^:]* /x"], None),
        ];
        for (name, words, wanted) in cases {
            let rewrite = find(KEYWORDS, name).and_then(|row| row.instead);
            let found = rewrite.and_then(|rewrite| rewrite(words));
            assert_eq!(found.as_deref(), wanted, "{name} {words:?}");
        }
    }
}
