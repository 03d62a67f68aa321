//! Times of signatures, and how far they may be from the gateway's clock.

use std::time::{Duration, SystemTime};

use chrono::{DateTime, NaiveDate, SecondsFormat, Utc};

use super::error::AuthError;

/// How far the clocks of a caller and the gateway may differ, either way.
pub(super) const MAX_SKEW: Duration = Duration::from_mins(15);

/// The longest validity of a presigned request in seconds: a week.
pub(super) const MAX_EXPIRES_SECONDS: u64 = 604_800;

/// Parses a time of the form `yyyyMMdd'T'HHmmss'Z'`.
pub(super) fn parse(text: &str) -> Option<SystemTime> {
    let number = |from: usize, to: usize| -> Option<u32> {
        let digits = text.get(from..to)?;
        // `parse` accepts a sign.
        let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| digits.parse().ok()).flatten()
    };
    if text.len() != 16 || text.get(8..9) != Some("T") || text.get(15..) != Some("Z") {
        return None;
    }
    let year = i32::try_from(number(0, 4)?).ok()?;
    let date = NaiveDate::from_ymd_opt(year, number(4, 6)?, number(6, 8)?)?;
    let time = date.and_hms_opt(number(9, 11)?, number(11, 13)?, number(13, 15)?)?;
    Some(time.and_utc().into())
}

/// A time as error documents show it: `2013-05-24T00:00:00Z`.
pub(super) fn display(time: SystemTime) -> String {
    DateTime::<Utc>::from(time).to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// Checks the time of a request that is signed in a header. `text` is the time as sent.
pub(super) fn check_header(time: SystemTime, text: &str, now: SystemTime) -> Result<(), AuthError> {
    let skew = now.duration_since(time).unwrap_or_else(|ahead| ahead.duration());
    if skew <= MAX_SKEW {
        return Ok(());
    }
    Err(AuthError::Skewed {
        request_time: text.to_owned(),
        server_time: display(now),
    })
}

/// Checks the time of a presigned request. There is no grace after its end, and one of 0 seconds has always expired.
pub(super) fn check_presigned(
    time: SystemTime,
    expires_seconds: u64,
    now: SystemTime,
) -> Result<(), AuthError> {
    let expired = || AuthError::Expired {
        expires_seconds,
        expired_at: display(time + Duration::from_secs(expires_seconds)),
        server_time: display(now),
    };
    match now.duration_since(time) {
        _ if expires_seconds == 0 => Err(expired()),
        Ok(age) if age > Duration::from_secs(expires_seconds) => Err(expired()),
        Err(ahead) if ahead.duration() > MAX_SKEW => Err(AuthError::NotYetValid),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn time() -> SystemTime {
        parse("20130524T000000Z").unwrap()
    }

    #[test]
    fn times_have_one_form() {
        assert_eq!(
            time().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs(),
            1_369_353_600
        );
        assert_eq!(display(time()), "2013-05-24T00:00:00Z");
        let malformed = [
            "",
            "20130524",
            "20130524T000000",
            "20130524T000000z",
            "20130524 000000Z",
            "2013-524T000000Z",
            "+0130524T000000Z",
            "20130524T+10000Z",
            "20131324T000000Z",
            "20130230T000000Z",
            "20130524T240000Z",
            "20130524T000060Z",
            "2013052\u{e9}T00000Z",
            "2013-05-24T00:00:00Z",
        ];
        for text in malformed {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn header_signatures_are_valid_for_15_minutes_either_way() {
        let check = |now| check_header(time(), "20130524T000000Z", now);
        assert_eq!(check(time() + MAX_SKEW), Ok(()));
        assert_eq!(check(time() - MAX_SKEW), Ok(()));
        assert_eq!(
            check(time() + MAX_SKEW + SECOND),
            Err(AuthError::Skewed {
                request_time: "20130524T000000Z".to_owned(),
                server_time: "2013-05-24T00:15:01Z".to_owned(),
            })
        );
        assert!(check(time() - MAX_SKEW - SECOND).is_err());
    }

    #[test]
    fn presigned_requests_have_no_grace() {
        let check = |now| check_presigned(time(), 60, now);
        assert_eq!(check(time() + 60 * SECOND), Ok(()));
        assert_eq!(
            check(time() + 61 * SECOND),
            Err(AuthError::Expired {
                expires_seconds: 60,
                expired_at: "2013-05-24T00:01:00Z".to_owned(),
                server_time: "2013-05-24T00:01:01Z".to_owned(),
            })
        );
        assert_eq!(check(time() - MAX_SKEW), Ok(()));
        assert_eq!(check(time() - MAX_SKEW - SECOND), Err(AuthError::NotYetValid));
        for now in [time() - SECOND, time(), time() + SECOND] {
            let checked = check_presigned(time(), 0, now);
            assert!(matches!(checked, Err(AuthError::Expired { .. })), "{checked:?}");
        }
    }
}
