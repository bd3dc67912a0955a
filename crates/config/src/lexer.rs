//! One line of a configuration into words (manual §2.2, §2.3).

/// Words in a line; more are refused (HAProxy's `MAX_LINE_ARGS`).
pub const MAX_LINE_ARGS: usize = 64;
