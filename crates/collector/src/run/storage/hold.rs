//! Keeps records until they are settled: in a segment of a journal, or in the messages of a topic
//! that contained them.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use journal::Hold as Segment;

/// Keeps a segment or messages. Clones keep the same.
#[derive(Clone, Debug)]
pub enum Hold {
    /// A segment: its file exists as long as this does.
    Segment(Segment),
    /// Messages: their offsets are not committed as long as this exists.
    Messages(Token),
}

impl From<Segment> for Hold {
    fn from(segment: Segment) -> Hold {
        Hold::Segment(segment)
    }
}

impl Hold {
    /// Whether both keep the same.
    #[must_use]
    pub fn is_same(&self, other: &Hold) -> bool {
        match (self, other) {
            (Hold::Segment(own), Hold::Segment(other)) => own.is_same(other),
            (Hold::Messages(own), Hold::Messages(other)) => Arc::ptr_eq(&own.0, &other.0),
            _ => false,
        }
    }

    /// Keeps it for the next process, even after the last clone is gone.
    pub fn stay(&self) {
        match self {
            Hold::Segment(segment) => segment.stay(),
            Hold::Messages(token) => token.mark(Fate::Left),
        }
    }

    /// Records that an exporter did not deliver the records.
    pub fn fail(&self, fate: Fate) {
        if let Hold::Messages(token) = self {
            token.mark(fate);
        }
    }
}

/// The final result of records. The worst one counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Fate {
    /// They were delivered, or dropped by a processor as configured.
    Done,
    /// An exporter gave up.
    Failed,
    /// A back end refused them permanently.
    Refused,
    /// The process ended before they were settled.
    Left,
}

/// Messages that are settled together, when the last clone is dropped.
#[derive(Clone)]
pub struct Token(Arc<Given>);

struct Given {
    worst: AtomicU8,
    settled: Option<Settled>,
}

/// Called with the result of the messages.
type Settled = Box<dyn FnOnce(Fate) + Send + Sync>;

impl Token {
    /// Creates a token that calls `settled` when its last clone is dropped, on the thread that
    /// drops it.
    #[must_use]
    pub fn new(settled: impl FnOnce(Fate) + Send + Sync + 'static) -> Token {
        Token(Arc::new(Given {
            worst: AtomicU8::new(Fate::Done as u8),
            settled: Some(Box::new(settled)),
        }))
    }

    /// Records a result of some of the messages.
    pub fn mark(&self, fate: Fate) {
        self.0.worst.fetch_max(fate as u8, Relaxed);
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Token({:?})", self.0.worst)
    }
}

impl Drop for Given {
    fn drop(&mut self) {
        let fate = match *self.worst.get_mut() {
            0 => Fate::Done,
            1 => Fate::Failed,
            2 => Fate::Refused,
            _ => Fate::Left,
        };
        if let Some(settled) = self.settled.take() {
            settled(fate);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn a_token_tells_the_worst_once_all_clones_are_gone() {
        for (marks, worst) in [
            (&[][..], Fate::Done),
            (&[Fate::Failed], Fate::Failed),
            (&[Fate::Refused, Fate::Failed], Fate::Refused),
            (&[Fate::Left, Fate::Refused], Fate::Left),
        ] {
            let told = Arc::new(Mutex::new(Vec::new()));
            let tell = Arc::clone(&told);
            let token = Token::new(move |fate| tell.lock().unwrap().push(fate));
            let hold = Hold::Messages(token.clone());
            assert!(hold.is_same(&Hold::Messages(token.clone())));
            assert!(!hold.is_same(&Hold::Messages(Token::new(|_| {}))));
            marks.iter().for_each(|fate| hold.fail(*fate));
            drop(token);
            assert!(told.lock().unwrap().is_empty());
            drop(hold);
            assert_eq!(*told.lock().unwrap(), [worst]);
        }
    }
}
