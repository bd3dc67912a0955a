//! The progress of an experiment: a bar on a terminal, lines elsewhere. Both go to standard error.

#[cfg(feature = "progress")]
use indicatif::{ProgressBar, ProgressStyle};

/// Progress in steps of about the same duration.
pub struct Progress {
    steps: u64,
    done: u64,
    #[cfg(feature = "progress")]
    bar: ProgressBar,
}

impl Progress {
    /// The progress of this many steps.
    pub fn new(steps: usize) -> Self {
        let steps = steps as u64;
        Self {
            steps,
            done: 0,
            #[cfg(feature = "progress")]
            bar: bar(steps),
        }
    }

    /// Begins the next step.
    pub fn step(&mut self, what: &str) {
        #[cfg(feature = "progress")]
        if !self.bar.is_hidden() {
            self.bar.set_position(self.done);
            self.bar.set_message(what.to_owned());
            self.done += 1;
            return;
        }
        self.done += 1;
        eprintln!("[{}/{}] {what}", self.done, self.steps);
    }

    /// Reduces the number of remaining steps.
    #[cfg(feature = "tls")]
    pub fn skip(&mut self, steps: usize) {
        self.steps = self.steps.saturating_sub(steps as u64);
        #[cfg(feature = "progress")]
        self.bar.set_length(self.steps);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        #[cfg(feature = "progress")]
        self.bar.finish_and_clear();
    }
}

#[cfg(feature = "progress")]
fn bar(steps: u64) -> ProgressBar {
    let bar = ProgressBar::new(steps);
    // If the template does not parse, the default style is used.
    if let Ok(style) = ProgressStyle::with_template("[{bar:30}] {pos}/{len}, {eta} left: {msg}") {
        bar.set_style(style);
    }
    bar
}
