//! Drops rights after sockets and files are open: access outside of `chroot`, the group, the user, and all capabilities except
//! those of `setcap`.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;

use config::model::{Capability, Global};
use rustix::thread::{self, CapabilitySet, CapabilitySets};

/// Raises the capabilities that `setcap` names and that the program's file permits, if the process starts as another user than
/// root (management guide §13.1). If one is not permitted, the features that need it fail later.
///
/// # Errors
/// `errno` of `capget` or `capset`, in HAProxy's words.
pub(crate) fn raise_permitted(global: &Global) -> Result<(), String> {
    let wanted = set(&global.capabilities);
    if wanted.is_empty() || is_root() {
        return Ok(());
    }
    let failed = |error: rustix::io::Errno| {
        format!("Failed to put capabilities of 'setcap' into the effective set : {error}.")
    };
    let mut sets = thread::capabilities(None).map_err(failed)?;
    sets.effective |= sets.permitted & wanted;
    thread::set_capabilities(None, sets).map_err(failed)
}

/// Confines the process: chroot, then group, then user; each only if configured. Threads that already run lose their capabilities
/// too.
///
/// # Errors
/// The step that failed.
pub(crate) fn confine(global: &Global) -> Result<(), String> {
    let failed = |what: &str| format!("Cannot {what} : {}.", io::Error::last_os_error());
    if let Some(directory) = &global.chroot {
        let path = CString::new(directory.as_os_str().as_bytes())
            .map_err(|_| "Cannot chroot : a NUL in the path.".to_owned())?;
        let root = c"/";
        // SAFETY: both pointers are NUL-terminated strings.
        if unsafe { libc::chroot(path.as_ptr()) != 0 || libc::chdir(root.as_ptr()) != 0 } {
            return Err(failed(&format!("chroot({})", directory.display())));
        }
    }
    if let Some(gid) = global.gid {
        // SAFETY: no supplementary groups: the pointer is not read.
        unsafe { libc::setgroups(0, std::ptr::null()) };
        // SAFETY: no pointers.
        if unsafe { libc::setgid(gid) } != 0 {
            return Err(failed(&format!("set gid {gid}")));
        }
    }
    if let Some(uid) = global.uid {
        let kept = set(&global.capabilities);
        let keeps = !kept.is_empty() && is_root() && uid != 0;
        if keeps {
            thread::set_keep_capabilities(true)
                .map_err(|error| format!("Failed to preserve capabilities : {error}."))?;
        }
        // SAFETY: no pointers.
        if unsafe { libc::setuid(uid) } != 0 {
            return Err(failed(&format!("set uid {uid}")));
        }
        if keeps {
            let sets = CapabilitySets {
                effective: kept,
                permitted: kept,
                inheritable: CapabilitySet::empty(),
            };
            thread::set_capabilities(None, sets)
                .map_err(|error| format!("Failed to set the final capabilities : {error}."))?;
        }
    }
    Ok(())
}

fn is_root() -> bool {
    // SAFETY: no pointers.
    unsafe { libc::geteuid() == 0 }
}

fn set(capabilities: &[Capability]) -> CapabilitySet {
    let bit = |capability: &Capability| match capability {
        Capability::NetRaw => CapabilitySet::NET_RAW,
        Capability::NetAdmin => CapabilitySet::NET_ADMIN,
        Capability::NetBindService => CapabilitySet::NET_BIND_SERVICE,
        Capability::SysAdmin => CapabilitySet::SYS_ADMIN,
    };
    capabilities.iter().map(bit).collect()
}
