//! The state of a server in the words of HAProxy's statistics.

use super::message;
use super::states::{Admin, OpState, States};
use crate::ids::ServerId;

impl States {
    /// The server whose checks decide: the server itself, or the end of the chain of tracked
    /// servers.
    pub(super) fn deciding(&self, id: ServerId) -> ServerId {
        let mut last = id;
        while let Some(next) = self.of(last).track {
            last = next;
        }
        last
    }

    /// `UP 1/3`, `DOWN (agent)`, `MAINT (via b/s)` and similar.
    pub(super) fn status(&self, id: ServerId) -> String {
        let admin = self.of(id).admin;
        if admin.has(Admin::UNRESOLVED) {
            "MAINT (resolution)".to_owned()
        } else if admin.has(Admin::INHERITED_MAINTENANCE) {
            let via = self.of(id).track.unwrap_or(id);
            format!("MAINT (via {})", message::full_name(self, via))
        } else if admin.has(Admin::MAINTENANCE) {
            "MAINT".to_owned()
        } else {
            self.health_status(id)
        }
    }

    /// The status of a server that is not in maintenance.
    fn health_status(&self, id: ServerId) -> String {
        let server = self.of(id);
        let decides = self.of(self.deciding(id));
        let (check, agent) = (&decides.check, &decides.agent);
        let is_full = check.health >= check.best();
        let progress = || match decides.state {
            OpState::Stopped => format!("{}/{}", check.health, check.rise),
            _ => {
                let health = (check.health + 1).saturating_sub(check.rise);
                format!("{health}/{}", check.fall)
            }
        };
        match server.state {
            OpState::Running | OpState::Starting
                if server.is_ejected() && !server.admin.has(Admin::DRAIN) =>
            {
                "NOLB".to_owned()
            }
            OpState::Running | OpState::Starting => {
                let is_falling = check.is_enabled && !is_full;
                match (server.admin.has(Admin::DRAIN), is_falling) {
                    (true, _) if agent.is_enabled => "DRAIN (agent)".to_owned(),
                    (true, true) => format!("DRAIN {}", progress()),
                    (true, false) => "DRAIN".to_owned(),
                    (false, true) => format!("UP {}", progress()),
                    (false, false) if check.is_enabled => "UP".to_owned(),
                    (false, false) => "no check".to_owned(),
                }
            }
            OpState::Stopping => {
                let is_checked = server.check.is_enabled || server.track.is_some();
                if is_checked && !is_full {
                    format!("NOLB {}", progress())
                } else {
                    "NOLB".to_owned()
                }
            }
            OpState::Stopped => {
                if agent.is_enabled && agent.health == 0 {
                    "DOWN (agent)".to_owned()
                } else if check.is_enabled && check.health == 0 {
                    "DOWN".to_owned()
                } else if check.is_enabled || agent.is_enabled {
                    format!("DOWN {}", progress())
                } else {
                    "DOWN".to_owned()
                }
            }
        }
    }
}
