//! Section `dashboard`.

use super::Bind;
use crate::tree::Span;
use syntax::octets::Octets;

/// Section `dashboard`: web pages about this process.
#[derive(Clone, Debug)]
pub struct DashboardSection {
    /// The place of its header.
    pub span: Span,
    /// `bind`: the listening addresses; at least one.
    pub binds: Vec<Bind>,
    /// `auth`: users and their passwords. If empty, everyone who can connect may read.
    pub users: Vec<(Octets, Octets)>,
    /// `admin`: servers may be changed.
    pub admin: bool,
}
