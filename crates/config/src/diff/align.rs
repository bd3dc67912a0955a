//! Aligns two lists of lines: which stay, move, change, come and go.
//!
//! The n-th of equal lines on one side belongs to the n-th on the other side. Of these pairs, the
//! longest sequence that has the same order on both sides stays, and the others moved. So the work
//! is that of sorting, for lists of any length.

use super::item::Item;
use crate::tree::Word;
use std::collections::{HashMap, VecDeque};

/// A removed line is compared with this many added lines at most to find what it became.
const CANDIDATES_MAX: usize = 16;

/// The fate of a line, by its index on each side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Moved(Pair),
    Changed(Pair),
    Removed(usize),
    Added(usize),
}

/// A line of each side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pair {
    pub old: usize,
    pub new: usize,
}

/// The differences between two lists, in the order of the new one. A removed line comes where it
/// was among the lines that stay.
pub(super) fn align(old: &[Item<'_>], new: &[Item<'_>]) -> Vec<Step> {
    let keys = |items: &[Item<'_>]| items.iter().map(Item::key).collect::<Vec<_>>();
    let (old_keys, new_keys) = (keys(old), keys(new));
    let partners = partners(&old_keys, &new_keys);
    let stays = longest_in_order(&partners);
    let mut has_partner = vec![None; new.len()];
    for (at, partner) in partners.iter().enumerate() {
        if let Some(slot) = partner.and_then(|partner| has_partner.get_mut(partner)) {
            *slot = Some(at);
        }
    }
    let mut steps = Vec::new();
    let mut from = Pair { old: 0, new: 0 };
    let end = Pair {
        old: old.len(),
        new: new.len(),
    };
    for to in stays.into_iter().chain([end]) {
        let removed = (from.old..to.old).filter(|at| partners[*at].is_none());
        let gap = Gap {
            removed: removed.collect(),
            added: (from.new..to.new).collect(),
        };
        gap.steps(&Lists { old, new }, &has_partner, &mut steps);
        from = Pair {
            old: to.old + 1,
            new: to.new + 1,
        };
    }
    steps
}

/// The index of the equal line on the other side, for each old line.
pub(super) fn partners<K: std::hash::Hash + Eq>(old: &[K], new: &[K]) -> Vec<Option<usize>> {
    let is_same = |(one, other): &(&K, &K)| one == other;
    let start = old.iter().zip(new).take_while(is_same).count();
    let (old_rest, new_rest) = (&old[start..], &new[start..]);
    let ends = old_rest.iter().rev().zip(new_rest.iter().rev());
    let end = ends.take_while(is_same).count();
    let old_middle = &old_rest[..old_rest.len() - end];
    let new_middle = &new_rest[..new_rest.len() - end];
    let mut places: HashMap<&K, VecDeque<usize>> = HashMap::new();
    for (at, key) in new_middle.iter().enumerate() {
        places.entry(key).or_default().push_back(start + at);
    }
    let mut take = |key| places.get_mut(key).and_then(VecDeque::pop_front);
    let before = (0..start).map(Some);
    let middle: Vec<_> = old_middle.iter().map(&mut take).collect();
    let after = (new.len() - end..new.len()).map(Some);
    before.chain(middle).chain(after).collect()
}

/// The longest sequence of pairs whose order is the same on both sides.
pub(super) fn longest_in_order(partners: &[Option<usize>]) -> Vec<Pair> {
    // `tails[n]`: the index in `partners` at which the best sequence of n + 1 pairs ends.
    let mut tails: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = vec![None; partners.len()];
    for (at, partner) in partners.iter().enumerate() {
        let Some(partner) = partner else {
            continue;
        };
        let length =
            tails.partition_point(|tail| partners[*tail].is_some_and(|end| end < *partner));
        before[at] = length.checked_sub(1).map(|last| tails[last]);
        match tails.get_mut(length) {
            Some(tail) => *tail = at,
            None => tails.push(at),
        }
    }
    let mut pairs = Vec::with_capacity(tails.len());
    let mut at = tails.last().copied();
    while let Some(old) = at {
        if let Some(new) = partners[old] {
            pairs.push(Pair { old, new });
        }
        at = before[old];
    }
    pairs.reverse();
    pairs
}

struct Lists<'a, 't> {
    old: &'a [Item<'t>],
    new: &'a [Item<'t>],
}

/// The lines between two that stay.
struct Gap {
    /// Old lines that the new side does not have.
    removed: Vec<usize>,
    /// All new lines.
    added: Vec<usize>,
}

impl Gap {
    /// `moved_from`: the old place of each new line that has one.
    fn steps(self, lists: &Lists<'_, '_>, moved_from: &[Option<usize>], steps: &mut Vec<Step>) {
        let is_new = |at: &&usize| moved_from[**at].is_none();
        let mut candidates: VecDeque<usize> = self.added.iter().filter(is_new).copied().collect();
        let mut changed: HashMap<usize, usize> = HashMap::new();
        for old in self.removed {
            let found = candidates.iter().take(CANDIDATES_MAX).position(|new| {
                let (old, new) = (lists.old.get(old), lists.new.get(*new));
                old.zip(new).is_some_and(|(old, new)| is_similar(old, new))
            });
            match found {
                Some(found) => {
                    changed.insert(candidates[found], old);
                    // Those passed over are additions, so that changed lines keep their order.
                    candidates.drain(..=found);
                }
                None => steps.push(Step::Removed(old)),
            }
        }
        for new in self.added {
            let step = match (changed.get(&new), moved_from[new]) {
                (Some(&old), _) => Step::Changed(Pair { old, new }),
                (None, Some(old)) => Step::Moved(Pair { old, new }),
                (None, None) => Step::Added(new),
            };
            steps.push(step);
        }
    }
}

/// Whether one line may be the other one after an edit: they have the same keyword and action, and
/// at least half of their other words in common.
fn is_similar(old: &Item<'_>, new: &Item<'_>) -> bool {
    let (old, new) = (&old.statement.words, &new.statement.words);
    let count = old
        .iter()
        .zip(new)
        .take_while(|(old, new)| old.text == new.text)
        .count();
    let has_action = old.first().is_some_and(|first| {
        let text: &str = &first.text;
        text.starts_with("http-") || text.starts_with("tcp-") || text == "filter" || text == "stats"
    });
    if count == 0 || has_action && action(old) != action(new) {
        return false;
    }
    let (old, new) = (telling(old), telling(new));
    let mut words: HashMap<&[u8], isize> = HashMap::new();
    for word in &old {
        *words.entry(word).or_default() += 1;
    }
    let common = new.iter().filter(|word| {
        let left = words.entry(word).or_default();
        *left -= 1;
        *left >= 0
    });
    4 * common.count() >= old.len() + new.len()
}

/// The words after the keyword, without those that most conditions have.
fn telling(words: &[Word]) -> Vec<&[u8]> {
    let words = words.iter().skip(1).map(Word::bytes);
    let is_common = |word: &&[u8]| matches!(*word, b"if" | b"unless" | b"{" | b"!{" | b"}");
    words.filter(|word| !is_common(word)).collect()
}

/// The word after the keyword, without its parentheses.
fn action(words: &[Word]) -> &str {
    let word = words.get(1).map_or("", |word| word.text.as_str());
    word.split('(').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(old: &str, new: &str) -> String {
        let bytes = old.as_bytes();
        let pairs = longest_in_order(&partners(bytes, new.as_bytes()));
        pairs
            .iter()
            .map(|pair| char::from(bytes[pair.old]))
            .collect()
    }

    #[test]
    fn most_lines_stay() {
        for (old, new, stay) in [
            ("", "", ""),
            ("abc", "abc", "abc"),
            ("abc", "", ""),
            ("abcdef", "bcdefa", "bcdef"),
            ("axbxc", "bxc", "bxc"),
            ("xxaxx", "xxxx", "xxxx"),
            ("abcd", "dcba", "d"),
        ] {
            assert_eq!(order(old, new), stay, "{old} {new}");
        }
    }
}
