//! A filter of system calls (seccomp) that refuses new processes and allows threads.

use std::io;

/// Refuses new processes in this thread and in those that it starts. `fork` and the like then fail
/// with EAGAIN, as with HAProxy's limit.
///
/// # Errors
/// `errno` of `seccomp`: the kernel lacks it, or the process may still gain privileges and is not
/// root. `Unsupported` on another architecture.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(super) fn refuse() -> io::Result<()> {
    let mut filter = filter::program();
    let program = libc::sock_fprog {
        len: filter.len() as libc::c_ushort,
        filter: filter.as_mut_ptr(),
    };
    // SAFETY: the pointer describes the program, which the kernel copies.
    let rc = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            // Without it, old kernels turn mitigations on that slow the process down.
            libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW,
            &raw const program,
        )
    };
    match rc {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) fn refuse() -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod filter {
    use libc::{BPF_ABS, BPF_JEQ, BPF_JMP, BPF_JSET, BPF_K, BPF_LD, BPF_RET, BPF_W, sock_filter};

    /// Offsets in `struct seccomp_data`; the low half of the first argument on a little-endian
    /// machine.
    const NUMBER: u32 = 0;
    const ARCHITECTURE: u32 = 4;
    const FIRST_ARGUMENT: u32 = 16;

    #[cfg(target_arch = "x86_64")]
    const NATIVE: u32 = 0xc000_003e;
    #[cfg(target_arch = "aarch64")]
    const NATIVE: u32 = 0xc000_00b7;
    /// The bit in the numbers of the x32 interface.
    const X32: u32 = 0x4000_0000;

    const fn statement(code: u32, k: u32) -> sock_filter {
        sock_filter {
            code: code as u16,
            jt: 0,
            jf: 0,
            k,
        }
    }

    const fn load(offset: u32) -> sock_filter {
        statement(BPF_LD | BPF_W | BPF_ABS, offset)
    }

    const fn result(action: u32) -> sock_filter {
        statement(BPF_RET | BPF_K, action)
    }

    const fn fail_with(errno: i32) -> sock_filter {
        result(libc::SECCOMP_RET_ERRNO | errno as u32)
    }

    /// Skips `skipped` statements unless the loaded value equals `k`.
    const fn unless_equal(k: u32, skipped: u8) -> sock_filter {
        sock_filter {
            code: (BPF_JMP | BPF_JEQ | BPF_K) as u16,
            jt: 0,
            jf: skipped,
            k,
        }
    }

    /// Skips `skipped` statements unless the loaded value has one of the bits.
    const fn unless_set(bits: u32, skipped: u8) -> sock_filter {
        sock_filter {
            code: (BPF_JMP | BPF_JSET | BPF_K) as u16,
            jt: 0,
            jf: skipped,
            k: bits,
        }
    }

    pub(super) fn program() -> Vec<sock_filter> {
        let mut program = vec![
            load(ARCHITECTURE),
            unless_equal(NATIVE, 1),
            // Skips the next statement: the interface is the machine's own.
            statement(BPF_JMP, 1),
            fail_with(libc::EPERM),
            load(NUMBER),
            unless_set(X32, 1),
            fail_with(libc::EPERM),
            // Its flags are in memory, which a filter cannot read. The C library then calls
            // `clone`.
            unless_equal(libc::SYS_clone3 as u32, 1),
            fail_with(libc::ENOSYS),
        ];
        #[cfg(target_arch = "x86_64")]
        program.extend([
            unless_equal(libc::SYS_fork as u32, 1),
            fail_with(libc::EAGAIN),
            unless_equal(libc::SYS_vfork as u32, 1),
            fail_with(libc::EAGAIN),
        ]);
        program.extend([
            unless_equal(libc::SYS_clone as u32, 2),
            load(FIRST_ARGUMENT),
            unless_set(libc::CLONE_THREAD as u32, 1),
            result(libc::SECCOMP_RET_ALLOW),
            fail_with(libc::EAGAIN),
        ]);
        program
    }
}
