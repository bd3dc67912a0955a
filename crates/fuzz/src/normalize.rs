//! The steps of `normalize-uri`.

use http::normalize::{Normalized, Normalizer};

const STEPS: [Normalizer; 11] = [
    Normalizer::FragmentEncode,
    Normalizer::FragmentStrip,
    Normalizer::PathMergeSlashes,
    Normalizer::PathStripDot,
    Normalizer::PathStripDotdot { full: false },
    Normalizer::PathStripDotdot { full: true },
    Normalizer::PercentDecodeUnreserved { strict: false },
    Normalizer::PercentDecodeUnreserved { strict: true },
    Normalizer::PercentToUppercase { strict: false },
    Normalizer::PercentToUppercase { strict: true },
    Normalizer::QuerySortByName,
];

/// Each step: it ends, its output is bounded, and what it has normalised it leaves alone the second
/// time.
pub fn normalize_uri(data: &[u8]) {
    let path = [b"/", data].concat();
    let (mut once, mut twice) = (Normalized::default(), Normalized::default());
    for step in STEPS {
        if step.apply(&path, &mut once).is_err() {
            continue;
        }
        let longest = match step {
            Normalizer::FragmentEncode => 3 * path.len(),
            // `/..` at the end gets its slash.
            Normalizer::PathStripDotdot { .. } => path.len() + 1,
            _ => path.len(),
        };
        assert!(once.text.len() <= longest, "{step:?} is bounded");
        assert!(once.text.starts_with(b"/"), "{step:?} leaves a path");
        // Two that are not, as in HAProxy: `/%%36%36` (the manual's own example), and `?&&`, whose
        // last empty parameter goes.
        let again_other = match step {
            Normalizer::PercentDecodeUnreserved { strict } => !strict,
            Normalizer::QuerySortByName => path.windows(2).any(|two| matches!(two, b"?&" | b"&&")),
            _ => false,
        };
        if !again_other {
            let again = step.apply(&once.text, &mut twice);
            assert_eq!(again, Ok(()), "{step:?} takes what it made");
            assert_eq!(twice.text, once.text, "{step:?} is done at once");
        }
        let path = once.text.split(|byte| *byte == b'?').next();
        let holds = |part: &[u8]| {
            path.is_some_and(|path| path.windows(part.len()).any(|bytes| bytes == part))
        };
        match step {
            Normalizer::PathMergeSlashes => assert!(!holds(b"//")),
            Normalizer::PathStripDot => assert!(!holds(b"/./")),
            Normalizer::PathStripDotdot { full: true } => assert!(!holds(b"/../")),
            _ => {}
        }
    }
}
