//! What stands around a record, and a cache that records share, is read, and perhaps written, once for
//! each record: a sender could make that the product of both. So it is bounded.

use otlp::scan::Malformed;

/// So much of it costs nothing in the account,
const BYTES_FREE: usize = 16 << 10;
/// and so many bytes a request of what is larger: more is refused.
const BYTES_MAX: usize = 512 << 20;

/// Bytes that were read around the records of one request.
#[derive(Debug, Default)]
pub struct AroundBytes(usize);

impl AroundBytes {
    /// Counts what is read around one record.
    ///
    /// # Errors
    /// The request makes too much work.
    pub fn add(&mut self, bytes: usize) -> Result<(), Malformed> {
        if bytes > BYTES_FREE {
            self.0 += bytes;
        }
        if self.0 > BYTES_MAX {
            Err(Malformed::TooLarge)
        } else {
            Ok(())
        }
    }
}
