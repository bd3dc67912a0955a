//! Formats of times: `%Y-%m-%d` and the like (README of OTTL's functions, "FormatTime"). The
//! Collector converts them to Go layouts (Go: package time, "Constants"), so input and output
//! follow the rules of Go layouts.

use super::time::{DAY, HOUR, MINUTE, SECOND, date};
use crate::eval::Failure;
use crate::value::Value;
use crate::zone::Zone;

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];
/// Letters of an abbreviated name.
const SHORT: usize = 3;

/// Meaning of a directive.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Item {
    Year,
    YearOfCentury,
    /// Two digits, or as few as there are.
    Month(bool),
    MonthName,
    MonthShort,
    Day(Pad),
    DayName,
    DayShort,
    Hour,
    /// Of twelve hours.
    HalfDayHour(bool),
    /// In capitals.
    HalfDay(bool),
    Minute,
    Second,
    /// So many digits at most, behind a point or a comma.
    Fraction(char, usize),
    ZoneName,
    /// An offset from UTC.
    Offset(Offset),
    Literal(char),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Pad {
    Zero,
    Space,
    None,
}

/// Parts of an offset, and what stands between them.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Offset {
    parts: usize,
    colons: bool,
}

const fn offset(parts: usize, colons: bool) -> Item {
    Item::Offset(Offset { parts, colons })
}

const DATE: &[Item] = &[
    Item::Month(true),
    Item::Literal('/'),
    Item::Day(Pad::Zero),
    Item::Literal('/'),
    Item::Year,
];
const ISO_DATE: &[Item] = &[
    Item::Year,
    Item::Literal('-'),
    Item::Month(true),
    Item::Literal('-'),
    Item::Day(Pad::Zero),
];
const CLOCK: &[Item] = &[
    Item::Hour,
    Item::Literal(':'),
    Item::Minute,
    Item::Literal(':'),
    Item::Second,
];

/// Meaning of each directive.
#[rustfmt::skip]
const DIRECTIVES: &[(char, &[Item])] = &[
    ('Y', &[Item::Year]), ('y', &[Item::YearOfCentury]),
    ('m', &[Item::Month(true)]), ('q', &[Item::Month(false)]),
    ('b', &[Item::MonthShort]), ('h', &[Item::MonthShort]), ('B', &[Item::MonthName]),
    ('d', &[Item::Day(Pad::Zero)]), ('e', &[Item::Day(Pad::Space)]), ('g', &[Item::Day(Pad::None)]),
    ('a', &[Item::DayShort]), ('A', &[Item::DayName]),
    ('H', &[Item::Hour]), ('I', &[Item::HalfDayHour(true)]), ('l', &[Item::HalfDayHour(false)]),
    ('p', &[Item::HalfDay(true)]), ('P', &[Item::HalfDay(false)]),
    ('M', &[Item::Minute]), ('S', &[Item::Second]),
    ('Z', &[Item::ZoneName]), ('z', &[offset(2, false)]), ('w', &[offset(3, false)]),
    ('i', &[offset(1, false)]), ('j', &[offset(2, true)]), ('k', &[offset(3, true)]),
    ('D', DATE), ('x', DATE), ('F', ISO_DATE), ('T', CLOCK), ('X', CLOCK),
    ('r', &[
        Item::HalfDayHour(true), Item::Literal(':'), Item::Minute, Item::Literal(':'), Item::Second,
        Item::Literal(' '), Item::HalfDay(false),
    ]),
    ('R', &[Item::Hour, Item::Literal(':'), Item::Minute]),
    ('c', &[
        Item::DayShort, Item::Literal(' '), Item::MonthShort, Item::Literal(' '), Item::Day(Pad::Zero),
        Item::Literal(' '), Item::Hour, Item::Literal(':'), Item::Minute, Item::Literal(':'), Item::Second,
        Item::Literal(' '), Item::Year,
    ]),
    ('n', &[Item::Literal('\n')]), ('t', &[Item::Literal('\t')]), ('%', &[Item::Literal('%')]),
];
/// Digits of fractions of a second by their directives.
const FRACTIONS: &[(char, usize)] = &[('L', 3), ('f', 6), ('s', 9)];
/// Literal texts that Go would read as part of a layout.
const MISTAKEN: &[&str] = &["Jan", "Mon", "MST", "PM", "pm"];
/// Abbreviations that are names of zones too, so that they mean something without a location.
const ZONES: &[(&str, i32)] = &[
    ("GMT", 0),
    ("UCT", 0),
    ("WET", 0),
    ("CET", 3600),
    ("MET", 3600),
    ("EET", 7200),
    ("EST", -5 * 3600),
    ("MST", -7 * 3600),
    ("HST", -10 * 3600),
];

/// A time that is printed.
pub struct Moment<'z> {
    pub ns: i64,
    /// Local date and time as nanoseconds, computed as if the zone were UTC.
    pub wall_ns: i64,
    /// None: UTC.
    pub zone: Option<&'z Zone>,
}

/// A format that was read.
#[derive(Debug)]
pub struct Format(Vec<Item>);

impl Format {
    /// Reads a format for the function of a name.
    ///
    /// # Errors The format has an unsupported directive; the message names it.
    pub fn new(function: &str, text: &str) -> Result<Format, String> {
        let wrong = |why: String| format!("the format {text:?} of {function}: {why}");
        if text.is_empty() {
            return Err(wrong("there is nothing in it".into()));
        }
        if text.contains(|char: char| char.is_ascii_digit()) {
            return Err(wrong("may have no digits, as in the Collector".into()));
        }
        if let Some(mistaken) = MISTAKEN.iter().find(|word| text.contains(**word)) {
            let why = format!("the Collector takes {mistaken} for a part of a time: leave it out");
            return Err(wrong(why));
        }
        let mut items: Vec<Item> = Vec::new();
        let mut chars = text.chars();
        while let Some(char) = chars.next() {
            if char != '%' {
                items.push(Item::Literal(char));
                continue;
            }
            let Some(directive) = chars.next() else {
                items.push(Item::Literal('%'));
                break;
            };
            if directive == 'o' {
                let why = "the Collector writes %o as '_' and the month: write %m or %q";
                return Err(wrong(why.into()));
            }
            if let Some((_, digits)) = FRACTIONS.iter().find(|(own, _)| *own == directive) {
                let Some(Item::Literal(point @ ('.' | ','))) = items.pop() else {
                    let why = format!("%{directive} must stand behind '.' or ','");
                    return Err(wrong(why));
                };
                items.push(Item::Fraction(point, *digits));
                continue;
            }
            let found = DIRECTIVES.iter().find(|(own, _)| *own == directive);
            let (_, more) = found.ok_or_else(|| wrong(format!("%{directive} means nothing")))?;
            items.extend_from_slice(more);
        }
        Ok(Format(items))
    }

    /// A time as a text.
    pub fn print(&self, moment: &Moment<'_>) -> String {
        let wall = moment.wall_ns;
        let (year, month, day) = date(wall);
        let month_name = MONTHS[(month - 1).clamp(0, 11) as usize];
        let day_name = DAYS[(wall.div_euclid(DAY) + 4).rem_euclid(7) as usize];
        let hour = wall.rem_euclid(DAY) / HOUR;
        let half_day_hour = (hour + 11) % 12 + 1;
        let mut out = String::new();
        for item in &self.0 {
            let text = match *item {
                Item::Year => format!("{year:04}"),
                Item::YearOfCentury => format!("{:02}", year.rem_euclid(100)),
                Item::Month(true) => format!("{month:02}"),
                Item::Month(false) => month.to_string(),
                Item::MonthName => month_name.to_owned(),
                Item::MonthShort => month_name[..SHORT].to_owned(),
                Item::Day(Pad::Zero) => format!("{day:02}"),
                Item::Day(Pad::Space) => format!("{day:2}"),
                Item::Day(Pad::None) => day.to_string(),
                Item::DayName => day_name.to_owned(),
                Item::DayShort => day_name[..SHORT].to_owned(),
                Item::Hour => format!("{hour:02}"),
                Item::HalfDayHour(true) => format!("{half_day_hour:02}"),
                Item::HalfDayHour(false) => half_day_hour.to_string(),
                Item::HalfDay(true) => if hour < 12 { "AM" } else { "PM" }.to_owned(),
                Item::HalfDay(false) => if hour < 12 { "am" } else { "pm" }.to_owned(),
                Item::Minute => format!("{:02}", wall.rem_euclid(HOUR) / MINUTE),
                Item::Second => format!("{:02}", wall.rem_euclid(MINUTE) / SECOND),
                Item::Fraction(point, digits) => fraction(wall.rem_euclid(SECOND), point, digits),
                Item::ZoneName => zone_name(moment),
                Item::Offset(offset) => print_offset(offset_s(moment), offset),
                Item::Literal(char) => char.to_string(),
            };
            out.push_str(&text);
        }
        out
    }

    /// Parses a text. The zone is the one in the text, else `zone` (none: UTC). Missing parts of
    /// the date are taken from today.
    ///
    /// # Errors
    /// The text is not of this format, or is no time.
    pub fn read<'a>(
        &self,
        text: &str,
        zone: Option<&Zone>,
        now: impl Fn() -> Result<i64, Failure>,
    ) -> Result<Value<'a>, Failure> {
        let mut reader = Reader {
            rest: text,
            parts: Parts::default(),
        };
        reader.all(&self.0).ok_or(Failure::Syntax)?;
        let parts = reader.parts;
        let today = |zone: Option<&Zone>| {
            let now = now()?;
            let offset = zone.map_or(0, |zone| zone.offset_s(now));
            now.checked_add(i64::from(offset) * SECOND)
                .ok_or(Failure::Math)
        };
        let (year, month, day) = match parts.year {
            Some(year) => (year, parts.month.unwrap_or(1), parts.day.unwrap_or(1)),
            None if self.has_date() => {
                let (month, day) = (parts.month.unwrap_or(1), parts.day.unwrap_or(1));
                let today = today(zone)?;
                let this = date(today).0;
                // A date more than a week ahead belongs to the previous year.
                let is_ahead = days_to(this, month, day) > today.div_euclid(DAY) + 7;
                (this - i64::from(is_ahead), month, day)
            }
            None => date(today(zone)?),
        };
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let days = match month {
            2 if leap || parts.year.is_none() => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        if !(1..=days).contains(&day) {
            return Err(Failure::Syntax);
        }
        let wall =
            i128::from(days_to(year, month, day)) * i128::from(DAY) + i128::from(parts.of_day_ns());
        let wall = i64::try_from(wall).map_err(|_| Failure::Math)?;
        parts.in_zone(wall, zone)
    }

    /// Whether a text of this format says anything of a date.
    fn has_date(&self) -> bool {
        self.0.iter().any(|item| {
            matches!(
                item,
                Item::Year
                    | Item::YearOfCentury
                    | Item::Month(_)
                    | Item::MonthName
                    | Item::MonthShort
                    | Item::Day(_)
            )
        })
    }
}

/// Days from 1970 to a date (the inverse of [`date`]).
fn days_to(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let from_march = (month + 9) % 12;
    let of_year = (153 * from_march + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// Without zeros at its end; nothing where it is 0.
fn fraction(ns: i64, point: char, digits: usize) -> String {
    let all = format!("{ns:09}");
    let digits = all[..digits].trim_end_matches('0');
    if digits.is_empty() {
        return String::new();
    }
    format!("{point}{digits}")
}

fn offset_s(moment: &Moment<'_>) -> i64 {
    (moment.wall_ns - moment.ns) / SECOND
}

fn zone_name(moment: &Moment<'_>) -> String {
    let Some(zone) = moment.zone else {
        return "UTC".to_owned();
    };
    let name = zone.abbreviation(moment.ns);
    name.unwrap_or_else(|| {
        let offset = Offset {
            parts: 2,
            colons: false,
        };
        print_offset(offset_s(moment), offset)
    })
}

fn print_offset(offset_s: i64, offset: Offset) -> String {
    let sign = if offset_s < 0 { '-' } else { '+' };
    let s = offset_s.abs();
    let parts = [s / 3600, s / 60 % 60, s % 60].map(|part| format!("{part:02}"));
    let between = if offset.colons { ":" } else { "" };
    format!("{sign}{}", parts[..offset.parts].join(between))
}

/// Fields parsed from a text.
#[derive(Debug, Default)]
struct Parts {
    year: Option<i64>,
    month: Option<i64>,
    day: Option<i64>,
    hour: i64,
    minute: i64,
    second: i64,
    ns: i64,
    is_afternoon: Option<bool>,
    offset_s: Option<i32>,
    zone_name: Option<String>,
    is_utc: bool,
}

impl Parts {
    fn of_day_ns(&self) -> i64 {
        let hour = match self.is_afternoon {
            Some(true) if self.hour < 12 => self.hour + 12,
            Some(false) if self.hour == 12 => 0,
            _ => self.hour,
        };
        hour * HOUR + self.minute * MINUTE + self.second * SECOND + self.ns
    }

    /// Converts the fields to nanoseconds since 1970.
    fn in_zone<'a>(&self, wall: i64, zone: Option<&Zone>) -> Result<Value<'a>, Failure> {
        let fixed = |offset_s: i32| {
            let ns = wall.checked_sub(i64::from(offset_s) * SECOND);
            let ns = ns.ok_or(Failure::Math)?;
            // The zone counts where it has this offset then.
            let own = zone.filter(|zone| zone.offset_s(ns) == offset_s).cloned();
            let other = || Zone::fixed(offset_s).ok_or(Failure::Math);
            Ok(Value::time(
                ns,
                match own {
                    Some(own) => Some(own),
                    None => other()?,
                },
            ))
        };
        if self.is_utc {
            return Ok(Value::Time(wall));
        }
        if let Some(offset_s) = self.offset_s {
            return fixed(offset_s);
        }
        let Some(name) = &self.zone_name else {
            let ns = match zone {
                None => Some(wall),
                Some(zone) => zone.at(wall),
            };
            return Ok(Value::time(ns.ok_or(Failure::Math)?, zone.cloned()));
        };
        if let Some(offset_s) = zone.and_then(|zone| zone.offset_of(name, wall)) {
            return fixed(offset_s);
        }
        if let Some(hours) = name.strip_prefix("GMT").filter(|hours| !hours.is_empty()) {
            let hours: i32 = hours.parse().map_err(|_| Failure::Syntax)?;
            return fixed(hours * 3600);
        }
        let known = ZONES.iter().find(|(known, _)| known == name);
        fixed(known.ok_or(Failure::Syntax)?.1)
    }
}

struct Reader<'t> {
    rest: &'t str,
    parts: Parts,
}

impl Reader<'_> {
    /// Reads all of a text; none where it is not of the format.
    fn all(&mut self, items: &[Item]) -> Option<()> {
        let mut items = items.iter().peekable();
        while let Some(item) = items.next() {
            match *item {
                Item::Literal(' ') => {
                    while items.next_if_eq(&&Item::Literal(' ')).is_some() {}
                    // One blank or more, or the end.
                    if !self.rest.is_empty() && !self.rest.starts_with(' ') {
                        return None;
                    }
                    self.rest = self.rest.trim_start_matches(' ');
                }
                Item::Literal(char) => self.rest = self.rest.strip_prefix(char)?,
                Item::Second => {
                    self.parts.second = self.digits(2, 2)?;
                    // A fraction may follow that the format does not have.
                    if !matches!(items.peek(), Some(Item::Fraction(..))) {
                        self.fraction()?;
                    }
                }
                item => self.item(item)?,
            }
        }
        self.rest.is_empty().then_some(())?;
        let parts = &self.parts;
        let fits = (0..24).contains(&parts.hour)
            && (0..60).contains(&parts.minute)
            && (0..60).contains(&parts.second);
        fits.then_some(())
    }

    fn item(&mut self, item: Item) -> Option<()> {
        match item {
            Item::Year => self.parts.year = Some(self.digits(4, 4)?),
            Item::YearOfCentury => {
                let year = self.digits(2, 2)?;
                self.parts.year = Some(if year >= 69 { 1900 + year } else { 2000 + year });
            }
            Item::Month(is_padded) => {
                let month = self.digits(if is_padded { 2 } else { 1 }, 2)?;
                self.parts.month = Some(month).filter(|month| (1..=12).contains(month));
                self.parts.month?;
            }
            Item::MonthName => self.parts.month = Some(self.name(&MONTHS, usize::MAX)? + 1),
            Item::MonthShort => self.parts.month = Some(self.name(&MONTHS, SHORT)? + 1),
            Item::Day(pad) => {
                if pad == Pad::Space {
                    self.rest = self.rest.strip_prefix(' ').unwrap_or(self.rest);
                }
                let day = self.digits(if pad == Pad::Zero { 2 } else { 1 }, 2)?;
                self.parts.day = Some(day);
            }
            Item::DayName => drop(self.name(&DAYS, usize::MAX)?),
            Item::DayShort => drop(self.name(&DAYS, SHORT)?),
            Item::Hour => self.parts.hour = self.digits(1, 2)?,
            Item::HalfDayHour(is_padded) => {
                let hour = self.digits(if is_padded { 2 } else { 1 }, 2)?;
                self.parts.hour = Some(hour).filter(|hour| *hour <= 12)?;
            }
            Item::HalfDay(is_upper) => {
                let names = if is_upper { ["AM", "PM"] } else { ["am", "pm"] };
                let place = names.iter().position(|name| self.rest.starts_with(name))?;
                self.parts.is_afternoon = Some(place == 1);
                self.rest = &self.rest[2..];
            }
            Item::Minute => self.parts.minute = self.digits(2, 2)?,
            Item::Second => self.parts.second = self.digits(2, 2)?,
            Item::Fraction(..) => self.fraction()?,
            Item::ZoneName => self.zone_name()?,
            Item::Offset(offset) => self.offset(offset)?,
            Item::Literal(char) => self.rest = self.rest.strip_prefix(char)?,
        }
        Some(())
    }

    fn digits(&mut self, least: usize, most: usize) -> Option<i64> {
        let len = self.rest.bytes().take(most).take_while(u8::is_ascii_digit);
        let len = len.count();
        if len < least {
            return None;
        }
        let (digits, rest) = self.rest.split_at(len);
        self.rest = rest;
        digits.parse().ok()
    }

    /// A name of a list, of which so many letters stand there, in any case.
    fn name(&mut self, names: &[&str], letters: usize) -> Option<i64> {
        let place = names.iter().position(|name| {
            let name = &name[..name.len().min(letters)];
            let own = self.rest.get(..name.len());
            own.is_some_and(|own| own.eq_ignore_ascii_case(name))
        })?;
        self.rest = &self.rest[names[place].len().min(letters)..];
        i64::try_from(place).ok()
    }

    /// A point or a comma, and any number of digits behind it, if they are there.
    fn fraction(&mut self) -> Option<()> {
        let Some(digits) = self.rest.strip_prefix(['.', ',']) else {
            return Some(());
        };
        let len = digits.bytes().take_while(u8::is_ascii_digit).count();
        if len == 0 {
            return Some(());
        }
        let (digits, rest) = digits.split_at(len);
        let padded = format!("{:0<9}", &digits[..len.min(9)]);
        self.parts.ns = padded.parse().ok()?;
        self.rest = rest;
        Some(())
    }

    /// `UTC`, or an abbreviation as Go knows them (Go: `parseTimeZone`).
    fn zone_name(&mut self) -> Option<()> {
        if let Some(rest) = self.rest.strip_prefix("UTC") {
            self.parts.is_utc = true;
            self.rest = rest;
            return Some(());
        }
        let capitals = self.rest.bytes().take_while(u8::is_ascii_uppercase).count();
        let len = match capitals {
            3 if self.rest.starts_with("GMT") => {
                let hours = self.rest[3..].strip_prefix(['+', '-']);
                let digits = hours.map_or(0, |hours| {
                    let digits = hours.bytes().take(2).take_while(u8::is_ascii_digit);
                    digits.count()
                });
                if digits > 0 { 4 + digits } else { 3 }
            }
            3 => 3,
            4 if self.rest[..4].ends_with('T') || self.rest.starts_with("WITA") => 4,
            5 if self.rest[..5].ends_with('T') => 5,
            _ => return None,
        };
        let (name, rest) = self.rest.split_at(len);
        self.parts.zone_name = Some(name.to_owned());
        self.rest = rest;
        Some(())
    }

    fn offset(&mut self, offset: Offset) -> Option<()> {
        let sign = match self.rest.bytes().next()? {
            b'+' => 1,
            b'-' => -1,
            _ => return None,
        };
        self.rest = &self.rest[1..];
        let mut total = 0;
        for part in 0..offset.parts {
            if part > 0 && offset.colons {
                self.rest = self.rest.strip_prefix(':')?;
            }
            let value = self.digits(2, 2)?;
            let most = if part == 0 { 24 } else { 60 };
            total = total * 60 + Some(value).filter(|value| *value <= most)?;
        }
        for _ in offset.parts..3 {
            total *= 60;
        }
        self.parts.offset_s = Some(sign * i32::try_from(total).ok()?);
        Some(())
    }
}
