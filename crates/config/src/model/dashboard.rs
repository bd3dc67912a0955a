//! Section `dashboard`.

use super::Bind;
use crate::tree::Span;
use syntax::octets::Octets;

/// Section `dashboard`: the pages about this process that it serves itself.
#[derive(Clone, Debug)]
pub struct DashboardSection {
    /// Where its header stands.
    pub span: Span,
    /// `bind`: where it listens; at least one.
    pub binds: Vec<Bind>,
    /// `auth`: users and their passwords; where there are none, everyone who reaches it may read.
    pub users: Vec<(Octets, Octets)>,
    /// `admin`: servers may be changed.
    pub admin: bool,
}
