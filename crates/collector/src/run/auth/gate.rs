//! Whether a request may come in.

use hyper::header::HeaderMap;

use super::Identity;
use super::basic::Users;
use super::bearer::Tokens;

/// Who asks.
pub enum Gate {
    /// `basicauth`
    Basic(Users),
    /// `bearertokenauth`
    Bearer(Tokens),
}

/// Why a request may not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denied {
    /// It does not say who sends.
    Missing,
    /// That is not true.
    Wrong,
    /// Too many are being checked; it may come again.
    Busy,
}

impl Gate {
    /// Whether a request with these fields may come in.
    ///
    /// # Errors
    /// Why not.
    pub async fn admit(&self, headers: &HeaderMap) -> Result<(), Denied> {
        match self {
            Gate::Basic(users) => users.admit(headers).await,
            Gate::Bearer(tokens) => tokens.admit(headers),
        }
    }

    /// Who sent a request that came in; of a token nothing is known.
    #[must_use]
    pub fn identity(&self, headers: &HeaderMap) -> Option<Identity> {
        match self {
            Gate::Basic(_) => Users::identity(headers),
            Gate::Bearer(_) => None,
        }
    }
}
