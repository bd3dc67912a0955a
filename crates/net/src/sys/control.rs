//! Control data of messages (`cmsg(3)`).

use std::mem::{size_of, zeroed};

use libc::c_int;

/// Room for the control data of one message, bytes. Packet information, ECN and segment size take
/// less than half of it.
const CONTROL_BYTES: usize = 256;

/// The control data of one message.
#[repr(C, align(8))]
pub(super) struct Control {
    bytes: [u8; CONTROL_BYTES],
    len: usize,
}

impl Control {
    pub(super) const CAPACITY: usize = CONTROL_BYTES;

    pub(super) const fn empty() -> Control {
        Control {
            bytes: [0; CONTROL_BYTES],
            len: 0,
        }
    }

    pub(super) fn clear(&mut self) {
        self.len = 0;
    }

    /// The bytes in use.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn as_mut_ptr(&mut self) -> *mut libc::c_void {
        self.bytes.as_mut_ptr().cast()
    }

    /// Appends a value. One that does not fit is left out.
    pub(super) fn put<T: Copy>(&mut self, level: c_int, kind: c_int, value: T) {
        const { assert!(align_of::<libc::cmsghdr>() <= 8) };
        let size = size_of::<T>() as libc::c_uint;
        // SAFETY: these compute lengths only.
        let (whole, used, head) = unsafe {
            (
                libc::CMSG_SPACE(size) as usize,
                libc::CMSG_LEN(size) as usize,
                libc::CMSG_LEN(0) as usize,
            )
        };
        if self.len + whole > CONTROL_BYTES {
            return;
        }
        // SAFETY: an all-zero cmsghdr is valid.
        let mut header: libc::cmsghdr = unsafe { zeroed() };
        header.cmsg_len = used as _;
        header.cmsg_level = level;
        header.cmsg_type = kind;
        // SAFETY: `whole` bytes from `self.len` lie inside the buffer, header and value lie inside
        // them, and `self.len` is a multiple of the header's alignment, as the buffer is.
        unsafe {
            let at = self.bytes.as_mut_ptr().add(self.len);
            at.cast::<libc::cmsghdr>().write(header);
            at.add(head).cast::<T>().write_unaligned(value);
        }
        self.len += whole;
    }
}

/// Reads the control messages of a received message. Calls `each` with the level, the kind and the
/// value of each one.
///
/// # Safety
/// `message` has been filled by a receiving call, and its control data is still alive.
pub(super) unsafe fn for_each(message: &libc::msghdr, mut each: impl FnMut(c_int, c_int, Value)) {
    // SAFETY: the caller's promise.
    let mut next = unsafe { libc::CMSG_FIRSTHDR(message) };
    // SAFETY: it is null or points to a header inside the control data.
    while let Some(header) = unsafe { next.as_ref() } {
        // SAFETY: this computes a length only.
        let head = unsafe { libc::CMSG_LEN(0) } as usize;
        // The type differs between C libraries.
        let whole: usize = header.cmsg_len as _;
        let value = Value {
            // SAFETY: this computes a pointer behind the header.
            data: unsafe { libc::CMSG_DATA(header) },
            len: whole.saturating_sub(head),
        };
        each(header.cmsg_level, header.cmsg_type, value);
        // SAFETY: `header` is a header of `message`.
        next = unsafe { libc::CMSG_NXTHDR(message, header) };
    }
}

/// The value of a control message. Only [`for_each`] makes one.
pub(super) struct Value {
    data: *const u8,
    len: usize,
}

/// Types of which all bit patterns are values.
///
/// # Safety
/// Every bit pattern of the type is valid.
pub(super) unsafe trait Plain: Copy {}

// SAFETY: integers, and structures of integers without padding.
unsafe impl Plain for u8 {}
// SAFETY: as above.
unsafe impl Plain for c_int {}
// SAFETY: as above.
unsafe impl Plain for libc::in_pktinfo {}
// SAFETY: as above.
unsafe impl Plain for libc::in6_pktinfo {}

impl Value {
    /// The value, if the kernel has written all of it.
    pub(super) fn read<T: Plain>(&self) -> Option<T> {
        // SAFETY: the control message has at least this many bytes, and all bit patterns are valid.
        (self.len >= size_of::<T>()).then(|| unsafe { self.data.cast::<T>().read_unaligned() })
    }
}
