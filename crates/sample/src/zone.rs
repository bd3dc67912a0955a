//! Time zones, and dates as text in a format of `strftime`.

use std::cell::Cell;
use std::io::Write;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

use jiff::Timestamp;
use jiff::fmt::StdIoWrite;
use jiff::fmt::strtime::{BrokenDownTime, Config, PosixCustom};
use jiff::tz::TimeZone;

/// A time zone with its changes of offset, such as daylight saving.
#[derive(Clone, Debug)]
pub struct Zone {
    rules: TimeZone,
    /// Identifies the zone in caches.
    id: u32,
}

/// UTC with the name that the C library uses in `strftime`.
static UTC: LazyLock<Zone> =
    LazyLock::new(|| Zone::new(TimeZone::posix("GMT0").unwrap_or(TimeZone::UTC)));

impl Zone {
    fn new(rules: TimeZone) -> Zone {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        Zone {
            rules,
            id: NEXT.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// UTC.
    #[must_use]
    pub fn utc() -> &'static Zone {
        &UTC
    }

    /// The local time of this process: `TZ`, or `/etc/localtime`; UTC if neither is a valid zone.
    /// Reads files, so call it before `chroot`.
    #[must_use]
    pub fn local() -> Zone {
        TimeZone::try_system().map_or_else(|_| UTC.clone(), Zone::new)
    }

    /// A zone in the format of POSIX `TZ`, such as `CET-1CEST,M3.5.0,M10.5.0/3`; None for any other
    /// text.
    #[must_use]
    pub fn posix(text: &str) -> Option<Zone> {
        TimeZone::posix(text).ok().map(Zone::new)
    }

    /// Appends a time in a format of `strftime` (C locale). Times outside of the years -9999 to
    /// 9999 become the nearest valid one.
    pub fn write(&self, out: &mut Vec<u8>, seconds: i64, form: impl AsRef<[u8]>) {
        self.write_precise(out, Moment::at(seconds), form);
    }

    /// The same with nanoseconds, for `%N`.
    pub(crate) fn write_precise(&self, out: &mut Vec<u8>, moment: Moment, form: impl AsRef<[u8]>) {
        let start = out.len();
        if self.format(&mut *out, moment, form).is_none() {
            out.truncate(start);
        }
    }

    fn format(&self, out: impl Write, moment: Moment, form: impl AsRef<[u8]>) -> Option<()> {
        let config = Config::new().custom(PosixCustom::new()).lenient(true);
        let nearest = match moment.seconds {
            ..0 => Timestamp::MIN,
            _ => Timestamp::MAX,
        };
        let known = Timestamp::new(moment.seconds, moment.nanoseconds);
        BrokenDownTime::from(&known.unwrap_or(nearest).to_zoned(self.rules.clone()))
            .format_with_config(&config, form, &mut StdIoWrite(out))
            .ok()
    }
}

/// A time since the epoch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub seconds: i64,
    pub nanoseconds: i32,
}

impl Moment {
    fn at(seconds: i64) -> Moment {
        Moment {
            seconds,
            nanoseconds: 0,
        }
    }
}

impl Default for Zone {
    fn default() -> Self {
        UTC.clone()
    }
}

/// `20/Nov/2026:13:01:02 +0000`, the date format of logs.
const LOG_DATE: &str = "%d/%b/%Y:%H:%M:%S %z";
/// The length of the date up to the offset.
const DATE_BYTES: usize = 20;
const ZONED_BYTES: usize = 26;

/// The cached text of a second in a zone.
#[derive(Clone, Copy)]
struct LogDate {
    zone: u32,
    seconds: i64,
    text: [u8; ZONED_BYTES],
}

thread_local! {
    // Two entries: a line often has the dates of an accept and of a request in different seconds.
    static DATES: Cell<[LogDate; 2]> = const {
        Cell::new([LogDate { zone: 0, seconds: 0, text: [0; ZONED_BYTES] }; 2])
    };
}

impl Zone {
    /// A time in seconds since 1970 as `20/Nov/2026:13:01:02`.
    #[must_use]
    pub fn log_date(&self, seconds: i64) -> String {
        String::from_utf8_lossy(&log_date(seconds, self)[..DATE_BYTES]).into_owned()
    }
}

/// Appends `20/Nov/2026:13:01:02`. The text is computed once per second.
pub(crate) fn push_log_date(out: &mut Vec<u8>, seconds: i64, zone: &Zone) {
    out.extend_from_slice(&log_date(seconds, zone)[..DATE_BYTES]);
}

/// Appends `20/Nov/2026:13:01:02 +0000`.
pub(crate) fn push_zoned_log_date(out: &mut Vec<u8>, seconds: i64, zone: &Zone) {
    out.extend_from_slice(&log_date(seconds, zone));
}

/// `20/Nov/2026:13:01:02 +0000`: a time in seconds after the UNIX epoch, in the date format of
/// logs.
#[must_use]
pub fn zoned_log_date(seconds: u64, zone: &Zone) -> String {
    let mut out = Vec::new();
    push_zoned_log_date(&mut out, seconds as i64, zone);
    String::from_utf8_lossy(&out).into_owned()
}

fn log_date(seconds: i64, zone: &Zone) -> [u8; ZONED_BYTES] {
    let mut dates = DATES.get();
    let kept = &mut dates[(seconds & 1) as usize];
    if (kept.zone, kept.seconds) == (zone.id, seconds) {
        return kept.text;
    }
    // Only years before 0 and offsets with seconds make it longer; then it is truncated.
    let _ = zone.format(&mut kept.text[..], Moment::at(seconds), LOG_DATE);
    (kept.zone, kept.seconds) = (zone.id, seconds);
    let text = kept.text;
    DATES.set(dates);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const BERLIN: &str = "CET-1CEST,M3.5.0,M10.5.0/3";

    fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).expect("text")
    }

    /// The output of GNU `date`.
    #[test]
    fn forms() {
        for (form, wanted) in [
            ("%Y-%m-%d %H:%M:%S", "2026-11-20 13:01:02"),
            (
                "%a %A %b %B %h %e %j %y %C",
                "Fri Friday Nov November Nov 20 324 26 20",
            ),
            (
                "%I %l %p %P %D %F %T %R %r",
                "01  1 PM pm 11/20/26 2026-11-20 13:01:02 13:01 01:01:02 PM",
            ),
            (
                "%U %W %V %G %g %u %w %z %Z %s",
                "46 46 47 2026 26 5 5 +0000 GMT 1795179662",
            ),
            (
                "%c|%x|%X|%n%t%%",
                "Fri Nov 20 13:01:02 2026|11/20/26|13:01:02|\n\t%",
            ),
            ("%-M %_M %0e %-I %5d|%5e", "1  1 20 1 00020|   20"),
            ("%^a %#p %^B", "FRI pm NOVEMBER"),
            ("%E %", "%E %"),
        ] {
            let got = text(|out| Zone::utc().write(out, 1_795_179_662, form));
            assert_eq!(got, wanted, "{form}");
        }
    }

    #[test]
    fn a_zone_follows_daylight_saving() {
        let zone = Zone::posix(BERLIN).expect("a zone");
        for (seconds, wanted) in [
            // 2026-03-29 and 2026-10-25, 01:00 UTC.
            (1_774_745_999, "2026-03-29 01:59:59 +0100 CET"),
            (1_774_746_000, "2026-03-29 03:00:00 +0200 CEST"),
            (1_792_889_999, "2026-10-25 02:59:59 +0200 CEST"),
            (1_792_890_000, "2026-10-25 02:00:00 +0100 CET"),
        ] {
            let got = text(|out| zone.write(out, seconds, "%F %T %z %Z"));
            assert_eq!(got, wanted);
        }
    }

    #[test]
    fn log_dates_are_of_their_zone_and_second() {
        let berlin = Zone::posix(BERLIN).expect("a zone");
        let india = Zone::posix("<IST>-5:30").expect("a zone");
        for _ in 0..2 {
            for (seconds, zone, wanted) in [
                (0, Zone::utc(), "01/Jan/1970:00:00:00 +0000"),
                (951_782_400, Zone::utc(), "29/Feb/2000:00:00:00 +0000"),
                (1_774_745_999, &berlin, "29/Mar/2026:01:59:59 +0100"),
                (1_774_746_000, &berlin, "29/Mar/2026:03:00:00 +0200"),
                (1_774_746_000, &india, "29/Mar/2026:06:30:00 +0530"),
                (-1, Zone::utc(), "31/Dec/1969:23:59:59 +0000"),
            ] {
                let got = text(|out| push_zoned_log_date(out, seconds, zone));
                assert_eq!(got, wanted);
                let got = text(|out| push_log_date(out, seconds, zone));
                assert_eq!(got, wanted[..DATE_BYTES]);
            }
        }
    }

    #[test]
    fn moments_out_of_range_are_the_nearest() {
        for (seconds, wanted) in [(i64::MAX, "9999"), (i64::MIN, "-9999")] {
            assert_eq!(text(|out| Zone::utc().write(out, seconds, "%Y")), wanted);
        }
        let offset_with_seconds = Zone::posix("XXX-1:00:30").expect("a zone");
        let date = text(|out| push_zoned_log_date(out, 0, &offset_with_seconds));
        assert_eq!(date.len(), ZONED_BYTES);
    }
}
