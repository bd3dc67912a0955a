//! Rates with HAProxy's formula, so that the numbers agree: the events of the current period, plus
//! those of the previous period in proportion to how much of it still lies within the last period.
//! A rate has three cells: the start of the period, its events, and the events of the previous
//! period. Times are 32-bit milliseconds, which wrap.

/// The cells of a rate.
pub(crate) type Cells = [u32; 3];

/// Adds events; returns the events of the current period.
pub(crate) fn add(cells: &mut Cells, period_ms: u32, now_ms: u32, events: u32) -> u32 {
    let [began, current, previous] = cells;
    if now_ms.wrapping_sub(*began) < period_ms {
        *current = current.wrapping_add(events);
        return *current;
    }
    *previous = *current;
    *current = events;
    let mut begins = began.wrapping_add(period_ms);
    if now_ms.wrapping_sub(begins) >= period_ms {
        *previous = 0;
        begins = now_ms;
    }
    // HAProxy uses the lowest bit as a lock.
    *began = begins & !1;
    events
}

/// Makes the rate show this number of events until the period is over, as `set table` does.
pub(crate) fn set(cells: &mut Cells, now_ms: u32, events: u32) {
    *cells = [now_ms & !1, events, 0];
}

/// A rate whose current period began some time ago.
pub(crate) fn aged(now_ms: u32, age_ms: u32, current: u32, previous: u32) -> Cells {
    [now_ms.wrapping_sub(age_ms) & !1, current, previous]
}

/// The events of the last period.
pub(crate) fn read(cells: &Cells, period_ms: u32, now_ms: u32) -> u32 {
    let [began, current, previous] = *cells;
    let (mut current, mut previous) = (u64::from(current), u64::from(previous));
    let period = i64::from(period_ms.max(1));
    let mut left = i64::from(began.wrapping_add(period_ms).wrapping_sub(now_ms) as i32);
    if left < 0 {
        left += period;
        previous = if left >= 0 { current } else { 0 };
        current = 0;
    }
    // A single event of the previous period counts until that period is over, so that rare events
    // do not flap.
    if current == 0 && previous <= 1 {
        return previous as u32;
    }
    let left = u64::try_from(left).unwrap_or(0);
    let weighted = previous * left + current * period as u64;
    u32::try_from(weighted / period as u64).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_age_over_two_periods() {
        let mut cells = Cells::default();
        for at in 0..10 {
            add(&mut cells, 1000, 50_000 + at * 100, 1);
        }
        assert_eq!(read(&cells, 1000, 50_900), 10);
        // Half of the next period is over.
        assert_eq!(read(&cells, 1000, 51_500), 5);
        assert_eq!(add(&mut cells, 1000, 51_500, 2), 2);
        assert_eq!(read(&cells, 1000, 51_500), 7);
        assert_eq!(read(&cells, 1000, 52_000), 2);
        assert_eq!(read(&cells, 1000, 52_999), 0);
        assert_eq!(read(&cells, 1000, 60_000), 0);
    }

    #[test]
    fn a_lone_event_does_not_flap() {
        let mut cells = Cells::default();
        add(&mut cells, 1000, 50_000, 1);
        assert_eq!(read(&cells, 1000, 50_999), 1);
        assert_eq!(read(&cells, 1000, 51_999), 1);
        assert_eq!(read(&cells, 1000, 52_001), 0);
    }

    #[test]
    fn time_wraps() {
        let mut cells = Cells::default();
        set(&mut cells, u32::MAX - 100, 3);
        assert_eq!(read(&cells, 1000, 200), 3);
        assert_eq!(add(&mut cells, 1000, 300, 1), 4);
        assert_eq!(read(&cells, 0, 300), 0);
    }
}
