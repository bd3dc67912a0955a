//! The span log: segments in the order of arrival.
//!
//! A record is the address of the trace's previous record, its header and its length (16 bytes),
//! then the span. Where a span begins with its trace's identifier, as encoders write it, those 18
//! bytes are left out: the table has them; of such a span only what differs from a template of its
//! service is kept, where there is one. A segment is given back as a whole, once every trace that
//! was there when it was sealed is decided; nothing is done for a record of a trace that is
//! dropped.

use std::collections::VecDeque;

/// No record: the chain of a trace ends here.
pub const NONE: u64 = u64::MAX;

/// Bytes of a record before its span.
pub const RECORD_BYTES: usize = 16;

/// Bytes of a field `trace_id`.
pub const ID_FIELD_BYTES: usize = 18;

/// Set in a record's length where the identifier was left out.
const STRIPPED: u32 = 1 << 31;
/// Set where the span was written with a template.
const TEMPLATED: u32 = 1 << 30;

/// Free segments that are kept for later; a steady state needs one.
const POOL_SEGMENTS: usize = 2;

/// Segments of the log.
#[derive(Debug)]
pub struct Log {
    segments: VecDeque<Segment>,
    /// Number of the first of them.
    first: u32,
    pool: Vec<Vec<u8>>,
    segment_bytes: usize,
    held_bytes: u64,
}

#[derive(Debug)]
struct Segment {
    data: Vec<u8>,
    /// Headers that are used here.
    headers: Vec<u32>,
    /// Traces below this number were there when it was sealed.
    traces_end: u64,
    sealed_ns: u64,
}

/// How a record has its span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// As it came.
    Whole,
    /// Without its first field, its trace's identifier.
    Stripped,
    /// The same, written with a template of its service.
    Templated,
}

/// One record.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// The trace's previous record, or [`NONE`].
    pub prev: u64,
    /// Its header.
    pub header: u32,
    /// How it has its span.
    pub form: Form,
    /// The span, in that form.
    pub span: &'a [u8],
}

impl Log {
    /// A log of segments of so many bytes; one span that is larger gets a segment of its own.
    #[must_use]
    pub fn new(segment_bytes: usize) -> Log {
        Log {
            segments: VecDeque::new(),
            first: 0,
            pool: Vec::new(),
            segment_bytes: segment_bytes.clamp(1 << 10, 1 << 30),
            held_bytes: 0,
        }
    }

    /// Bytes of all segments, also of those that are kept for later.
    #[must_use]
    pub fn held_bytes(&self) -> u64 {
        self.held_bytes
    }

    /// Bytes that `records` more records with `bytes` bytes of spans make the log grow by, at most.
    #[must_use]
    pub fn growth_bytes(&self, records: u64, bytes: u64, largest: u64) -> u64 {
        let need = bytes + records * RECORD_BYTES as u64;
        let room = self.segments.back().map_or(0, Segment::room) as u64;
        if need <= room {
            return 0;
        }
        let segment = self.segment_bytes as u64;
        let record = largest + RECORD_BYTES as u64;
        if record > segment {
            // A segment each for those that are too large, and halves of others around them.
            return need * 2 + segment * 2;
        }
        // A segment is left where the next record does not fit: at most one record less one byte
        // stays empty.
        let usable = (segment - record + 1).max(segment / 2).max(1);
        let segments = if record * 2 > segment {
            records
        } else {
            (need - room).div_ceil(usable) + 1
        };
        let pooled = (self.pool.len() as u64).min(segments);
        (segments - pooled) * segment
    }

    /// The number of the segment that is written now, if there is one.
    #[must_use]
    pub fn current(&self) -> Option<u32> {
        let len = self.segments.len() as u32;
        (len > 0).then(|| self.first.wrapping_add(len - 1))
    }

    /// Makes room for a record in the current segment, or begins the next; gives its number.
    /// `traces_end` is the number that the next new trace gets.
    #[inline]
    pub fn segment_for(&mut self, span_bytes: usize, traces_end: u64, now_ns: u64) -> u32 {
        let need = span_bytes + RECORD_BYTES;
        if self
            .segments
            .back()
            .is_none_or(|segment| segment.room() < need)
        {
            self.begin(need, traces_end, now_ns);
        }
        self.first.wrapping_add(self.segments.len() as u32 - 1)
    }

    #[cold]
    fn begin(&mut self, need: usize, traces_end: u64, now_ns: u64) {
        if let Some(last) = self.segments.back_mut() {
            last.traces_end = traces_end;
            last.sealed_ns = now_ns;
        }
        let pooled = if need <= self.segment_bytes {
            self.pool.pop()
        } else {
            None
        };
        let data = pooled.unwrap_or_else(|| {
            let bytes = need.max(self.segment_bytes);
            self.held_bytes += bytes as u64;
            Vec::with_capacity(bytes)
        });
        self.segments.push_back(Segment {
            data,
            headers: Vec::new(),
            traces_end: u64::MAX,
            sealed_ns: u64::MAX,
        });
    }

    /// Notes that the current segment uses a header.
    pub fn note_header(&mut self, header: u32) {
        if let Some(segment) = self.segments.back_mut() {
            segment.headers.push(header);
        }
    }

    /// Appends a record to the current segment, which has room for it; gives its address.
    #[inline]
    pub fn append(&mut self, prev: u64, header: u32, form: Form, span: &[u8]) -> u64 {
        let number = self.first.wrapping_add(self.segments.len() as u32 - 1);
        let Some(segment) = self.segments.back_mut() else {
            debug_assert!(false, "a segment was made for it");
            return NONE;
        };
        let at = segment.data.len();
        debug_assert!(segment.room() >= span.len() + RECORD_BYTES);
        let flags = match form {
            Form::Whole => 0,
            Form::Stripped => STRIPPED,
            Form::Templated => STRIPPED | TEMPLATED,
        };
        // Spans are shorter than a request, so that both bits are free.
        let len = span.len() as u32 | flags;
        let mut head = [0; RECORD_BYTES];
        head[..8].copy_from_slice(&prev.to_le_bytes());
        head[8..12].copy_from_slice(&header.to_le_bytes());
        head[12..].copy_from_slice(&len.to_le_bytes());
        segment.data.extend_from_slice(&head);
        segment.data.extend_from_slice(span);
        u64::from(number) << 32 | at as u64
    }

    /// The record at an address; none where there is none any more.
    #[inline]
    #[must_use]
    pub fn read(&self, address: u64) -> Option<Record<'_>> {
        let number = ((address >> 32) as u32).wrapping_sub(self.first);
        let segment = self.segments.get(number as usize)?;
        let (head, rest) = segment
            .data
            .get(address as u32 as usize..)?
            .split_first_chunk::<RECORD_BYTES>()?;
        let (prev, head) = head.split_first_chunk::<8>()?;
        let (header, head) = head.split_first_chunk::<4>()?;
        let len = u32::from_le_bytes(*head.first_chunk()?);
        Some(Record {
            prev: u64::from_le_bytes(*prev),
            header: u32::from_le_bytes(*header),
            form: match len & (STRIPPED | TEMPLATED) {
                0 => Form::Whole,
                STRIPPED => Form::Stripped,
                _ => Form::Templated,
            },
            span: rest.get(..(len & !(STRIPPED | TEMPLATED)) as usize)?,
        })
    }

    /// Follows the chains of many traces together, so many records each, so that their cache misses
    /// overlap; `chains` has their last records before.
    pub fn touch(&self, chains: &mut Vec<u64>, records_max: usize) {
        for _ in 0..records_max {
            chains.retain_mut(|at| {
                *at = self.read(*at).map_or(NONE, |record| record.prev);
                *at != NONE
            });
            if chains.is_empty() {
                return;
            }
        }
    }

    /// Gives back the oldest segment, if all traces below `decided` are decided and none of its
    /// records is needed any more: its number, and the headers that it used are put in `headers`.
    pub fn release(&mut self, decided: u64, headers: &mut Vec<u32>) -> Option<u32> {
        let oldest = self.segments.front()?;
        if oldest.traces_end > decided {
            return None;
        }
        let segment = self.segments.pop_front()?;
        headers.clear();
        headers.extend_from_slice(&segment.headers);
        self.recycle(segment.data);
        let number = self.first;
        self.first = self.first.wrapping_add(1);
        Some(number)
    }

    /// Nothing is pending: the current segment can be sealed, so that it is given back too.
    pub fn seal(&mut self, traces_end: u64, now_ns: u64) {
        if let Some(last) = self.segments.back_mut() {
            last.traces_end = traces_end;
            last.sealed_ns = now_ns;
        }
    }

    fn recycle(&mut self, mut data: Vec<u8>) {
        if data.capacity() == self.segment_bytes && self.pool.len() < POOL_SEGMENTS {
            data.clear();
            self.pool.push(data);
        } else {
            self.held_bytes -= data.capacity() as u64;
        }
    }

    /// Gives up segments that are kept for later.
    pub fn trim(&mut self) {
        self.held_bytes -= (self.pool.len() * self.segment_bytes) as u64;
        self.pool.clear();
    }

    /// When the oldest segment was sealed; none if there is only the current one.
    #[must_use]
    pub fn oldest_sealed_ns(&self) -> Option<u64> {
        let oldest = self.segments.front()?;
        (oldest.sealed_ns != u64::MAX).then_some(oldest.sealed_ns)
    }
}

impl Segment {
    #[inline]
    fn room(&self) -> usize {
        // One that was sealed takes no more.
        if self.sealed_ns != u64::MAX {
            return 0;
        }
        self.data.capacity() - self.data.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(count: u64) -> Form {
        [Form::Whole, Form::Stripped, Form::Templated][count as usize % 3]
    }

    #[test]
    fn records_chain_and_segments_go_in_order() {
        let mut log = Log::new(1024);
        let (mut head, mut headers) = (NONE, Vec::new());
        for count in 0..100_u64 {
            let span = vec![count as u8; 100];
            log.segment_for(span.len(), count / 2, count);
            head = log.append(head, count as u32, form(count), &span);
        }
        // Eight records of 116 bytes a segment.
        assert_eq!(log.held_bytes(), 13 * 1024);
        let mut at = head;
        for count in (0..100_u64).rev() {
            let record = log.read(at).unwrap();
            assert_eq!(record.header, count as u32);
            assert_eq!(record.form, form(count));
            assert_eq!(record.span, vec![count as u8; 100]);
            at = record.prev;
        }
        assert_eq!(at, NONE);
        assert_eq!(log.release(3, &mut headers), None);
        assert_eq!(log.release(4, &mut headers), Some(0));
        assert_eq!(log.release(4, &mut headers), None);
        let mut freed = 1;
        while log.release(1000, &mut headers).is_some() {
            freed += 1;
        }
        assert_eq!(freed, 12, "the last one is not sealed");
        log.seal(50, 100);
        assert_eq!(log.release(50, &mut headers), Some(12));
        log.trim();
        assert_eq!(log.held_bytes(), 0);
        assert!(log.read(head).is_none());
    }

    #[test]
    fn growth_is_never_less_than_what_comes() {
        for (segment, span, count) in [
            (1024, 10, 500),
            (1024, 600, 7),
            (1024, 5000, 3),
            (4096, 1, 9000),
        ] {
            let mut log = Log::new(segment);
            for _ in 0..3 {
                let bound = log.growth_bytes(count, count * span, span);
                let before = log.held_bytes();
                for _ in 0..count {
                    log.segment_for(span as usize, 0, 0);
                    log.append(NONE, 0, Form::Whole, &vec![0; span as usize]);
                }
                assert!(
                    log.held_bytes() - before <= bound,
                    "{segment} {span} {count}"
                );
            }
        }
    }
}
