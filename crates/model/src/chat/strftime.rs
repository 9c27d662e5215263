//! Dates for templates that tell the model what day it is. UTC, with English names.

/// The variable in which `strftime_now` finds the time.
pub(super) const NOW: &str = "__now_unix_s";

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
const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// Seconds since 1970, where the platform has a clock.
pub(super) fn now_unix_s() -> Option<i64> {
    if cfg!(target_arch = "wasm32") {
        return None;
    }
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).ok()?;
    i64::try_from(since.as_secs()).ok()
}

/// Python's `strftime` for the directives that templates use; others stay as they are. `%-d` and
/// its like drop leading zeros.
pub(super) fn format(format: &str, unix_s: i64) -> String {
    let (days, second) = (unix_s.div_euclid(86_400), unix_s.rem_euclid(86_400));
    let (year, month, day) = civil(days);
    let weekday = DAYS[(days + 3).rem_euclid(7) as usize];
    let month_name = MONTHS[month as usize - 1];
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let mut out = String::new();
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        let bare = c == '%' && chars.as_str().starts_with('-') && chars.next().is_some();
        let two = |value: i64| if bare { value.to_string() } else { format!("{value:02}") };
        match (c, if c == '%' { chars.next() } else { None }) {
            ('%', Some('Y')) => out.push_str(&year.to_string()),
            ('%', Some('y')) => out.push_str(&two(year.rem_euclid(100))),
            ('%', Some('m')) => out.push_str(&two(month)),
            ('%', Some('d')) => out.push_str(&two(day)),
            ('%', Some('H')) => out.push_str(&two(hour)),
            ('%', Some('I')) => out.push_str(&two((hour + 11) % 12 + 1)),
            ('%', Some('M')) => out.push_str(&two(minute)),
            ('%', Some('S')) => out.push_str(&two(second)),
            ('%', Some('p')) => out.push_str(if hour < 12 { "AM" } else { "PM" }),
            ('%', Some('B')) => out.push_str(month_name),
            ('%', Some('b')) => out.push_str(&month_name[..3]),
            ('%', Some('A')) => out.push_str(weekday),
            ('%', Some('a')) => out.push_str(&weekday[..3]),
            ('%', Some('%')) => out.push('%'),
            (c, next) => out.extend([Some(c), bare.then_some('-'), next].into_iter().flatten()),
        }
    }
    out
}

/// Year, month and day of a day counted from 1970-01-01, in the Gregorian calendar. Years run from
/// March here, so that the leap day is the last of its year.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let (day, month) = (day_of_year - (153 * shifted + 2) / 5 + 1, (shifted + 2) % 12 + 1);
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::format;

    #[test]
    fn the_leap_day_and_both_sides_of_1970() {
        assert_eq!(format("%A %d %B %Y, %H:%M:%S", 951_782_399 + 1), "Tuesday 29 February 2000, 00:00:00");
        assert_eq!(format("%a %-d %b %y %I%p", 0), "Thu 1 Jan 70 12AM");
        assert_eq!(format("%Y-%m-%d", -1), "1969-12-31");
        assert_eq!(format("%d/%m/%Y", 4_107_542_400), "01/03/2100");
    }

    #[test]
    fn unknown_directives_and_a_lone_percent_stay() {
        assert_eq!(format("100%% %Q %-Q %", 0), "100% %Q %-Q %");
    }
}
