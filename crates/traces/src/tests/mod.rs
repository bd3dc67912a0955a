//! The store as a whole.

mod dry_run;
mod model;
mod queries;
mod random;
