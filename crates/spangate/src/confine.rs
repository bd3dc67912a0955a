//! Drops rights after sockets and files are open: access outside of `chroot`, the group, the user,
//! and all capabilities except those of `setcap`. Before that, it gives up the start of programs
//! and the gain of privileges by one.

mod forks;

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use config::model::{Capability, Global};
use rustix::thread::{self, CapabilitySet, CapabilitySets};

/// `chroot auto`: an empty directory without a name.
const CHROOT_AUTO: &str = "auto";

/// Raises the capabilities that `setcap` names and that the program's file permits, if the process
/// starts as another user than root (management guide §13.1). If one is not permitted, the features
/// that need it fail later.
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

/// Gives up rights that only the start of another program needs: privileges of setuid programs,
/// unless `insecure-setuid-wanted`, and new processes, unless `insecure-fork-wanted`. Threads that
/// start later inherit both. HAProxy limits the number of processes to 0 (RLIMIT_NPROC); that limit
/// counts threads too, and sessions of the runtime interface are threads here. So a filter of
/// system calls refuses processes alone, and also for root.
pub(crate) fn harden(global: &Global) {
    if !global.allows_setuid && thread::set_no_new_privs(true).is_err() {
        crate::warning(
            "Failed to disable setuid, please report to developers with detailed information about your operating system. \
             You can silence this warning by adding 'insecure-setuid-wanted' in the 'global' section.",
        );
    }
    if !global.allows_forks && forks::refuse().is_err() {
        crate::warning(
            "Failed to disable forks, please report to developers with detailed information about your operating system. \
             You can silence this warning by adding 'insecure-fork-wanted' in the 'global' section.",
        );
    }
}

/// Warns of rights that an intruder would get: root without `chroot`, and root without `user` or
/// `uid`. The conditions are HAProxy's.
pub(crate) fn warn_of_root(global: &Global) {
    // A container may lack the capability, and then `chroot` is no advice.
    let may_chroot = || {
        is_root() && thread::capability_is_in_bounding_set(CapabilitySet::SYS_CHROOT) == Ok(true)
    };
    if global.chroot.is_none() && may_chroot() {
        crate::warning(
            "Spangate was started as root without any 'chroot' directive. A chroot limits the files that an intruder reaches to \
             one directory, which should be empty. Use 'chroot auto' in the 'global' section, or 'chroot /' to run without a \
             chroot and without this warning.",
        );
    }
    if global.uid.is_none() && is_root() {
        crate::warning(
            "Spangate was started as the root user and does not make use of 'user' nor 'uid' global options to drop the \
             privileges. Use an unprivileged user, with 'setcap' for the capabilities that it needs, or 'user root' to run as \
             root without this warning.",
        );
    }
}

/// The directory that `chroot` makes the root. `chroot /` changes nothing, and needs no privilege.
pub(crate) fn root_of(global: &Global) -> Option<&Path> {
    let directory = global.chroot.as_deref();
    directory.filter(|directory| directory.as_os_str() != "/")
}

/// Confines the process: chroot, then group, then user; each only if configured. Threads that
/// already run lose their capabilities too.
///
/// # Errors
/// The step that failed.
pub(crate) fn confine(global: &Global) -> Result<(), String> {
    let failed = |what: &str| format!("Cannot {what} : {}.", io::Error::last_os_error());
    if let Some(directory) = root_of(global) {
        let is_auto = directory.as_os_str() == CHROOT_AUTO;
        let path = if is_auto {
            anonymous_directory()?
        } else {
            CString::new(directory.as_os_str().as_bytes())
                .map_err(|_| "Cannot chroot : a NUL in the path.".to_owned())?
        };
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

/// Makes an empty directory, enters it and removes its name. Returns its path, relative to itself.
///
/// # Errors
/// The step that failed.
fn anonymous_directory() -> Result<CString, String> {
    let failed = |what: &str| {
        format!(
            "Cannot {what} for chroot auto : {}.",
            io::Error::last_os_error()
        )
    };
    let mut path = *b"/tmp/spangate.XXXXXX\0";
    // SAFETY: the template is NUL-terminated and writable, and the calls read the path that it
    // becomes.
    unsafe {
        if libc::mkdtemp(path.as_mut_ptr().cast()).is_null() {
            return Err(failed("create a directory"));
        }
        let entered = libc::chdir(path.as_ptr().cast());
        libc::rmdir(path.as_ptr().cast());
        if entered != 0 {
            return Err(failed("enter a directory"));
        }
    }
    Ok(c".".to_owned())
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
