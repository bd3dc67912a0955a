//! Compiled expressions, through the public interface.

mod allocations;
