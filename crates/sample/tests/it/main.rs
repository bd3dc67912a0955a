//! Compiled expressions from outside.

mod allocations;
