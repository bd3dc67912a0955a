//! "Did you mean": the candidate that is most similar to an unknown word.

/// The longest word that is compared, in bytes; a suggestion for a longer one is not useful.
const MAX_WORD_BYTES: usize = 64;

/// The candidate with the smallest edit distance to `word` (insert, delete, replace, swap of
/// neighbours), if a typing mistake explains it: at most a third of the word's length. The first of
/// equal candidates wins. Work: `|word| · |candidate|` each.
pub fn closest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > MAX_WORD_BYTES {
        return None;
    }
    let limit = (word.len() / 3).clamp(1, 4);
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        let limit = best.map_or(limit, |(distance, _)| distance.saturating_sub(1));
        if let Some(distance) = distance_within(word.as_bytes(), candidate.as_bytes(), limit) {
            best = Some((distance, candidate));
        }
    }
    // A word of one or two letters is one edit away from too many words.
    best.filter(|(distance, candidate)| *distance < candidate.len().min(word.len()))
        .map(|(_, candidate)| candidate)
}

/// Edit distance (optimal string alignment) of `a` and `b`, case ignored, if it is at most `limit`.
fn distance_within(a: &[u8], b: &[u8], limit: usize) -> Option<usize> {
    if a.len().abs_diff(b.len()) > limit || b.len() > MAX_WORD_BYTES {
        return None;
    }
    // Three rows of the matrix, the current one last.
    let mut rows = [[0usize; MAX_WORD_BYTES + 1]; 3];
    rows[2]
        .iter_mut()
        .enumerate()
        .for_each(|(j, cell)| *cell = j);
    for i in 1..=a.len() {
        rows.rotate_left(1);
        rows[2][0] = i;
        for j in 1..=b.len() {
            let same = a[i - 1].eq_ignore_ascii_case(&b[j - 1]);
            let mut cell = (rows[1][j] + 1)
                .min(rows[2][j - 1] + 1)
                .min(rows[1][j - 1] + usize::from(!same));
            let swapped = i > 1
                && j > 1
                && a[i - 1].eq_ignore_ascii_case(&b[j - 2])
                && a[i - 2].eq_ignore_ascii_case(&b[j - 1]);
            if swapped {
                cell = cell.min(rows[0][j - 2] + 1);
            }
            rows[2][j] = cell;
        }
        if rows[2][..=b.len()]
            .iter()
            .min()
            .is_some_and(|&least| least > limit)
        {
            return None;
        }
    }
    (rows[2][b.len()] <= limit).then_some(rows[2][b.len()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_find_their_word() {
        let known = [
            "mode",
            "bind",
            "balance",
            "default_backend",
            "use_backend",
            "timeout",
            "http-request",
            "http-response",
        ];
        let cases = [
            ("mdoe", Some("mode")),
            ("binde", Some("bind")),
            ("Balance", Some("balance")),
            ("balnace", Some("balance")),
            ("default-backend", Some("default_backend")),
            ("http-requst", Some("http-request")),
            ("timeoout", Some("timeout")),
            ("zork", None),
            ("x", None),
            ("", None),
        ];
        for (word, expected) in cases {
            assert_eq!(closest(word, known), expected, "{word}");
        }
    }

    #[test]
    fn the_nearest_wins_and_long_words_are_left_alone() {
        assert_eq!(closest("server", ["servers", "server"]), Some("server"));
        assert_eq!(closest(&"a".repeat(5000), ["a"]), None);
        assert_eq!(closest("aaaa", [&*"a".repeat(5000)]), None);
    }
}
