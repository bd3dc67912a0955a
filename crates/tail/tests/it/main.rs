//! The trace store from outside.

mod allocations;
