//! Time zones of times.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};

/// Months of a year, each of which may have another offset.
const MONTHS: i8 = 12;

/// A time zone, which is not UTC.
#[derive(Clone, Debug, PartialEq)]
pub struct Zone(TimeZone);

impl Zone {
    /// The zone of a name in the database of the system.
    pub fn named(name: &str) -> Option<Option<Zone>> {
        TimeZone::get(name).ok().map(Zone::unless_utc)
    }

    /// That of the process; none where it is UTC.
    pub fn system() -> Option<Zone> {
        Zone::unless_utc(TimeZone::system())
    }

    /// One with an offset from UTC; none where that is 0.
    pub fn fixed(offset_s: i32) -> Option<Option<Zone>> {
        let offset = Offset::from_seconds(offset_s).ok()?;
        Some(Zone::unless_utc(TimeZone::fixed(offset)))
    }

    fn unless_utc(zone: TimeZone) -> Option<Zone> {
        (zone != TimeZone::UTC && zone.iana_name() != Some("UTC")).then_some(Zone(zone))
    }

    /// The offset from UTC at a time, in seconds.
    pub fn offset_s(&self, ns: i64) -> i32 {
        self.0.to_offset(timestamp(ns)).seconds()
    }

    /// The abbreviation of its name at a time; none where it has only an offset.
    pub fn abbreviation(&self, ns: i64) -> Option<String> {
        let info = self.0.to_offset_info(timestamp(ns));
        let is_name = |text: &&str| text.bytes().all(|byte| byte.is_ascii_alphabetic());
        Some(info.abbreviation()).filter(is_name).map(str::to_owned)
    }

    /// Converts a local date and time to nanoseconds since 1970. An ambiguous time means the first
    /// of the two; a skipped time is computed with the offset before the change (Go: `time.Date`).
    pub fn at(&self, wall_ns: i64) -> Option<i64> {
        let offset = match self.0.to_ambiguous_timestamp(civil(wall_ns)?).offset() {
            AmbiguousOffset::Unambiguous { offset } => offset,
            AmbiguousOffset::Gap { before, .. } | AmbiguousOffset::Fold { before, .. } => before,
        };
        wall_ns.checked_sub(i64::from(offset.seconds()) * 1_000_000_000)
    }

    /// The offset of a zone abbreviation in the year of a local time; the one in use at that time
    /// if the abbreviation has several.
    pub fn offset_of(&self, abbreviation: &str, wall_ns: i64) -> Option<i32> {
        let at = |ns| {
            let info = self.0.to_offset_info(timestamp(ns));
            (info.abbreviation() == abbreviation).then(|| info.offset().seconds())
        };
        if let Some(offset) = self.at(wall_ns).and_then(at) {
            return Some(offset);
        }
        let year = civil(wall_ns)?.date().year();
        (1..=MONTHS).find_map(|month| {
            let middle = jiff::civil::date(year, month, 15).at(12, 0, 0, 0);
            let middle = TimeZone::UTC.to_timestamp(middle).ok()?;
            at(i64::try_from(middle.as_nanosecond()).ok()?)
        })
    }
}

fn timestamp(ns: i64) -> Timestamp {
    // `Timestamp` holds every 64-bit nanosecond value.
    Timestamp::from_nanosecond(i128::from(ns)).unwrap_or_default()
}

fn civil(wall_ns: i64) -> Option<DateTime> {
    Some(Offset::UTC.to_datetime(Timestamp::from_nanosecond(i128::from(wall_ns)).ok()?))
}
