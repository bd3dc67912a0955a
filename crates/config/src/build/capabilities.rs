//! `setcap` (manual §3.1): the capabilities that the process keeps without root rights.

use super::global::GlobalBuild;
use super::line::{Line, Parse};
use crate::model::Capability;

/// HAProxy's names of the supported capabilities.
const NAMES: &[(&str, Capability)] = &[
    ("cap_net_raw", Capability::NetRaw),
    ("cap_net_admin", Capability::NetAdmin),
    ("cap_net_bind_service", Capability::NetBindService),
    ("cap_sys_admin", Capability::SysAdmin),
];

/// `setcap <name>[,<name>...]`; several lines add up.
pub fn setcap(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let supported =
        "Supported ones are: cap_net_raw, cap_net_admin, cap_net_bind_service and cap_sys_admin.";
    let list = line.need(1, || {
        format!("'setcap' : missing capability name(s). {supported}")
    })?;
    line.at_most(1)?;
    for name in list.split(',').filter(|name| !name.is_empty()) {
        let known = NAMES.iter().find(|(known, _)| *known == name);
        let Some((_, capability)) = known else {
            return Err(line.fault(
                1,
                format!("'setcap' : unsupported capability '{name}'. {supported}"),
            ));
        };
        if !build.global.capabilities.contains(capability) {
            build.global.capabilities.push(*capability);
        }
    }
    Ok(())
}
