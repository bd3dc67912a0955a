//! Two configurations compared.

use config::condition::BuildInfo;
use config::diff::{Change, Comparison, Written, compare};
use config::environment::Environment;
use config::load;
use config::reader::Input;
use config::tree::Tree;

/// Any two trees are compared. A configuration equals itself, and two differ in both directions or
/// in none. The lines of effects exist.
pub fn config_diff(data: &[u8]) {
    let end = data.iter().position(|byte| *byte == 0);
    let (old, new) = match end {
        Some(end) => (&data[..end], &data[end + 1..]),
        None => (data, &data[..data.len() / 2]),
    };
    let (old, new) = (tree(old), tree(new));
    assert!(compare(&old, &old).is_empty());
    assert!(compare(&new, &new).is_empty());
    let there = compare(&old, &new);
    let back = compare(&new, &old);
    assert_eq!(there.is_empty(), back.is_empty(), "{there:?} {back:?}");
    check(&there);
    check(&back);
}

fn tree(text: &[u8]) -> Tree {
    let input = Input {
        name: "text".to_owned(),
        text: text.to_vec(),
    };
    let mut environment = Environment::new();
    environment.set("SET", "one two");
    load::tree(&[input], &BuildInfo::default(), &mut environment).0
}

fn check(comparison: &Comparison) {
    let exists = |written: &Written| written.place.line > 0;
    for effect in &comparison.effects {
        let texts = effect
            .change
            .before()
            .into_iter()
            .chain(effect.change.after());
        assert!(texts.chain(&effect.used_by).all(exists), "{effect:?}");
        if let Change::Moved { old, new } = &effect.change {
            assert!(!old.text.is_empty() && !new.text.is_empty(), "{effect:?}");
        }
    }
}
