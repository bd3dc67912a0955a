//! The configuration language: words → spanned tree → typed configuration, with every error of every file in one run.
//!
//! [`lexer`] and [`reader`] make the tree, [`condition`] and [`environment`] decide what of the files counts, [`keywords`] says
//! what words there are, [`build`] parses them, [`model`] is the result.
pub mod anonymise;
pub mod build;
pub mod condition;
pub mod diagnostic;
mod directive;
pub mod docs;
pub mod dump;
pub mod dynamic;
pub mod environment;
pub mod keywords;
pub mod lexer;
pub mod listing;
pub mod load;
pub mod model;
pub mod reader;
pub mod source;
pub mod tree;

pub use syntax::suggest;
