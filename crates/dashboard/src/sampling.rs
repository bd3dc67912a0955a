//! `GET /api/sampling` and `POST /api/dry-run`: what collectors sample, and what other policies would keep.

use hyper::StatusCode;
use serde_json::{Value, json};
use traces::Store;

use crate::reply::{self, Reply};
use crate::traced;

/// The accounts of all collectors and their policies.
type Account = dyn Fn() -> Value + Send + Sync;
/// What policies in YAML would keep of the traces held, at a time in milliseconds of the UNIX epoch.
type DryRun = dyn Fn(&Store, &str, u64) -> Result<Value, Refused> + Send + Sync;

/// What is asked of collectors.
pub struct Sampling {
    /// Their accounts.
    pub account: Box<Account>,
    /// A dry run.
    pub dry_run: Box<DryRun>,
}

/// What is wrong with policies, and where: lines and columns from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// What it is.
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
