//! The configuration language: words → spanned tree → typed configuration, with every error of every file in one run.
pub mod model;
pub mod tree;
