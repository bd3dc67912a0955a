//! "did you mean": the known name that is nearest to one nobody knows.

/// Names further away than this share nothing with what was written.
const DISTANCE_MAX: usize = 3;

/// The message for a name that no entry has: `unknown` text with a suggestion, or that HAProxy knows it and we do not yet.
pub(crate) fn unknown(
    what: &str,
    name: &str,
    known: &[&'static str],
    ours: impl Iterator<Item = &'static str>,
) -> String {
    if known.contains(&name) {
        return format!("{what} '{name}' is known but not implemented yet");
    }
    match nearest(name, ours) {
        Some(other) => format!("unknown {what} '{name}', did you mean '{other}'?"),
        None => format!("unknown {what} '{name}'"),
    }
}

fn nearest(name: &str, candidates: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    let bound = (name.len() / 3).clamp(1, DISTANCE_MAX);
    candidates
        .map(|candidate| (distance(name.as_bytes(), candidate.as_bytes()), candidate))
        .filter(|(distance, _)| *distance <= bound)
        .min()
        .map(|(_, candidate)| candidate)
}

/// Edits between two names (Levenshtein).
fn distance(left: &[u8], right: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in right.iter().enumerate() {
            let replaced = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[right.len()]
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
        assert_eq!(distance(b"kitten", b"sitting"), 3);
    }
}
