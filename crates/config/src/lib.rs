//! The configuration language: words become a tree with source places, then a typed configuration.
//! One run reports every error of every file.
//!
//! [`lexer`] and [`reader`] build the tree. [`condition`] and [`environment`] determine which parts
//! of the files apply. [`keywords`] lists the keywords, [`build`] parses them, and [`model`] is the
//! result.
pub mod anonymise;
pub mod build;
pub mod condition;
pub mod diagnostic;
pub mod diff;
mod directive;
pub mod docs;
pub mod dump;
pub mod dynamic;
pub mod environment;
pub mod keywords;
pub mod lexer;
pub mod listing;
pub mod load;
pub mod migrate;
pub mod model;
pub mod reader;
pub mod secrets;
pub mod source;
pub mod tree;

pub use syntax::suggest;
