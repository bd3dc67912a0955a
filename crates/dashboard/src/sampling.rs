//! `GET /api/sampling` and `POST /api/dry-run`: the sampling of collectors, and the results of
//! other policies.

use hyper::StatusCode;
use serde_json::{Value, json};
use traces::Store;

use crate::reply::{self, Reply};
use crate::traced;

/// The accounts of all collectors and their policies.
type Account = dyn Fn() -> Value + Send + Sync;
/// Evaluates policies in YAML on the stored traces, at a time in milliseconds of the UNIX epoch.
type DryRun = dyn Fn(&Store, &str, u64) -> Result<Value, Refused> + Send + Sync;

/// The functions of collectors that the dashboard uses.
pub struct Sampling {
    /// Their accounts.
    pub account: Box<Account>,
    /// A dry run.
    pub dry_run: Box<DryRun>,
}

/// A fault in policies and its place: lines and columns are counted from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The fault.
    pub message: String,
    /// The line.
    pub line: u32,
    /// The column, in characters.
    pub column: u32,
}

impl Sampling {
    /// Answers a dry run.
    pub fn dry_run(&self, store: Option<&Store>, body: &[u8]) -> Reply {
        let Some(store) = store else {
            return traced::nothing_held();
        };
        let Ok(text) = std::str::from_utf8(body) else {
            return reply::error(StatusCode::BAD_REQUEST, "the policies are no UTF-8");
        };
        match (self.dry_run)(store, text, traced::now_ms()) {
            Ok(answer) => reply::json(&answer),
            Err(refused) => reply::with_status(
                StatusCode::BAD_REQUEST,
                &json!({
                    "error": refused.message,
                    "line": refused.line,
                    "column": refused.column,
                }),
            ),
        }
    }
}
