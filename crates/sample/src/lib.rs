//! The expression language: sample fetches, converters, ACL conditions, log formats, compiled when the
//! configuration is loaded.
pub mod facts;
