//! Tokens with which a client shows, when it comes again, that it has its address (RFC 9000 §8.1.3).

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use quinn_proto::{TokenLog, TokenReuseError, ValidationTokenConfig};

/// How many tokens a client gets.
const TOKENS_SENT: u32 = 1;
/// How long a token is valid: no longer than a session may be resumed (RFC 8446 §4.6.1).
const LIFETIME: Duration = Duration::from_secs(7 * 24 * 3600);
/// How many used tokens are remembered at least.
const USED_TOKENS_MIN: usize = 1 << 15;

/// The tokens that were used. None is accepted twice (RFC 9000 §8.1.4). Copies share them.
///
/// Twice [`USED_TOKENS_MIN`] are remembered at most. When the older half of them is forgotten, no
/// token is accepted any longer that was issued at the time of one of them.
#[derive(Clone, Default)]
pub(crate) struct UsedTokens(Arc<Mutex<Used>>);

#[derive(Default)]
struct Used {
    recent: Half,
    before: Half,
    /// Tokens that were issued until then are not accepted.
    forgotten: Option<SystemTime>,
}

/// Tokens by their nonces.
#[derive(Default)]
struct Half {
    nonces: HashSet<u128>,
    /// When the last one was issued.
    issued: Option<SystemTime>,
}

impl Used {
    /// Notes that a token is used. Returns whether it is the first time.
    fn note(&mut self, nonce: u128, issued: SystemTime) -> bool {
        let is_forgotten = self.forgotten.is_some_and(|until| issued <= until);
        let is_known = self.recent.nonces.contains(&nonce) || self.before.nonces.contains(&nonce);
        if is_forgotten || is_known {
            return false;
        }
        if self.recent.nonces.len() >= USED_TOKENS_MIN {
            let recent = std::mem::take(&mut self.recent);
            let before = std::mem::replace(&mut self.before, recent);
            self.forgotten = self.forgotten.max(before.issued);
        }
        self.recent.nonces.insert(nonce);
        self.recent.issued = self.recent.issued.max(Some(issued));
        true
    }
}

impl UsedTokens {
    /// What a listener tells its clients of tokens, and how it checks them.
    pub fn config(&self) -> ValidationTokenConfig {
        let mut config = ValidationTokenConfig::default();
        config
            .sent(TOKENS_SENT)
            .lifetime(LIFETIME)
            .log(Arc::new(self.clone()));
        config
    }

    fn used(&self) -> MutexGuard<'_, Used> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TokenLog for UsedTokens {
    fn check_and_insert(
        &self,
        nonce: u128,
        issued: SystemTime,
        _lifetime: Duration,
    ) -> Result<(), TokenReuseError> {
        if self.used().note(nonce, issued) {
            Ok(())
        } else {
            Err(TokenReuseError)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(number: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(number)
    }

    #[test]
    fn a_token_is_used_once_and_little_is_remembered() {
        let mut used = Used::default();
        let count = 5 * USED_TOKENS_MIN as u64;
        for number in 0..count {
            assert!(used.note(number.into(), second(number)));
            assert!(!used.note(number.into(), second(number)));
            let kept = used.recent.nonces.len() + used.before.nonces.len();
            assert!(kept <= 2 * USED_TOKENS_MIN);
        }
        for number in (0..count).step_by(100) {
            assert!(!used.note(number.into(), second(number)), "{number}");
        }
        // One that was issued before those that are remembered, and was not used.
        assert!(used.note(u128::MAX, second(count - 2 * USED_TOKENS_MIN as u64)));
        assert!(!used.note(u128::MAX - 1, second(0)));
    }
    #[test]
    fn keys_that_follow_others_know_their_used_tokens() {
        let before = crate::Keys::new(b"secret");
        let after = crate::Keys::new(b"another").after(&before);
        assert!(before.used_tokens.used().note(1, second(1)));
        assert!(!after.used_tokens.used().note(1, second(1)));
    }
}
