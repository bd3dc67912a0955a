//! "did you mean": the known name that is nearest to an unknown one.

use syntax::suggest::closest;

/// The message for a name without a table entry: `unknown` with a suggestion, or a note that
/// HAProxy knows the name and it is not implemented yet.
pub(crate) fn unknown(
    what: &str,
    name: &str,
    known: &[&'static str],
    ours: impl Iterator<Item = &'static str>,
) -> String {
    if known.contains(&name) {
        return format!("{what} '{name}' is known but not implemented yet");
    }
    match closest(name, ours) {
        Some(other) => format!("unknown {what} '{name}', did you mean '{other}'?"),
        None => format!("unknown {what} '{name}'"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_suggested() {
        let names = || ["path", "path_beg", "src"].into_iter();
        assert_eq!(
            unknown("fetch method", "patth", &[], names()),
            "unknown fetch method 'patth', did you mean 'path'?"
        );
        assert_eq!(
            unknown("fetch method", "zzzzzzz", &[], names()),
            "unknown fetch method 'zzzzzzz'"
        );
        let known = unknown("fetch method", "ssl_fc", &["ssl_fc"], names());
        assert_eq!(
            known,
            "fetch method 'ssl_fc' is known but not implemented yet"
        );
    }
}
