//! Names of secrets, and secrets in texts.

/// Parts of names, without their separators, that say that the value is a secret.
const PARTS: &[&str] = &[
    "accesskey",
    "apikey",
    "authorization",
    "credential",
    "passphrase",
    "passwd",
    "password",
    "privatekey",
    "secret",
    "signingkey",
    "token",
];
/// Whole words of a name that say so where the word is certainly the name of a value.
const WORDS: &[&str] = &[
    "auth",
    "bearer",
    "cookie",
    "jwt",
    "key",
    "pass",
    "pwd",
    "session",
    "sid",
    "sig",
    "signature",
];
/// Words in a text that are followed by a space and a secret.
const SCHEMES: &[&str] = &["basic", "bearer", "digest"];
/// The same in what a health check sends.
const COMMANDS: &[&str] = &["auth", "pass", "password", "login"];

/// Whether a name says by itself that its value is a secret: `Authorization`, `db_password`.
pub(super) fn is_secret(name: &str) -> bool {
    let plain: String = name
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|c| c.to_ascii_lowercase())
        .collect();
    PARTS.iter().any(|part| plain.contains(part))
}

/// The same for the name of a header, a variable or a parameter: `X-Auth`, `txn.key`.
pub(super) fn names_secret(name: &str) -> bool {
    let mut words = name.split(|c: char| !c.is_ascii_alphanumeric());
    is_secret(name) || words.any(|word| WORDS.iter().any(|known| word.eq_ignore_ascii_case(known)))
}

/// The offset of the value in `name: value`, `name=value`, `"name":"value"`, or `Bearer value`.
/// `is_sent`: the text is a check's, and may be `AUTH value`.
pub(super) fn value_of_secret(text: &str, is_sent: bool) -> Option<usize> {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if !is_name(bytes[at]) {
            at += 1;
            continue;
        }
        let length = bytes[at..]
            .iter()
            .take_while(|byte| is_name(**byte))
            .count();
        let (start, end) = (at, at + length);
        at = end;
        let name = &text[start..end];
        let rest = &text[end..];
        let is = |known: &&str| name.eq_ignore_ascii_case(known);
        let value = if SCHEMES.iter().any(is) && rest.starts_with([' ', '\\']) {
            Some(rest.trim_start_matches([' ', '\\']))
        } else if is_sent
            && COMMANDS
                .iter()
                .any(|one| name.to_ascii_lowercase().ends_with(one))
        {
            Some(rest.trim_start())
        } else if names_secret(name) {
            assigned(rest)
        } else {
            None
        };
        // A value that comes from the environment or from an expression is not a secret in this
        // file.
        let value = value.filter(|value| {
            let first = value.trim_start_matches(['"', '\'', '\\', ' ']);
            !first.is_empty() && !first.starts_with(['%', '$'])
        });
        if let Some(value) = value {
            return Some(text.len() - value.len());
        }
    }
    None
}

/// The text after a colon or an equals sign.
fn assigned(rest: &str) -> Option<&str> {
    let rest = rest.trim_start_matches(['"', '\'', '\\', ' ']);
    let rest = rest.strip_prefix([':', '='])?;
    // `::` and `://` assign nothing.
    (!rest.starts_with([':', '/'])).then_some(rest)
}

/// The offset of the password in `scheme://user:password@host`.
pub(super) fn password_of_url(text: &str) -> Option<usize> {
    let mut at = 0;
    while let Some(found) = text[at..].find("://") {
        let start = at + found + 3;
        let length = text[start..].find(|c: char| c == '/' || c.is_whitespace());
        let authority = &text[start..length.map_or(text.len(), |length| start + length)];
        if let Some((account, _)) = authority.rsplit_once('@')
            && let Some(colon) = account.find(':')
        {
            return Some(start + colon + 1);
        }
        at = start;
    }
    None
}

/// The offset of the default value in `${NAME-default}`.
pub(super) fn default_of_variable(raw: &str) -> Option<usize> {
    let mut at = 0;
    while let Some(found) = raw[at..].find("${") {
        let start = at + found + 2;
        let name = raw[start..]
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .map_or(raw.len(), |length| start + length);
        if raw[name..].starts_with('-') && names_secret(&raw[start..name]) {
            return Some(name + 1);
        }
        at = start;
    }
    None
}
