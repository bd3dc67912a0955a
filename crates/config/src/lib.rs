//! The configuration language: words → spanned tree → typed configuration, with every error of every file in one run.
pub mod condition;
pub mod diagnostic;
pub mod environment;
pub mod lexer;
pub mod model;
pub mod reader;
pub mod source;
pub mod suggest;
pub mod tree;
